"""The proxy through which a cluster reaches other networks, as environment variables, and what it reaches without it.

Programs read the list of exceptions (NO_PROXY) in different ways: all understand a host name, which also stands for the
names below it, and a domain with a dot before it. Ranges are understood by programs in Go (`golang.org/x/net/http/
httpproxy`), not by Python's (`urllib.request.proxy_bypass_environment`) and not by apt.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from urllib.parse import urlsplit

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import api_host
from cfngen.cluster.network.endpoints import S3, dns_suffix, has_s3_endpoint, interface_endpoints, settings_of
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import vpc_ranges

# The instance itself, its metadata, and the credentials of containers.
_ALWAYS_DIRECT = ("localhost", "127.0.0.1", "169.254.169.254", "169.254.170.2")


def environment(cluster: Cluster) -> dict[str, str]:
    """Return the environment variables that make programs use the proxy, by name; empty without a proxy."""
    proxy = cluster.network.proxy
    if not proxy:
        return {}
    return {
        "HTTP_PROXY": proxy.http_proxy or proxy.https_proxy,
        "HTTPS_PROXY": proxy.https_proxy,
        "NO_PROXY": ",".join(direct_hosts(cluster)),
    }


def direct_hosts(cluster: Cluster) -> tuple[str, ...]:
    """Return what is reached without the proxy: hosts, domains with a dot before them, and address ranges."""
    network = cluster.network
    user_hosts = network.proxy.no_proxy if network.proxy else ()
    ranges = [*vpc_ranges(cluster), network.service_cidr]
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        ranges.append(network.pod_cidr)
    user_ranges = [IPv4Network(host) for host in user_hosts if "/" in host]
    hosts = (
        *_ALWAYS_DIRECT,
        *map(str, ranges),
        *_mirror_address([*ranges, *user_ranges], cluster.assets.mirror),
        ".svc",
        f".{network.dns_domain}",
        api_host(cluster),
        _instances_domain(cluster.region),
        *_endpoint_hosts(cluster),
        *user_hosts,
    )
    return tuple(dict.fromkeys(hosts))


def _instances_domain(region: str) -> str:
    """Return the domain of instances' private DNS names, e.g. `.us-west-2.compute.internal`.

    Source: Amazon VPC User Guide, "DNS attributes for your VPC": `ec2.internal` in us-east-1.
    """
    return ".ec2.internal" if region == "us-east-1" else f".{region}.compute.internal"


def _mirror_address(ranges: list[IPv4Network], mirror: str | None) -> Iterator[str]:
    """Yield the address of the server of `assets.mirror` if its URL has one that is in a range without the proxy.

    The boot program, which is in Python, does not find the address in a range.
    """
    try:
        address = IPv4Address(urlsplit(mirror or "").hostname or "")
    except AddressValueError:
        return
    if any(address in address_range for address_range in ranges):
        yield str(address)


def _endpoint_hosts(cluster: Cluster) -> Iterator[str]:
    """Yield the host names of AWS services that are reached through VPC endpoints which cfngen creates.

    They are the endpoints' private DNS names, which most services make from the parts of their endpoint's name
    in reverse order: `ecr.api` has `api.ecr.<region>.amazonaws.com` (Amazon ECR User Guide, "Amazon ECR interface VPC
    endpoints"). Of an endpoint that the cluster file names in full, the hosts are not known: they belong in `noProxy`.
    """
    region = cluster.region
    suffix = dns_suffix(region)
    # The gateway endpoint serves the route tables that cfngen creates only. Amazon Linux has its packages in S3, at the
    # dual-stack name.
    if has_s3_endpoint(cluster) and not any(subnet.id or subnet.route_table for subnet in cluster.network.subnets):
        yield f"{S3}.{region}.{suffix}"
        yield f"{S3}.dualstack.{region}.{suffix}"
    for endpoint in interface_endpoints(cluster):
        is_full_name = endpoint.service.startswith(("com.", "cn.com."))
        if not is_full_name and settings_of(cluster, endpoint.service).private_dns:
            service = ".".join(reversed(endpoint.service.split(".")))
            yield f"{service}.{region}.{suffix}"
