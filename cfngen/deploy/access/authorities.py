"""Reads the two secrets of a cluster: its certificate authorities, and the join information for nodes.

The masters write both; see `cfngen.boot.master.certificate_authorities` and `cfngen.boot.master.join_information`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from cfngen.deploy.access.certificates import CertificateError, KeyPair, certificate_validity, is_matching_pair
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, as_aws_error, error_code
from cfngen.deploy.aws.types import JsonObject
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

CERTIFICATE_FIELD, PRIVATE_KEY_FIELD, INITIALISED_FIELD = "ca.crt", "ca.key", "initialised"
NOT_FOUND_CODE = "ResourceNotFoundException"


class EmptySecretError(CfngenError):
    """No master has written the secret yet."""

    code = "authority-secret-empty"

    def __init__(self, arn: str) -> None:
        super().__init__(
            f"no master has written the secret {arn} yet: the cluster has not been initialised",
            hint=CommandText("a master's first boot takes some minutes; ", suggest("status"), " shows its progress."),
        )


class MissingSecretError(CfngenError):
    """There is no such secret, or it is being deleted."""

    code = "authority-secret-not-found"


class SecretDeniedError(CfngenError):
    """The caller has no permission to read or decrypt the secret."""

    code = "authority-secret-denied"


class MalformedSecretError(CfngenError):
    """The content of the secret is not what cfngen expects."""

    code = "authority-secret-malformed"


@dataclass(frozen=True)
class Authority:
    """The certificate authority of a cluster's API.

    Attributes:
        initialised: when the cluster was initialised, as its first master recorded it; empty until then.
    """

    key_pair: KeyPair
    expires: datetime
    initialised: str = ""


@dataclass(frozen=True)
class JoinInformation:
    """How a node joins the cluster; the token itself is not included.

    Attributes:
        endpoint: host and port of the API.
        expires: when the token expires.
    """

    endpoint: str
    expires: datetime


def read_authority(account: Account, arn: str) -> Authority:
    """Return the certificate authority from its secret; it is never written to disk.

    Raises:
        EmptySecretError: the cluster has not been initialised.
        MissingSecretError: the secret does not exist, or is being deleted.
        SecretDeniedError: the caller has no permission to read or decrypt the secret.
        MalformedSecretError: the secret does not contain a certificate with its private key.
    """
    secret = _read_secret(account, arn)
    # The boot program gives the same hint in a master's log.
    hint = (
        "put the secret's previous value (AWSPREVIOUS) as a new version; masters cannot boot with the "
        "current one either."
    )
    missing_keys = [name for name in (CERTIFICATE_FIELD, PRIVATE_KEY_FIELD) if not isinstance(secret.get(name), str)]
    if missing_keys:
        raise MalformedSecretError(f"the secret {arn} lacks {' and '.join(missing_keys)}", hint=hint)
    key_pair = KeyPair(certificate=secret[CERTIFICATE_FIELD], private_key=secret[PRIVATE_KEY_FIELD])
    try:
        expires = certificate_validity(key_pair.certificate).ends
        is_matching = is_matching_pair(key_pair)
    except CertificateError as error:
        raise MalformedSecretError(f"the secret {arn} contains no certificate authority: {error}", hint=hint) from error
    if not is_matching:
        raise MalformedSecretError(
            f"in the secret {arn}, {PRIVATE_KEY_FIELD} is not the key of {CERTIFICATE_FIELD}", hint=hint
        )
    return Authority(key_pair, expires, initialised=str(secret.get(INITIALISED_FIELD, "")))


def read_join_information(account: Account, arn: str) -> JoinInformation:
    """Return the join information from its secret."""
    secret = _read_secret(account, arn)
    try:
        expires = datetime.strptime(secret["expires"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return JoinInformation(str(secret["endpoint"]), expires)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedSecretError(
            f"the secret {arn} contains no join information", hint="on a master: systemctl status cfngen-join"
        ) from error


def _read_secret(account: Account, arn: str) -> JsonObject:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        response = account.client("secretsmanager").get_secret_value(SecretId=arn)
    except (ClientError, BotoCoreError) as error:
        raise _error_for_failed_read(account, arn, error) from error
    try:
        secret = json.loads(response.get("SecretString") or "{}")
    except ValueError:
        # `from None`: the parser's error would show the whole text, which is secret.
        raise MalformedSecretError(
            f"the secret {arn} does not contain JSON", hint="put its previous value (AWSPREVIOUS) as a new version."
        ) from None
    if not isinstance(secret, dict):
        raise MalformedSecretError(f"the secret {arn} does not contain a JSON object")
    if not secret:
        raise EmptySecretError(arn)
    return secret


def _error_for_failed_read(account: Account, arn: str, error: Exception) -> CfngenError:
    code = error_code(error)
    hint = CommandText(suggest("status"), " shows which resources exist.")
    if code == NOT_FOUND_CODE:
        # AWS returns this code if a secret does not exist, and also if it has no value yet.
        if _secret_exists(account, arn):
            return EmptySecretError(arn)
        return MissingSecretError(f"there is no secret {arn}", hint=hint)
    if code == "InvalidRequestException":
        return MissingSecretError(f"the secret {arn} cannot be read: it is being deleted", hint=hint)
    if code in ACCESS_DENIED_CODES or code == "DecryptionFailure":
        return SecretDeniedError(
            f"{account.caller} has no permission to read the secret {arn}: {_error_message(error)}",
            hint=f"get secretsmanager:GetSecretValue on it and kms:Decrypt on {_describe_kms_key(account, arn)}.",
        )
    return as_aws_error(error)


def _secret_exists(account: Account, arn: str) -> bool:
    """Return whether a secret exists; also true if the caller has no permission to describe it."""
    from botocore.exceptions import ClientError

    try:
        account.client("secretsmanager").describe_secret(SecretId=arn)
    except ClientError as error:
        return error_code(error) != NOT_FOUND_CODE
    return True


def _describe_kms_key(account: Account, arn: str) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        key_arn = account.client("secretsmanager").describe_secret(SecretId=arn).get("KmsKeyId", "")
    except (ClientError, BotoCoreError):
        key_arn = ""
    return f"its KMS key {key_arn}" if key_arn else "its KMS key (output SecretsKeyArn of the nested SecretsStack)"


def _error_message(error: Exception) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Message") or error)
