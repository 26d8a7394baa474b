"""Secrets Manager: names, values and their keys.

Conditions: API reference of Secrets Manager, CreateSecret, PutSecretValue, GetSecretValue, TagResource.
"""

from __future__ import annotations

import re

from cfngen.sandbox.services import keys
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_VALUE_BYTES = 65_536
MAX_TAGS = 50


@rule("secretsmanager", "CreateSecret", "TagResource")
def check_tags(call: PendingCall) -> None:
    """Refuse two tags of one key, and more tags than a new secret can have."""
    tag_keys = [tag["Key"] for tag in call.get("Tags") or []]
    if len(set(tag_keys)) < len(tag_keys):
        raise Refused(
            "InvalidParameterException", "Duplicate tag keys found. Please note that Tag keys are case sensitive"
        )
    if call.operation == "CreateSecret" and len(tag_keys) > MAX_TAGS:
        raise Refused("InvalidParameterException", f"You can't have more than {MAX_TAGS} tags on a secret.")


@rule("secretsmanager", "CreateSecret")
def check_name(call: PendingCall) -> None:
    """Refuse an invalid name, and the name of a deleted secret within its recovery window."""
    secret_name = call.get("Name", "")
    if not re.fullmatch(r"[A-Za-z0-9/_+=.@-]{1,512}", secret_name):
        raise Refused(
            "ValidationException",
            "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
        )
    existing = call.backend.secrets.get(secret_name)
    if existing is not None and existing.is_deleted():
        raise Refused(
            "InvalidRequestException",
            "You can't create this secret because a secret with this name is already scheduled for deletion.",
        )


@rule("secretsmanager", "CreateSecret", "PutSecretValue", "UpdateSecret")
def check_value(call: PendingCall) -> None:
    """Refuse a value that is too long, or that its KMS key cannot encrypt."""
    text = call.get("SecretString")
    if text is None:
        return
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise Refused(
            "ValidationException",
            "1 validation error detected: Value at 'secretString' failed to satisfy constraint: Member must have "
            f"length less than or equal to {MAX_VALUE_BYTES}",
        )
    key = call.get("KmsKeyId")
    if not key and call.operation != "CreateSecret":
        key = _key_of_secret(call)
    if key and keys.find_key(call.region, key) is None and not keys.is_usable(call.region, key):
        raise Refused("AccessDeniedException", "Access to KMS is not allowed")
    if key and not keys.is_usable(call.region, key):
        raise Refused(
            "EncryptionFailure",
            "Secrets Manager can't encrypt the protected secret text using the provided KMS key. Check that the KMS "
            "key is available, enabled, and not in an invalid state.",
        )


@rule("secretsmanager", "GetSecretValue")
def check_decryption(call: PendingCall) -> None:
    """Refuse to return a value that its KMS key cannot decrypt."""
    key = _key_of_secret(call)
    if key and not keys.is_usable(call.region, key):
        message = "Secrets Manager can't decrypt the protected secret text using the provided KMS key."
        raise Refused("DecryptionFailure", message)


@rule("secretsmanager", "PutSecretValue", "UpdateSecret", "TagResource", "UntagResource")
def check_not_scheduled_for_deletion(call: PendingCall) -> None:
    """Refuse to change a secret that is scheduled for deletion."""
    existing = call.backend.secrets.get(call.get("SecretId", ""))
    if existing is not None and existing.is_deleted():
        raise Refused(
            "InvalidRequestException",
            "You can't perform this operation on the secret because it was marked for deletion.",
        )


def _key_of_secret(call: PendingCall) -> str:
    """Return the KMS key of an existing secret; empty for the default key, or without such a secret."""
    identifier = call.get("SecretId", "")
    if identifier not in call.backend.secrets:
        return ""
    return str(call.backend.secrets[identifier].kms_key_id or "")
