"""Checks of region and zones: AWS has the region, all zones belong to it, and each zone has one subnet."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from cfngen.cluster import instance_types
from cfngen.cluster.checks.sections import subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.zones import zone_region


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


PROBLEM_CHECKS = (_check_region_exists, _check_zones_in_region, _check_zones_distinct, _check_group_zones)
WARNING_CHECKS = (_warn_of_untested_partition,)
