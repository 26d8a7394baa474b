"""What the two secrets of a cluster hold: its certificate authorities, and how nodes may join.

Masters write both; see `cfngen.boot.certificate_authorities` and `cfngen.boot.join_information`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from cfngen.deploy.access.certificates import CertificateError, KeyPair, match, validity
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, as_aws_error, error_code
from cfngen.errors import CfngenError

CERTIFICATE, KEY, INITIALISED = "ca.crt", "ca.key", "initialised"
NOT_THERE = "ResourceNotFoundException"


class EmptySecretError(CfngenError):
    """No master has written the secret yet."""

    def __init__(self, arn: str) -> None:
        super().__init__(
            f"no master has written the secret {arn} yet: the cluster has not been initialised",
            hint="a master's first boot takes some minutes; `cfngen status` shows how far it is.",
        )


class MissingSecretError(CfngenError):
    """There is no such secret, or it is being deleted."""


class SecretDeniedError(CfngenError):
    """The caller may not read the secret, or not decrypt it."""


class MalformedSecretError(CfngenError):
    """The secret holds something else."""


@dataclass(frozen=True)
class Authority:
    """The certificate authority of a cluster's API.

    Attributes:
        pair: its certificate and private key.
        ends: when it is no longer valid.
        initialised: since when the cluster exists, as its master wrote it; empty until its first master is up.
    """

    pair: KeyPair
    ends: datetime
    initialised: str = ""


@dataclass(frozen=True)
class JoinInformation:
    """How a node may join; the token itself is left in the secret.

    Attributes:
        endpoint: host and port of the API.
        expires: when the token ends.
    """

    endpoint: str
    expires: datetime


def read_authority(account: Account, arn: str) -> Authority:
    """Return the certificate authority out of its secret; it stays in memory.

    Raises:
        EmptySecretError: the cluster has not been initialised.
        MissingSecretError: no such secret.
        SecretDeniedError: a permission lacks.
        MalformedSecretError: the secret holds something else.
    """
    bundle = _read(account, arn)
    # A whole bundle's repair is the previous value; the boot program says the same to who reads a master's log.
    hint = "put the secret's previous value (AWSPREVIOUS) as a new version; a master refuses to boot with this one too."
    missing = [name for name in (CERTIFICATE, KEY) if not isinstance(bundle.get(name), str)]
    if missing:
        raise MalformedSecretError(f"the secret {arn} lacks {' and '.join(missing)}", hint=hint)
    pair = KeyPair(bundle[CERTIFICATE], bundle[KEY])
    try:
        ends = validity(pair.certificate).ends
        matching = match(pair)
    except CertificateError as error:
        raise MalformedSecretError(f"the secret {arn} holds no certificate authority: {error}", hint=hint) from error
    if not matching:
        raise MalformedSecretError(f"in the secret {arn}, {KEY} is not the key of {CERTIFICATE}", hint=hint)
    return Authority(pair, ends, str(bundle.get(INITIALISED, "")))


def read_join_information(account: Account, arn: str) -> JoinInformation:
    """Return how nodes may join, out of its secret.

    Raises:
        EmptySecretError: no master has published it.
        MissingSecretError: no such secret.
        SecretDeniedError: a permission lacks.
        MalformedSecretError: the secret holds something else.
    """
    values = _read(account, arn)
    try:
        expires = datetime.strptime(values["expires"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        return JoinInformation(str(values["endpoint"]), expires)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedSecretError(
            f"the secret {arn} holds no join information", hint="on a master: systemctl status cfngen-join"
        ) from error


def _read(account: Account, arn: str) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer = account.client("secretsmanager").get_secret_value(SecretId=arn)
    except (ClientError, BotoCoreError) as error:
        raise _refused(account, arn, error) from error
    try:
        values = json.loads(answer.get("SecretString") or "{}")
    except ValueError:
        # Without the parser's error, which holds the whole text: it is a secret.
        raise MalformedSecretError(
            f"the secret {arn} does not hold JSON", hint="put its previous value (AWSPREVIOUS) as a new version."
        ) from None
    if not isinstance(values, dict):
        raise MalformedSecretError(f"the secret {arn} does not hold a JSON object")
    if not values:
        raise EmptySecretError(arn)
    return values


def _refused(account: Account, arn: str, error: Exception) -> CfngenError:
    """Return what a refusal of GetSecretValue means."""
    code = error_code(error)
    gone = "`cfngen status` shows what there is."
    if code == NOT_THERE:
        # The same code for a secret that does not exist and for one that has no value yet.
        return (
            EmptySecretError(arn)
            if _exists(account, arn)
            else MissingSecretError(f"there is no secret {arn}", hint=gone)
        )
    if code == "InvalidRequestException":
        return MissingSecretError(f"the secret {arn} cannot be read: it is being deleted", hint=gone)
    if code in DENIED or code == "DecryptionFailure":
        return SecretDeniedError(
            f"{account.caller} may not read the secret {arn}: {_message(error)}",
            hint=f"you need secretsmanager:GetSecretValue on it and kms:Decrypt on {_key(account, arn)}.",
        )
    return as_aws_error(error)


def _exists(account: Account, arn: str) -> bool:
    """Return whether a secret exists; where that must not be asked, it is taken to exist without a value."""
    from botocore.exceptions import ClientError

    try:
        account.client("secretsmanager").describe_secret(SecretId=arn)
    except ClientError as error:
        return error_code(error) != NOT_THERE
    return True


def _key(account: Account, arn: str) -> str:
    """Return the KMS key of a secret in words; its ARN where the caller may ask for it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        key = account.client("secretsmanager").describe_secret(SecretId=arn).get("KmsKeyId", "")
    except (ClientError, BotoCoreError):
        key = ""
    return f"its KMS key {key}" if key else "its KMS key (output SecretsKeyArn of the nested SecretsStack)"


def _message(error: Exception) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Message") or error)
