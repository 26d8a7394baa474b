"""Checks of Local Zones: nodes may be there, but not masters behind Elastic IPs or network load balancers.

An Elastic IP belongs to a network border group, and a Local Zone has a different one than its region ("How Local Zones
work", AWS Local Zones User Guide; "AllocateAddress", Amazon EC2 API Reference: addresses do not move between network
border groups). Network load balancers take subnets of Availability Zones only ("CreateLoadBalancer", Elastic Load
Balancing API Reference). NAT gateways are in few Local Zones and gp3 is not in all; no API tells in which ("AWS Local
Zones features"). All were read in November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import subnet_path
from cfngen.cluster.group_types import type_list, types_of
from cfngen.cluster.model import Cluster, Volume
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.zones import is_local_zone


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
            yield Problem(("nodeGroups", index, *path, "type"), message)


PROBLEM_CHECKS = (_check_no_masters_in_local_zones,)
WARNING_CHECKS = (_warn_of_groups_in_local_zones,)
