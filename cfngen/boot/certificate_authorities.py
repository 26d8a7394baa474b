"""The certificate authorities: made once in the cluster's life, kept in a secret that only masters may read."""

from __future__ import annotations

import json
import uuid
from typing import Any

from . import custom_ca, encryption
from .machine import HOME, BootError, Machine

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
# Since when the cluster exists, and the last restore (`restore.json`'s id) that it went through.
INITIALISED = "initialised"
RESTORED = "restored"
RESTORE = "put the secret's previous value (AWSPREVIOUS) as a new version"
KUBEADM = HOME + "/kubeadm.yaml"


def load(machine: Machine, config: dict[str, Any]) -> dict[str, str]:
    """Return the bundle of the secret, or an empty one.

    It holds files (name: PEM), the key of encryption at rest, `initialised` and `restored`.

    Raises:
        BootError: the secret holds something else.
    """
    secret = config["facts"]["caSecretArn"]
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=secret)
    config["secretVersion"] = response.get("VersionId", "")
    bundle: dict[str, str] = json.loads(response.get("SecretString") or "{}")
    missing = [name for name in FILES if name not in bundle]
    if bundle and missing:
        raise BootError(f"secret {secret} lacks {', '.join(missing)}", RESTORE)
    return bundle


def store(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> dict[str, str]:
    """Write the bundle if the secret still is as it was read; return what it holds now.

    The request token follows from the version that was read, so of two writers Secrets Manager refuses the second.
    """
    secret = config["facts"]["caSecretArn"]
    token = uuid.uuid5(uuid.NAMESPACE_URL, secret + config["secretVersion"])
    machine.aws(
        "secretsmanager",
        "put_secret_value",
        "ResourceExistsException",
        SecretId=secret,
        SecretString=json.dumps(bundle),
        ClientRequestToken=str(token),
    )
    return load(machine, config)


def installed(machine: Machine, bundle: dict[str, str]) -> bool:
    """Return whether kubeadm finds the authorities of the bundle."""
    return all(machine.read(PKI + name) == bundle[name] for name in FILES)


def place(machine: Machine, bundle: dict[str, str]) -> str:
    """Put the bundle's authorities where kubeadm looks for them; return what was done."""
    if installed(machine, bundle):
        return "certificate authorities in place"
    # Leaf certificates of other authorities would stay in use: all of them are made anew.
    machine.remove(PKI)
    for name in FILES:
        machine.write(PKI + name, bundle[name], 0o600)
    return "restored certificate authorities"


def make(machine: Machine, config: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Make the authorities and store them; return the bundle and what was done.

    Another master may be faster: then its authorities are in the bundle, and these here are forgotten.
    """
    is_custom = custom_ca.fetch(machine, config, PKI)
    # `kubeadm init phase certs sa` takes no --config and asks the internet for a version; `all` does neither.
    machine.run("kubeadm", "init", "phase", "certs", "all", "--config", KUBEADM)
    files = {name: machine.read(PKI + name) for name in FILES}
    bundle = store(machine, config, {**files, encryption.KEY: encryption.new_key()})
    if not installed(machine, bundle):
        return bundle, place(machine, bundle)
    if is_custom:
        return bundle, "took the supplied certificate authority, made the others"
    return bundle, "made certificate authorities"


def complete(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> dict[str, str]:
    """Return the bundle with a key of encryption at rest: one of an older program, or a supplied one, may have none."""
    for _ in range(3):
        if not bundle.get(encryption.KEY):
            bundle = store(machine, config, {**bundle, encryption.KEY: encryption.new_key()})
        if bundle.get(encryption.KEY):
            return bundle
    raise _contended()


def mark(machine: Machine, config: dict[str, Any], restored: str) -> None:
    """Note in the secret that the cluster exists: from now on a blank volume never becomes a second cluster.

    Args:
        machine: the master.
        config: its configuration.
        restored: id of the request to restore that the cluster has gone through, if there is one.

    Raises:
        BootError: another writer keeps changing the secret.
    """
    for _ in range(3):
        bundle = load(machine, config)
        marked = {INITIALISED: machine.time(), **bundle, **({RESTORED: restored} if restored else {})}
        if marked == bundle or store(machine, config, marked) == marked:
            return
    raise _contended()


def _contended() -> BootError:
    return BootError("the secret of the certificate authorities keeps changing", "who else writes it?")
