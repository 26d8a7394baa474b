"""What becomes of a cluster's certificate authorities when it is deleted: a copy is kept, unless somebody says no.

Their secret goes with the stack, at once: CloudFormation deletes a secret without a recovery window. With it goes the
key that Secrets in etcd are encrypted with; no snapshot, of a volume or of etcd, starts as this cluster without both.
A copy is a file, or a secret of its own that is deleted with a recovery window as soon as it is made: until that ends
it can be brought back, it is not billed meanwhile ("Delete an AWS Secrets Manager secret", AWS Secrets Manager User
Guide), and it is encrypted by the account's default key, since the cluster's own waits for its deletion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.deletion.retained import Retained
from cfngen.deploy.messages import Report, Step
from cfngen.errors import CfngenError

How = Literal["file", "recovery-window", "destroy"]
WINDOW = 30
"""Days for which a copy can be brought back; the longest that Secrets Manager has."""
KIND = "copy of the certificate authorities"
# No value yet, or no such secret; and one that is being deleted.
_NOTHING = frozenset({"ResourceNotFoundException", "InvalidRequestException"})


class UnreadableAuthoritiesError(CfngenError):
    """The certificate authorities cannot be read, so that no copy of them can be kept."""

    def __init__(self, account: Account, arn: str, why: str) -> None:
        super().__init__(
            f"no copy of the certificate authorities can be kept: {account.caller} may not read {arn}: {why}",
            hint="you need secretsmanager:GetSecretValue on it and kms:Decrypt on its key; or give them up for good "
            "with --authorities destroy: then no snapshot of this cluster starts again.",
        )


class CopyError(CfngenError):
    """The copy cannot be written to its file."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the certificate authorities cannot be copied to {path}: {why}; nothing was deleted",
            hint="name another file with --authorities-file.",
        )


@dataclass(frozen=True)
class Custody:
    """What is to become of the certificate authorities.

    Attributes:
        how: whether a copy goes to a file, or into a secret with a recovery window, or none is kept.
        path: the file.
    """

    how: How = "recovery-window"
    path: Path = Path("authorities.json")

    @property
    def consequence(self) -> str:
        """What it leads to, as a consequence of the deletion."""
        if self.how == "file":
            return f"the certificate authorities go with their secret; a copy is written to {self.path}, for you alone"
        if self.how == "recovery-window":
            return (
                f"the certificate authorities go with their secret; a copy of it can be brought back for {WINDOW} days"
            )
        return (
            "the certificate authorities go with their secret, and no copy is kept: no snapshot, of a volume or of "
            "etcd, will ever start as this cluster again"
        )


Choose = Callable[[], Custody]
"""Asks what is to become of the certificate authorities."""


@dataclass(frozen=True)
class Held:
    """What a secret of certificate authorities holds.

    Attributes:
        arn: the secret.
        text: its value.
    """

    arn: str
    text: str


def name_of_copies(cluster: str) -> str:
    """Return how the names of a cluster's copies in Secrets Manager begin."""
    return f"cfngen/{cluster}/authorities-"


def read(account: Account, arns: Sequence[str], *, needed: bool) -> tuple[Held, ...]:
    """Return what there is to be kept: nothing before the first master has written it.

    Args:
        account: where they are.
        arns: secrets of certificate authorities.
        needed: whether a secret that cannot be read is an error.

    Raises:
        UnreadableAuthoritiesError: a permission lacks.
    """
    texts = ((arn, _text(account, arn, needed=needed)) for arn in arns)
    return tuple(Held(arn, text) for arn, text in texts if text.strip() not in ("", "{}"))


def _text(account: Account, arn: str, *, needed: bool) -> str:
    from botocore.exceptions import ClientError

    try:
        return str(account.client("secretsmanager").get_secret_value(SecretId=arn).get("SecretString", ""))
    except ClientError as error:
        refused = error_code(error) in DENIED | {"DecryptionFailure"}
        if refused and needed:
            raise UnreadableAuthoritiesError(account, arn, error.response["Error"]["Message"]) from error
        if not refused and error_code(error) not in _NOTHING:
            raise
    return ""


def keep(
    account: Account, cluster: str, held: Sequence[Held], custody: Custody, report: Report
) -> tuple[Retained, ...]:
    """Make the copies; return where they are.

    Raises:
        CopyError: a file cannot be written.
    """
    if custody.how == "file":
        return tuple(_in_file(each, custody.path, report) for each in held)
    if custody.how == "recovery-window":
        return tuple(_in_secret(account, cluster, each, report) for each in held)
    return ()


def _in_file(held: Held, path: Path, report: Report) -> Retained:
    report(Step(f"copying the certificate authorities to {path}"))
    try:
        _write(path, held.text)
    except FileExistsError:
        if path.read_text(encoding="utf-8") != held.text:
            raise CopyError(path, "it exists, and holds something else") from None
    except OSError as error:
        raise CopyError(path, error.strerror or str(error)) from error
    why = "for its owner alone; who has it is the cluster that its snapshots become: put it where it is safe"
    return Retained(KIND, str(path.absolute()), why)


def _write(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, down to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _in_secret(account: Account, cluster: str, held: Held, report: Report) -> Retained:
    secrets, region = account.client("secretsmanager"), account.region
    name = f"{name_of_copies(cluster)}{account.clock.now():%Y%m%dT%H%M%SZ}"
    report(Step(f"copying the certificate authorities to the secret {name}"))
    about = f"Certificate authorities of the deleted Kubernetes cluster {cluster}, copied from {held.arn}"
    arn = secrets.create_secret(Name=name, Description=about, SecretString=held.text)["ARN"]
    until = secrets.delete_secret(SecretId=arn, RecoveryWindowInDays=WINDOW)["DeletionDate"].date().isoformat()
    return Retained(
        KIND,
        name,
        f"deleted on {until}; until then `aws secretsmanager restore-secret --secret-id {name} --region {region}` "
        "brings it back",
        "not billed while it waits",
        f"aws secretsmanager delete-secret --force-delete-without-recovery --secret-id {name} --region {region}",
    )
