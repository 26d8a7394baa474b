"""How AWS says no to a removal, and the commands that an operator is given for what stays."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session

from cfngen.deploy.aws.errors import CallOutcome, catch_missing_or_in_use
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.operations.deletion.removal import remove_each

GONE = [
    "InvalidGroup.NotFound",
    "InvalidGroupId.Malformed",
    "InvalidNetworkInterfaceID.NotFound",
    "InvalidPermission.NotFound",
    "InvalidSecurityGroupRuleId.NotFound",
    "InvalidRoute.NotFound",
    "InvalidRouteTableID.NotFound",
    "InvalidSecurityGroupID.NotFound",
    "InvalidSnapshot.NotFound",
    "InvalidVolume.NotFound",
    "ListenerNotFound",
    "LoadBalancerNotFound",
    "TargetGroupNotFound",
]
HELD = [
    "DependencyViolation",
    "InvalidGroup.InUse",
    "InvalidNetworkInterface.InUse",
    "InvalidParameterValue",
    "IncorrectState",
    "InvalidSnapshot.InUse",
    "OperationInProgress",
    "ResourceInUse",
    "VolumeInUse",
]


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DeleteIt")


@pytest.mark.parametrize("code", GONE)
def test_what_is_gone_already_is_no_error_and_was_not_removed_by_us(code: str) -> None:
    with catch_missing_or_in_use() as tried:
        raise refused(code)
    assert (tried.not_found, tried.in_use, tried.succeeded) == (True, False, False)


@pytest.mark.parametrize("code", HELD)
def test_what_something_else_needs_is_left_for_later(code: str) -> None:
    with catch_missing_or_in_use() as tried:
        raise refused(code)
    assert (tried.not_found, tried.in_use, tried.succeeded) == (False, True, False)


def test_any_other_refusal_is_an_error() -> None:
    with pytest.raises(ClientError, match="UnauthorizedOperation"), catch_missing_or_in_use():
        raise refused("UnauthorizedOperation")
    assert CallOutcome().succeeded


def test_only_what_aws_has_accepted_counts_as_removed() -> None:
    volumes = {code: OrphanedResource("volume", code, code) for code in ("", "VolumeInUse", "InvalidVolume.NotFound")}

    def remove(each: OrphanedResource) -> None:
        if each.id:
            raise refused(each.id)

    assert remove_each(volumes.values(), remove) == (volumes[""],)


COMMANDS: list[tuple[OrphanedResource, str, str, dict[str, str]]] = [
    (
        OrphanedResource("load balancer", "web", "web", generation="classic"),
        "elb",
        "DeleteLoadBalancer",
        {"LoadBalancerName": "web"},
    ),
    (OrphanedResource("load balancer", "arn", "web"), "elbv2", "DeleteLoadBalancer", {"LoadBalancerArn": "arn"}),
    (OrphanedResource("target group", "arn", "web"), "elbv2", "DeleteTargetGroup", {"TargetGroupArn": "arn"}),
    (OrphanedResource("security group", "sg-1", "web"), "ec2", "DeleteSecurityGroup", {"GroupId": "sg-1"}),
    (
        OrphanedResource("network interface", "eni-1", "web"),
        "ec2",
        "DeleteNetworkInterface",
        {"NetworkInterfaceId": "eni-1"},
    ),
    (
        OrphanedResource("route", "10.244.0.0/24", "", where="rtb-1"),
        "ec2",
        "DeleteRoute",
        {"RouteTableId": "rtb-1", "DestinationCidrBlock": "10.244.0.0/24"},
    ),
    (OrphanedResource("volume", "vol-1", "web"), "ec2", "DeleteVolume", {"VolumeId": "vol-1"}),
    (OrphanedResource("snapshot", "snap-1", "web"), "ec2", "DeleteSnapshot", {"SnapshotId": "snap-1"}),
]  # fmt: skip


@pytest.mark.parametrize(("leftover", "service", "operation", "arguments"), COMMANDS)
def test_the_command_for_what_stays_is_one_of_the_aws_cli(
    leftover: OrphanedResource, service: str, operation: str, arguments: dict[str, str]
) -> None:
    """The CLI's names are those of botocore's models, hyphenated; all that the call requires is given."""
    words = shlex.split(leftover.command("eu-west-1"))
    assert words[:3] == ["aws", service, hyphenated(operation)]
    assert words[-2:] == ["--region", "eu-west-1"]
    given = dict(zip(words[3:-2:2], words[4:-2:2], strict=True))
    assert given == {f"--{hyphenated(name)}": value for name, value in arguments.items()}
    assert set(model(service, operation).required_members) <= set(arguments)


def test_what_goes_by_itself_has_no_command() -> None:
    assert OrphanedResource("network interface", "eni-1", "ELB web", deleted_by_aws=True).command("eu-west-1") == ""


def model(service: str, operation: str) -> Any:
    return get_session().get_service_model(service).operation_model(operation).input_shape


def hyphenated(name: str) -> str:
    from botocore import xform_name

    return xform_name(name, "-")
