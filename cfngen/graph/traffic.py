"""Who may talk to whom, in a picture: a box for each security group and each source, an arrow for their rules.

All rules between two of them are one arrow, whose label joins their ports. Traffic that a group may send is an arrow as
well, since AWS lets a packet pass only if sender and receiver both allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.graph.cluster_templates import ClusterTemplates
from cfngen.graph.instances import instance_groups, names_of_groups
from cfngen.graph.network import EVERYWHERE, Network
from cfngen.graph.picture import Box, Part
from cfngen.graph.values import items, mapping, words

ALL_TRAFFIC = "all traffic"
# IANA's numbers of protocols, which AWS takes in place of names.
_PROTOCOLS = {"-1": "all", "1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
# Properties that name who is on the other side of a rule, of AWS::EC2::SecurityGroupIngress and ...Egress, and of the
# rules within AWS::EC2::SecurityGroup.
_PEER_GROUPS = ("SourceSecurityGroupId", "DestinationSecurityGroupId")
_PEER_PREFIX_LISTS = ("SourcePrefixListId", "DestinationPrefixListId")
_PEER_RANGES = ("CidrIp", "CidrIpv6")


@dataclass(frozen=True)
class _Rule:
    """A rule of a security group.

    Attributes:
        group: id of the security group, as it stands in the template.
        body: its properties.
        logical_id: logical id of the resource that holds it: the rule itself, or the security group.
        is_incoming: whether it lets traffic in; else it lets traffic out.
    """

    group: object
    body: Mapping[str, object]
    logical_id: str
    is_incoming: bool


def draw_traffic(templates: ClusterTemplates, network: Network) -> Part:
    """Draw the security groups, their sources and their rules."""
    part = Part()
    stand_ins = _groups_drawn_in_place_of_others(templates)
    for group in templates.of_type("AWS::EC2::SecurityGroup"):
        if group.logical_id not in stand_ins:
            title = words(group.logical_id)
            part.box(Box(group.logical_id, "security-group", title, (), network.vpc, (group.logical_id,)))
    for value, lines in _members(templates):
        if _box_id(templates, value) not in stand_ins:
            _draw_group(templates, network, part, value, lines)
    rules_by_pair: dict[tuple[str, str], list[_Rule]] = {}
    for rule in _rules(templates):
        own_group = stand_ins.get(_box_id(templates, rule.group), rule.group)
        own_box = _draw_group(templates, network, part, own_group)
        peer_box = _draw_peer(templates, network, part, rule)
        pair = (peer_box, own_box) if rule.is_incoming else (own_box, peer_box)
        rules_by_pair.setdefault(pair, []).append(rule)
    for (source, target), rules in rules_by_pair.items():
        label = ports([rule.body for rule in rules], templates)
        part.arrow(source, target, "traffic", label, [rule.logical_id for rule in rules])
    return part


def draw_sources(
    templates: ClusterTemplates, network: Network, part: Part, target: str, security_groups: Iterable[object]
) -> None:
    """Draw the ranges from which security groups let connections in, with an arrow to the box that has the groups.

    Args:
        security_groups: ids of the security groups, as they stand in the templates.
    """
    groups = {_box_id(templates, value) for value in security_groups}
    for rule in _rules(templates):
        is_from_group = any(key in rule.body for key in _PEER_GROUPS)
        if rule.is_incoming and _box_id(templates, rule.group) in groups and not is_from_group:
            source = _draw_peer(templates, network, part, rule)
            label = ports([rule.body], templates)
            part.arrow(source, target, "traffic", label, [rule.logical_id])


def ports(rules: Sequence[Mapping[str, object]], templates: ClusterTemplates) -> str:
    """Return the ports of rules as one text, e.g. `TCP 53, 443; UDP 53`."""
    numbers_by_protocol: dict[str, list[str]] = {}
    for rule in rules:
        protocol = templates.text(rule.get("IpProtocol")).lower()
        protocol = _PROTOCOLS.get(protocol, protocol)
        if protocol == "all":
            return ALL_TRAFFIC
        numbers = numbers_by_protocol.setdefault(protocol, [])
        number = _port_range(templates.text(rule.get("FromPort")), templates.text(rule.get("ToPort")), protocol)
        if number not in numbers:
            numbers.append(number)
    texts = []
    for protocol, numbers in numbers_by_protocol.items():
        ordered = sorted(numbers, key=lambda number: (not number[:1].isdigit(), len(number.partition("-")[0]), number))
        listed = ", ".join(number for number in ordered if number)
        texts.append(f"{protocol.upper()} {listed}".strip() if "" not in numbers else protocol.upper())
    return "; ".join(texts)


def _port_range(first: str, last: str, protocol: str) -> str:
    """Return the ports of a rule as text, of ICMP the type; empty for all."""
    if protocol.startswith("icmp"):
        return "" if first in ("", "-1") else f"type {first}"
    if first in ("", "-1") or (first, last) == ("0", "65535"):
        return ""
    return first if first == last or not last else f"{first}-{last}"


def _rules(templates: ClusterTemplates) -> Iterator[_Rule]:
    """Yield the rules of all security groups, those within the groups first."""
    for group in templates.of_type("AWS::EC2::SecurityGroup"):
        for key, is_incoming in (("SecurityGroupIngress", True), ("SecurityGroupEgress", False)):
            for rule in map(mapping, items(group.properties.get(key))):
                yield _Rule({"Ref": group.logical_id}, rule, group.logical_id, is_incoming)
    for kind, is_incoming in (("AWS::EC2::SecurityGroupIngress", True), ("AWS::EC2::SecurityGroupEgress", False)):
        for resource in templates.of_type(kind):
            yield _Rule(resource.properties.get("GroupId"), resource.properties, resource.logical_id, is_incoming)


def _groups_drawn_in_place_of_others(templates: ClusterTemplates) -> dict[str, object]:
    """Return the group of all nodes, as it stands in the template, by the groups of single ones that open no port."""
    with_rules = {
        templates.referenced(rule.properties.get("GroupId"))
        for rule in templates.of_type("AWS::EC2::SecurityGroupIngress")
    }
    return {
        logical_id: group.security_groups[0]
        for group in instance_groups(templates)
        for logical_id in map(templates.referenced, group.security_groups[1:])
        if NodeGroupId.parse(logical_id) and logical_id not in with_rules
    }


def _members(templates: ClusterTemplates) -> Iterator[tuple[object, tuple[str, ...]]]:
    """Yield what has a security group: the group's id as it stands in the template, and lines for its box."""
    groups = instance_groups(templates)
    values: dict[str, object] = {}
    members: dict[str, list[str]] = {}
    for group in groups:
        for value in group.security_groups:
            box_id = _box_id(templates, value)
            values[box_id] = value
            members.setdefault(box_id, []).append(group.logical_id)
    for box_id, logical_ids in members.items():
        yield values[box_id], names_of_groups([group for group in groups if group.logical_id in logical_ids])
    for load_balancer in templates.of_type("AWS::ElasticLoadBalancingV2::LoadBalancer"):
        for value in items(load_balancer.properties.get("SecurityGroups")):
            is_internal = load_balancer.properties.get("Scheme") == "internal"
            yield value, ("internal load balancer" if is_internal else "load balancer",)
    for endpoint in templates.of_type("AWS::EC2::VPCEndpoint"):
        for value in items(endpoint.properties.get("SecurityGroupIds")):
            yield value, ("interface endpoints",)


