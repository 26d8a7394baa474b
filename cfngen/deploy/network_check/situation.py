"""A cluster file and the existing network that it names, as AWS describes it: what all checks judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion.kubernetes_tags import LEGACY_CLUSTER_TAG, tag_map
from cfngen.deploy.network_check.network import NamedSubnet
from cfngen.deploy.quotas.quota import Quota
from cfngen.deploy.quotas.route_tables import route_table_of
from cfngen.deploy.stacks import CLUSTER_TAG

DEFAULT_ROUTE = "0.0.0.0/0"


@dataclass(frozen=True)
class NetworkFacts:
    """An existing VPC and what is in it, as EC2 describes it.

    Attributes:
        vpc: the VPC; None if there is none with this id.
        has_dns_support: whether the Amazon DNS server answers (`enableDnsSupport`); None if that could not be read.
        has_dns_host_names: whether public addresses get DNS names (`enableDnsHostnames`); None if unknown.
        foreign: for each object that is missing or belongs elsewhere a sentence, which starts with its key.
        subnets: all subnets of the VPC.
        route_tables: all its route tables.
        internet_gateways: the internet gateways that are attached to it.
        nat_gateways: its NAT gateways.
        network_acls: its network ACLs.
        endpoints: its VPC endpoints.
        security_groups: its security groups.
        peerings: its active peering connections.
        interfaces: the network interfaces in it.
        own_instances: ids of instances that this cluster has already.
        quotas: quotas of networks, compared with what the cluster needs.
        unread: the attributes that could not be read, each with the reason.
    """

    vpc: AwsObject | None = None
    has_dns_support: bool | None = None
    has_dns_host_names: bool | None = None
    foreign: tuple[str, ...] = ()
    subnets: tuple[AwsObject, ...] = ()
    route_tables: tuple[AwsObject, ...] = ()
    internet_gateways: tuple[AwsObject, ...] = ()
    nat_gateways: tuple[AwsObject, ...] = ()
    network_acls: tuple[AwsObject, ...] = ()
    endpoints: tuple[AwsObject, ...] = ()
    security_groups: tuple[AwsObject, ...] = ()
    peerings: tuple[AwsObject, ...] = ()
    interfaces: tuple[AwsObject, ...] = ()
    own_instances: frozenset[str] = frozenset()
    quotas: tuple[Quota, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Situation:
    """What the checks judge.

    Attributes:
        cluster: the cluster.
        region: the region.
        vpc_id: id of the existing VPC.
        values: values of the root's parameters.
        subnets: the subnets of the cluster file, existing ones and those to be created.
        facts: the existing network.
    """

    cluster: Cluster
    region: str
    vpc_id: str
    values: Mapping[str, str]
    subnets: tuple[NamedSubnet, ...]
    facts: NetworkFacts

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
        is_in_vpc = any(each["SubnetId"] == subnet.id for each in self.facts.subnets)
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
        return self.cluster.name in names or instance in self.facts.own_instances

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
