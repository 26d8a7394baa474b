"""The snapshots of etcd that a cluster's masters keep in its bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, ClassVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code, translate_aws_errors
from cfngen.deploy.messages import Message
from cfngen.deploy.stacks import find
from cfngen.errors import CfngenError

BUCKET = "BackupBucketName"  # output of the stack
LATEST = "latest"
_NAME = re.compile(r"(?P<period>hourly|daily)/(?P<time>\d{4}-\d\d-\d\dT\d{6}Z)\.db")
_MISSING = frozenset({"NoSuchBucket", "404"})


class BackupsOffError(CfngenError):
    """The cluster has no bucket of snapshots."""


class NoBackupBucketError(CfngenError):
    """The bucket of the snapshots does not exist."""


class NoSnapshotError(CfngenError):
    """There is no such snapshot."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of etcd.

    Attributes:
        key: its key in the bucket.
        period: `hourly` for the frequent ones, `daily` for the one that is kept of each day.
        time: when it was taken.
        size: in bytes.
        age: seconds since then.
    """

    key: str
    period: str
    time: datetime
    size: int
    age: float


@dataclass(frozen=True)
class Snapshots(Message):
    """Every snapshot that the bucket holds of a cluster.

    Attributes:
        cluster: name of the cluster.
        bucket: the bucket.
        prefix: under which they lie.
        snapshots: the newest first.
        restoring: key of the snapshot that masters are being set back to; empty if they are not.
    """

    kind: ClassVar[str] = "etcdSnapshots"
    cluster: str
    bucket: str
    prefix: str
    snapshots: tuple[Snapshot, ...]
    restoring: str = ""


@dataclass(frozen=True)
class Store:
    """Where a cluster's snapshots lie.

    Attributes:
        account: the account that asks.
        bucket: the bucket; it may belong to another account.
        cluster: name of the cluster.
    """

    account: Account
    bucket: str
    cluster: str

    @property
    def prefix(self) -> str:
        """What the keys begin with."""
        return f"{self.cluster}/etcd/"

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots, the newest first.

        Raises:
            NoBackupBucketError: there is no such bucket.
            AwsError: S3 refuses.
        """
        now = self.account.clock.now()
        found = [made for object_ in self.objects() if (made := _snapshot(self.prefix, object_, now))]
        # Of the two objects of one moment the daily one is kept longer.
        return tuple(sorted(found, key=lambda each: (each.time, each.period == "hourly"), reverse=True))

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """Yield what lies under the prefix, as S3 lists it.

        Raises:
            NoBackupBucketError: there is no such bucket.
            AwsError: S3 refuses.
        """
        from botocore.exceptions import ClientError

        pages = self.account.client("s3").get_paginator("list_objects_v2")
        with translate_aws_errors():
            try:
                for page in pages.paginate(Bucket=self.bucket, Prefix=self.prefix):
                    yield from page.get("Contents", ())
            except ClientError as error:
                if error_code(error) not in _MISSING:
                    raise
                raise NoBackupBucketError(
                    f"there is no bucket {self.bucket}, which the cluster's snapshots should be in",
                    hint="create it in the cluster's region, or name another one with `etcd.backups.bucket`.",
                ) from error

    def metadata(self, key: str) -> Mapping[str, str]:
        """Return the metadata of an object.

        Raises:
            AwsError: there is none, or S3 refuses.
        """
        with translate_aws_errors():
            answer = self.account.client("s3").head_object(Bucket=self.bucket, Key=key)
        return dict(answer["Metadata"])

    def read(self, name: str) -> dict[str, Any]:
        """Return a JSON object of the bucket; empty if there is none.

        Raises:
            AwsError: S3 refuses.
        """
        from botocore.exceptions import ClientError

        with translate_aws_errors():
            try:
                answer = self.account.client("s3").get_object(Bucket=self.bucket, Key=self.prefix + name)
            except ClientError as error:
                if error_code(error) not in ("NoSuchKey", *_MISSING):
                    raise
                return {}
            try:
                found = json.loads(answer["Body"].read())
            except ValueError:
                return {}
        return found if isinstance(found, dict) else {}

    def write(self, name: str, content: Mapping[str, Any], *, new: bool = False) -> bool:
        """Put a JSON object into the bucket.

        Args:
            name: its name.
            content: what it holds.
            new: whether it must not be there yet.

        Returns:
            Whether it was; not, if it is there already.

        Raises:
            AwsError: S3 refuses.
        """
        from botocore.exceptions import ClientError

        body, unless = json.dumps(content, indent=1).encode(), {"IfNoneMatch": "*"} if new else {}
        where = {"Bucket": self.bucket, "Key": self.prefix + name}
        with translate_aws_errors():
            try:
                self.account.client("s3").put_object(**where, Body=body, ContentType="application/json", **unless)
            except ClientError as error:
                # The second is the answer to one of two that write at the same moment.
                if not new or error_code(error) not in ("PreconditionFailed", "ConditionalRequestConflict"):
                    raise
                return False
        return True

    def remove(self, name: str) -> None:
        """Delete an object.

        Raises:
            AwsError: S3 refuses.
        """
        with translate_aws_errors():
            self.account.client("s3").delete_object(Bucket=self.bucket, Key=self.prefix + name)


