"""Address ranges: inside their parents, of a size that AWS and Kubernetes accept, and apart from each other."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations

from cfngen.cluster.model import Cluster, Subnet
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem

VPC: Path = ("network", "vpc", "cidr")
PODS: Path = ("network", "podCidr")
SERVICES: Path = ("network", "serviceCidr")
DNS: Path = ("network", "dnsServiceIp")
# https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html and …/subnet-sizing.html, November 2026
_LARGEST, _SMALLEST = 16, 28
_RESERVED_AT_START, _RESERVED = 4, 5
_NEVER = {
    "this host": IPv4Network("0.0.0.0/8"),
    "loopback": IPv4Network("127.0.0.0/8"),
    "link-local addresses, where instances find their metadata": IPv4Network("169.254.0.0/16"),
    "multicast and reserved addresses": IPv4Network("224.0.0.0/3"),
}
# At most 20 host bits, and at least 10 addresses: kubeadm's MaximumBitsForServiceSubnet and
# MinimumAddressesInServiceSubnet (cmd/kubeadm/app/constants, Kubernetes 1.36).
_SERVICES_LARGEST, _SERVICES_SMALLEST = 12, 28
# The mask of a node may exceed that of the cluster by at most 16: kube-controller-manager's range allocator
# (pkg/controller/nodeipam/ipam/cidrset, Kubernetes 1.36).
_PODS_LARGEST, NODE_PREFIX = 8, 24
_DNS_HOST = 10


def subnet_path(index: int, key: str = "cidr") -> Path:
    """Return the path of a subnet's key."""
    return ("network", "subnets", index, key)


def usable(subnet: Subnet) -> int:
    """Return how many addresses of a subnet AWS leaves to instances: all but the first four and the last."""
    return max(subnet.cidr.num_addresses - _RESERVED, 0)


def _vpc_and_subnet_sizes(cluster: Cluster) -> Iterator[Problem]:
    ranges = [(VPC, cluster.network.vpc.cidr, "a VPC")]
    ranges += [(subnet_path(index), each.cidr, "a subnet") for index, each in enumerate(cluster.network.subnets)]
    for path, cidr, what in ranges:
        if not _LARGEST <= cidr.prefixlen <= _SMALLEST:
            yield Problem(path, f"{cidr} is a /{cidr.prefixlen}; AWS allows /{_LARGEST} to /{_SMALLEST} for {what}")


def _service_size(cluster: Cluster) -> Iterator[Problem]:
    cidr = cluster.network.service_cidr
    if not _SERVICES_LARGEST <= cidr.prefixlen <= _SERVICES_SMALLEST:
        allowed = f"/{_SERVICES_LARGEST} to /{_SERVICES_SMALLEST}"
        yield Problem(SERVICES, f"{cidr} is a /{cidr.prefixlen}; Kubernetes allows {allowed} for services")


def _pod_size(cluster: Cluster) -> Iterator[Problem]:
    if not network_plugin(cluster).pod_range:
        return
    cidr = cluster.network.pod_cidr
    if not _PODS_LARGEST <= cidr.prefixlen <= NODE_PREFIX:
        yield Problem(
            PODS,
            f"{cidr} is a /{cidr.prefixlen}; it must be /{_PODS_LARGEST} to /{NODE_PREFIX}, for each node takes a /24",
        )


def _ranges(cluster: Cluster) -> tuple[tuple[Path, IPv4Network], ...]:
    network = cluster.network
    pods = ((PODS, network.pod_cidr),) if network_plugin(cluster).pod_range else ()
    return ((VPC, network.vpc.cidr), *pods, (SERVICES, network.service_cidr))


def _never(cluster: Cluster) -> Iterator[Problem]:
    for path, cidr in _ranges(cluster):
        for what, reserved in _NEVER.items():
            if cidr.overlaps(reserved):
                yield Problem(path, f"{cidr} reaches into {reserved}, {what}; use a private range such as 10.0.0.0/16")
                break


def _placed(cluster: Cluster) -> Iterator[tuple[int, Subnet]]:
    """Subnets of which the range is known; `existing` reports the others."""
    for index, subnet in enumerate(cluster.network.subnets):
        if "cidr" in subnet.model_fields_set:
            yield index, subnet


