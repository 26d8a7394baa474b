"""Checks of the proxy: where it is, and what is reached without it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address
from urllib.parse import urlsplit

from cfngen.cluster.checks.sections import KeyCheck, repeated
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_PROXY: Path = ("network", "proxy")


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


PROBLEM_CHECKS = (_check_proxy_outside_cluster, _check_port, _check_exceptions_differ)
WARNING_CHECKS = (
    KeyCheck(
        "addons.fluentBit",
        # cfngen does not give it the variables, because it compares hosts with NO_PROXY in a way of its own (assumed:
        # without domains and ranges), and would then ask the proxy for the Kubernetes API.
        when=lambda cluster: cluster.network.proxy and cluster.addons.fluent_bit.enabled,
        message="Fluent Bit does not use network.proxy; if its outputs need a proxy, set HTTP_PROXY in its values "
        "(env)",
    ),
)
