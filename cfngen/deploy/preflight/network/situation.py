"""A cluster file and the existing network that it names, as AWS describes it: what all checks judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, zone_id
from cfngen.cluster.network.existing_parts import named_ids
from cfngen.cluster.network.topology import public_subnets
from cfngen.cluster.sections.instances import NodeGroup, Slot
from cfngen.deploy.aws.network import NetworkFacts, route_table_of
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.aws.tags import LEGACY_CLUSTER_TAG, tag_map
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding
from cfngen.deploy.preflight.quotas.quota import Quota

DEFAULT_ROUTE = "0.0.0.0/0"


@dataclass(frozen=True)
class NamedSubnet:
    """A subnet of the cluster file.

    Attributes:
        path: the subnet's key in the cluster file, e.g. `network.subnets[0]` or `network.subnets[0].public`.
        cidr: its range; None if it is not known.
        id: its id, if it exists already; empty if it is to be created.
        route_table: the existing route table of a subnet that is to be created; empty if there is none.
        nat_gateway: the existing NAT gateway of the zone; empty if there is none.
        is_public: whether it is the public subnet of a private cluster, which has no instances.
        slots: the masters in it.
        groups: the node groups in it, by their position in the cluster file.
    """

    path: str
    zone: str
    cidr: IPv4Network | None
    id: str = ""
    route_table: str = ""
    nat_gateway: str = ""
    is_public: bool = False
    slots: tuple[Slot, ...] = ()
    groups: tuple[tuple[int, NodeGroup], ...] = ()

    @property
    def range_key(self) -> str:
        """The key of its range."""
        return f"{self.path}.cidr"

    @property
    def id_key(self) -> str:
        """The key of its id."""
        return f"{self.path}.id"

    @property
    def route_key(self) -> str:
        """The key that its existing route table follows from."""
        return self.id_key if self.id else f"{self.path}.routeTable"

    @property
    def name(self) -> str:
        """Its id, or what else to call it in a sentence."""
        return self.id or f"the subnet {self.cidr}"


@dataclass(frozen=True)
class Situation:
    """What the checks judge.

    Attributes:
        subnets: the subnets of the cluster file, existing ones and those to be created.
        facts: the existing network.
        foreign: a finding for each object that is missing or belongs elsewhere.
        own_instances: ids of instances that this cluster has already.
        quotas: quotas of networks, compared with what the cluster needs.
        unread: what could not be read, each with the reason: attributes of the facts or of this class.
    """

    cluster: Cluster
    region: str
    vpc_id: str
    values: Mapping[str, str]
    subnets: tuple[NamedSubnet, ...]
    facts: NetworkFacts
    foreign: tuple[Finding, ...] = ()
    own_instances: frozenset[str] = frozenset()
    quotas: tuple[Quota, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()

    def is_unread(self, name: str) -> bool:
        """Return whether an attribute of the facts could not be read: what is not in it may exist all the same."""
        return any(name == unread for unread, _ in self.unread)

    @property
    def instance_subnets(self) -> tuple[NamedSubnet, ...]:
        """The subnets of instances."""
        return tuple(subnet for subnet in self.subnets if not subnet.is_public)

    @property
    def existing_subnets(self) -> tuple[tuple[NamedSubnet, AwsObject], ...]:
        """The subnets that exist in the VPC, each with its description."""
        described = {subnet["SubnetId"]: subnet for subnet in self.facts.subnets}
        return tuple((subnet, described[subnet.id]) for subnet in self.subnets if subnet.id in described)

    def route_table(self, subnet: NamedSubnet) -> AwsObject | None:
        """Return the existing route table of a subnet; None if cfngen creates it, or if there is no such table."""
        is_in_vpc = any(description["SubnetId"] == subnet.id for description in self.facts.subnets)
        table_id = route_table_of(self.facts.route_tables, subnet.id) if is_in_vpc else subnet.route_table
        return self.table_by_id(table_id)

    def table_by_id(self, table_id: str) -> AwsObject | None:
        """Return the route table with this id, or None."""
        return next((table for table in self.facts.route_tables if table["RouteTableId"] == table_id), None)

    def is_own(self, described: AwsObject) -> bool:
        """Return whether a resource is one that this cluster's stacks have created."""
        tags = tag_map(described.get("Tags") or described.get("TagSet"))
        names = {tags.get(CLUSTER_TAG), tags.get(LEGACY_CLUSTER_TAG)}
        instance = described.get("Attachment", {}).get("InstanceId")
        return self.cluster.name in names or instance in self.own_instances

    @property
    def vpc_ranges(self) -> tuple[IPv4Network, ...]:
        """The IPv4 ranges of the VPC."""
        return vpc_ranges(self.facts.vpc or {})


