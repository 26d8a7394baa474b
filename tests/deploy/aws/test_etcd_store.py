"""The bucket of etcd's snapshots: what is one, which is chosen, how requests are written, and a snapshot at once."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import stack, stacked
from recorded import RefusedError

from cfngen.cluster.load import load
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.snapshots import (
    BackupsOffError,
    NoBackupBucketError,
    NoSnapshotError,
    Snapshot,
    SnapshotStore,
    find_snapshot,
    find_store,
)
from cfngen.deploy.messages.message import Message, Step
from cfngen.deploy.operations.etcd.backup import NoAnswerError, take_snapshot

NAME = "2025-12-31T235900Z.db"
TAKEN = datetime(2025, 12, 31, 23, 59, tzinfo=UTC)


@pytest.fixture
def place(aws: Answers) -> SnapshotStore:
    return SnapshotStore(aws.account, "mine", "one")


def listed(aws: Answers, *keys: str) -> None:
    aws.given["s3:ListObjectsV2"] = {"Contents": [{"Key": f"one/etcd/{key}", "Size": 7} for key in keys]}


def test_a_snapshot_is_known_by_its_name(aws: Answers, place: SnapshotStore) -> None:
    listed(aws, f"hourly/{NAME}")
    assert place.snapshots() == (Snapshot(f"one/etcd/hourly/{NAME}", "hourly", TAKEN, 7, 60.0),)
    assert [(each["Bucket"], each["Prefix"]) for each in aws.named("s3:ListObjectsV2")] == [("mine", "one/etcd/")]


@pytest.mark.parametrize(
    "key",
    [
        f"weekly/{NAME}",
        f"hourly/{NAME}.part",
        f"x/hourly/{NAME}",
        "hourly/notes.txt",
        "backup-request.json",
        "hourly/2025-12-31T235900Zxdb",
        "hourly/2025-12-31T2359Z.db",
    ],
)
def test_what_else_lies_there_is_none(aws: Answers, place: SnapshotStore, key: str) -> None:
    listed(aws, key)
    assert place.snapshots() == ()


def test_the_newest_is_first_and_of_one_moment_the_hourly_one(aws: Answers, place: SnapshotStore) -> None:
    older = "2025-12-30T235900Z.db"
    listed(aws, f"daily/{older}", f"daily/{NAME}", f"hourly/{older}", f"hourly/{NAME}")
    keys = [snapshot.key.removeprefix("one/etcd/") for snapshot in place.snapshots()]
    assert keys == [f"hourly/{NAME}", f"daily/{NAME}", f"hourly/{older}", f"daily/{older}"]
    assert [snapshot.period for snapshot in place.snapshots()] == ["hourly", "daily", "hourly", "daily"]


@pytest.mark.parametrize("code", ["NoSuchBucket", "404"])
def test_a_bucket_that_is_not_there_is_told(aws: Answers, place: SnapshotStore, code: str) -> None:
    aws.given["s3:ListObjectsV2"] = RefusedError(code)
    with pytest.raises(
        NoBackupBucketError, match="the bucket of the cluster's snapshots, mine, does not exist"
    ) as missing:
        place.snapshots()
    assert "etcd.backups.bucket" in str(missing.value.hint)


def test_a_bucket_that_may_not_be_read_is_another_matter(aws: Answers, place: SnapshotStore) -> None:
    aws.given["s3:ListObjectsV2"] = RefusedError("AccessDenied")
    with pytest.raises(AwsError) as refused:
        place.snapshots()
    assert not isinstance(refused.value, NoBackupBucketError)


@pytest.mark.parametrize(
    ("body", "found"),
    [(b'{"id": "x"}', {"id": "x"}), (b"[1]", {}), (b"no json", {}), (b"", {})],
)
def test_a_request_that_is_no_object_is_none(
    aws: Answers, place: SnapshotStore, body: bytes, found: dict[str, str]
) -> None:
    aws.given["s3:GetObject"] = {"Body": io.BytesIO(body)}
    assert place.read("restore.json") == found
    assert aws.named("s3:GetObject") == [{"Bucket": "mine", "Key": "one/etcd/restore.json"}]


@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchBucket", "404"])
def test_a_request_that_is_not_there_is_none(aws: Answers, place: SnapshotStore, code: str) -> None:
    aws.given["s3:GetObject"] = RefusedError(code)
    assert place.read("restore.json") == {}
    aws.given["s3:GetObject"] = RefusedError("AccessDenied")
    with pytest.raises(AwsError):
        place.read("restore.json")


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_of_two_who_write_at_once_one_is_told(aws: Answers, place: SnapshotStore, code: str) -> None:
    assert place.write("restore.json", {"id": "x"}, only_if_new=True) is True
    [sent] = aws.named("s3:PutObject")
    assert (sent["Bucket"], sent["Key"], sent["IfNoneMatch"]) == ("mine", "one/etcd/restore.json", "*")
    assert (json.loads(sent["Body"]), sent["ContentType"]) == ({"id": "x"}, "application/json")
    aws.given["s3:PutObject"] = RefusedError(code)
    assert place.write("restore.json", {"id": "x"}, only_if_new=True) is False
    with pytest.raises(AwsError):
        place.write("restore.json", {"id": "x"})
    assert "IfNoneMatch" not in aws.named("s3:PutObject")[-1]
    aws.given["s3:PutObject"] = RefusedError("AccessDenied")
    with pytest.raises(AwsError):
        place.write("restore.json", {"id": "x"}, only_if_new=True)


def test_a_request_goes_and_metadata_are_read_by_key(aws: Answers, place: SnapshotStore) -> None:
    place.remove("restore.json")
    assert aws.named("s3:DeleteObject") == [{"Bucket": "mine", "Key": "one/etcd/restore.json"}]
    aws.given["s3:HeadObject"] = {"Metadata": {"sha256": "x"}}
    assert place.metadata(f"one/etcd/hourly/{NAME}") == {"sha256": "x"}
    assert aws.named("s3:HeadObject") == [{"Bucket": "mine", "Key": f"one/etcd/hourly/{NAME}"}]


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        ("latest", f"hourly/{NAME}"),
        (NAME, f"hourly/{NAME}"),
        (f"one/etcd/daily/{NAME}", f"daily/{NAME}"),
        (f"daily/{NAME}", f"daily/{NAME}"),
        (NAME[1:], None),
        ("yesterday", None),
    ],
)
def test_a_snapshot_is_named_by_its_key_or_the_end_of_it(
    aws: Answers, place: SnapshotStore, wanted: str, key: str | None
) -> None:
    listed(aws, f"daily/{NAME}", f"hourly/{NAME}", "hourly/2025-12-30T235900Z.db")
    if key:
        assert find_snapshot(place, wanted).key == f"one/etcd/{key}"
        return
    with pytest.raises(NoSnapshotError, match=f"there is no snapshot {wanted} under s3://mine/one/etcd/") as missing:
        find_snapshot(place, wanted)
    assert "cfngen etcd list" in str(missing.value.hint)


@pytest.mark.parametrize("wanted", ["latest", NAME])
def test_where_there_is_none_the_command_that_shows_the_masters_is_named(
    aws: Answers, place: SnapshotStore, wanted: str
) -> None:
    with pytest.raises(NoSnapshotError, match="there is no snapshot under s3://mine/one/etcd/") as missing:
        find_snapshot(place, wanted)
    assert "cfngen status" in str(missing.value.hint)


BOTH = {"ApiEndpoint": "x", "CaSecretArn": "y"}


@pytest.mark.parametrize(
    ("described", "overrides", "bucket"),
    [
        (stack(outputs={**BOTH, "BackupBucketName": "made"}), (), "made"),
        (stack(outputs={**BOTH, "BackupBucketName": "made"}), ("etcd.backups.bucket=given",), "made"),
        (stack(outputs=BOTH), ("etcd.backups.bucket=given",), "given"),
        (stack(status="DELETE_COMPLETE", outputs={"BackupBucketName": "x"}), ("etcd.backups.bucket=given",), "given"),
        (None, ("etcd.backups.bucket=given",), "given"),
    ],
)  # fmt: skip
def test_the_bucket_is_the_stacks_or_that_of_the_cluster_file(
    aws: Answers, described: dict[str, Any] | None, overrides: tuple[str, ...], bucket: str
) -> None:
    stacked(aws, *([described] if described else []))
    cluster = load(None, environ={}, overrides=("name=one", *overrides)).cluster
    assert find_store(aws.account, "one", cluster) == SnapshotStore(aws.account, bucket, "one")


@pytest.mark.parametrize(
    ("described", "overrides", "words", "hint"),
    [
        (stack(outputs=BOTH), (), "the stack one has no bucket for etcd's snapshots$", "`cfngen deploy` creates one. "),
        (
            stack(outputs=BOTH),
            ("etcd.backups.enabled=false",),
            "`etcd.backups.enabled` is false in the cluster file",
            "Enable backups there; `cfngen deploy` creates one. ",
        ),
        (None, (), "there is no stack one that would name the bucket", "To list the snapshots of a deleted cluster"),
        (
            stack(status="DELETE_COMPLETE"),
            (),
            "there is no stack one that would name the bucket",
            "To list the snapshots of a deleted cluster",
        ),
    ],
)
def test_where_nobody_names_a_bucket_it_is_said_how_to_get_one(
    aws: Answers, described: dict[str, Any] | None, overrides: tuple[str, ...], words: str, hint: str
) -> None:
    stacked(aws, *([described] if described else []))
    cluster = load(None, environ={}, overrides=("name=one", *overrides)).cluster
    with pytest.raises(BackupsOffError, match=words) as refused:
        find_store(aws.account, "one", cluster)
    assert str(refused.value.hint).startswith(hint)
    assert "--set etcd.backups.bucket=NAME" in str(refused.value.hint)


class Leader:
    """A master that answers requests for snapshots.

    Attributes:
        after: seconds that it takes.
        others: snapshots of an earlier request that come meanwhile, and after how many seconds.
    """

    def __init__(self, aws: Answers, after: float, *, period: str = "hourly", others: float | None = None) -> None:
        self.aws, self.after, self.period, self.others = aws, after, period, others
        self.began = aws.clock.now()
        self.heads: list[str] = []
        aws.given["s3:ListObjectsV2"] = self.listing
        aws.given["s3:HeadObject"] = self.head

    @property
    def passed(self) -> float:
        return (self.aws.clock.now() - self.began).total_seconds()

    def listing(self, sent: dict[str, Any]) -> dict[str, Any]:
        names = [f"hourly/{NAME}"]
        if self.others is not None and self.passed >= self.others:
            names.append("hourly/2026-01-01T000001Z.db")
        if self.passed >= self.after:
            names.append(f"{self.period}/2026-01-01T000100Z.db")
        return {"Contents": [{"Key": f"one/etcd/{name}", "Size": 7} for name in names]}

    def head(self, sent: dict[str, Any]) -> dict[str, Any]:
        self.heads.append(sent["Key"])
        [request] = self.aws.named("s3:PutObject")
        mine = sent["Key"].endswith("000100Z.db")
        return {"Metadata": {"request": json.loads(request["Body"])["id"] if mine else "another's"}}


def test_a_snapshot_at_once_is_the_one_that_bears_the_request(aws: Answers, place: SnapshotStore) -> None:
    leader, said = Leader(aws, 130, others=20), list[Message]()
    taken = take_snapshot(place, said.append)
    assert (taken.cluster, taken.bucket, taken.snapshot.key) == (
        "one",
        "mine",
        "one/etcd/hourly/2026-01-01T000100Z.db",
    )
    assert 130 <= taken.seconds == leader.passed <= 135
    assert taken.snapshot.age >= 0
    # What was there before is not looked at, and another's is looked at once.
    assert leader.heads == ["one/etcd/hourly/2026-01-01T000001Z.db", "one/etcd/hourly/2026-01-01T000100Z.db"]
    [sent] = aws.named("s3:PutObject")
    assert sent["Key"] == "one/etcd/backup-request.json"
    assert json.loads(sent["Body"])["created"] == "2026-01-01T00:00:00+00:00"
    texts = [each.text for each in said if isinstance(each, Step)]
    assert texts[0].startswith("requesting a snapshot from etcd's leader")
    assert texts[1:] == ["waiting for the snapshot (60 s)", "waiting for the snapshot (120 s)"]


def test_a_snapshot_from_before_the_clock_of_this_machine_is_not_older_than_now(
    aws: Answers, place: SnapshotStore
) -> None:
    """Clocks of masters and of the operator's machine need not agree: this one was named a minute ahead."""
    Leader(aws, 1)
    assert take_snapshot(place, lambda message: None).snapshot.age == 0


@pytest.mark.parametrize(("after", "answered"), [(60, True), (61, False)])
def test_patience_has_an_end(aws: Answers, place: SnapshotStore, after: float, answered: bool) -> None:
    leader = Leader(aws, after)
    patience = timedelta(minutes=1)
    if answered:
        assert take_snapshot(place, lambda message: None, patience).seconds == 60
        return
    with pytest.raises(NoAnswerError, match="within 60 seconds") as missing:
        take_snapshot(place, lambda message: None, patience)
    assert "journalctl -u cfngen-backup" in str(missing.value.hint)
    assert leader.passed == 60


def test_a_daily_copy_is_not_the_answer(aws: Answers, place: SnapshotStore) -> None:
    Leader(aws, 1, period="daily")
    with pytest.raises(NoAnswerError):
        take_snapshot(place, lambda message: None, timedelta(seconds=10))


def test_a_leader_has_minutes_unless_told(aws: Answers, place: SnapshotStore) -> None:
    leader = Leader(aws, 10_000)
    with pytest.raises(NoAnswerError):
        take_snapshot(place, lambda message: None)
    assert 120 <= leader.passed <= 900