def store(account: Account, stack_name: str, cluster: Cluster) -> Store:
    """Return where a cluster's snapshots lie: in the bucket of its stack, or in that of the cluster file.

    The cluster file's is asked where there is no stack, so that what a deleted cluster has left can be looked at.

    Raises:
        BackupsOffError: neither names a bucket.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        stack = find(account, stack_name)
        values = cluster_access.outputs(account, stack) if stack and stack.status.exists else {}
    bucket = values.get(BUCKET, "") or cluster.etcd.backups.bucket or ""
    if not bucket:
        message, hint = f"the stack {stack_name} names no bucket of etcd's snapshots", "`cfngen deploy` makes one."
        if not stack or not stack.status.exists:
            message, hint = f"there is no stack {stack_name} that names a bucket of etcd's snapshots", ""
        elif not cluster.etcd.backups.enabled:
            message += "; `etcd.backups.enabled` is false in the cluster file"
            hint = f"Turn them on there; {hint}"
        found = "What a deleted cluster has left is found with `--set etcd.backups.bucket=NAME`."
        raise BackupsOffError(message, hint=f"{hint} {found}".strip())
    return Store(account, bucket, cluster.name)


def chosen(place: Store, wanted: str) -> Snapshot:
    """Return a snapshot.

    Args:
        place: where it lies.
        wanted: `latest`, its key, or the end of its key. A name that a snapshot shares with its daily copy means the
            snapshot itself.

    Raises:
        NoSnapshotError: there is none.
        AwsError: S3 refuses.
    """
    found = place.snapshots()
    if wanted == LATEST:
        matching = found[:1]
    else:
        exact = [each for each in found if each.key == wanted]
        matching = tuple(exact or [each for each in found if each.key.endswith("/" + wanted)])
    if matching:
        return matching[0]
    what = f"there is no snapshot {wanted}" if found else "there is no snapshot"
    raise NoSnapshotError(
        f"{what} under s3://{place.bucket}/{place.prefix}",
        hint="`cfngen etcd list` shows what there is." if found else "`cfngen etcd backup` takes one.",
    )


def _snapshot(prefix: str, found: Mapping[str, Any], now: datetime) -> Snapshot | None:
    """Return the snapshot that an object is; None if it is something else."""
    name = _NAME.fullmatch(str(found["Key"]).removeprefix(prefix))
    if not name:
        return None
    # Its name says when it was taken; S3 knows only when it was uploaded or copied.
    time = datetime.strptime(name["time"], "%Y-%m-%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return Snapshot(str(found["Key"]), name["period"], time, int(found["Size"]), (now - time).total_seconds())
