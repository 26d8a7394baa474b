"""Fills in what a network lacks: zones and region, ways out, ranges of subnets, the address of the cluster DNS."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from cfngen.cluster.defaults.completed_data import CompletedData, Derivation, Section
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.zones import ALL_ZONE_LETTERS, is_local_zone, zone_region
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.sections.base import Plugin
from cfngen.cluster.sections.network import Vpc

# Defaults of the model, from which other values are derived.
DEFAULT_REGION: str = Cluster.model_fields["region"].default
DEFAULT_VPC_CIDR = str(Vpc.model_fields["cidr"].default)
# Prefix length of the subnets that cfngen derives, if the VPC is large enough.
SUBNET_PREFIX = 24
PUBLIC_SUBNET_PREFIX = 26
IPV4_BITS = 32
# Days for which a log group of flow logs keeps records.
FLOW_LOG_RETENTION_DAYS = 90
# The plug-in of private subnets in several zones, whose NAT gateways need a route table for each zone: it needs no
# addresses of the subnets, and enforces network policies.
PLUGIN_OF_SEVERAL_ROUTE_TABLES: Plugin = "cilium"
# The cluster DNS has the tenth address of the service range.
DNS_HOST_NUMBER = 10


def fill(completed: CompletedData) -> None:
    """Fill in all derived values of the network, and the region."""
    # In this order: later steps use what earlier ones have filled in.
    _fill_vpc_name(completed)
    _fill_subnets_and_zones(completed)
    _fill_region(completed)
    _fill_topology(completed)
    _fill_bastion_zone(completed)
    instance_cidrs = _fill_subnet_cidrs(completed)
    _fill_public_subnet_cidrs(completed, instance_cidrs)
    _fill_dns_address(completed)
    _fill_flow_log_retention(completed)


def network_of(value: object) -> IPv4Network | None:
    """Return `value` as an IPv4 network, or None if it is not a CIDR."""
    try:
        return IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def _fill_vpc_name(completed: CompletedData) -> None:
    name = completed.data.get("name")
    if isinstance(name, str):
        completed.fill(("network", "vpc", "name"), f"{name}-vpc", Derivation(reason="from name", source=("name",)))


def _fill_subnets_and_zones(completed: CompletedData) -> None:
    """Give each subnet without a zone the first zone of the region that no other subnet has; there is one at least.

    The region is the file's, or else the region of another subnet's zone, or else the default.
    """
    completed.fill(("network", "subnets"), [{}])
    subnets = list(completed.sections_in(("network", "subnets")))
    used_zones = [subnet.get("zone") for _, subnet in subnets]
    regions_of_zones = [region for zone in used_zones if (region := zone_region(zone))]
    file_region = completed.data.get("region")
    derivation: Derivation | None
    if isinstance(file_region, str) and file_region:
        region = file_region
        derivation = Derivation(reason="from region", source=("region",))
    elif regions_of_zones and not isinstance(file_region, str):
        region = regions_of_zones[0]
        derivation = Derivation(reason="from the other subnets")
    else:
        region = DEFAULT_REGION
        derivation = None
    for path, subnet in subnets:
        if "zone" in subnet:
            continue
        candidates = [f"{region}{letter}" for letter in ALL_ZONE_LETTERS]
        zone = next((candidate for candidate in candidates if candidate not in used_zones), None)
        # No region has so many zones. The default zone is left, which has a subnet already: that is reported.
        if zone is None:
            return
        completed.fill((*path, "zone"), zone, derivation)
        used_zones.append(zone)


def _fill_region(completed: CompletedData) -> None:
    zone_path: Path = ("network", "subnets", 0, "zone")
    region = zone_region(lookup(completed.data, zone_path))
    if region == DEFAULT_REGION:
        completed.fill(("region",), region)
    elif region:
        completed.fill(("region",), region, Derivation(reason="from network.subnets[0].zone", source=zone_path))


def _fill_topology(completed: CompletedData) -> None:
    """Fill in what follows from a private topology: plug-in, NAT gateways, and nodes without public addresses."""
    path: Path = ("network", "topology")
    if lookup(completed.data, path) != "private":
        return
    if any("id" not in subnet for _, subnet in completed.sections_in(("network", "subnets"))):
        if _fits_route_table_per_zone(completed):
            reason = Derivation(reason="private subnets in several zones", source=("network", "subnets"))
            completed.fill(("network", "plugin"), PLUGIN_OF_SEVERAL_ROUTE_TABLES, reason)
        plugin = lookup(completed.data, ("network", "plugin")) or "vpc-routes"
        # The cloud controller manager writes the routes to pods into one route table, which has one default route.
        if plugin == "vpc-routes":
            reason = Derivation(reason="network.plugin vpc-routes has one route table", source=("network", "plugin"))
            completed.fill(("network", "nat"), "single", reason)
        else:
            completed.fill(("network", "nat"), "perZone", Derivation(reason="from network.topology", source=path))
    completed.fill(("nodeGroups",), [{}])
    for group_path, _ in completed.sections_in(("nodeGroups",)):
        completed.fill((*group_path, "publicIp"), False, Derivation(reason="from network.topology", source=path))


def _fits_route_table_per_zone(completed: CompletedData) -> bool:
    """Return whether private subnets are created in several zones, and no key is for routes to pods in one table."""
    zones = {
        str(subnet.get("zone")) for _, subnet in completed.sections_in(("network", "subnets")) if "id" not in subnet
    }
    keys_of_one_table = ("routeTable", "nonMasqueradeCidr")
    return (
        len([zone for zone in zones if not is_local_zone(zone)]) > 1
        and lookup(completed.data, ("network", "nat")) in (None, "perZone")
        and all(lookup(completed.data, ("network", key)) is None for key in keys_of_one_table)
    )


def _fill_flow_log_retention(completed: CompletedData) -> None:
    """Give the log group of flow logs a retention, so that its size and costs have a limit."""
    path: Path = ("network", "flowLogs")
    if lookup(completed.data, (*path, "destination")) == "cloudWatchLogs":
        completed.fill((*path, "retentionDays"), FLOW_LOG_RETENTION_DAYS)


def _has_public_tier(completed: CompletedData) -> bool:
    """Return whether each Availability Zone of a private cluster has a public subnet."""
    nat = lookup(completed.data, ("network", "nat"))
    return nat in ("perZone", "single") or lookup(completed.data, ("api", "public")) is not False


def _fill_bastion_zone(completed: CompletedData) -> None:
    """Place the bastion in the first zone with a public subnet, or else in the first Availability Zone."""
    if not isinstance(completed.data.get("bastion"), dict):
        return
    subnets = [subnet for _, subnet in completed.sections_in(("network", "subnets"))]
    is_tier_listed = lookup(completed.data, ("network", "topology")) == "private" and not _has_public_tier(completed)
    with_public_subnet = [subnet for subnet in subnets if is_tier_listed and "public" in subnet]
    zones = [subnet.get("zone") for subnet in (*with_public_subnet, *subnets)]
    zone = next((zone for zone in zones if isinstance(zone, str) and not is_local_zone(zone)), None)
    if zone:
        derivation = Derivation(reason="from network.subnets", source=("network", "subnets"))
        completed.fill(("bastion", "zone"), zone, None if zone == f"{DEFAULT_REGION}a" else derivation)


def _share_prefix(vpc: IPv4Network, subnet_count: int) -> int | None:
    """Return the prefix length of an equal share of the VPC for each subnet, or None if there are too many subnets.

    Two subnets need one bit more than the VPC's prefix, three or four subnets two bits, and so on.
    """
    prefix = vpc.prefixlen + (subnet_count - 1).bit_length()
    return prefix if prefix <= IPV4_BITS else None


def _subnet_prefix(
    completed: CompletedData, vpc: IPv4Network, tier: str, default_prefix: int, *, subnet_count: int
) -> int | None:
    """Return the prefix length of the subnets that are derived, or None if the VPC cannot have such subnets.

    It is given in `network.subnetSizes`, or else the default, and a small VPC is shared equally.
    """
    size = lookup(completed.data, ("network", "subnetSizes", tier))
    # Not `isinstance`, which takes a boolean for an int; validation reports what is not a prefix length.
    if type(size) is int and vpc.prefixlen <= size <= IPV4_BITS:
        return size
    share_prefix = None if size is not None else _share_prefix(vpc, subnet_count)
    return None if share_prefix is None else max(default_prefix, share_prefix)


def _fill_public_subnet_cidrs(completed: CompletedData, instance_cidrs: Sequence[IPv4Network]) -> None:
    """Give each public subnet of a private cluster the range at its position, from the end of the VPC's downwards.

    So neither a further zone nor another public subnet or its range moves the ranges of other subnets.

    Args:
        instance_cidrs: the ranges that were derived for subnets of instances, where there is no room.
    """
    network = completed.data.get("network")
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or DEFAULT_VPC_CIDR)
    if not isinstance(network, dict) or network.get("topology") != "private" or vpc is None:
        return
    subnets = list(completed.sections_in(("network", "subnets")))
    prefix = _subnet_prefix(completed, vpc, "public", PUBLIC_SUBNET_PREFIX, subnet_count=2 * len(subnets))
    if prefix is None:
        return
    block_size = 1 << (IPV4_BITS - prefix)
    derivation = Derivation(reason="by its position, at the end of network.vpc.cidr", source=("network", "vpc", "cidr"))
    has_existing_vpc = lookup(completed.data, ("network", "vpc", "id")) is not None
    for position, (path, subnet) in enumerate(subnets, start=1):
        if _needs_public_subnet(completed, subnet):
            completed.fill((*path, "public"), {})
        public = subnet.get("public")
        # In an existing VPC the free ranges are not known.
        if not isinstance(public, dict) or "id" in public or has_existing_vpc:
            continue
        if position * block_size > vpc.num_addresses:
            return
        cidr = IPv4Network((int(vpc.broadcast_address) + 1 - position * block_size, prefix))
        if not any(map(cidr.overlaps, instance_cidrs)):
            completed.fill((*path, "public", "cidr"), str(cidr), derivation)


def _needs_public_subnet(completed: CompletedData, subnet: Section) -> bool:
    """Return whether the zone of a private subnet has a public one: for NAT, load balancers or the bastion."""
    zone = subnet.get("zone")
    for_bastion = zone is not None and zone == lookup(completed.data, ("bastion", "zone"))
    return for_bastion or (_has_public_tier(completed) and not is_local_zone(str(zone)))


def _fill_subnet_cidrs(completed: CompletedData) -> list[IPv4Network]:
    """Give each subnet without a CIDR the range at its position in the VPC's; return these ranges.

    `_subnet_prefix` returns their size. No subnet's range moves that of another; a check reports what overlaps. In an
    existing VPC the free ranges are not known, so its subnets must have a CIDR in the cluster file.
    """
    derived_cidrs: list[IPv4Network] = []
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or DEFAULT_VPC_CIDR)
    subnets = list(completed.sections_in(("network", "subnets")))
    if vpc is None or not subnets or lookup(completed.data, ("network", "vpc", "id")):
        return derived_cidrs
    # In a private cluster, each zone may also have a public subnet.
    tier_count = 2 if lookup(completed.data, ("network", "topology")) == "private" else 1
    prefix = _subnet_prefix(completed, vpc, "instances", SUBNET_PREFIX, subnet_count=tier_count * len(subnets))
    if prefix is None:
        return derived_cidrs
    is_default = str(vpc) == DEFAULT_VPC_CIDR and len(subnets) == 1
    derivation = Derivation(reason="by its position in network.vpc.cidr", source=("network", "vpc", "cidr"))
    for (path, subnet), cidr in zip(subnets, vpc.subnets(new_prefix=prefix), strict=False):
        if "cidr" not in subnet and "id" not in subnet:
            completed.fill((*path, "cidr"), str(cidr), None if is_default else derivation)
            derived_cidrs.append(cidr)
    return derived_cidrs


def _fill_dns_address(completed: CompletedData) -> None:
    cidr_path: Path = ("network", "serviceCidr")
    cidr = network_of(lookup(completed.data, cidr_path))
    if cidr and cidr.num_addresses > DNS_HOST_NUMBER:
        address = str(cidr[DNS_HOST_NUMBER])
        derivation = Derivation(reason="from network.serviceCidr", source=cidr_path)
        completed.fill(("network", "dnsServiceIp"), address, derivation)


def without_local_zones(subnets: list[tuple[Path, Section]]) -> list[tuple[Path, Section]]:
    """Return the subnets that are not in Local Zones, or all subnets if each is in a Local Zone.

    A subnet is given by the path and the data of its section.
    """
    in_availability_zones = [(path, subnet) for path, subnet in subnets if not is_local_zone(str(subnet.get("zone")))]
    return in_availability_zones or subnets
