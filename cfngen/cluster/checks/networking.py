"""Checks of the network plug-in, the proxy and flow logs: which keys go together, and whether addresses suffice."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address
from urllib.parse import urlsplit

from cfngen.cluster.checks.sections import KeyCheck, repeated
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.address_plan import address_demand
from cfngen.cluster.network.network_plugins import awaits_plugin_of_user, network_plugin
from cfngen.cluster.network.topology import usable_address_count
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.flow_logs import FlowLogs
from cfngen.text import pluralize

_PLUGIN_PATH: Path = ("network", "plugin")
_SUBNETS_PATH: Path = ("network", "subnets")
# Addresses that the Amazon VPC plug-in allocates on an instance with few pods, besides the instance's own: ten for pods
# (`MINIMUM_IP_TARGET`, which cfngen.userdata.pod_network sets), and one for each network interface that has them.
_ADDRESSES_FOR_PODS = 10
_ADDRESSES_FOR_INTERFACES = 2
_PROXY: Path = ("network", "proxy")
_DESTINATION = ("network.flowLogs.destination",)


def _check_plugin_values(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if network.plugin_values and not network_plugin(cluster).is_installed_by_cfngen:
        instead = "; set them with your chart in addons.charts" if network.plugin == "none" else "; remove the key"
        yield Problem(
            ("network", "pluginValues"), f"{network.plugin} has no Helm chart{instead}", related_paths=(_PLUGIN_PATH,)
        )


def _check_addresses_for_min_size(cluster: Cluster) -> Iterator[Problem]:
    """Check that the subnets have addresses for the minimum number of instances and their pods.

    Only for a network plug-in that gives VPC addresses to pods.
    """
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        return
    min_instances = cluster.control_plane.count + sum(group.min_size for group in cluster.node_groups)
    available = _total_usable_addresses(cluster)
    addresses_per_instance = 1 + _ADDRESSES_FOR_PODS
    needed = min_instances * addresses_per_instance
    if needed > available:
        message = (
            f"the subnets have {available} addresses for instances and pods, but "
            f"{pluralize(min_instances, 'instance')} need {needed} or more ({addresses_per_instance} each); "
            "enlarge them, or choose a plug-in with a separate range for pods (cilium)"
        )
        yield Problem(_SUBNETS_PATH, message, related_paths=(_PLUGIN_PATH, ("nodeGroups",), ("network", "vpc")))


def _warn_of_too_few_addresses_for_max_size(cluster: Cluster) -> Iterator[Problem]:
    """Warn if the subnets have too few addresses for the maximum number of instances and their pods.

    Only for a network plug-in that gives VPC addresses to pods.
    """
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        return
    max_instances = cluster.control_plane.count + sum(group.max_size for group in cluster.node_groups)
    available = _total_usable_addresses(cluster)
    addresses_per_instance = 1 + _ADDRESSES_FOR_PODS + _ADDRESSES_FOR_INTERFACES
    needed = max_instances * addresses_per_instance
    if needed > available:
        message = (
            f"up to {pluralize(max_instances, 'instance')} may need {needed} addresses or more "
            f"({addresses_per_instance} each and one for each further pod), but the subnets have {available} for "
            "instances and pods; pods without an address stay in ContainerCreating"
        )
        yield Problem(_SUBNETS_PATH, message)


def _total_usable_addresses(cluster: Cluster) -> int:
    """Return how many addresses of the subnets instances and pods can have beside everything else."""
    needs = [(subnet.cidr, address_demand(cluster, subnet.zone)) for subnet in cluster.network.subnets]
    return sum(max(usable_address_count(cidr) - demand.beside_instances, 0) for cidr, demand in needs)


def _check_proxy_outside_cluster(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if not network.proxy:
        return
    ranges = {"serviceCidr": network.service_cidr}
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        ranges["podCidr"] = network.pod_cidr
    for key, url in (("httpsProxy", network.proxy.https_proxy), ("httpProxy", network.proxy.http_proxy)):
        path: Path = (*_PROXY, key)
        if not url:
            continue
        host = urlsplit(url).hostname or ""
        try:
            address = IPv4Address(host)
        except AddressValueError:
            address = None
        if host == "localhost" or (address and address.is_loopback):
            yield Problem(path, f"for a pod, {host} is the pod itself; enter an address that instances and pods reach")
        for range_key, address_range in ranges.items():
            if address and address in address_range:
                message = (
                    f"{host} is inside network.{range_key} ({address_range}), and instances need the proxy before they "
                    "are part of the cluster; run it outside the cluster"
                )
                yield Problem(path, message, related_paths=(("network", range_key),))


def _check_port(cluster: Cluster) -> Iterator[Problem]:
    proxy = cluster.network.proxy
    if not proxy:
        return
    for key, url in (("httpsProxy", proxy.https_proxy), ("httpProxy", proxy.http_proxy)):
        port = int(url.rstrip("/").rpartition(":")[2]) if url else 1
        if not 1 <= port <= 65535:
            yield Problem((*_PROXY, key), f"{port} is no port; a port is a number from 1 to 65535")


def _check_exceptions_differ(cluster: Cluster) -> Iterator[Problem]:
    yield from repeated(cluster.network.proxy.no_proxy if cluster.network.proxy else (), (*_PROXY, "noProxy"))


def _logs_into(cluster: Cluster, destination: str) -> FlowLogs | None:
    flow_logs = cluster.network.flow_logs
    return flow_logs if flow_logs and flow_logs.destination == destination else None


PROBLEM_CHECKS = (
    KeyCheck(
        "network.flowLogs.bucket",
        when=lambda cluster: (logs := _logs_into(cluster, "s3")) and logs.bucket is None,
        message="is missing; enter the name of an existing bucket, or set destination to cloudWatchLogs",
        related=_DESTINATION,
    ),
    KeyCheck(
        "network.flowLogs.retentionDays",
        when=lambda cluster: (logs := _logs_into(cluster, "s3")) and logs.retention_days is not None,
        message="is for cloudWatchLogs; remove it, and give the bucket a lifecycle rule that deletes old records",
        related=_DESTINATION,
    ),
    KeyCheck(
        "network.flowLogs.bucket",
        when=lambda cluster: (logs := _logs_into(cluster, "cloudWatchLogs")) and logs.bucket is not None,
        message="is for the destination s3; remove it, or set destination to s3",
        related=_DESTINATION,
    ),
    _check_proxy_outside_cluster,
    _check_port,
    _check_exceptions_differ,
    KeyCheck(
        "network.podCidr",
        when=lambda cluster: (
            "pod_cidr" in cluster.network.model_fields_set and not network_plugin(cluster).uses_pod_cidr
        ),
        message="with {cluster.network.plugin} pods get addresses from the subnets; remove the key",
        related=("network.plugin",),
    ),
    KeyCheck(
        "network.nonMasqueradeCidr",
        when=lambda cluster: (
            "non_masquerade_cidr" in cluster.network.model_fields_set and not network_plugin(cluster).uses_vpc_routes
        ),
        message="{cluster.network.plugin} decides itself which traffic gets the node's address; remove the key",
        related=("network.plugin",),
    ),
    KeyCheck(
        "network.routeTable",
        # If cfngen creates the subnets, `cfngen.cluster.checks.existing` reports the key.
        when=lambda cluster: (
            cluster.network.route_table
            and cluster.network.subnets[0].id
            and not network_plugin(cluster).uses_vpc_routes
        ),
        message="{cluster.network.plugin} adds no routes to the VPC, so no route table is needed; remove the key",
        related=("network.plugin",),
    ),
    _check_plugin_values,
    KeyCheck(
        "api.port",
        when=lambda cluster: cluster.api.port in network_plugin(cluster).host_ports,
        message="{cluster.api.port} is used by {cluster.network.plugin}; use 443 or 6443",
        related=("network.plugin",),
    ),
    _check_addresses_for_min_size,
)
WARNING_CHECKS = (
    KeyCheck(
        "addons.fluentBit",
        # cfngen does not give it the variables, because it compares hosts with NO_PROXY in a way of its own (assumed:
        # without domains and ranges), and would then ask the proxy for the Kubernetes API.
        when=lambda cluster: cluster.network.proxy and cluster.addons.fluent_bit.enabled,
        message="Fluent Bit does not use network.proxy; if its outputs need a proxy, set HTTP_PROXY in its values "
        "(env)",
        related=("network.proxy",),
    ),
    _warn_of_too_few_addresses_for_max_size,
    KeyCheck(
        "network.plugin",
        when=awaits_plugin_of_user,
        message="no plug-in is installed: nodes join but do not become Ready, and pods stay Pending, until you "
        "install one; list its chart in addons.charts",
    ),
)
