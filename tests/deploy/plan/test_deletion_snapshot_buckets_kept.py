"""Buckets of etcd's snapshots that stay: the stack's own, and one of the operator's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import resource
from recorded import RefusedError

from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.plan.deletion import remaining_buckets_keys_and_logs

HOURLY = {"Key": "one/etcd/hourly/2025-12-31T235900Z.db", "Size": 3 * 2**19}
LIST = "s3:ListObjectsV2"


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ({"Contents": [HOURLY, {**HOURLY, "Key": "one/etcd/daily/2025-12-31T235900Z.db"}]}, "2 snapshots, 3.0 MiB; "),
        ({"Contents": [HOURLY]}, "1 snapshot, 1.5 MiB; "),
        ({}, "0 snapshots, 0.0 MiB; "),
        (RefusedError("AccessDenied"), "snapshots that you have no permission to list; "),
        (RefusedError("NoSuchBucket"), None),
    ],
)
def test_the_stacks_own_bucket_is_told_while_it_is_there(aws: Answers, answer: Any, holds: str | None) -> None:
    aws.given[LIST] = answer
    scope = Inventory("one", (resource("bucket-1", "DELETE_SKIPPED"),))
    found = remaining_buckets_keys_and_logs.find_snapshot_buckets(aws.account, scope, {"BackupBucketName": "bucket-1"})
    if holds is None:
        assert found == ()
        return
    [bucket] = found
    assert (bucket.kind, bucket.id) == ("bucket of etcd's snapshots", "bucket-1")
    assert bucket.why.startswith(holds)
    assert str(bucket.command).endswith('.delete()" && aws s3 rb s3://bucket-1 --region us-west-2')
    assert bucket.cost == "S3 storage, billed per GiB and month"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"Contents": [HOURLY]}, "1 snapshot, 1.5 MiB, in your own bucket"),
        (RefusedError("AccessDenied"), "snapshots that you have no permission to list, in your own bucket"),
        ({}, None),
        (RefusedError("NoSuchBucket"), None),
    ],
)
def test_of_an_operators_bucket_only_what_lies_under_the_clusters_name_is_told(
    aws: Answers, answer: Any, why: str | None
) -> None:
    aws.given[LIST] = answer
    found = remaining_buckets_keys_and_logs.find_snapshot_buckets(
        aws.account, Inventory("one"), {"BackupBucketName": "mine"}
    )
    assert [(each.kind, each.id, each.why, each.command) for each in found] == (
        [("etcd's snapshots", "s3://mine/one/etcd/", why, "aws s3 rm --recursive s3://mine/one/etcd/")] if why else []
    )
    assert not any(not each.cost for each in found)


def test_a_cluster_without_a_bucket_has_none(aws: Answers) -> None:
    assert (
        remaining_buckets_keys_and_logs.find_snapshot_buckets(aws.account, Inventory("one", (resource("vpc-1"),)), {})
        == ()
    )
    assert aws.calls == []


LOCKED = "s3:GetObjectLockConfiguration"
RETENTION = "s3:GetObjectRetention"
ENABLED = {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}}
FROM_DELETING = "delete locked snapshots, the newest until 2026-01-30"
DAILY = {**HOURLY, "Key": "one/etcd/daily/2025-12-31T235900Z.db"}


def _until(mode: str) -> Callable[..., dict[str, Any]]:
    days = {HOURLY["Key"]: datetime(2026, 1, 7, tzinfo=UTC), DAILY["Key"]: datetime(2026, 1, 30, tzinfo=UTC)}
    return lambda arguments: {"Retention": {"Mode": mode, "RetainUntilDate": days[arguments["Key"]]}}


@pytest.mark.parametrize("bucket", ["bucket-1", "mine"])
@pytest.mark.parametrize(
    ("lock", "retention", "says"),
    [
        (ENABLED, _until("COMPLIANCE"), f"; S3 Object Lock lets nobody {FROM_DELETING}"),
        (ENABLED, _until("GOVERNANCE"),
         f"; S3 Object Lock lets only those with `s3:BypassGovernanceRetention` {FROM_DELETING}"),
        (ENABLED, RefusedError("NoSuchObjectLockConfiguration"), ""),
        (ENABLED, RefusedError("AccessDenied"), ""),
        (RefusedError("ObjectLockConfigurationNotFoundError"), RefusedError("InvalidRequest"), ""),
        (RefusedError("AccessDenied"), RefusedError("AccessDenied"), ""),
    ],
)  # fmt: skip
def test_a_locked_bucket_is_told_with_the_end_of_its_lock(
    aws: Answers, bucket: str, lock: Any, retention: Any, says: str
) -> None:
    older = {**HOURLY, "Key": "one/etcd/daily/2025-12-01T000000Z.db"}
    aws.given |= {LIST: {"Contents": [HOURLY, DAILY, older]}, LOCKED: lock, RETENTION: retention}
    scope = Inventory("one", (resource("bucket-1", "DELETE_SKIPPED"),) if bucket == "bucket-1" else ())
    [found] = remaining_buckets_keys_and_logs.find_snapshot_buckets(aws.account, scope, {"BackupBucketName": bucket})
    ends = f"`etcd.backups.bucket` in its cluster file names it{says}", f"in your own bucket{says}"
    assert found.why.endswith(ends)