def vpc_ranges(vpc: AwsObject) -> tuple[IPv4Network, ...]:
    """Return the IPv4 ranges that are associated with a VPC."""
    blocks = {vpc["CidrBlock"]: None} if "CidrBlock" in vpc else {}
    for association in vpc.get("CidrBlockAssociationSet", ()):
        # The other states are associating, disassociating, disassociated, failing and failed (API reference,
        # VpcCidrBlockState).
        if association["CidrBlockState"]["State"] in ("associated", "associating"):
            blocks[association["CidrBlock"]] = None
    return tuple(IPv4Network(block) for block in blocks)


def default_route(table: AwsObject) -> AwsObject | None:
    """Return the route of a table for everything that has no other route, or None."""
    routes: Iterable[AwsObject] = table.get("Routes", ())
    return next((route for route in routes if route.get("DestinationCidrBlock") == DEFAULT_ROUTE), None)


def parameter_values(cluster: Cluster) -> dict[str, str]:
    """Return the values that the parameters for existing parts have by default: those of the cluster file."""
    values = named_ids(cluster)
    if cluster.api.elastic_ip:
        values["ApiElasticIpAllocationId"] = cluster.api.elastic_ip.allocation_id
        values["ApiElasticIp"] = str(cluster.api.elastic_ip.address)
    if cluster.bastion and cluster.bastion.elastic_ip:
        values["BastionElasticIpAllocationId"] = cluster.bastion.elastic_ip.allocation_id
        values["BastionElasticIpAddress"] = str(cluster.bastion.elastic_ip.address)
    return values


def with_named_parts(cluster: Cluster, values: Mapping[str, str]) -> dict[str, str]:
    """Return values of the root's parameters, and in the same names the parts of which no template has a parameter.

    The public subnets of a private cluster whose API has no public load balancer are such parts.
    """
    return {**parameter_values(cluster), **{name: value for name, value in values.items() if value}}


def named_subnets(cluster: Cluster, values: Mapping[str, str]) -> tuple[NamedSubnet, ...]:
    """Return the subnets of the cluster file, those of instances first."""
    instance_subnets, zone_public_subnets = [], []
    for index, subnet in enumerate(cluster.network.subnets):
        zone = zone_id(subnet.zone)
        path = f"network.subnets[{index}]"
        instance_subnets.append(
            NamedSubnet(
                path=path,
                zone=subnet.zone,
                cidr=IPv4Network(values.get(str(SubnetId(zone, "Cidr"))) or subnet.cidr),
                id=values.get(str(SubnetId(zone, "Id")), ""),
                route_table=values.get(str(ZonalId("RouteTable", zone, is_parameter=True)), ""),
                nat_gateway=values.get(str(ZonalId("NatGateway", zone, is_parameter=True)), ""),
                slots=tuple(slot for slot in cluster.slots if slot.subnet == subnet),
                groups=tuple(
                    (position, group)
                    for position, group in enumerate(cluster.node_groups)
                    if subnet.zone in group.zones
                ),
            )
        )
        public = public_subnets(cluster).get(subnet.zone)
        if public:
            cidr = values.get(str(SubnetId(zone, "Cidr", is_public=True))) or public.cidr
            zone_public_subnets.append(
                NamedSubnet(
                    path=f"{path}.public",
                    zone=subnet.zone,
                    cidr=IPv4Network(cidr) if cidr else None,
                    id=values.get(str(SubnetId(zone, "Id", is_public=True)), ""),
                    is_public=True,
                )
            )
    return (*instance_subnets, *zone_public_subnets)
