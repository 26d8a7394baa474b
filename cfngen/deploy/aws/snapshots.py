"""The etcd snapshots that a cluster's masters upload to its S3 bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import suppress_codes, translate_aws_errors
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.aws.types import AwsObject, JsonObject
from cfngen.deploy.messages.message import Message
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

BUCKET_OUTPUT = "BackupBucketName"  # output of the stack
LATEST_SNAPSHOT = "latest"
_SNAPSHOT_KEY_PATTERN = re.compile(r"(?P<period>hourly|daily)/(?P<time>\d{4}-\d\d-\d\dT\d{6}Z)\.db")
_NO_LOCK_CODES = frozenset({"NoSuchObjectLockConfiguration", "NoSuchKey"})
_NO_BUCKET_CODES = frozenset({"NoSuchBucket", "404"})


class BackupsOffError(CfngenError):
    """The cluster has no bucket for snapshots."""

    code = "backups-disabled"


class NoBackupBucketError(CfngenError):
    """The bucket of the snapshots does not exist."""

    code = "backup-bucket-not-found"


class NoSnapshotError(CfngenError):
    """There is no such snapshot."""

    code = "snapshot-not-found"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of etcd.

    Attributes:
        key: its key in the bucket.
        period: `hourly` for a snapshot at each interval, `daily` for the one per day that is retained longer.
        time: when it was taken.
        size: in bytes.
        age: seconds since it was taken.
    """

    key: str
    period: str
    time: datetime
    size: int
    age: float


@dataclass(frozen=True)
class ObjectLockView:
    """The lock of an object by S3 Object Lock.

    Attributes:
        mode: `governance` or `compliance`.
        until: when the lock ends or has ended.
    """

    mode: str
    until: datetime


@dataclass(frozen=True)
class Snapshots(Message):
    """The snapshots of a cluster in its bucket.

    Attributes:
        cluster: name of the cluster.
        bucket: the bucket.
        prefix: prefix of their keys.
        snapshots: the snapshots, newest first.
        restoring: key of the snapshot that is being restored; empty if there is none.
    """

    kind: ClassVar[str] = "etcdSnapshots"
    cluster: str
    bucket: str
    prefix: str
    snapshots: tuple[Snapshot, ...]
    restoring: str = ""


