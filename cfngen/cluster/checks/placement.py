"""Checks of region and zones, among them Local Zones: what may be where, and what stays there for good."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from cfngen.cluster.checks.sections import subnet_path
from cfngen.cluster.instances import instance_types
from cfngen.cluster.instances.group_types import type_list, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.zones import ALL_ZONE_LETTERS, is_local_zone, zone_letters, zone_region
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import created_subnets, is_private, nat_gateway_zones
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import Volume
from cfngen.text import join_and


def _check_region_exists(cluster: Cluster) -> Iterator[Problem]:
    regions = instance_types.regions()
    if regions and cluster.region not in regions:
        similar_regions = difflib.get_close_matches(cluster.region, sorted(regions), n=3, cutoff=0.7)
        if similar_regions:
            advice = f"did you mean {' or '.join(similar_regions)}?"
        else:
            advice = f"the regions are {', '.join(sorted(regions))}"
        yield Problem(("region",), f"AWS has no region {cluster.region}; {advice}")


def _check_zones_in_region(cluster: Cluster) -> Iterator[Problem]:
    for index, subnet in enumerate(cluster.network.subnets):
        if zone_region(subnet.zone) != cluster.region:
            message = f"{subnet.zone} is not a zone of {cluster.region}; a cluster is in one region"
            yield Problem(subnet_path(index, "zone"), message, related_paths=(("region",),))


def _check_zones_exist(cluster: Cluster) -> Iterator[Problem]:
    zones = [f"{cluster.region}{letter}" for letter in zone_letters(cluster.region)]
    for index, subnet in enumerate(cluster.network.subnets):
        if not is_local_zone(subnet.zone) and subnet.zone[-1] not in ALL_ZONE_LETTERS:
            message = f"{cluster.region} has no zone {subnet.zone}; its zones are {join_and(zones)}"
            yield Problem(subnet_path(index, "zone"), message)


def _warn_of_unknown_zones(cluster: Cluster) -> Iterator[Problem]:
    letters = zone_letters(cluster.region)
    for index, subnet in enumerate(cluster.network.subnets):
        if not is_local_zone(subnet.zone) and subnet.zone[-1] not in letters:
            message = (
                f"{cluster.region} is not known to have a zone {subnet.zone}, only {join_and(letters)}; EC2 refuses "
                "the subnet if your account has no such zone"
            )
            yield Problem(subnet_path(index, "zone"), message)


def _check_zones_distinct(cluster: Cluster) -> Iterator[Problem]:
    zones = [subnet.zone for subnet in cluster.network.subnets]
    for index, zone in enumerate(zones):
        first_index = zones.index(zone)
        if first_index < index:
            message = (
                f"{zone} already has a subnet (network.subnets[{first_index}]); a cluster has one subnet in each zone"
            )
            yield Problem(subnet_path(index, "zone"), message, related_paths=(subnet_path(first_index, "zone"),))


def _check_group_zones(cluster: Cluster) -> Iterator[Problem]:
    subnet_zones = [subnet.zone for subnet in cluster.network.subnets]
    for index, group in enumerate(cluster.node_groups):
        for position, zone in enumerate(group.zones):
            path = ("nodeGroups", index, "zones", position)
            if zone not in subnet_zones:
                message = f"no subnet is in {zone}; use {', '.join(subnet_zones)} or add a subnet there"
                yield Problem(path, message, related_paths=(("network", "subnets"),))
            elif zone in group.zones[:position]:
                yield Problem(path, f"{zone} appears twice; remove one")


def _warn_of_untested_partition(cluster: Cluster) -> Iterator[Problem]:
    region = cluster.region
    if region.startswith(("cn-", "us-iso", "eu-iso", "eusc-")):
        message = (
            f"cfngen has not been tested in the partition of {region}, and instances there may not reach dl.k8s.io, "
            "github.com and registry.k8s.io; set assets.mirror and "
            "kubernetes.clusterConfiguration.imageRepository, and expect to need other changes"
        )
        yield Problem(("region",), message)


def warn_of_masters_in_few_zones(cluster: Cluster) -> Iterator[Problem]:
    """Warn if most of several masters are in one zone: without that zone, etcd would lose its quorum."""
    master_count = cluster.control_plane.count
    # One zone for each master that has an address. `cfngen.cluster.checks.addresses` reports missing addresses.
    master_zones = [slot.subnet.zone for slot in cluster.slots]
    if master_count == 1 or len(master_zones) != master_count:
        return
    fullest_zone = max(master_zones, key=master_zones.count)
    masters_in_zone = master_zones.count(fullest_zone)
    if masters_in_zone <= master_count // 2:
        return
    missing_zones = "three zones" if len(set(master_zones)) == 1 else "a third zone"
    message = (
        f"{masters_in_zone if masters_in_zone < master_count else 'all'} of {master_count} masters are in "
        f"{fullest_zone}: they survive the failure of an instance, but not of that zone; "
        f"add subnets in {missing_zones} (network.subnets) before the cluster is created: masters stay in their zones"
    )
    yield Problem(("controlPlane", "count"), message)


# An Elastic IP belongs to a network border group, and a Local Zone has a different one than its region ("How Local
# Zones work", AWS Local Zones User Guide; "AllocateAddress", Amazon EC2 API Reference: addresses do not move between
# network border groups). Network load balancers take subnets of Availability Zones only ("CreateLoadBalancer", Elastic
# Load Balancing API Reference). NAT gateways are in few Local Zones and gp3 is not in all; no API tells in which ("AWS
# Local Zones features"). All were read in November 2026.
def _check_no_masters_in_local_zones(cluster: Cluster) -> Iterator[Problem]:
    """Check that masters that need cfngen's Elastic IP or a load balancer are not in Local Zones."""
    master_count = cluster.control_plane.count
    # A single master needs neither if the API is private or if the user names an Elastic IP.
    if master_count == 1 and (cluster.api.elastic_ip or not cluster.api.public):
        return
    resources = "Elastic IPs" if master_count == 1 else "network load balancers"
    for index, subnet in enumerate(cluster.network.subnets):
        master_addresses = [str(slot.address) for slot in cluster.slots if slot.subnet == subnet]
        if master_addresses and is_local_zone(subnet.zone):
            message = (
                f"{subnet.zone} is a Local Zone, where {resources} of the region cannot be used for masters "
                f"({', '.join(master_addresses)}); place them in subnets of Availability Zones (controlPlane.addresses)"
            )
            related_paths = (("controlPlane", "addresses"), ("controlPlane", "count"))
            yield Problem(subnet_path(index, "zone"), message, related_paths=related_paths)


