"""The settings that an existing cluster cannot change, and which of their defaults deserve a warning before it exists.

A default that follows from another key is easily overlooked. If an existing cluster cannot change it, and it lowers
availability or security, there is a warning. A test compares the table with the settings that the root template records
(`cfngen.templates.immutable_settings`), and has the reason why each of the others needs no warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cfngen.cluster.checks.placement import warn_of_masters_in_few_zones
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.problems import Problem
from cfngen.cluster.topology import created_subnets, is_private, nat_gateway_zones
from cfngen.cluster.zones import is_local_zone


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
        yield Problem(("network", "plugin"), message)


LASTING_DEFAULTS: Mapping[str, Callable[[Cluster], Iterator[Problem]]] = {
    "network.plugin": _warn_of_one_nat_gateway,
    "controlPlane.zones": warn_of_masters_in_few_zones,
}
"""For a setting whose default follows from other keys and may lower availability or security: what warns of it."""

WARNING_CHECKS = tuple(LASTING_DEFAULTS.values())
