"""The existing parts that a cluster file names, by ids or by references in place of them.

From the table of the keys that may have a reference follow the outputs of templates, the permissions to resolve
references, and what a deployment looks up. Each part has a logical id: its parameter's, or, without a parameter, one
that is made from the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import ExistingPartId
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, zone_id
from cfngen.cluster.network.routes import target_ids
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.field_validation import TextPattern
from cfngen.cluster.sections.references import Reference, StackOutput, parse_reference

# Whose security group it is. The first four also have rules for the sources in the cluster file, see
# `cfngen.cluster.security_groups.rules`.
GroupRole = Literal["Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer", "Endpoints"]
GROUP_ROLES: tuple[GroupRole, ...] = ("Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer", "Endpoints")
GROUPS_PATH: Path = ("network", "securityGroups")
# Fields of `cfngen.cluster.sections.network.SecurityGroups`, and their keys in the cluster file.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "Master": ("masters", "masters"),
    "Node": ("nodes", "nodes"),
    "ApiLoadBalancer": ("api_load_balancer", "apiLoadBalancer"),
    "InternalApiLoadBalancer": ("internal_api_load_balancer", "internalApiLoadBalancer"),
    "Endpoints": ("endpoints", "endpoints"),
}


def existing_group(cluster: Cluster, role: str) -> str | None:
    """Return the id of the existing security group of a role, or None if cfngen creates the group."""
    if role not in _FIELDS:
        return None
    group_id: str | None = getattr(cluster.network.security_groups, _FIELDS[role][0])
    return group_id


def existing_groups(cluster: Cluster) -> dict[GroupRole, str]:
    """Return the ids of the existing security groups by role."""
    ids_by_role = {role: existing_group(cluster, role) for role in GROUP_ROLES}
    return {role: group_id for role, group_id in ids_by_role.items() if group_id}


def groups_of_instances(cluster: Cluster, instances: Literal["masters", "nodes"]) -> list[str]:
    """Return the ids of, or references to, the existing security groups that masters or nodes have."""
    if instances == "masters":
        additional_groups = list(cluster.control_plane.additional_security_groups)
    else:
        additional_groups = [id_ for group in cluster.node_groups for id_ in group.additional_security_groups]
    first_group = existing_group(cluster, "Master" if instances == "masters" else "Node")
    return list(dict.fromkeys([*([first_group] if first_group else ()), *additional_groups]))


def is_one_group_for_instances(cluster: Cluster) -> bool:
    """Return whether masters and nodes share an existing security group.

    A rule that names the masters' group then names the nodes' group too, and EC2 refuses the same rule twice
    (`InvalidPermission.Duplicate`).
    """
    masters_group = existing_group(cluster, "Master")
    return masters_group is not None and masters_group == existing_group(cluster, "Node")


def group_parameter(role: GroupRole) -> str:
    """Return the name of the stack parameter, or output, with the id of a role's first security group."""
    return f"{role}SecurityGroupId"


def group_path(role: GroupRole) -> Path:
    """Return the path of the key in the cluster file that names the existing security group of a role."""
    return (*GROUPS_PATH, _FIELDS[role][1])


def group_key(role: GroupRole) -> str:
    """Return the key in the cluster file that names the existing security group of a role."""
    return dotted(group_path(role))


@dataclass(frozen=True)
class PartKind:
    """A kind of existing part.

    Attributes:
        noun: what it is, in words.
        word: what it is, as part of a logical id.
        parameter_type: the type of a template's parameter with its id. For the others, CloudFormation has no type
            ("Supported AWS-specific parameter types", CloudFormation User Guide).
    """

    noun: str
    word: str
    id_type: Any
    parameter_type: str = "String"

    def is_id(self, value: str) -> bool:
        """Return whether a text is an id of such a part."""
        pattern: TextPattern = get_args(self.id_type)[1]
        return re.fullmatch(pattern.pattern, value) is not None

    @property
    def expected(self) -> str:
        """What an id of such a part is, with an example."""
        pattern: TextPattern = get_args(self.id_type)[1]
        return pattern.expected


