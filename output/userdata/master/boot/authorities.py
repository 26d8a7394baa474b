"""The certificate authorities: made once in the cluster's life, kept in a secret that only masters may read."""

from __future__ import annotations

import json
import uuid
from typing import Any

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
INITIALISED = "initialised"
RESTORE = "put the secret's previous value (AWSPREVIOUS) as a new version"
KUBEADM = HOME + "/kubeadm.yaml"


def load(machine: Machine, config: dict[str, Any]) -> dict[str, str]:
    """Return the bundle of the secret (file name: PEM; `initialised`: since when the cluster exists), or an empty one.

    Raises:
        BootError: the secret holds something else.
    """
    secret = config["facts"]["caSecretArn"]
    answer = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=secret)
    config["secretVersion"] = answer.get("VersionId", "")
    bundle: dict[str, str] = json.loads(answer.get("SecretString") or "{}")
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


def install(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> str:
    """Put the authorities where kubeadm looks for them; make and store them if there are none yet."""
    if not bundle:
        # `kubeadm init phase certs sa` takes no --config and asks the internet for a version; `all` does neither.
        machine.run("kubeadm", "init", "phase", "certs", "all", "--config", KUBEADM)
        bundle = store(machine, config, {name: machine.read(PKI + name) for name in FILES})
        if installed(machine, bundle):
            return "made certificate authorities"
    if not installed(machine, bundle):
        # Leaf certificates of other authorities would stay in use: all of them are made anew.
        machine.remove(PKI)
        for name in FILES:
            machine.write(PKI + name, bundle[name], 0o600)
        return "restored certificate authorities"
    return "certificate authorities in place"


def mark(machine: Machine, config: dict[str, Any]) -> None:
    """Note in the secret that the cluster exists: from now on a blank volume never becomes a second cluster.

    Raises:
        BootError: another writer keeps changing the secret.
    """
    for _ in range(3):
        bundle = load(machine, config)
        if bundle.get(INITIALISED):
            return
        store(machine, config, {**bundle, INITIALISED: machine.time()})
    raise BootError("the secret of the certificate authorities keeps changing", "who else writes it?")
