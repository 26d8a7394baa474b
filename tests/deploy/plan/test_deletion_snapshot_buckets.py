"""Buckets of etcd's snapshots that outlive their cluster: told with what is in them, and never deleted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from in_moto import Calls, in_moto

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.stacks import ResourceView, StackResource
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import find_snapshot_buckets

BUCKET = "made-by-the-stack"


def scope(*buckets: str) -> Inventory:
    views = [ResourceView("BackupBucket", bucket, "AWS::S3::Bucket", "DELETE_SKIPPED") for bucket in buckets]
    return Inventory("one", tuple(StackResource("arn", (), view) for view in views))


@pytest.fixture
def where() -> Iterator[tuple[Account, Calls]]:
    with in_moto() as opened:
        s3 = opened[0].client("s3")
        for name in (BUCKET, "mine"):
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
            for key in ("one/etcd/hourly/2026-01-01T000000Z.db", "one/etcd/daily/2026-01-01T000000Z.db", "one/other"):
                s3.put_object(Bucket=name, Key=key, Body=b"x" * 2**20)
        yield opened


def test_a_bucket_of_the_stack_is_told_with_its_use_and_its_end(where: tuple[Account, Calls]) -> None:
    [found] = find_snapshot_buckets(where[0], scope(BUCKET), {"BackupBucketName": BUCKET})
    assert (found.kind, found.id) == ("bucket of etcd's snapshots", BUCKET)
    assert found.why.startswith("2 snapshots, 2.0 MiB; ")
    assert "`etcd.backups.bucket`" in found.why
    assert "billed" in found.cost
    # Versions and delete markers, too: without them S3 deletes the bucket.
    s3 = where[0].client("s3")
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=BUCKET, Key="one/etcd/restore.json")
    s3.delete_object(Bucket=BUCKET, Key="one/etcd/restore.json")
    python, option, script, *deletion = shlex.split(str(found.command))
    assert (python, option) == ("python3", "-c")
    exec(script)
    assert deletion == ["&&", "aws", "s3", "rb", f"s3://{BUCKET}", "--region", "us-west-2"]
    s3.delete_bucket(Bucket=BUCKET)


def test_of_a_bucket_of_the_operators_only_the_snapshots_are_told(where: tuple[Account, Calls]) -> None:
    [found] = find_snapshot_buckets(where[0], scope(), {"BackupBucketName": "mine"})
    assert (found.kind, found.id) == ("etcd's snapshots", "s3://mine/one/etcd/")
    assert found.command == "aws s3 rm --recursive s3://mine/one/etcd/"


def test_what_is_gone_or_empty_is_not_told(where: tuple[Account, Calls]) -> None:
    account, _ = where
    assert find_snapshot_buckets(account, scope("gone"), {}) == ()
    for each in account.client("s3").list_objects_v2(Bucket="mine")["Contents"]:
        account.client("s3").delete_object(Bucket="mine", Key=each["Key"])
    assert find_snapshot_buckets(account, scope(), {"BackupBucketName": "mine"}) == ()
