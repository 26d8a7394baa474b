"""Secrets Manager: names, values and their keys.

Conditions are those of the API reference of Secrets Manager: CreateSecret, PutSecretValue, GetSecretValue, TagResource.
"""

from __future__ import annotations

import re

from cfngen.sandbox.services import keys
from cfngen.sandbox.services.rules import Attempt, Refused, rule

MAX_VALUE_BYTES = 65_536  # bytes
MAX_TAGS = 50


@rule("secretsmanager", "CreateSecret")
def check_name(attempt: Attempt) -> None:
    """Refuse an invalid name, and the name of a deleted secret within its recovery window."""
    secret_name = attempt.get("Name", "")
    if not re.fullmatch(r"[A-Za-z0-9/_+=.@-]{1,512}", secret_name):
        raise Refused(
            "ValidationException",
            "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
        )
    existing = attempt.backend.secrets.get(secret_name)
    if existing is not None and existing.is_deleted():
        raise Refused(
            "InvalidRequestException",
            "You can't create this secret because a secret with this name is already scheduled for deletion.",
        )


@rule("secretsmanager", "CreateSecret", "PutSecretValue", "UpdateSecret")
def check_value(attempt: Attempt) -> None:
    """Refuse a value that is too long, both string and binary, or that its KMS key cannot encrypt."""
    text, binary = attempt.get("SecretString"), attempt.get("SecretBinary")
    if text is None and binary is None:
        return
    if text is not None and binary is not None:
        message = "You can't specify both a binary secret value and a string secret value."
        raise Refused("InvalidParameterException", message)
    parameter = "secretBinary" if text is None else "secretString"
    size = len(binary) if text is None else len(text.encode())
    if size > MAX_VALUE_BYTES:
        raise Refused(
            "ValidationException",
            f"1 validation error detected: Value at '{parameter}' failed to satisfy constraint: Member must have "
            f"length less than or equal to {MAX_VALUE_BYTES}",
        )
    key = attempt.get("KmsKeyId")
    if not key and attempt.operation != "CreateSecret":
        key = _key_of_secret(attempt)
    if key and keys.find_key(attempt.region, key) is None and not keys.is_usable(attempt.region, key):
        raise Refused("AccessDeniedException", "Access to KMS is not allowed")
    if key and not keys.is_usable(attempt.region, key):
        raise Refused(
            "EncryptionFailure",
            "Secrets Manager can't encrypt the protected secret text using the provided KMS key. Check that the KMS "
            "key is available, enabled, and not in an invalid state.",
        )


@rule("secretsmanager", "GetSecretValue")
def check_decryption(attempt: Attempt) -> None:
    """Refuse to return a value that its KMS key cannot decrypt."""
    key = _key_of_secret(attempt)
    if key and not keys.is_usable(attempt.region, key):
        message = "Secrets Manager can't decrypt the protected secret text using the provided KMS key."
        raise Refused("DecryptionFailure", message)


@rule("secretsmanager", "PutSecretValue", "UpdateSecret", "TagResource", "UntagResource")
def check_marked_for_deletion(attempt: Attempt) -> None:
    """Refuse to change a secret that is scheduled for deletion."""
    existing = attempt.backend.secrets.get(attempt.get("SecretId", ""))
    if existing is not None and existing.is_deleted():
        raise Refused(
            "InvalidRequestException",
            "You can't perform this operation on the secret because it was marked for deletion.",
        )


@rule("secretsmanager", "CreateSecret", "TagResource")
def check_tags(attempt: Attempt) -> None:
    """Refuse more tags than a secret can have."""
    if len(attempt.get("Tags") or []) > MAX_TAGS:
        raise Refused("InvalidParameterException", f"You can't have more than {MAX_TAGS} tags on a secret.")


@rule("secretsmanager", "DeleteSecret")
def check_recovery_window(attempt: Attempt) -> None:
    """Refuse a recovery window together with a forced deletion, or outside of seven to thirty days."""
    days = attempt.get("RecoveryWindowInDays")
    if days is not None and attempt.get("ForceDeleteWithoutRecovery"):
        message = "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays."
        raise Refused("InvalidParameterException", message)
    if days is not None and int(days) not in range(7, 31):
        message = "The RecoveryWindowInDays value must be between 7 and 30 days (inclusive)."
        raise Refused("InvalidParameterException", message)


def _key_of_secret(attempt: Attempt) -> str:
    """Return the KMS key of an existing secret; empty for the default key, or without such a secret."""
    identifier = attempt.get("SecretId", "")
    if identifier not in attempt.backend.secrets:
        return ""
    return str(attempt.backend.secrets[identifier].kms_key_id or "")
