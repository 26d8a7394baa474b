"""The network plug-in: what goes with it, and whether the addresses that it takes are there."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import PODS, usable
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import pluralize

_PLUGIN: Path = ("network", "plugin")
_SUBNETS: Path = ("network", "subnets")
# Addresses that the Amazon VPC plug-in takes for a node of few pods, with the targets that cfngen sets
# (`MINIMUM_IP_TARGET`, cfngen.userdata.pod_network): ten for pods, and one for each of the interfaces that bear them.
FOR_PODS = 10
_FOR_INTERFACES = 2


def _pod_range(cluster: Cluster) -> Iterator[Problem]:
    if "pod_cidr" in cluster.network.model_fields_set and not network_plugin(cluster).pod_range:
        message = f"with {cluster.network.plugin} pods have addresses of the subnets; remove the key"
        yield Problem(PODS, message, (_PLUGIN,))


def _masquerading(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if "non_masquerade_cidr" in network.model_fields_set and not network_plugin(cluster).routes:
        message = f"{network.plugin} decides itself what leaves with the node's address; remove the key"
        yield Problem(("network", "nonMasqueradeCidr"), message, (_PLUGIN,))


def _route_table(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    # Of subnets that are created `existing` says that they get a table of their own.
    if network.route_table and network.subnets[0].id and not network_plugin(cluster).routes:
        message = f"{network.plugin} writes no routes into the VPC, so no route table is needed; remove the key"
        yield Problem(("network", "routeTable"), message, (_PLUGIN,))


def _values(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if network.plugin_values and not network_plugin(cluster).installed:
        instead = "; give them with your chart in addons.charts" if network.plugin == "none" else "; remove the key"
        yield Problem(("network", "pluginValues"), f"{network.plugin} has no Helm chart{instead}", (_PLUGIN,))


def _api_port(cluster: Cluster) -> Iterator[Problem]:
    port = cluster.api.port
    if port in network_plugin(cluster).taken:
        yield Problem(("api", "port"), f"{port} is taken by {cluster.network.plugin}; use 443 or 6443", (_PLUGIN,))


def _addresses_of_pods(cluster: Cluster) -> Iterator[Problem]:
    if not network_plugin(cluster).interfaces:
        return
    least = cluster.control_plane.count + sum(group.min_size for group in cluster.node_groups)
    room, wanted = _room(cluster), least * (1 + FOR_PODS)
    if wanted > room:
        message = (
            f"the subnets hold {room} addresses, but {pluralize(least, 'instance')} with pods take {wanted} or more "
            f"({1 + FOR_PODS} each); enlarge them, or choose a plug-in whose pods have addresses of their own (cilium)"
        )
        yield Problem(_SUBNETS, message, (_PLUGIN, ("nodeGroups",), ("network", "vpc")))


def _addresses_of_pods_at_most(cluster: Cluster) -> Iterator[Problem]:
    if not network_plugin(cluster).interfaces:
        return
    most = cluster.control_plane.count + sum(group.max_size for group in cluster.node_groups)
    room, each = _room(cluster), 1 + FOR_PODS + _FOR_INTERFACES
    if most * each > room:
        message = (
            f"up to {pluralize(most, 'instance')} may take {most * each} addresses and more ({each} each and one for "
            f"each further pod), and the subnets hold {room}; pods that find none wait in ContainerCreating"
        )
        yield Problem(_SUBNETS, message)


def _nothing_installed(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.plugin == "none" and not cluster.addons.charts:
        message = (
            "no plug-in is installed: nodes join but do not become Ready, and pods wait, until you have installed one; "
            "list its chart in addons.charts"
        )
        yield Problem(_PLUGIN, message)


def _room(cluster: Cluster) -> int:
    return sum(map(usable, cluster.network.subnets))


PROBLEMS = (_pod_range, _masquerading, _route_table, _values, _api_port, _addresses_of_pods)
WARNINGS = (_addresses_of_pods_at_most, _nothing_installed)
