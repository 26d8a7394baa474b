"""The certificate authorities: created once in the cluster's life, stored in a secret that only masters may read.

The secret's content is called the bundle: a JSON object with the PEM text of each of CA_FILES by the file's name, the
key that encrypts Secrets in etcd (`encryption.KEY_NAME`), and the entries INITIALISED_AT and RESTORED_REQUEST_ID.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from ..machine import HOME, BootError, Machine
from . import custom_ca, encryption

if TYPE_CHECKING:
    from ..contract import Bundle, MasterBoot

PKI = "/etc/kubernetes/pki/"
# Paths below PKI of the files in the bundle: three certificate authorities, and the key pair for service accounts.
CA_FILES = (
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
    "sa.key",
    "sa.pub",
)
INITIALISED_AT = "initialised"
# Key in the bundle: the id of the last request to restore etcd that the cluster has completed.
RESTORED_REQUEST_ID = "restored"
SECRET_RECOVERY_HINT = "store the secret's previous value (AWSPREVIOUS) as a new version"
KUBEADM_CONFIG = HOME + "/kubeadm.yaml"
# The most attempts to write the secret; each fails if another master changes the secret at the same time.
MAX_WRITE_ATTEMPTS = 3


def load(machine: Machine, boot: MasterBoot) -> Bundle:
    """Return the bundle from the certificate authorities' secret; an empty one if no master has stored it yet.

    The version that was read is remembered in `boot.secret_version`, for `store`.

    Raises:
        BootError: some of the CA_FILES are missing in the bundle.
    """
    secret_arn = boot.facts["caSecretArn"]
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=secret_arn)
    boot.secret_version = response.get("VersionId", "")
    bundle: Bundle = json.loads(response.get("SecretString") or "{}")
    missing_files = [name for name in CA_FILES if name not in bundle]
    if bundle and missing_files:
        raise BootError(f"secret {secret_arn} lacks {', '.join(missing_files)}", SECRET_RECOVERY_HINT)
    return bundle


def store(machine: Machine, boot: MasterBoot, bundle: Bundle) -> Bundle:
    """Write the bundle to the secret, unless another master has changed the secret since `load` read it.

    The request token is derived from the version that was read, so of two masters that write at the same time Secrets
    Manager accepts only the first.

    Returns:
        The bundle that the secret contains afterwards: this one, or the one that another master stored first.
    """
    secret_arn = boot.facts["caSecretArn"]
    token = uuid.uuid5(uuid.NAMESPACE_URL, secret_arn + boot.secret_version)
    machine.aws(
        "secretsmanager",
        "put_secret_value",
        "ResourceExistsException",
        SecretId=secret_arn,
        SecretString=json.dumps(bundle),
        ClientRequestToken=str(token),
    )
    return load(machine, boot)


def are_installed(machine: Machine, bundle: Bundle) -> bool:
    """Return whether kubeadm's folder contains exactly the bundle's certificate authorities."""
    return all(machine.read(PKI + name) == bundle[name] for name in CA_FILES)


def install(machine: Machine, bundle: Bundle) -> str:
    """Write the bundle's certificate authorities to kubeadm's folder; return what was done, for the log."""
    if are_installed(machine, bundle):
        return "certificate authorities in place"
    # Leaf certificates signed by other authorities are removed too; kubeadm creates new ones.
    machine.remove(PKI)
    for name in CA_FILES:
        machine.write(PKI + name, bundle[name], 0o600)
    return "installed the certificate authorities of the secret"


def create(machine: Machine, boot: MasterBoot) -> tuple[Bundle, str]:
    """Create the certificate authorities, except one that the user supplies, and store them in the secret.

    Returns:
        The bundle in the secret, and what was done. If another master has stored certificate authorities first, the
        bundle contains those, and this master uses them.
    """
    is_custom = custom_ca.write_files(machine, boot, PKI)
    # This also creates leaf certificates, as only the phase `all` is suitable: kubeadm's phase `certs sa` does not
    # accept --config, and asks the internet for a version.
    machine.run("kubeadm", "init", "phase", "certs", "all", "--config", KUBEADM_CONFIG)
    files = {name: machine.read(PKI + name) for name in CA_FILES}
    bundle = store(machine, boot, {**files, encryption.KEY_NAME: encryption.new_key()})
    if not are_installed(machine, bundle):
        return bundle, install(machine, bundle)
    if is_custom:
        return bundle, "used the supplied certificate authority, created the others"
    return bundle, "created the certificate authorities"


def add_encryption_key(machine: Machine, boot: MasterBoot, bundle: Bundle) -> Bundle:
    """Return the bundle with a key for encryption at rest; if the bundle has no key, create and store one.

    Bundles that were stored by older boot programs or by operators may have no key.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        if not bundle.get(encryption.KEY_NAME):
            bundle = store(machine, boot, {**bundle, encryption.KEY_NAME: encryption.new_key()})
        if bundle.get(encryption.KEY_NAME):
            return bundle
    raise _conflict_error()


def mark_initialised(machine: Machine, boot: MasterBoot, restored: str) -> None:
    """Record in the secret that the cluster is initialised: a blank volume then never leads to a second, empty cluster.

    Args:
        restored: id of the restore request that the cluster has completed; "" if there is none.

    Raises:
        BootError: another writer keeps changing the secret.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        bundle = load(machine, boot)
        # If the bundle already has the time of initialisation, that time is kept.
        marked_bundle = {INITIALISED_AT: machine.time(), **bundle}
        if restored:
            marked_bundle[RESTORED_REQUEST_ID] = restored
        if marked_bundle == bundle or store(machine, boot, marked_bundle) == marked_bundle:
            return
    raise _conflict_error()


def _conflict_error() -> BootError:
    return BootError("the secret of the certificate authorities keeps changing", "check who else writes to it")
