"""The commands of the AWS CLI that give resources the values of their templates again.

CloudFormation's drift-aware change sets (`DeploymentMode` of CreateChangeSet) are no way for a whole cluster: they do
not include nested stacks, they revert all of a stack's differences or none, and what no template has, such as a rule
that somebody added to a security group, they do not remove.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.group_rules import inline_rules, rule_of_resource
from cfngen.deploy.aws.tags import tag_map

AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
ROUTE = "AWS::EC2::Route"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"

# Options of `aws autoscaling update-auto-scaling-group` by property. The desired capacity is the autoscaler's.
_GROUP_OPTIONS: Mapping[str, str] = {
    "MinSize": "--min-size",
    "MaxSize": "--max-size",
    "LaunchTemplate": "--launch-template",
    "MixedInstancesPolicy": "--mixed-instances-policy",
}
_ROUTE_DESTINATIONS: Mapping[str, str] = {
    "DestinationCidrBlock": "--destination-cidr-block",
    "DestinationPrefixListId": "--destination-prefix-list-id",
}
_ROUTE_TARGETS: Mapping[str, str] = {
    "GatewayId": "--gateway-id",
    "NatGatewayId": "--nat-gateway-id",
    "NetworkInterfaceId": "--network-interface-id",
    "TransitGatewayId": "--transit-gateway-id",
    "VpcPeeringConnectionId": "--vpc-peering-connection-id",
}
_EC2_ID = re.compile(r"[a-z]+-[0-9a-f]+")


def revert_commands(
    kind: str, physical_id: str, expected: Mapping[str, Any], actual: Mapping[str, Any] | None, region: str
) -> tuple[str, ...]:
    """Return the commands that put a resource back; none if its type, or what differs, is put back in another way.

    Args:
        kind: its type, e.g. `AWS::EC2::Route`.
        expected: its properties in the template, with their values.
        actual: its actual properties; None if it was deleted.
    """
    if kind == ROUTE:
        return tuple(_route_commands(expected, region, is_deleted=actual is None))
    if actual is None:
        rule = rule_of_resource(kind, expected)
        return (rule.authorize_command(region, expected.get("Description", "")),) if rule else ()
    if kind == AUTO_SCALING_GROUP:
        return tuple(_group_commands(physical_id, expected, actual, region))
    commands: list[str] = []
    if kind == SECURITY_GROUP:
        commands += _inline_rule_commands(physical_id, expected, actual, region)
    if kind.startswith("AWS::EC2::") and _EC2_ID.fullmatch(physical_id):
        commands += _ec2_tag_commands(physical_id, expected, actual, region)
    return tuple(commands)


def is_paused(kind: str, actual: Mapping[str, Any]) -> bool:
    """Return whether a resource is the group of a paused cluster, whose sizes and tags differ as long as that lasts."""
    return kind == AUTO_SCALING_GROUP and PAUSED in tag_map(actual.get("Tags"))


def _group_commands(name: str, expected: Mapping[str, Any], actual: Mapping[str, Any], region: str) -> Iterator[str]:
    changed = [key for key in _GROUP_OPTIONS if key in expected and expected[key] != actual.get(key)]
    if changed:
        options = " ".join(f"{_GROUP_OPTIONS[key]} {_argument(expected[key])}" for key in changed)
        yield (
            f"aws autoscaling update-auto-scaling-group --region {region} "
            f"--auto-scaling-group-name {shlex.quote(name)} {options}"
        )
    yield from _version_commands(expected, actual, region)
    of_group = {"ResourceId": name, "ResourceType": "auto-scaling-group"}
    set_again, removed = _changed_tags(expected, actual)
    if set_again:
        tags = [{**of_group, **tag} for tag in set_again]
        yield f"aws autoscaling create-or-update-tags --region {region} --tags {_argument(tags)}"
    if removed:
        tags = [{**of_group, "Key": key} for key in removed]
        yield f"aws autoscaling delete-tags --region {region} --tags {_argument(tags)}"


def _version_commands(expected: Mapping[str, Any], actual: Mapping[str, Any], region: str) -> Iterator[str]:
    """Yield the command that deletes the version that somebody made of the stack's launch template for a group.

    The stack takes the latest version for its own, so its next update would give that to the group again.
    """
    own, other = expected.get("LaunchTemplate", {}), actual.get("LaunchTemplate", {})
    id_, versions = own.get("LaunchTemplateId"), [str(own.get("Version")), str(other.get("Version"))]
    if id_ and id_ == other.get("LaunchTemplateId") and all(version.isdecimal() for version in versions):
        own_version, other_version = map(int, versions)
        if other_version > own_version:
            yield (
                f"aws ec2 delete-launch-template-versions --region {region} --launch-template-id {id_} "
                f"--versions {other_version}"
            )


def _ec2_tag_commands(id_: str, expected: Mapping[str, Any], actual: Mapping[str, Any], region: str) -> Iterator[str]:
    set_again, removed = _changed_tags(expected, actual)
    if set_again:
        yield f"aws ec2 create-tags --region {region} --resources {id_} --tags {_argument(set_again)}"
    if removed:
        tags = [{"Key": key} for key in removed]
        yield f"aws ec2 delete-tags --region {region} --resources {id_} --tags {_argument(tags)}"


def _changed_tags(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the template's tags that are missing or changed, and the keys of those that the template does not have."""
    if "Tags" not in actual:
        return [], []
    expected_tags, actual_tags = expected.get("Tags", []), actual["Tags"]
    keys = {tag["Key"] for tag in expected_tags}
    missing = [tag for tag in expected_tags if tag not in actual_tags]
    others = [tag["Key"] for tag in actual_tags if tag["Key"] not in keys and not tag["Key"].startswith("aws:")]
    return missing, others


def _inline_rule_commands(
    group: str, expected: Mapping[str, Any], actual: Mapping[str, Any], region: str
) -> Iterator[str]:
    expected_rules, actual_rules = inline_rules(group, expected), inline_rules(group, actual)
    # First what is missing: a rule that is wider may be what the cluster lives by.
    for rule, description in expected_rules.items():
        if rule not in actual_rules:
            yield rule.authorize_command(region, description)
    for rule in actual_rules:
        if rule not in expected_rules:
            yield rule.revoke_command(region)


def _route_commands(expected: Mapping[str, Any], region: str, *, is_deleted: bool) -> Iterator[str]:
    options = {"RouteTableId": "--route-table-id", **_ROUTE_DESTINATIONS, **_ROUTE_TARGETS}
    values = [f"{option} {expected[key]}" for key, option in options.items() if key in expected]
    # What is not known of a deleted route's template, such as a parameter that is not shown, is no text.
    if all(isinstance(expected[key], str) for key in options if key in expected):
        yield f"aws ec2 {'create' if is_deleted else 'replace'}-route --region {region} {' '.join(values)}"


def _argument(value: object) -> str:
    """Return a value as an argument of the AWS CLI: texts and numbers as they are, all else as JSON."""
    return shlex.quote(str(value) if isinstance(value, (str, int)) else json.dumps(value))