VPC = PartKind("VPC", "Vpc", field_types.VpcId, "AWS::EC2::VPC::Id")
SUBNET = PartKind("subnet", "Subnet", field_types.SubnetId, "AWS::EC2::Subnet::Id")
ROUTE_TABLE = PartKind("route table", "RouteTable", field_types.RouteTableId)
INTERNET_GATEWAY = PartKind("internet gateway", "InternetGateway", field_types.InternetGatewayId)
NAT_GATEWAY = PartKind("NAT gateway", "NatGateway", field_types.NatGatewayId)
SECURITY_GROUP = PartKind("security group", "SecurityGroup", field_types.SecurityGroupId, "AWS::EC2::SecurityGroup::Id")
HOSTED_ZONE = PartKind("hosted zone", "HostedZone", field_types.HostedZoneId, "AWS::Route53::HostedZone::Id")
ROUTE_TARGETS = {
    "transitGateway": PartKind("transit gateway", "TransitGateway", field_types.TransitGatewayId),
    "peeringConnection": PartKind("VPC peering connection", "PeeringConnection", field_types.PeeringConnectionId),
    "vpnGateway": PartKind("virtual private gateway", "VpnGateway", field_types.VpnGatewayId),
    "networkInterface": PartKind("network interface", "NetworkInterface", field_types.NetworkInterfaceId),
}


@dataclass(frozen=True)
class ReferencedPart:
    """An existing part for which the cluster file has a reference.

    Attributes:
        name: the logical id of its parameter, or of the output that records its id.
    """

    path: Path
    kind: PartKind
    name: str
    reference: Reference

    @property
    def key(self) -> str:
        """Its key in the cluster file."""
        return dotted(self.path)


def referenced_parts(cluster: Cluster) -> tuple[ReferencedPart, ...]:
    """Return the existing parts for which the cluster file has a reference and not an id, each key once."""
    return tuple(
        ReferencedPart(path, kind, name or str(ExistingPartId.of(kind.word, str(value))), reference)
        for path, kind, name, value in _existing_parts(cluster)
        if (reference := parse_reference(value))
    )


def stack_outputs(cluster: Cluster) -> dict[str, StackOutput]:
    """Return the outputs of other stacks that the cluster file refers to, by the logical ids of the parts."""
    return {part.name: part.reference for part in referenced_parts(cluster) if isinstance(part.reference, StackOutput)}


def named_ids(cluster: Cluster) -> dict[str, str]:
    """Return the ids that the cluster file has for parts with a parameter, by the parameters' names."""
    return {name: value for _, _, name, value in _existing_parts(cluster) if name and value}


def parameter_keys(cluster: Cluster) -> dict[str, str]:
    """Return the names of the parameters with the ids of existing parts, by the keys of the cluster file."""
    return {dotted(path): name for path, _, name, _ in _existing_parts(cluster) if name}


# Path of the key, kind of the part, name of its parameter (empty if it has none), and the value: id or reference.
_Part: TypeAlias = tuple[Path, PartKind, str, str | None]


def _existing_parts(cluster: Cluster) -> Iterator[_Part]:
    yield from _network_parts(cluster)
    for instances_path, instances in (
        (("controlPlane",), cluster.control_plane),
        *((("nodeGroups", index), group) for index, group in enumerate(cluster.node_groups)),
    ):
        for index, group_id in enumerate(instances.additional_security_groups):
            yield (*instances_path, "additionalSecurityGroups", index), SECURITY_GROUP, "", group_id
    if cluster.api.dns:
        for key, zone in (("publicZone", cluster.api.dns.public_zone), ("privateZone", cluster.api.dns.private_zone)):
            yield ("api", "dns", key, "id"), HOSTED_ZONE, "", zone.id if zone else None


def _network_parts(cluster: Cluster) -> Iterator[_Part]:
    network = cluster.network
    yield ("network", "vpc", "id"), VPC, "VpcId", network.vpc.id
    yield ("network", "routeTable"), ROUTE_TABLE, "RouteTableId", network.route_table
    yield ("network", "internetGateway"), INTERNET_GATEWAY, "InternetGatewayId", network.internet_gateway
    for index, subnet in enumerate(network.subnets):
        path, zone = ("network", "subnets", index), zone_id(subnet.zone)
        yield (*path, "id"), SUBNET, str(SubnetId(zone, "Id")), subnet.id
        table_name = str(ZonalId("RouteTable", zone, is_parameter=True))
        yield (*path, "routeTable"), ROUTE_TABLE, table_name, subnet.route_table
        gateway_name = str(ZonalId("NatGateway", zone, is_parameter=True))
        yield (*path, "natGateway"), NAT_GATEWAY, gateway_name, subnet.nat_gateway
        if subnet.public:
            yield (*path, "public", "id"), SUBNET, str(SubnetId(zone, "Id", is_public=True)), subnet.public.id
    for role, group_id in existing_groups(cluster).items():
        yield group_path(role), SECURITY_GROUP, group_parameter(role), group_id
    for index, route in enumerate(network.routes):
        for key, target in target_ids(route).items():
            yield ("network", "routes", index, key), ROUTE_TARGETS[key], "", target
