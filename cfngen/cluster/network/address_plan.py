"""The address ranges of a cluster, by zone and tier, what is free in the VPC, and how many addresses a subnet needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from math import ceil

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.endpoints import endpoint_zones, interface_endpoints
from cfngen.cluster.network.network_plugins import NODE_PREFIX, network_plugin
from cfngen.cluster.network.topology import (
    availability_zones,
    has_internal_load_balancer,
    has_public_load_balancer,
    is_private,
    nat_gateway_zones,
    public_subnets,
    usable_address_count,
    vpc_ranges,
)
from cfngen.cluster.sections.network import Subnet
from cfngen.text import join_and

# Free addresses that a network load balancer needs in a subnet when it is created ("Update the Availability Zones for
# your Network Load Balancer", Elastic Load Balancing User Guide). It has one of them at first.
LOAD_BALANCER_ADDRESSES = 8


@dataclass(frozen=True)
class AddressRange:
    """A range of addresses.

    Attributes:
        tier: `VPC` (each of its ranges), `subnet` (of a public cluster), `private subnet`, `public subnet`, `free`,
            `pods` or `services`.
        zone: the zone of a subnet; empty for other ranges.
        usable: number of addresses that instances, pods or services can have.
        purpose: who has addresses of the range.
    """

    first: IPv4Address
    last: IPv4Address
    tier: str
    zone: str = ""
    usable: int = 0
    purpose: str = ""
    is_existing: bool = False

    def __str__(self) -> str:
        """Return the range as a CIDR, or as first and last address where no CIDR fits."""
        blocks = list(summarize_address_range(self.first, self.last))
        return str(blocks[0]) if len(blocks) == 1 else f"{self.first}-{self.last}"


def _of_cidr(
    cidr: IPv4Network,
    tier: str,
    *,
    zone: str = "",
    usable: int | None = None,
    purpose: str = "",
    is_existing: bool = False,
) -> AddressRange:
    count = cidr.num_addresses if usable is None else usable
    return AddressRange(cidr[0], cidr[-1], tier, zone, count, purpose, is_existing)


def address_plan(cluster: Cluster) -> tuple[AddressRange, ...]:
    """Return the ranges of the VPC, each followed by its subnets and free parts, then of pods and services.

    In an existing VPC the free parts are not known, so none are returned.
    """
    is_existing = bool(cluster.network.vpc.id)
    subnets = (*_instance_subnets(cluster), *_public_subnets(cluster))
    of_vpc: list[AddressRange] = []
    for cidr in vpc_ranges(cluster):
        vpc_range = _of_cidr(cidr, "VPC", is_existing=is_existing)
        inside = sorted((subnet for subnet in subnets if subnet.first in cidr), key=lambda subnet: subnet.first)
        free = () if is_existing else _free_ranges(vpc_range, inside)
        of_vpc += [vpc_range, *sorted((*inside, *free), key=lambda item: item.first)]
    return (*of_vpc, *_pods(cluster), _services(cluster))


def _instance_subnets(cluster: Cluster) -> Iterator[AddressRange]:
    for subnet in cluster.network.subnets:
        yield _of_cidr(
            subnet.cidr,
            "private subnet" if is_private(cluster) else "subnet",
            zone=subnet.zone,
            usable=usable_address_count(subnet.cidr),
            purpose=_instances_in(cluster, subnet),
            is_existing=bool(subnet.id),
        )


def _instances_in(cluster: Cluster, subnet: Subnet) -> str:
    masters = [f"master {slot.letter} ({slot.address})" for slot in cluster.slots if slot.subnet == subnet]
    groups = [f"group {group.name}" for group in cluster.node_groups if subnet.zone in group.zones]
    bastion = ["bastion"] if _has_bastion(cluster, subnet.zone) and not is_private(cluster) else []
    return ", ".join([*masters, *groups, *bastion])


def _public_subnets(cluster: Cluster) -> Iterator[AddressRange]:
    for zone, public in public_subnets(cluster).items():
        if public.cidr:
            nat_gateway = ["NAT gateway"] if zone in nat_gateway_zones(cluster) else []
            bastion = ["bastion"] if _has_bastion(cluster, zone) else []
            yield _of_cidr(
                public.cidr,
                "public subnet",
                zone=zone,
                usable=usable_address_count(public.cidr),
                purpose=", ".join([*nat_gateway, "load balancers", *bastion]),
                is_existing=bool(public.id),
            )


def _has_bastion(cluster: Cluster, zone: str) -> bool:
    return cluster.bastion is not None and cluster.bastion.zone == zone


def _free_ranges(vpc: AddressRange, subnets: Sequence[AddressRange]) -> Iterator[AddressRange]:
    """Yield the parts of the VPC before, between and after its subnets, which are in ascending order."""
    first_free = vpc.first
    for first, last in [*((subnet.first, subnet.last) for subnet in subnets), (vpc.last + 1, vpc.last + 1)]:
        if first > first_free:
            yield AddressRange(first_free, first - 1, "free", usable=int(first) - int(first_free))
        first_free = max(first_free, last + 1)


def _pods(cluster: Cluster) -> Iterator[AddressRange]:
    plugin = network_plugin(cluster)
    if not plugin.uses_pod_cidr:
        return
    cidr = cluster.network.pod_cidr
    purpose = "allocated by the network plug-in"
    if plugin.gives_nodes_pod_cidrs:
        count = 1 << max(NODE_PREFIX - cidr.prefixlen, 0)
        purpose = f"a /{NODE_PREFIX} for each of up to {count:,} masters and nodes"
    yield _of_cidr(cidr, "pods", purpose=purpose)


def _services(cluster: Cluster) -> AddressRange:
    network = cluster.network
    return _of_cidr(network.service_cidr, "services", purpose=f"the cluster DNS has {network.dns_service_ip}")


@dataclass(frozen=True)
class AddressDemand:
    """How many addresses of a subnet a cluster needs.

    Attributes:
        parts: what needs addresses, in words, each with their number at first.
        growth: how many more nodes need when their groups have their greatest size.
    """

    parts: dict[str, int]
    growth: int

    @property
    def at_first(self) -> int:
        """How many addresses the cluster needs when it is created."""
        return sum(self.parts.values())

    @property
    def beside_instances(self) -> int:
        """How many addresses load balancers, endpoints and other things need beside masters and nodes."""
        return sum(count for part, count in self.parts.items() if part not in ("masters", "nodes"))

    def __str__(self) -> str:
        """Return what needs addresses, e.g. `1 for masters and 8 for load balancers`."""
        return join_and([f"{count} for {part}" for part, count in self.parts.items()])


def address_demand(cluster: Cluster, zone: str, *, is_public_tier: bool = False) -> AddressDemand:
    """Return how many addresses the subnet of instances in a zone needs, or a private cluster's public subnet.

    A group spreads over its zones ("Availability Zone distribution", Amazon EC2 Auto Scaling User Guide).
    """
    is_entrance = is_public_tier or not is_private(cluster)
    balancers = (is_entrance and has_public_load_balancer(cluster)) + (
        not is_public_tier and has_internal_load_balancer(cluster)
    )
    parts = {"the bastion": int(is_entrance and _has_bastion(cluster, zone))}
    if balancers and zone in availability_zones(cluster):
        parts["load balancers"] = LOAD_BALANCER_ADDRESSES + balancers - 1
    if is_public_tier:
        existing_gateways = [subnet.zone for subnet in cluster.network.subnets if subnet.nat_gateway]
        parts["the NAT gateway"] = int(zone in nat_gateway_zones(cluster) and zone not in existing_gateways)
        return AddressDemand({part: count for part, count in parts.items() if count}, 0)
    groups = [group for group in cluster.node_groups if zone in group.zones]
    nodes = sum(ceil((group.desired_size or group.min_size) / len(group.zones)) for group in groups)
    endpoints = [item for item in interface_endpoints(cluster) if zone in endpoint_zones(cluster, item.service)]
    masters = sum(slot.subnet.zone == zone for slot in cluster.slots)
    parts = {"masters": masters, "nodes": nodes, "VPC endpoints": len(endpoints), **parts}
    growth = sum(ceil(group.max_size / len(group.zones)) for group in groups) - nodes
    return AddressDemand({part: count for part, count in parts.items() if count}, growth)
