"""Rules of security groups in templates: as resources of their own, or inline in a security group."""

from __future__ import annotations

from collections.abc import Mapping

from troposphere import ec2

from cfngen.cluster.naming.network_ids import RuleId
from cfngen.cluster.network.existing_parts import GroupRole
from cfngen.cluster.sections.network import PrefixList
from cfngen.cluster.security_groups.rules import Rule
from cfngen.cluster.security_groups.sources import Origin, OtherGroup, Source
from cfngen.templates.stack import PropertyValue, Stack

GroupIds = Mapping[GroupRole, PropertyValue]
"""References to the ids of the first security groups by role."""


def add_ingress(stack: Stack, rule: Rule, target_group: PropertyValue, group_ids: GroupIds) -> None:
    """Add a rule for incoming traffic as a resource of its own; its source may be one of `group_ids`."""
    peer, ports = _peer(rule, group_ids), _ports(rule)
    protocol, description = {"IpProtocol": rule.protocol}, {"Description": rule.description}
    # The properties keep the order that they have in deployed templates.
    if isinstance(rule.peer, str):
        properties = {**peer, **protocol, **description, **ports}
    else:
        properties = {**protocol, **ports, **description, **peer}
    stack.add(ec2.SecurityGroupIngress(str(rule.id), GroupId=target_group, **properties))


def allow_from_group(
    stack: Stack,
    rule_id: RuleId,
    *,
    target_group: PropertyValue,
    source_group: PropertyValue,
    description: str,
    port: int,
) -> None:
    """Add a rule that allows TCP connections to a port from another security group."""
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule_id),
            GroupId=target_group,
            SourceSecurityGroupId=source_group,
            IpProtocol="tcp",
            Description=description,
            FromPort=port,
            ToPort=port,
        )
    )


def allow_from_source(stack: Stack, rule_id: RuleId, target_group: PropertyValue, source: Source) -> None:
    """Add the rule for a source of the cluster file."""
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule_id),
            GroupId=target_group,
            IpProtocol=source.protocol,
            **_ports(source),
            Description=source.description,
            **_origin(source.origin, direction="Source"),
        )
    )


def inline_rule(rule: Rule, group_ids: GroupIds) -> ec2.SecurityGroupRule:
    """Return a rule for a list of rules in a security group; `group_ids` as for `add_ingress`."""
    return ec2.SecurityGroupRule(
        **_peer(rule, group_ids), IpProtocol=rule.protocol, **_ports(rule), Description=rule.description
    )


def _peer(rule: Rule, group_ids: GroupIds) -> dict[str, PropertyValue]:
    direction = "Destination" if rule.is_egress else "Source"
    if isinstance(rule.peer, str):
        return {f"{direction}SecurityGroupId": group_ids[rule.peer]}
    return _origin(rule.peer, direction)


def _origin(origin: Origin, direction: str) -> dict[str, PropertyValue]:
    if isinstance(origin, PrefixList):
        return {f"{direction}PrefixListId": origin.id}
    if isinstance(origin, OtherGroup):
        return {f"{direction}SecurityGroupId": origin.id}
    return {"CidrIp": str(origin)}


def _ports(rule: Rule | Source) -> dict[str, int]:
    """Return the properties for the ports of a rule; empty if it is for all ports."""
    return {"FromPort": rule.ports[0], "ToPort": rule.ports[1]} if rule.ports else {}