def _warn_of_groups_in_local_zones(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        local_zones = [zone for zone in group.zones if is_local_zone(zone)]
        if not local_zones:
            continue
        message = (
            f"{', '.join(local_zones)}: the Local Zone must be enabled in your account and must offer "
            f"{type_list(types_of(cluster, group))}"
        )
        yield Problem(("nodeGroups", index, "zones"), message)
        volumes: list[tuple[Path, Volume]] = [(("rootVolume",), group.root_volume)]
        volumes += [(("volumes", position), volume) for position, volume in enumerate(group.volumes)]
        for path in [path for path, volume in volumes if volume.type == "gp3"]:
            message = (
                f"not every Local Zone has gp3 volumes ({', '.join(local_zones)}), and where there are none, no node "
                "starts; gp2 is in all of them. Claims of pods there need a StorageClass of that type too"
            )
            yield Problem(
                ("nodeGroups", index, *path, "type"), message, related_paths=(("nodeGroups", index, "zones"),)
            )


def _warn_of_one_nat_gateway(cluster: Cluster) -> Iterator[Problem]:
    zones = [
        subnet.zone for subnet in created_subnets(cluster) if not subnet.route_table and not is_local_zone(subnet.zone)
    ]
    if not network_plugin(cluster).uses_vpc_routes or not is_private(cluster) or len(zones) < 2:
        return
    if cluster.network.nat == "single":
        [nat_zone] = nat_gateway_zones(cluster)
        message = (
            f"one NAT gateway, in {nat_zone}, serves all zones: if {nat_zone} fails, no zone reaches the internet; "
            "vpc-routes has one route table, so this stays as long as the cluster exists; for a new cluster choose "
            "cilium, calico, flannel or amazon-vpc, and network.nat perZone"
        )
        keys = ("topology", "nat", "subnets", "nonMasqueradeCidr")
        yield Problem(("network", "plugin"), message, related_paths=tuple(("network", key) for key in keys))


LASTING_DEFAULTS: Mapping[str, Callable[[Cluster], Iterator[Problem]]] = {
    "network.plugin": _warn_of_one_nat_gateway,
    "controlPlane.zones": warn_of_masters_in_few_zones,
}
"""What warns of a default that follows from another key, which is easily overlooked, by the setting.

These are settings that an existing cluster cannot change and that lower availability or security. A test compares them
with the settings that the root template records (`cfngen.templates.immutable_settings`), and has the reason why each of
the others needs no warning.
"""


PROBLEM_CHECKS = (
    _check_region_exists,
    _check_zones_in_region,
    _check_zones_exist,
    _check_zones_distinct,
    _check_group_zones,
    _check_no_masters_in_local_zones,
)
WARNING_CHECKS = (
    *LASTING_DEFAULTS.values(),
    _warn_of_untested_partition,
    _warn_of_unknown_zones,
    _warn_of_groups_in_local_zones,
)
