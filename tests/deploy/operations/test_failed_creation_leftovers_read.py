"""What failed creations have left: of which stacks, whatever kind it is, and nothing where nothing stays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import NOW, arn, resource, stack, stacked
from recorded import RefusedError

from cfngen.deploy.aws.stacks import StackResource, StackView, find_stack
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.operations.leftovers import (
    Remains,
    only_backup_buckets_left,
    report_earlier_stacks,
    report_failed_creation,
)

KEY = {"KeyId": "key-1", "KeyState": "PendingDeletion", "DeletionDate": datetime(2026, 2, 3, tzinfo=UTC)}


@pytest.fixture
def said() -> list[Message]:
    return []


def root(aws: Answers) -> StackView:
    found = find_stack(aws.account, arn("one"))
    assert found is not None
    return found


def waits(aws: Answers) -> None:
    """Every key waits for its deletion."""
    aws.given["kms:DescribeKey"] = lambda sent: {"KeyMetadata": {**KEY, "KeyId": sent["KeyId"]}}


def test_everything_that_stays_of_a_creation_is_told_with_its_kind(aws: Answers, said: list[Message]) -> None:
    secret = resource("arn-of-the-secret-in-it", "DELETE_COMPLETE", type_name="AWS::SecretsManager::Secret")
    members = (
        resource("vol-1", "DELETE_COMPLETE"),
        resource("key-1", "DELETE_COMPLETE"),
        resource("vpc-1", "DELETE_FAILED"),
        resource("bucket-1", "DELETE_FAILED"),
        secret,
    )
    stacked(aws, stack(status="ROLLBACK_FAILED"), resources={"one": members})
    waits(aws)
    snapshot = {"SnapshotId": "snap-1", "VolumeId": "vol-1", "VolumeSize": 20}
    aws.given["ec2:DescribeSnapshots"] = {"Snapshots": [snapshot]}
    aws.given["secretsmanager:DescribeSecret"] = {"DeletedDate": NOW}
    aws.given["s3:ListObjectsV2"] = {"Contents": [{"Key": "one/etcd/hourly/2025-12-31T235900Z.db", "Size": 2**20}]}
    report_failed_creation(aws.account, root(aws), "one", said.append)
    [remains] = said
    assert isinstance(remains, Remains)
    assert (remains.stack, remains.earlier) == ("one", False)
    assert [(each.kind, each.id) for each in remains.retained] == [
        ("AWS::EC2::VPC", "vpc-1"),
        ("snapshot", "snap-1"),
        ("KMS key", "key-1"),
        ("secret", "arn-of-the-secret-in-it"),
        ("bucket of etcd's snapshots", "bucket-1"),
    ]
    assert remains.retained[1].why.startswith("etcd's data, or blank if no master came up")
    assert remains.retained[-1].why.startswith("1 snapshot, 1.0 MiB; ")


def test_what_stays_of_a_private_network_is_told_with_commands_in_their_order(
    aws: Answers, said: list[Message]
) -> None:
    members = (
        resource("192.0.2.1", "DELETE_FAILED", type_name="AWS::EC2::EIP", name="NatElasticIpA"),
        resource("subnet-1", "DELETE_FAILED", name="PublicSubnetA"),
        resource("rtb-1", "DELETE_FAILED", name="PrivateRouteTableA"),
        resource("nat-1", "DELETE_FAILED", name="NatGatewayA", type_name="AWS::EC2::NatGateway"),
        resource("vpce-1", "DELETE_FAILED", name="EndpointEc2", type_name="AWS::EC2::VPCEndpoint"),
    )
    stacked(aws, stack(status="ROLLBACK_FAILED"), resources={"one": members})
    aws.given["ec2:DescribeAddresses"] = {"Addresses": [{"PublicIp": "192.0.2.1", "AllocationId": "eipalloc-1"}]}
    report_failed_creation(aws.account, root(aws), "one", said.append)
    [remains] = said
    assert isinstance(remains, Remains)
    assert [str(each.command).removesuffix(" --region us-west-2") for each in remains.retained] == [
        "aws ec2 delete-nat-gateway --nat-gateway-id nat-1",
        "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids vpce-1",
        "aws ec2 release-address --allocation-id eipalloc-1",
        "aws ec2 delete-subnet --subnet-id subnet-1",
        "aws ec2 delete-route-table --route-table-id rtb-1",
    ]
    assert [bool(each.cost) for each in remains.retained] == [True, True, True, False, False]


def test_where_nothing_stays_nothing_is_said(aws: Answers, said: list[Message]) -> None:
    stacked(aws, stack(status="ROLLBACK_COMPLETE"), resources={"one": (resource("vpc-1", "DELETE_COMPLETE"),)})
    report_failed_creation(aws.account, root(aws), "one", said.append)
    assert said == []


@pytest.mark.parametrize(("code", "hint"), [("AccessDenied", True), ("InternalFailure", False)])
def test_what_cannot_be_looked_for_is_told_and_no_failure(
    aws: Answers, said: list[Message], code: str, hint: bool
) -> None:
    stacked(aws, stack(status="ROLLBACK_COMPLETE"), resources={"one": (resource("vol-1", "DELETE_COMPLETE"),)})
    aws.given["ec2:DescribeSnapshots"] = RefusedError(code)
    report_failed_creation(aws.account, root(aws), "one", said.append)
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text.startswith("could not find out what earlier stacks left in the account: ")
    assert bool(notice.hint) is hint


def earlier(aws: Answers, *names: str, **stacks: dict[str, Any]) -> None:
    """Deleted roots, the latest first, of which each has left a key of its own."""
    described = [stacks.get(name) or stack(name, "DELETE_COMPLETE") for name in names]
    held = {name: (resource(f"key-{name}", "DELETE_COMPLETE"),) for name in names}
    stacked(aws, *described, resources=held)
    waits(aws)
    aws.given["cloudformation:ListStacks"] = {
        "StackSummaries": [
            {
                "StackName": "two" if name.startswith("other") else "one",
                "StackId": arn(name),
                "CreationTime": NOW,
                "StackStatus": "DELETE_COMPLETE",
                **({"ParentId": arn("x")} if name.startswith("nested") else {}),
            }
            for name in names
        ]
    }


def told(aws: Answers, said: list[Message]) -> list[str]:
    report_earlier_stacks(aws.account, "one", "one", said.append)
    assert all(isinstance(each, Remains) and each.earlier and each.stack == "one" for each in said)
    return [each.id for message in said for each in message.retained]  # type: ignore[attr-defined]


def test_earlier_roots_of_the_name_are_looked_at_and_no_others(aws: Answers, said: list[Message]) -> None:
    theirs = stack("theirs", "DELETE_COMPLETE", tags={"cfngen:cluster": "two"})
    untagged = stack("untagged", "DELETE_COMPLETE", tags={})
    earlier(aws, "a", "other", "nested", "theirs", "untagged", "b", theirs=theirs, untagged=untagged)
    assert told(aws, said) == ["key-a", "key-untagged", "key-b"]
    assert aws.named("cloudformation:ListStacks") == [{"StackStatusFilter": ["DELETE_COMPLETE"]}]


@pytest.mark.parametrize("number", [4, 5, 6])
def test_only_the_latest_five_are_looked_at(aws: Answers, said: list[Message], number: int) -> None:
    """Each takes some ten calls; those of the first ones were told when they were new."""
    names = [f"n{place}" for place in range(number)]
    earlier(aws, *names)
    assert told(aws, said) == [f"key-{name}" for name in names[:5]]


def test_what_two_of_them_have_left_is_told_once(aws: Answers, said: list[Message]) -> None:
    earlier(aws, "a", "b")
    shared = (resource("key-1", "DELETE_COMPLETE"),)
    stacked(aws, stack("a", "DELETE_COMPLETE"), stack("b", "DELETE_COMPLETE"), resources={"a": shared, "b": shared})
    assert told(aws, said) == ["key-1"]


NESTED = resource(arn("inner"), "DELETE_FAILED", type_name="AWS::CloudFormation::Stack")
BUCKET = resource("bucket-1", "DELETE_FAILED")


@pytest.mark.parametrize(
    ("members", "only"),
    [
        ((BUCKET,), True),
        ((NESTED, BUCKET), True),
        ((BUCKET, resource("vpc-1", "DELETE_COMPLETE")), True),
        ((BUCKET, resource("vpc-1", "DELETE_FAILED")), False),
        ((NESTED,), False),
        ((), False),
    ],
)
def test_a_rollback_that_only_kept_the_snapshots_is_told_apart(
    aws: Answers, members: tuple[StackResource, ...], only: bool
) -> None:
    stacked(aws, stack(status="ROLLBACK_FAILED"), resources={"one": members})
    assert only_backup_buckets_left(aws.account, root(aws)) is only