def _box_id(templates: ClusterTemplates, value: object) -> str:
    """Return the id of the box of a security group."""
    return templates.referenced(value) or f"security-group:{templates.text(value)}"


def _draw_group(
    templates: ClusterTemplates, network: Network, part: Part, value: object, lines: tuple[str, ...] = ()
) -> str:
    """Draw a security group if it is not there yet, and add lines to it; return the id of its box."""
    box_id = _box_id(templates, value)
    if box_id not in templates.resources and box_id not in part.boxes:
        part.box(Box(box_id, "security-group", "existing security group", (templates.text(value),), network.vpc))
    elif box_id not in part.boxes:
        part.box(Box(box_id, "security-group", words(box_id), (), network.vpc, (box_id,)))
    part.box(Box(box_id, "security-group", box_id, lines))
    return box_id


def _draw_peer(templates: ClusterTemplates, network: Network, part: Part, rule: _Rule) -> str:
    """Draw who is on the other side of a rule; return the id of the box."""
    for key in _PEER_GROUPS:
        if key in rule.body:
            return _draw_group(templates, network, part, rule.body[key])
    for key in _PEER_PREFIX_LISTS:
        if key in rule.body:
            name = templates.text(rule.body[key])
            return part.box(Box(f"source:{name}", "source", "prefix list", (name,))).id
    value = next((rule.body[key] for key in _PEER_RANGES if key in rule.body), None)
    cidr = templates.text(value)
    if cidr == EVERYWHERE:
        return part.box(Box(f"source:{cidr}", "source", "any address", (cidr,))).id
    parameter = templates.parameter(value)
    if parameter == cidr:
        return part.box(Box(f"source:{cidr}", "source", cidr, ("given at the deployment",))).id
    lines = ("the VPC",) if cidr in network.part.boxes[network.vpc].lines else ()
    return part.box(Box(f"source:{cidr}", "source", cidr or "unknown source", lines)).id
