"""The commands that put a changed resource back: the AWS CLI has them, and they give all that the template says."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import get_session
from botocore.validate import validate_parameters

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from aws_cli import parsed

from cfngen.deploy.aws.drift_commands import AUTO_SCALING_GROUP, ROUTE, SECURITY_GROUP, revert_commands
from cfngen.deploy.aws.groups import GroupView, find_resized_groups

REGION = "us-west-2"
INGRESS, EGRESS = "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"
LAUNCH_TEMPLATE = {"LaunchTemplateId": "lt-1", "Version": "3"}
GROUP = {
    "MinSize": 2,
    "MaxSize": 5,
    "LaunchTemplate": LAUNCH_TEMPLATE,
    "MixedInstancesPolicy": {"LaunchTemplate": {"LaunchTemplateSpecification": LAUNCH_TEMPLATE}},
}


def sent(command: str, operation: str) -> dict[str, Any]:
    """What a command of the AWS CLI sends, by the names of the API; it must be of this operation."""
    service, name, options = parsed(shlex.split(command))
    assert name == xform_name(operation, "-")
    assert options.pop("region") == [REGION]
    shape = get_session().get_service_model(service).operation_model(operation).input_shape
    arguments: dict[str, Any] = {}
    for member, kind in shape.members.items():
        [word] = options.pop(xform_name(member, "-"), [""])
        if word.startswith(("[", "{")):
            arguments[member] = json.loads(word)
        elif word:
            arguments[member] = {"integer": int, "list": lambda text: [text]}.get(kind.type_name, str)(word)
    assert options == {}
    validate_parameters(arguments, shape)
    return arguments


@pytest.mark.parametrize("destination", ["DestinationCidrBlock", "DestinationPrefixListId"])
@pytest.mark.parametrize(
    "target", ["GatewayId", "NatGatewayId", "NetworkInterfaceId", "TransitGatewayId", "VpcPeeringConnectionId"]
)
def test_a_route_is_put_back_with_its_destination_and_its_target(destination: str, target: str) -> None:
    """The EC2 API's names of parameters are CloudFormation's of properties."""
    route = {"RouteTableId": "rtb-1", destination: "there", target: "way-1"}
    [replace] = revert_commands(ROUTE, "route", route, {**route, target: "way-2"}, REGION)
    assert sent(replace, "ReplaceRoute") == route
    [create] = revert_commands(ROUTE, "route", route, None, REGION)
    assert sent(create, "CreateRoute") == route


@pytest.mark.parametrize("name", GROUP)
def test_of_a_group_what_differs_is_put_back(name: str) -> None:
    actual = {**GROUP, "DesiredCapacity": 4, name: {}}
    [command] = revert_commands(AUTO_SCALING_GROUP, "nodes", {**GROUP, "DesiredCapacity": 3}, actual, REGION)
    assert sent(command, "UpdateAutoScalingGroup") == {"AutoScalingGroupName": "nodes", name: GROUP[name]}


PEERS = [
    (INGRESS, "CidrIp", {"IpRanges": [{"CidrIp": "it"}]}),
    (INGRESS, "CidrIpv6", {"Ipv6Ranges": [{"CidrIpv6": "it"}]}),
    (INGRESS, "SourceSecurityGroupId", {"UserIdGroupPairs": [{"GroupId": "it"}]}),
    (INGRESS, "SourcePrefixListId", {"PrefixListIds": [{"PrefixListId": "it"}]}),
    (EGRESS, "CidrIp", {"IpRanges": [{"CidrIp": "it"}]}),
    (EGRESS, "DestinationSecurityGroupId", {"UserIdGroupPairs": [{"GroupId": "it"}]}),
    (EGRESS, "DestinationPrefixListId", {"PrefixListIds": [{"PrefixListId": "it"}]}),
]


@pytest.mark.parametrize(("kind", "peer", "permission"), PEERS)
def test_a_rule_is_put_back_in_its_direction_with_its_peer(kind: str, peer: str, permission: dict[str, Any]) -> None:
    direction = kind.removeprefix("AWS::EC2::SecurityGroup")
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    rule = {**https, peer: "it"}
    expected = {"GroupId": "sg-1", "IpPermissions": [{**https, **permission}]}
    [deleted] = revert_commands(kind, "rule", {"GroupId": "sg-1", **rule}, None, REGION)
    assert sent(deleted, f"AuthorizeSecurityGroup{direction}") == expected
    group = {f"SecurityGroup{direction}": [rule]}
    [missing] = revert_commands(SECURITY_GROUP, "sg-1", group, {}, REGION)
    assert sent(missing, f"AuthorizeSecurityGroup{direction}") == expected
    [added] = revert_commands(SECURITY_GROUP, "sg-1", {}, group, REGION)
    assert sent(added, f"RevokeSecurityGroup{direction}") == expected


TAG, OTHER = {"Key": "Name", "Value": "one"}, {"Key": "mine", "Value": "two"}
OF_GROUP = {"ResourceId": "nodes", "ResourceType": "auto-scaling-group"}


def test_tags_are_put_back_and_others_are_taken_away() -> None:
    expected, actual = {"Tags": [TAG]}, {"Tags": [OTHER, {"Key": "aws:cloudformation:stack-name", "Value": "one"}]}
    again, away = revert_commands("AWS::EC2::Volume", "vol-1", expected, actual, REGION)
    assert sent(again, "CreateTags") == {"Resources": ["vol-1"], "Tags": [TAG]}
    assert sent(away, "DeleteTags") == {"Resources": ["vol-1"], "Tags": [{"Key": "mine"}]}
    again, away = revert_commands(AUTO_SCALING_GROUP, "nodes", expected, actual, REGION)
    assert sent(again, "CreateOrUpdateTags") == {"Tags": [{**OF_GROUP, **TAG}]}
    assert sent(away, "DeleteTags") == {"Tags": [{**OF_GROUP, "Key": "mine"}]}


VALUES = {"NodeGroupWebMinSize": "2", "NodeGroupWebMaxSize": "5"}


@pytest.mark.parametrize(
    ("minimum", "desired", "maximum", "restored"), [(1, 3, 5, 3), (2, 7, 9, 5), (0, 0, 0, 2), (2, 5, 5, None)]
)
def test_a_group_gets_the_sizes_of_the_stack_back(
    minimum: int, desired: int, maximum: int, restored: int | None
) -> None:
    group = GroupView(
        *("node", "web", "group-1"),
        logical_id="NodeGroupWebAutoScalingGroup",
        minimum=minimum,
        maximum=maximum,
        desired=desired,
    )
    commands = [resized.command for resized in find_resized_groups(REGION, [group], VALUES)]
    expected = {"AutoScalingGroupName": "group-1", "MinSize": 2, "MaxSize": 5, "DesiredCapacity": restored}
    assert [sent(command, "UpdateAutoScalingGroup") for command in commands] == ([] if restored is None else [expected])
    for unknown in VALUES:
        assert not list(find_resized_groups(REGION, [group], {**VALUES, unknown: ""}))


def test_a_master_and_the_bastion_get_their_one_instance_back() -> None:
    for role in ("master", "bastion"):
        group = GroupView(role, "A", "group-1", minimum=0, maximum=0, desired=0)  # type: ignore[arg-type]
        [resized] = find_resized_groups(REGION, [group], {})
        sizes = {"MinSize": 1, "MaxSize": 1, "DesiredCapacity": 1}
        assert sent(resized.command, "UpdateAutoScalingGroup") == {"AutoScalingGroupName": "group-1", **sizes}
