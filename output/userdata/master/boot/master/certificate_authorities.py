"""The certificate authorities: created once in the cluster's life, stored in a secret that only masters may read."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from ..machine import HOME, BootError, Machine
from . import custom_ca, encryption

if TYPE_CHECKING:
    from ..contract import Bundle, MasterBoot

PKI = "/etc/kubernetes/pki/"
FILES = (
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
    "sa.key",
    "sa.pub",
)
# Keys of the bundle: when the cluster was initialised, and the id of the last restore request it has completed.
INITIALISED = "initialised"
RESTORED = "restored"
RESTORE_HINT = "store the secret's previous value (AWSPREVIOUS) as a new version"
KUBEADM_CONFIG = HOME + "/kubeadm.yaml"


def load(machine: Machine, boot: MasterBoot) -> Bundle:
    """Return the bundle in the secret, or an empty one if the secret has no value.

    It contains the FILES (PEM by name), the key for encryption at rest, `initialised` and `restored`.

    Raises:
        BootError: some of the FILES are missing in the bundle.
    """
    secret = boot.facts["caSecretArn"]
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=secret)
    boot.secret_version = response.get("VersionId", "")
    bundle: Bundle = json.loads(response.get("SecretString") or "{}")
    missing = [name for name in FILES if name not in bundle]
    if bundle and missing:
        raise BootError(f"secret {secret} lacks {', '.join(missing)}", RESTORE_HINT)
    return bundle


def store(machine: Machine, boot: MasterBoot, bundle: Bundle) -> Bundle:
    """Write the bundle unless the secret has changed since it was read; return the secret's new content.

    The request token is derived from the version that was read, so Secrets Manager rejects the second of two writers.
    """
    secret = boot.facts["caSecretArn"]
    token = uuid.uuid5(uuid.NAMESPACE_URL, secret + boot.secret_version)
    machine.aws(
        "secretsmanager",
        "put_secret_value",
        "ResourceExistsException",
        SecretId=secret,
        SecretString=json.dumps(bundle),
        ClientRequestToken=str(token),
    )
    return load(machine, boot)


def are_installed(machine: Machine, bundle: Bundle) -> bool:
    """Return whether the bundle's certificate authorities are in kubeadm's folder."""
    return all(machine.read(PKI + name) == bundle[name] for name in FILES)


def install(machine: Machine, bundle: Bundle) -> str:
    """Write the bundle's certificate authorities to kubeadm's folder; return what was done."""
    if are_installed(machine, bundle):
        return "certificate authorities in place"
    # Leaf certificates signed by other authorities are removed too; kubeadm creates new ones.
    machine.remove(PKI)
    for name in FILES:
        machine.write(PKI + name, bundle[name], 0o600)
    return "installed the certificate authorities of the secret"


def create(machine: Machine, boot: MasterBoot) -> tuple[Bundle, str]:
    """Create the certificate authorities and store them in the secret; return the bundle and what was done.

    If another master has stored its authorities first, the bundle contains those, and this master uses them.
    """
    is_custom = custom_ca.fetch(machine, boot, PKI)
    # `kubeadm init phase certs sa` takes no --config and asks the internet for a version; `all` does neither.
    machine.run("kubeadm", "init", "phase", "certs", "all", "--config", KUBEADM_CONFIG)
    files = {name: machine.read(PKI + name) for name in FILES}
    bundle = store(machine, boot, {**files, encryption.KEY: encryption.new_key()})
    if not are_installed(machine, bundle):
        return bundle, install(machine, bundle)
    if is_custom:
        return bundle, "used the supplied certificate authority, created the others"
    return bundle, "created the certificate authorities"


def add_encryption_key(machine: Machine, boot: MasterBoot, bundle: Bundle) -> Bundle:
    """Return the bundle with a key for encryption at rest, which is created and stored if the bundle has none.

    Bundles of older boot programs, and those that operators wrote, may have none.
    """
    for _ in range(3):
        if not bundle.get(encryption.KEY):
            bundle = store(machine, boot, {**bundle, encryption.KEY: encryption.new_key()})
        if bundle.get(encryption.KEY):
            return bundle
    raise _contended()


def mark_initialised(machine: Machine, boot: MasterBoot, restored: str) -> None:
    """Record in the secret that the cluster is initialised: a blank volume then never leads to a second cluster.

    Args:
        machine: the master.
        boot: this run of the program.
        restored: id of the restore request that the cluster has completed; "" if there is none.

    Raises:
        BootError: another writer keeps changing the secret.
    """
    for _ in range(3):
        bundle = load(machine, boot)
        # A time that is already in the bundle is not changed.
        marked = {INITIALISED: machine.time(), **bundle}
        if restored:
            marked[RESTORED] = restored
        if marked == bundle or store(machine, boot, marked) == marked:
            return
    raise _contended()


def _contended() -> BootError:
    """Return the error after three attempts to write the secret, each of which another writer has overtaken."""
    return BootError("the secret of the certificate authorities keeps changing", "check who else writes to it")
