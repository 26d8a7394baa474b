"""The parts of an existing network that a cluster file names, with the values of the stack's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster, NodeGroup, Slot
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, zone_id
from cfngen.cluster.network.existing_parts import named_ids
from cfngen.cluster.network.topology import public_subnets


@dataclass(frozen=True)
class NamedSubnet:
    """A subnet of the cluster file.

    Attributes:
        path: the subnet's key in the cluster file, e.g. `network.subnets[0]` or `network.subnets[0].public`.
        zone: its zone.
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


def named_subnets(cluster: Cluster, values: Mapping[str, str]) -> tuple[NamedSubnet, ...]:
    """Return the subnets of the cluster file, those of instances first.

    Args:
        cluster: the cluster.
        values: values of the root's parameters.
    """
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
