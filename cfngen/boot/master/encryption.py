"""Encryption of Secrets in etcd, with a key that is stored in the secret of the certificate authorities."""

from __future__ import annotations

import base64
import json
import secrets
from typing import TYPE_CHECKING

from ..machine import Machine

if TYPE_CHECKING:
    from ..contract import Bundle

KEY_NAME = "encryption.key"
CONFIGURATION_FILE = "/etc/kubernetes/encryption.json"


def new_key() -> str:
    """Return a key for secretbox (XSalsa20 and Poly1305): 32 random bytes in base64."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def write_configuration(machine: Machine, bundle: Bundle) -> None:
    """Write the API server's EncryptionConfiguration.

    New data is encrypted with the first provider. The provider `identity` reads data that was stored unencrypted.
    """
    providers = [{"secretbox": {"keys": [{"name": "cfngen", "secret": bundle[KEY_NAME]}]}}, {"identity": {}}]
    machine.write(
        CONFIGURATION_FILE,
        json.dumps(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "EncryptionConfiguration",
                "resources": [{"resources": ["secrets"], "providers": providers}],
            }
        ),
        0o600,
    )