def _subnets_inside_vpc(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc.cidr
    for index, subnet in _placed(cluster):
        if not subnet.cidr.subnet_of(vpc):
            message = f"{subnet.cidr} is not inside the VPC's {vpc}; choose a part of it or change network.vpc.cidr"
            yield Problem(subnet_path(index), message, (VPC,))


def _subnets_apart(cluster: Cluster) -> Iterator[Problem]:
    for (first, one), (second, other) in combinations(_placed(cluster), 2):
        if one.cidr.overlaps(other.cidr):
            message = f"{other.cidr} overlaps {dotted(subnet_path(first))} ({one.cidr}); give each subnet its own range"
            yield Problem(subnet_path(second), message, (subnet_path(first),))


def _ranges_apart(cluster: Cluster) -> Iterator[Problem]:
    """A route of the pods must not compete with the VPC's local route, nor a service's address with either."""
    for (first, one), (second, other) in combinations(_ranges(cluster), 2):
        if one.overlaps(other):
            message = f"{other} overlaps {dotted(first)} ({one}); choose a range that lies outside"
            yield Problem(second, message, (first,))


def _master_addresses(cluster: Cluster) -> Iterator[Problem]:
    path: Path = ("controlPlane", "addresses")
    addresses = cluster.control_plane.addresses
    if len(addresses) != cluster.control_plane.count:
        many = f"{len(addresses)} address{'es' if len(addresses) != 1 else ''} for {cluster.control_plane.count} master"
        plural = "s" if cluster.control_plane.count != 1 else ""
        yield Problem(path, f"{many}{plural}; give one address for each", (("controlPlane", "count"),))
        return
    for index, address in enumerate(addresses):
        fault = _address_fault(cluster, address)
        if fault:
            touches = tuple(subnet_path(at) for at in range(len(cluster.network.subnets)))
            yield Problem((*path, index), fault, (*touches, VPC))
        elif address in addresses[:index]:
            first = f"{dotted(path)}[{addresses.index(address)}]"
            yield Problem((*path, index), f"{address} is {first} already; each master has an address of its own")


def _address_fault(cluster: Cluster, address: IPv4Address) -> str | None:
    ranges = [subnet.cidr for subnet in cluster.network.subnets if subnet.cidr.num_addresses > _RESERVED]
    if not ranges:
        return None
    cidr = next((each for each in ranges if address in each), ranges[0])
    range_ = f"{cidr[_RESERVED_AT_START]} to {cidr[-2]}"
    if address not in cidr and len(cluster.network.subnets) == 1:
        return f"{address} is not inside network.subnets[0].cidr ({cidr}); choose one of {range_}"
    if address not in cidr:
        return f"{address} is in none of the subnets ({', '.join(map(str, ranges))}); choose an address of one of them"
    if address in (*(cidr[host] for host in range(_RESERVED_AT_START)), cidr[-1]):
        return f"AWS reserves {address}, as it does the first four and the last of every subnet; choose one of {range_}"
    return None


def _dns_address(cluster: Cluster) -> Iterator[Problem]:
    cidr, address = cluster.network.service_cidr, cluster.network.dns_service_ip
    if address not in cidr:
        message = f"{address} is not inside network.serviceCidr ({cidr}); leave it out to have {_tenth(cidr)}"
        yield Problem(DNS, message, (SERVICES,))
    elif address != _tenth(cidr):
        message = f"kubeadm puts the cluster DNS on the tenth address of {cidr}, {_tenth(cidr)}; leave the key out"
        yield Problem(DNS, message, (SERVICES,))


def _tenth(cidr: IPv4Network) -> IPv4Address:
    return cidr.network_address + _DNS_HOST


def _addresses_of_pods_abroad(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    kept, vpc, pods = network.non_masquerade_cidr, network.vpc.cidr, network.pod_cidr
    if kept is None or kept.subnet_of(vpc) or not vpc.subnet_of(kept):
        return
    message = (
        f"pods keep their address towards all of {kept}, and beyond the VPC's {vpc} (peered networks, VPN, on "
        f"premises) nothing knows the way back to {pods}; leave the key out unless those networks have routes to it"
    )
    yield Problem(("network", "nonMasqueradeCidr"), message)


PROBLEMS = (
    _vpc_and_subnet_sizes,
    _service_size,
    _pod_size,
    _never,
    _subnets_inside_vpc,
    _subnets_apart,
    _ranges_apart,
    _master_addresses,
    _dns_address,
)
WARNINGS = (_addresses_of_pods_abroad,)
