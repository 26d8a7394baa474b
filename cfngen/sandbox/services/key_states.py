"""Keys of KMS, as the services that encrypt with them see them."""

from __future__ import annotations

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.kms.models import kms_backends

ENABLED = "Enabled"


def key_fault(region: str, key: str) -> str:
    """Say why nothing can be encrypted with a key.

    Args:
        region: where.
        key: its id, ARN or alias; empty for the service's own.

    Returns:
        EC2's words (EC2 user guide, "Instance terminates immediately"); empty if it can be used.
    """
    if not key or key.removeprefix(f"arn:aws:kms:{region}:{DEFAULT_ACCOUNT_ID}:").startswith("alias/aws/"):
        return ""
    backend = kms_backends[DEFAULT_ACCOUNT_ID][region]
    alias = backend.get_alias_name(key)
    identifier = backend.get_key_id_from_alias(alias) if alias.startswith("alias/") else backend.get_key_id(key)
    if identifier not in backend.keys:
        return "Client.InvalidKMSKey.NotFound: The KMS key provided does not exist"
    state = backend.keys[identifier].key_state
    return (
        "" if state == ENABLED else "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
    )
