"""Templates in their bucket: which go, and that nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from in_moto import Calls, in_moto

from cfngen.deploy.aws import templates
from cfngen.deploy.aws.account import Account
from cfngen.deploy.operations.deletion import template_bucket
from cfngen.deploy.plan.deletion import remaining_buckets_keys_and_logs

BUCKET = "templates"
Where = tuple[Account, Calls]


@pytest.fixture
def where() -> Iterator[Where]:
    with in_moto() as opened:
        s3 = opened[0].client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield opened


def put(account: Account, *keys: str) -> None:
    for key in keys:
        account.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"{}")


def keys(account: Account) -> list[str]:
    answer: dict[str, Any] = account.client("s3").list_object_versions(Bucket=BUCKET)
    return [each["Key"] for each in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ()))]


def test_every_version_and_marker_of_the_cluster_goes_and_nothing_else(where: Where) -> None:
    account, calls = where
    put(account, "one/a/vpc.json", "one/a/vpc.json", "one/b/iam.json", "one-more/a/vpc.json", "two/a/vpc.json", "one")
    account.client("s3").delete_object(Bucket=BUCKET, Key="one/b/iam.json")
    there = templates.find(account, BUCKET, "one")
    assert (there.bucket, there.prefix, there.versions) == (BUCKET, "one/", 4)
    assert template_bucket.empty(account, BUCKET, "one") == 4
    assert sorted(keys(account)) == ["one", "one-more/a/vpc.json", "two/a/vpc.json"]
    assert templates.find(account, BUCKET, "one").versions == 0
    named = [each for name, each in zip(calls.names, calls.arguments, strict=True) if name == "s3:DeleteObjects"]
    assert [each["ExpectedBucketOwner"] for each in named] == [account.id]


def test_a_bucket_goes_only_when_it_is_empty(where: Where) -> None:
    account, _ = where
    put(account, "two/a/vpc.json")
    assert not template_bucket.delete_bucket(account, BUCKET)
    template_bucket.empty(account, BUCKET, "two")
    assert template_bucket.delete_bucket(account, BUCKET)
    assert account.client("s3").list_buckets()["Buckets"] == []


def test_no_bucket_is_no_error(where: Where) -> None:
    assert templates.find(where[0], "there-is-none", "one") == templates.TemplateObjects(prefix="one/")


def test_what_s3_refuses_to_delete_is_an_error(where: Where) -> None:
    account, calls = where
    put(account, "one/a/vpc.json")
    calls.refuse("s3:DeleteObjects")
    with pytest.raises(ClientError, match="AccessDenied"):
        template_bucket.empty(account, BUCKET, "one")


def test_log_groups_named_after_the_cluster_are_reported(where: Where) -> None:
    account, _ = where
    for name in ("/aws/containerinsights/one/application", "/aws/containerinsights/one-more/application", "/other"):
        account.client("logs").create_log_group(logGroupName=name)
    [found] = remaining_buckets_keys_and_logs.find_workload_log_groups(account, "one")
    assert found.id == "/aws/containerinsights/one/application"
    assert found.command.startswith(
        "aws logs delete-log-group --log-group-name /aws/containerinsights/one/application "
    )