@dataclass(frozen=True)
class SnapshotStore:
    """The bucket and prefix of a cluster's snapshots in S3.

    Attributes:
        bucket: name of the bucket, which may belong to another account.
    """

    account: Account
    bucket: str
    cluster: str

    @property
    def prefix(self) -> str:
        """The prefix of the keys."""
        return f"{self.cluster}/etcd/"

    def read_lock(self, key: str) -> ObjectLockView | None:
        """Return the lock of the current version of an object in a bucket with Object Lock; None without one.

        Raises:
            DeniedError: the caller may not read locks.
        """
        with translate_aws_errors():
            answer = self.account.read("s3.get_object_retention", absent=_NO_LOCK_CODES, Bucket=self.bucket, Key=key)
        retention = answer["Retention"] if answer else {}
        if "RetainUntilDate" not in retention:
            return None
        return ObjectLockView(retention["Mode"].lower(), retention["RetainUntilDate"])

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots, newest first.

        Raises:
            NoBackupBucketError: there is no such bucket.
        """
        now = self.account.clock.now()
        snapshots = [
            snapshot for s3_object in self.objects() if (snapshot := _parse_snapshot(self.prefix, s3_object, now))
        ]
        # A daily snapshot is a copy of an hourly snapshot with the same time. In reverse order, True comes before
        # False, so the hourly snapshot is listed first.
        return tuple(sorted(snapshots, key=lambda snapshot: (snapshot.time, snapshot.period == "hourly"), reverse=True))

    def objects(self) -> Iterator[AwsObject]:
        """Yield the objects under the prefix, as S3 lists them.

        Raises:
            NoBackupBucketError: there is no such bucket.
        """
        with translate_aws_errors(), suppress_codes(_NO_BUCKET_CODES):
            yield from self.account.items("s3.list_objects_v2", "Contents", Bucket=self.bucket, Prefix=self.prefix)
            return
        raise NoBackupBucketError(
            f"the bucket of the cluster's snapshots, {self.bucket}, does not exist",
            hint=CommandText(
                "create it in the cluster's region, or name another one with `etcd.backups.bucket`; ",
                suggest("status"),
                " shows whether the stack needs something first.",
            ),
        )

    def metadata(self, key: str) -> Mapping[str, str]:
        """Return the user-defined metadata (`x-amz-meta-…`) of an object in the bucket.

        Raises:
            AwsError: the object does not exist, or S3 denies the request.
        """
        with translate_aws_errors():
            response = self.account.client("s3").head_object(Bucket=self.bucket, Key=key)
        return dict(response["Metadata"])

    def read(self, name: str) -> JsonObject:
        """Return the JSON object in a file of the bucket; a missing or damaged file counts as an empty object."""
        with translate_aws_errors(), suppress_codes({"NoSuchKey", *_NO_BUCKET_CODES}), suppress(ValueError):
            response = self.account.client("s3").get_object(Bucket=self.bucket, Key=self.prefix + name)
            content = json.loads(response["Body"].read())
            return content if isinstance(content, dict) else {}
        return {}

    def write(self, name: str, content: AwsObject, *, only_if_new: bool = False) -> bool:
        """Write a JSON object to a file of the bucket.

        Args:
            only_if_new: whether to write only if the file does not exist yet.

        Returns:
            Whether the file was written.
        """
        body = json.dumps(content, indent=1).encode()
        # With this condition, S3 refuses to overwrite an object.
        condition = {"IfNoneMatch": "*"} if only_if_new else {}
        location = {"Bucket": self.bucket, "Key": self.prefix + name}
        # ConditionalRequestConflict: another caller wrote the file at the same moment.
        exists_codes = ("PreconditionFailed", "ConditionalRequestConflict") if only_if_new else ()
        with translate_aws_errors(), suppress_codes(exists_codes):
            self.account.client("s3").put_object(**location, Body=body, ContentType="application/json", **condition)
            return True
        return False

    def remove(self, name: str) -> None:
        """Delete a file of the bucket."""
        with translate_aws_errors():
            self.account.client("s3").delete_object(Bucket=self.bucket, Key=self.prefix + name)


def find_store(account: Account, stack_name: str, cluster: Cluster) -> SnapshotStore:
    """Return the store of a cluster's snapshots: the bucket in the stack's outputs, else the one in the cluster file.

    With the bucket in the cluster file, the snapshots of a deleted cluster can be listed.

    Raises:
        BackupsOffError: neither the stack's outputs nor the cluster file names a bucket.
    """
    with translate_aws_errors():
        stack = find_stack(account, stack_name)
        outputs = stacks.read_outputs(account, stack) if stack and stack.status.exists else {}
    bucket = outputs.get(BUCKET_OUTPUT, "") or cluster.etcd.backups.bucket or ""
    if not bucket:
        deleted_cluster_hint = (
            "To list the snapshots of a deleted cluster, name their bucket: `--set etcd.backups.bucket=NAME`."
        )
        if not stack or not stack.status.exists:
            message = f"there is no stack {stack_name} that would name the bucket of etcd's snapshots"
            hint = CommandText(deleted_cluster_hint, " ", suggest("status"), " shows what there is of the cluster.")
            raise BackupsOffError(message, hint=hint)
        message = f"the stack {stack_name} has no bucket for etcd's snapshots"
        # A stack whose last operation failed has another next step first.
        way_on = as_hint(next_steps(stack.status, made_elsewhere=stack.made_elsewhere)) or CommandText(
            suggest("deploy"), " creates one."
        )
        hint = CommandText(way_on, " ", deleted_cluster_hint)
        if not cluster.etcd.backups.enabled:
            message += "; `etcd.backups.enabled` is false in the cluster file"
            hint = CommandText("Enable backups there; ", hint)
        raise BackupsOffError(message, hint=hint)
    return SnapshotStore(account, bucket, cluster.name)


def find_snapshot(snapshot_store: SnapshotStore, name: str | timedelta) -> Snapshot:
    """Return the snapshot with a name, or of an age.

    Args:
        name: `latest`, the snapshot's key, the end of its key, or a minimum age, for the newest snapshot that has it.
            If an hourly snapshot and its daily copy both match, the hourly one is returned.

    Raises:
        NoSnapshotError: there is none.
    """
    snapshots = snapshot_store.snapshots()
    if isinstance(name, timedelta):
        matches = tuple(snapshot for snapshot in snapshots if snapshot.age >= name.total_seconds())
    elif name == LATEST_SNAPSHOT:
        matches = snapshots[:1]
    else:
        exact_matches = [snapshot for snapshot in snapshots if snapshot.key == name]
        matches = tuple(exact_matches or [snapshot for snapshot in snapshots if snapshot.key.endswith("/" + name)])
    if matches:
        return matches[0]
    if not snapshots:
        problem = "there is no snapshot"
    elif isinstance(name, timedelta):
        problem = f"there is no snapshot from {snapshot_store.account.clock.now() - name:%Y-%m-%d %H:%M} UTC or before"
    else:
        problem = f"there is no snapshot {name}"
    raise NoSnapshotError(
        f"{problem} under s3://{snapshot_store.bucket}/{snapshot_store.prefix}",
        hint=(
            CommandText(suggest("etcd list"), " lists the existing ones.")
            if snapshots
            # To take one now, only to restore it, would change nothing; and no master may work.
            else CommandText("Masters that work take one every hour; ", suggest("status"), " shows them.")
        ),
    )


def _parse_snapshot(prefix: str, s3_object: AwsObject, now: datetime) -> Snapshot | None:
    """Return a snapshot from an S3 object; None if its key is not that of a snapshot."""
    match = _SNAPSHOT_KEY_PATTERN.fullmatch(str(s3_object["Key"]).removeprefix(prefix))
    if not match:
        return None
    # The time is taken from the key: LastModified in S3 is the time of the upload or copy.
    time = datetime.strptime(match["time"], "%Y-%m-%dT%H%M%SZ").replace(tzinfo=UTC)
    return Snapshot(
        key=str(s3_object["Key"]),
        period=match["period"],
        time=time,
        size=int(s3_object["Size"]),
        age=(now - time).total_seconds(),
    )


REQUEST_KEY = "restore.json"
