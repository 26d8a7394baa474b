"""Fetches the certificate authority that the user supplies in a secret, and checks it before kubeadm signs with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import MasterBoot

# Keys in the user's secret, and names of the files.
CERTIFICATE_NAME, KEY_NAME = "ca.crt", "ca.key"
# A certificate authority that expires sooner is rejected: the cluster stops working when it expires.
MIN_VALIDITY_SECONDS = 30 * 24 * 3600


def write_files(machine: Machine, boot: MasterBoot, folder: str) -> bool:
    """Write `ca.crt` and `ca.key` from the user's secret into `folder`; return whether such a secret is configured.

    Args:
        folder: the folder, with a slash at its end.
    """
    arn = boot.config.get("ownCa")
    if not arn:
        return False
    hint = f"correct the secret {arn}; the boot is retried automatically"
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=arn)
    try:
        content = json.loads(response.get("SecretString", ""))
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(
        str(content.get(name, "")).strip() for name in (CERTIFICATE_NAME, KEY_NAME)
    ):
        raise BootError(f"secret {arn} does not contain a JSON object with {CERTIFICATE_NAME} and {KEY_NAME}", hint)
    for name in (CERTIFICATE_NAME, KEY_NAME):
        machine.write(folder + name, content[name].strip() + "\n", 0o600)
    problem = _problem(machine, folder)
    if problem:
        machine.remove(folder + CERTIFICATE_NAME, folder + KEY_NAME)
        raise BootError(f"secret {arn}: {problem}", hint)
    return True


def _problem(machine: Machine, folder: str) -> str:
    """Return what is wrong with the certificate authority in `folder`, or "" if it is usable."""
    inspect_certificate = ("openssl", "x509", "-noout", "-in", folder + CERTIFICATE_NAME)
    code, public_key_of_certificate = machine.run(*inspect_certificate, "-pubkey", expect=(0, 1))
    if code:
        return f"{CERTIFICATE_NAME} is not a PEM certificate"
    # The empty line on standard input is a passphrase; without it openssl would ask for one.
    code, public_key_of_key = machine.run(
        "openssl", "pkey", "-pubout", "-passin", "stdin", "-in", folder + KEY_NAME, stdin="\n", expect=(0, 1)
    )
    if code:
        return f"{KEY_NAME} is not a PEM private key, or has a passphrase"
    if public_key_of_certificate.strip() != public_key_of_key.strip():
        return f"{KEY_NAME} is not the key of {CERTIFICATE_NAME}"
    _, constraints = machine.run(*inspect_certificate, "-ext", "basicConstraints", expect=(0, 1))
    if "CA:TRUE" not in constraints:
        return f"{CERTIFICATE_NAME} is not a certificate authority's (basicConstraints lacks CA:TRUE)"
    expires_soon, _ = machine.run(*inspect_certificate, "-checkend", str(MIN_VALIDITY_SECONDS), expect=(0, 1))
    if expires_soon:
        return f"{CERTIFICATE_NAME} expires within {MIN_VALIDITY_SECONDS // 86400} days, or has expired"
    return ""
