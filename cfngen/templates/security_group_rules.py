"""Rules of security groups: outgoing traffic, and incoming traffic from another group, a range or a prefix list."""

from __future__ import annotations

from typing import Literal

from troposphere import ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.security_group_ids import RuleId
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.stack import Stack


def egress_to_anywhere() -> ec2.SecurityGroupRule:
    """Return the rule that allows all outgoing traffic."""
    return ec2.SecurityGroupRule(
        CidrIp="0.0.0.0/0", IpProtocol="-1", Description="Images, packages, AWS APIs and whatever pods call"
    )


def egress_to_masters(cluster: Cluster, masters_group: PropertyValue) -> ec2.SecurityGroupRule:
    """Return the rule for outgoing connections to the API servers, the only ones that the load balancer makes."""
    return ec2.SecurityGroupRule(
        DestinationSecurityGroupId=masters_group,
        IpProtocol="tcp",
        FromPort=cluster.api.port,
        ToPort=cluster.api.port,
        Description="API servers, and their health",
    )


def allow_from_group(
    stack: Stack,
    rule_id: RuleId,
    *,
    target_group: PropertyValue,
    source_group: PropertyValue,
    description: str,
    protocol: str = "-1",
    ports: tuple[int, int] | None = None,
) -> None:
    """Add a rule that lets instances of `source_group` reach those of `target_group`.

    Args:
        stack: the stack to add to.
        rule_id: logical id of the rule.
        target_group: security group that gets the rule.
        source_group: security group that the traffic comes from.
        description: description of the rule.
        protocol: `tcp`, `udp` or `icmp`; by default all protocols.
        ports: first and last port, or type and code for `icmp`; None for all ports.
    """
    port_properties = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule_id),
            GroupId=target_group,
            SourceSecurityGroupId=source_group,
            IpProtocol=protocol,
            Description=description,
            **port_properties,
        )
    )


def allow_from_address_source(
    stack: Stack,
    rule_id: RuleId,
    target_group: PropertyValue,
    *,
    source_property: Literal["CidrIp", "SourcePrefixListId"],
    source: PropertyValue,
    port: int,
    description: str,
) -> None:
    """Add a rule to `target_group` that allows TCP connections to a port from an address range or a prefix list.

    Args:
        stack: the stack to add to.
        rule_id: logical id of the rule.
        target_group: security group that gets the rule.
        source_property: property of the rule that takes the source.
        source: the address range, or the id of the prefix list.
        port: the port.
        description: description of the rule.
    """
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule_id),
            GroupId=target_group,
            IpProtocol="tcp",
            FromPort=port,
            ToPort=port,
            Description=description,
            **{source_property: source},
        )
    )
