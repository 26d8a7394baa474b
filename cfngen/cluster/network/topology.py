"""Which subnets, NAT gateways, public addresses and load balancers a cluster's topology leads to.

In a public cluster, instances are in subnets with a route to the internet gateway and have public addresses. In a
private cluster they have none: a zone has a private subnet for instances and, where something needs it, a public subnet
for a NAT gateway and for internet-facing load balancers.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from pydantic.alias_generators import to_snake

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.zones import is_local_zone
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.sections.network import DnsZone, PublicSubnet, Subnet

RESERVED_ADDRESSES = 5


def is_private(cluster: Cluster) -> bool:
    """Return whether instances have no public addresses and no route to an internet gateway."""
    return cluster.network.topology == "private"


def created_subnets(cluster: Cluster) -> tuple[Subnet, ...]:
    """Return the subnets of instances that cfngen creates."""
    return tuple(subnet for subnet in cluster.network.subnets if not subnet.id)


def vpc_ranges(cluster: Cluster) -> tuple[IPv4Network, ...]:
    """Return the address ranges of the VPC: the primary one, and the further ones."""
    return (cluster.network.vpc.cidr, *cluster.network.vpc.additional_cidrs)


def availability_zones(cluster: Cluster) -> tuple[str, ...]:
    """Return the zones of the subnets without Local Zones, which have neither NAT gateways nor load balancers."""
    return tuple(subnet.zone for subnet in cluster.network.subnets if not is_local_zone(subnet.zone))


def public_subnets(cluster: Cluster) -> dict[str, PublicSubnet]:
    """Return the public subnets of a private cluster by zone; empty for a public cluster, whose subnets are all public.

    A fully private cluster (`nat: none` and an internal API) has public subnets only where the cluster file lists them,
    and in the zone of its bastion.
    """
    if not is_private(cluster):
        return {}
    bastion_zone = cluster.bastion.zone if cluster.bastion else None
    has_public_tier = cluster.network.nat in ("perZone", "single") or cluster.api.public
    return {
        subnet.zone: subnet.public or PublicSubnet()
        for subnet in cluster.network.subnets
        if subnet.public or subnet.zone == bastion_zone or (has_public_tier and not is_local_zone(subnet.zone))
    }


def uses_internet_gateway(cluster: Cluster) -> bool:
    """Return whether cfngen creates a route table with a route to an internet gateway."""
    if is_private(cluster):
        return any(not subnet.id for subnet in public_subnets(cluster).values())
    return any(not subnet.route_table for subnet in created_subnets(cluster))


def nat_gateway_zone(cluster: Cluster, zone: str) -> str | None:
    """Return the zone whose NAT gateway the created private subnet in `zone` uses, or None if it uses none."""
    nat = cluster.network.nat
    zones = availability_zones(cluster)
    if not is_private(cluster) or nat in (None, "none") or not zones:
        return None
    return zone if nat == "perZone" and zone in zones else zones[0]


def nat_gateway_zones(cluster: Cluster) -> tuple[str, ...]:
    """Return the zones whose NAT gateways created route tables use, in the order of the subnets."""
    zones = (nat_gateway_zone(cluster, subnet.zone) for subnet in created_subnets(cluster) if not subnet.route_table)
    return tuple(dict.fromkeys(zone for zone in zones if zone))


def has_one_route_table(cluster: Cluster) -> bool:
    """Return whether all subnets of instances use one route table: always in a public cluster, and with VPC routes.

    The cloud controller manager writes the pods' routes into one table only.
    """
    return not is_private(cluster) or network_plugin(cluster).uses_vpc_routes


def masters_have_elastic_ips(cluster: Cluster) -> bool:
    """Return whether each master has an Elastic IP."""
    return cluster.api.public and not is_private(cluster)


def has_internal_endpoint(cluster: Cluster) -> bool:
    """Return whether the API has an endpoint for clients in the VPC: beside the public one, or the only one."""
    return cluster.api.internal or not cluster.api.public


def has_both_endpoints(cluster: Cluster) -> bool:
    """Return whether the API has an internal endpoint beside its public one."""
    return cluster.api.public and cluster.api.internal


def has_public_load_balancer(cluster: Cluster) -> bool:
    """Return whether the public endpoint is a load balancer: for several masters, and for private masters."""
    return cluster.api.public and (cluster.control_plane.count > 1 or is_private(cluster))


def has_internal_load_balancer(cluster: Cluster) -> bool:
    """Return whether the internal endpoint is a load balancer; for one master it is the master's fixed address."""
    return has_internal_endpoint(cluster) and cluster.control_plane.count > 1


def has_api_load_balancer(cluster: Cluster) -> bool:
    """Return whether the API has a load balancer, public or internal."""
    return has_public_load_balancer(cluster) or has_internal_load_balancer(cluster)


def has_public_endpoint(cluster: Cluster) -> bool:
    """Return whether clients use another host than the private address of a single master."""
    return cluster.api.public or has_api_load_balancer(cluster)


def public_zone(cluster: Cluster) -> DnsZone | None:
    """Return the public hosted zone in which the API's name leads to the public endpoint, if there is one."""
    return cluster.api.dns.public_zone if cluster.api.dns else None


def private_zone(cluster: Cluster) -> DnsZone | None:
    """Return the private hosted zone in which the API's name leads to the internal endpoint, if there is one."""
    return cluster.api.dns.private_zone if cluster.api.dns else None


def public_name(cluster: Cluster) -> str | None:
    """Return the DNS name of the public endpoint, if it has one."""
    return cluster.api.dns.name if cluster.api.dns and cluster.api.dns.public_zone else None


def internal_name(cluster: Cluster) -> str | None:
    """Return the DNS name of the internal endpoint, if it has one."""
    return cluster.api.dns.name if cluster.api.dns and cluster.api.dns.private_zone else None


def certificate_names(cluster: Cluster) -> tuple[str, ...]:
    """Return the names that the cluster file asks for in the API server's certificate, each once."""
    names = (*((cluster.api.dns.name,) if cluster.api.dns else ()), *cluster.api.additional_names)
    return tuple(dict.fromkeys(names))


def range_text(cluster: Cluster, key: str, cidr: IPv4Network) -> str:
    """Return the range of a key of `network`, and that it is the default if nobody wrote the key."""
    return f"{cidr}" if to_snake(key) in cluster.network.model_fields_set else f"{cidr}, the default,"


def usable_address_count(cidr: IPv4Network) -> int:
    """Return how many addresses of a subnet instances can use: AWS reserves the first four and the last."""
    return max(cidr.num_addresses - RESERVED_ADDRESSES, 0)
