"""Keeps a copy of a cluster's certificate authorities when the cluster is deleted, unless the operator declines.

CloudFormation deletes their secret at once, without a recovery window. The secret also holds the key that encrypts
Secrets in etcd: without both, no volume snapshot and no etcd snapshot can be restored as this cluster. The copy is
either a file, or a second secret that is scheduled for deletion as soon as it is created. Until its recovery window
ends it can be restored, and it is not billed ("Delete an AWS Secrets Manager secret", AWS Secrets Manager User Guide).
It is encrypted with the account's default key, since the cluster's own key is pending deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cfngen.atomic_files import create_private_file
from cfngen.bounded_files import read_bytes
from cfngen.cluster.naming.names import authority_copy_prefix
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.plan.deletion.plan import AuthorityCopy
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import (
    AUTHORITY_COPY_KIND,
    AUTHORITY_COPY_TIME,
    RECOVERY_WINDOW_DAYS,
    authority_copy_description,
    describe_authority_copy,
)
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.errors import CfngenError

# Secrets Manager returns the first code if the secret does not exist or has no value yet, and the second if it is
# scheduled for deletion.
_NO_VALUE_CODES = frozenset({"ResourceNotFoundException", "InvalidRequestException"})


class UnreadableAuthoritiesError(CfngenError):
    """The certificate authorities cannot be read, so no copy of them can be kept."""

    code = "authorities-unreadable"

    def __init__(self, account: Account, arn: str, reason: str) -> None:
        super().__init__(
            f"no copy of the certificate authorities can be kept: {account.caller} has no permission to read "
            f"{arn}: {reason}",
            hint="get secretsmanager:GetSecretValue on it and kms:Decrypt on its key; or keep no copy, with "
            "--authorities destroy: then no snapshot can ever be restored as this cluster.",
        )


class CopyError(CfngenError):
    """The copy cannot be written to its file."""

    code = "authorities-copy-not-written"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the certificate authorities cannot be copied to {path}: {reason}; nothing was deleted",
            hint="name another file with --authorities-file.",
        )


ChooseAuthorityCopy = Callable[[], AuthorityCopy]
"""Asks the user whether and where a copy of the certificate authorities is kept."""


@dataclass(frozen=True)
class AuthoritySecret:
    """The value of a secret that holds certificate authorities."""

    arn: str
    text: str


def read_authorities(account: Account, arns: Sequence[str], *, must_be_readable: bool) -> tuple[AuthoritySecret, ...]:
    """Return the values of the secrets to copy, without secrets that no master has written yet.

    Args:
        must_be_readable: whether to raise an error if the caller has no permission to read a secret.

    Raises:
        UnreadableAuthoritiesError: the values must be readable, and the caller has no permission to read a secret.
    """
    secrets = (AuthoritySecret(arn, _read_secret(account, arn, must_be_readable=must_be_readable)) for arn in arns)
    return tuple(secret for secret in secrets if secret.text.strip() not in ("", "{}"))


def _read_secret(account: Account, arn: str, *, must_be_readable: bool) -> str:
    """Return the value of a secret; empty if it has none, or if it need not be readable and access is denied."""
    from botocore.exceptions import ClientError

    try:
        return str(account.client("secretsmanager").get_secret_value(SecretId=arn).get("SecretString", ""))
    except ClientError as error:
        is_denied = error_code(error) in ACCESS_DENIED_CODES | {"DecryptionFailure"}
        if is_denied and must_be_readable:
            raise UnreadableAuthoritiesError(account, arn, error.response["Error"]["Message"]) from error
        if not is_denied and error_code(error) not in _NO_VALUE_CODES:
            raise
    return ""


def copy_authorities(
    account: Account, cluster: str, secrets: Sequence[AuthoritySecret], copy: AuthorityCopy, report: Report
) -> tuple[RetainedResource, ...]:
    """Copy the certificate authorities as the user chose; return the copies, none if the user wants none.

    Raises:
        CopyError: a file cannot be written.
    """
    if copy.how == "file":
        return tuple(_copy_to_file(secret, copy.path, report) for secret in secrets)
    if copy.how == "recovery-window":
        return tuple(_copy_to_secret(account, cluster, secret, report) for secret in secrets)
    return ()


def _copy_to_file(secret: AuthoritySecret, path: Path, report: Report) -> RetainedResource:
    """Write the copy to a new file, unless the file has the same content already."""
    report(Step(f"copying the certificate authorities to {path}"))
    try:
        create_private_file(path, secret.text)
    except FileExistsError:
        if read_bytes(path) != secret.text.encode():
            raise CopyError(path, "it exists, with other content") from None
    except OSError as error:
        raise CopyError(path, error.strerror or str(error)) from error
    why = (
        "only its owner can read it; whoever has it has full access to a cluster restored from a "
        "snapshot: store it safely"
    )
    return RetainedResource(kind=AUTHORITY_COPY_KIND, id=str(path.absolute()), why=why)


def _copy_to_secret(account: Account, cluster: str, secret: AuthoritySecret, report: Report) -> RetainedResource:
    """Create a secret with the copy and schedule its deletion at once: it can be restored, but is not billed."""
    client = account.client("secretsmanager")
    name = f"{authority_copy_prefix(cluster)}{account.clock.now():{AUTHORITY_COPY_TIME}}"
    report(Step(f"copying the certificate authorities to the secret {name}"))
    description = authority_copy_description(cluster, secret.arn)
    arn = client.create_secret(Name=name, Description=description, SecretString=secret.text)["ARN"]
    client.delete_secret(SecretId=arn, RecoveryWindowInDays=RECOVERY_WINDOW_DAYS)
    return describe_authority_copy(account, name)
