"""Checks of address ranges: their sizes, what contains what, that none overlap, and the VPC's further ranges."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, collapse_addresses
from itertools import combinations

from cfngen.cluster.checks.sections import KeyCheck, subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import NODE_PREFIX, network_plugin
from cfngen.cluster.network.topology import is_private, range_text, usable_address_count, vpc_ranges
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.network import Subnet
from cfngen.text import pluralize

VPC_CIDR_PATH: Path = ("network", "vpc", "cidr")
ADDITIONAL_CIDRS_PATH: Path = ("network", "vpc", "additionalCidrs")
VPC_RANGE_PATHS: tuple[Path, ...] = (VPC_CIDR_PATH, ADDITIONAL_CIDRS_PATH)
POD_CIDR_PATH: Path = ("network", "podCidr")
SERVICE_CIDR_PATH: Path = ("network", "serviceCidr")
DNS_ADDRESS_PATH: Path = ("network", "dnsServiceIp")
# Prefix lengths of VPCs and subnets: /16 is the largest range that AWS allows, /28 the smallest
# (https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html and …/subnet-sizing.html, November 2026).
MIN_AWS_PREFIX, MAX_AWS_PREFIX = 16, 28
# AWS reserves five addresses of each subnet: the first four and the last.
_RESERVED_FIRST_ADDRESSES = 4

# Networks with a special purpose, in which VPC, pods and services must not have addresses; by their purpose.
_RESERVED_NETWORKS = {
    "this host": IPv4Network("0.0.0.0/8"),
    "loopback": IPv4Network("127.0.0.0/8"),
    "link-local addresses, where instances find their metadata": IPv4Network("169.254.0.0/16"),
    "multicast and reserved addresses": IPv4Network("224.0.0.0/3"),
}
# Prefix lengths of the service range: it has at most 20 host bits, and at least 10 addresses (kubeadm's
# MaximumBitsForServiceSubnet and MinimumAddressesInServiceSubnet, cmd/kubeadm/app/constants, Kubernetes 1.36).
_MIN_SERVICE_PREFIX, _MAX_SERVICE_PREFIX = 12, 28


# Shortest prefix of podCidr: a node's prefix may be at most 16 longer (kube-controller-manager's range allocator,
# pkg/controller/nodeipam/ipam/cidrset, Kubernetes 1.36).
_MIN_POD_PREFIX = 8
# kubeadm gives the tenth address of the service range to the cluster DNS.
_DNS_HOST_NUMBER = 10
_SUBNET_SIZES_PATH: Path = ("network", "subnetSizes")
_VPC_ID_PATH: Path = ("network", "vpc", "id")
# The quota "IPv4 CIDR blocks per VPC" (L-83CA0A9D) is five with the primary one, unless AWS has raised it
# (https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html).
_MAX_ADDITIONAL_RANGES = 4
# Restrictions after the table "IPv4 CIDR block association restrictions" of the Amazon VPC User Guide
# (https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html, November 2026).
_RFC_1918_NETWORKS = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_NEVER_ADDED = IPv4Network("198.19.0.0/16")
_NOT_ADDED_TO_172_16 = IPv4Network("172.31.0.0/16")
_FIRST_OF_10 = IPv4Network("10.0.0.0/16")
_FIRST_TWO_OF_10 = IPv4Network("10.0.0.0/15")


def vpc_ranges_by_path(cluster: Cluster) -> tuple[tuple[Path, IPv4Network], ...]:
    """Return the path and the value of each range of the VPC, the primary one first."""
    additional = cluster.network.vpc.additional_cidrs
    return (
        (VPC_CIDR_PATH, cluster.network.vpc.cidr),
        *(((*ADDITIONAL_CIDRS_PATH, index), cidr) for index, cidr in enumerate(additional)),
    )


def why_not_in_vpc(cluster: Cluster, cidr: IPv4Network) -> str | None:
    """Return why a subnet cannot have a range, to be followed by what to do; None if one of the VPC's contains it."""
    ranges = vpc_ranges(cluster)
    if any(map(cidr.subnet_of, ranges)):
        return None
    if len(ranges) == 1:
        return f"{cidr} is not inside the VPC's {ranges[0]}"
    return f"{cidr} is inside none of the VPC's ranges ({', '.join(map(str, ranges))})"


def _check_vpc_and_subnet_sizes(cluster: Cluster) -> Iterator[Problem]:
    ranges = [(path, cidr, "a VPC") for path, cidr in vpc_ranges_by_path(cluster)]
    ranges += [(subnet_path(index), subnet.cidr, "a subnet") for index, subnet in enumerate(cluster.network.subnets)]
    for path, cidr, kind in ranges:
        if not MIN_AWS_PREFIX <= cidr.prefixlen <= MAX_AWS_PREFIX:
            yield Problem(
                path, f"{cidr} is a /{cidr.prefixlen}; AWS allows /{MIN_AWS_PREFIX} to /{MAX_AWS_PREFIX} for {kind}"
            )


def _check_service_range_size(cluster: Cluster) -> Iterator[Problem]:
    cidr = cluster.network.service_cidr
    if not _MIN_SERVICE_PREFIX <= cidr.prefixlen <= _MAX_SERVICE_PREFIX:
        allowed = f"/{_MIN_SERVICE_PREFIX} to /{_MAX_SERVICE_PREFIX}"
        yield Problem(SERVICE_CIDR_PATH, f"{cidr} is a /{cidr.prefixlen}; Kubernetes allows {allowed} for services")


def _check_pod_range_size(cluster: Cluster) -> Iterator[Problem]:
    if not network_plugin(cluster).uses_pod_cidr:
        return
    cidr = cluster.network.pod_cidr
    if not _MIN_POD_PREFIX <= cidr.prefixlen <= NODE_PREFIX:
        yield Problem(
            POD_CIDR_PATH,
            f"{cidr} is a /{cidr.prefixlen}; it must be /{_MIN_POD_PREFIX} to /{NODE_PREFIX}, "
            "since each node gets a /24",
        )


def _cluster_ranges(cluster: Cluster) -> tuple[tuple[Path, IPv4Network], ...]:
    """Return the path and the value of the ranges of the VPC, of pods (if the plug-in uses podCidr) and of services."""
    network = cluster.network
    of_vpc = vpc_ranges_by_path(cluster)
    pod_range = (POD_CIDR_PATH, network.pod_cidr)
    service_range = (SERVICE_CIDR_PATH, network.service_cidr)
    if network_plugin(cluster).uses_pod_cidr:
        return (*of_vpc, pod_range, service_range)
    return (*of_vpc, service_range)


def _check_no_reserved_ranges(cluster: Cluster) -> Iterator[Problem]:
    for path, cidr in _cluster_ranges(cluster):
        for purpose, reserved in _RESERVED_NETWORKS.items():
            if cidr.overlaps(reserved):
                yield Problem(path, f"{cidr} overlaps {reserved}, {purpose}; use a private range such as 10.0.0.0/16")
                break


def _subnets_with_cidr(cluster: Cluster) -> Iterator[tuple[int, Subnet]]:
    """Yield the position of each subnet whose CIDR is known, and the subnet.

    `cfngen.cluster.checks.existing` reports subnets without a CIDR.
    """
    for index, subnet in enumerate(cluster.network.subnets):
        if "cidr" in subnet.model_fields_set:
            yield index, subnet


def _check_subnets_inside_vpc(cluster: Cluster) -> Iterator[Problem]:
    for index, subnet in _subnets_with_cidr(cluster):
        reason = why_not_in_vpc(cluster, subnet.cidr)
        if reason:
            message = f"{reason}; choose a range inside it, or change network.vpc.cidr"
            if cluster.network.vpc.additional_cidrs:
                message = f"{reason}; choose a range inside one of them"
            yield Problem(subnet_path(index), message, related_paths=VPC_RANGE_PATHS)


def _check_subnets_do_not_overlap(cluster: Cluster) -> Iterator[Problem]:
    for (first_index, first), (second_index, second) in combinations(_subnets_with_cidr(cluster), 2):
        if first.cidr.overlaps(second.cidr):
            first_path = subnet_path(first_index)
            message = f"{second.cidr} overlaps {dotted(first_path)} ({first.cidr}); give each subnet its own range"
            yield Problem(subnet_path(second_index), message, related_paths=(first_path,))


def _check_ranges_do_not_overlap(cluster: Cluster) -> Iterator[Problem]:
    for (first_path, first), (second_path, second) in combinations(_cluster_ranges(cluster), 2):
        if first.overlaps(second):
            shown = range_text(cluster, str(second_path[1]), second) if len(second_path) == 2 else f"{second}"
            message = f"{shown} overlaps {dotted(first_path)} ({first}); choose another range"
            yield Problem(second_path, message, related_paths=(first_path,))


def _check_master_addresses(cluster: Cluster) -> Iterator[Problem]:
    path: Path = ("controlPlane", "addresses")
    addresses = cluster.control_plane.addresses
    if len(addresses) != cluster.control_plane.count:
        address_count = f"{len(addresses)} address{'es' if len(addresses) != 1 else ''}"
        master_count = pluralize(cluster.control_plane.count, "master")
        message = f"{address_count} for {master_count}; list one address for each master"
        yield Problem(path, message, related_paths=(("controlPlane", "count"),))
        return
    subnet_paths = tuple(subnet_path(position) for position in range(len(cluster.network.subnets)))
    for index, address in enumerate(addresses):
        reason = _why_master_cannot_have(address, cluster)
        if reason:
            yield Problem((*path, index), reason, related_paths=(*subnet_paths, VPC_CIDR_PATH))
        elif address in addresses[:index]:
            first_key = f"{dotted(path)}[{addresses.index(address)}]"
            yield Problem((*path, index), f"{address} is also {first_key}; each master needs a different address")


def _why_master_cannot_have(address: IPv4Address, cluster: Cluster) -> str | None:
    # `_check_vpc_and_subnet_sizes` reports subnets that are too small to have a usable address.
    subnet_cidrs = [subnet.cidr for subnet in cluster.network.subnets if usable_address_count(subnet.cidr) > 0]
    if not subnet_cidrs:
        return None
    containing_cidrs = [subnet_cidr for subnet_cidr in subnet_cidrs if address in subnet_cidr]
    cidr = containing_cidrs[0] if containing_cidrs else subnet_cidrs[0]
    usable_range = f"{cidr[_RESERVED_FIRST_ADDRESSES]} to {cidr[-2]}"
    if not containing_cidrs and len(cluster.network.subnets) == 1:
        return f"{address} is not inside network.subnets[0].cidr ({cidr}); choose one of {usable_range}"
    if not containing_cidrs:
        return (
            f"{address} is in none of the subnets ({', '.join(map(str, subnet_cidrs))}); "
            "choose an address inside one of them"
        )
    reserved_addresses = [*(cidr[host_number] for host_number in range(_RESERVED_FIRST_ADDRESSES)), cidr[-1]]
    if address in reserved_addresses:
        return (
            f"AWS reserves {address}: it reserves the first four addresses and the last one of every subnet; "
            f"choose one of {usable_range}"
        )
    return None


def _check_dns_address(cluster: Cluster) -> Iterator[Problem]:
    cidr = cluster.network.service_cidr
    address = cluster.network.dns_service_ip
    expected = cidr.network_address + _DNS_HOST_NUMBER
    if address not in cidr:
        message = f"{address} is not inside network.serviceCidr ({cidr}); remove the key to use {expected}"
        yield Problem(DNS_ADDRESS_PATH, message, related_paths=(SERVICE_CIDR_PATH,))
    elif address != expected:
        message = f"kubeadm always uses the tenth address of {cidr} for the cluster DNS, {expected}; remove the key"
        yield Problem(DNS_ADDRESS_PATH, message, related_paths=(SERVICE_CIDR_PATH,))


def _warn_of_pods_unreachable_beyond_vpc(cluster: Cluster) -> Iterator[Problem]:
    """Warn if pods keep their own addresses as source addresses towards networks outside the VPC.

    That is, if nonMasqueradeCidr contains a range of the VPC and more.
    """
    not_masqueraded = cluster.network.non_masquerade_cidr
    ranges = vpc_ranges(cluster)
    pods = cluster.network.pod_cidr
    if not_masqueraded is None or not any(vpc_range.subnet_of(not_masqueraded) for vpc_range in ranges):
        return
    # Two neighbouring ranges may be one larger range together.
    if any(map(not_masqueraded.subnet_of, collapse_addresses(ranges))):
        return
    message = (
        f"pods use their own addresses towards all of {not_masqueraded}, but outside the VPC's "
        f"{' and '.join(map(str, ranges))} (peered networks, VPN, "
        f"on premises) there may be no route back to {pods}; remove the key unless those networks have such a route"
    )
    yield Problem(("network", "nonMasqueradeCidr"), message, related_paths=VPC_RANGE_PATHS)


def no_room(cluster: Cluster) -> str:
    """Return the message for a subnet without a CIDR, for which the VPC's range has no room."""
    network = cluster.network
    remedies = ["enlarge network.vpc.cidr"]
    if network.subnet_sizes.model_fields_set:
        remedies.append("choose smaller subnets in network.subnetSizes (a longer prefix)")
    if network.vpc.additional_cidrs:
        remedies.append("give the subnet a range in network.vpc.additionalCidrs")
    return f"is missing, and {network.vpc.cidr} has no room for another subnet; {', or '.join(remedies)}"


def size_paths(cluster: Cluster) -> tuple[Path, ...]:
    """Return the path of `network.subnetSizes` if the cluster file has it."""
    return (_SUBNET_SIZES_PATH,) if cluster.network.subnet_sizes.model_fields_set else ()


def _check_number_of_ranges(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    if not vpc.id and len(vpc.additional_cidrs) > _MAX_ADDITIONAL_RANGES:
        message = (
            f"{len(vpc.additional_cidrs)} ranges, but AWS allows {_MAX_ADDITIONAL_RANGES} besides network.vpc.cidr; "
            "use fewer and larger ones"
        )
        yield Problem(ADDITIONAL_CIDRS_PATH, message)


def _check_associations(cluster: Cluster) -> Iterator[Problem]:
    """Check that AWS associates the further ranges with a created VPC; an existing VPC has its ranges already."""
    if cluster.network.vpc.id:
        return
    for (first_path, first), (path, cidr) in combinations(vpc_ranges_by_path(cluster), 2):
        # `cfngen.cluster.checks.addresses` reports ranges that overlap.
        reason = (
            None if first.overlaps(cidr) else _why_not_associated(first, cidr, is_primary=first_path == VPC_CIDR_PATH)
        )
        if reason:
            yield Problem(path, reason, related_paths=(first_path,))


def _why_not_associated(first: IPv4Network, added: IPv4Network, *, is_primary: bool) -> str | None:
    """Return why AWS does not associate `added` with a VPC that has the range `first`, or None if it does."""
    remedy = "use a range of 100.64.0.0/10, or one near the VPC's"
    if not is_primary:
        # Ranges are compared with the primary one; only these two need to be compared with each other.
        return _why_not_beside_first_of_10(first, added)
    private_network = next((network for network in _RFC_1918_NETWORKS if first.subnet_of(network)), None)
    other_networks = [
        network for network in _RFC_1918_NETWORKS if added.subnet_of(network) and network != private_network
    ]
    if other_networks:
        own_network = str(private_network) if private_network else "no private network of RFC 1918"
        return f"{added} is in {other_networks[0]}, but the VPC's {first} is in {own_network}: AWS refuses it; {remedy}"
    if added.subnet_of(_NEVER_ADDED):
        return f"{added} is in {_NEVER_ADDED}, which AWS adds to no VPC; {remedy}"
    if private_network == _RFC_1918_NETWORKS[1] and added.subnet_of(_NOT_ADDED_TO_172_16):
        return f"{added} is in {_NOT_ADDED_TO_172_16}, which AWS adds to no VPC in {private_network}; {remedy}"
    return _why_not_beside_first_of_10(first, added)


def _why_not_beside_first_of_10(first: IPv4Network, added: IPv4Network) -> str | None:
    if first.subnet_of(_FIRST_TWO_OF_10) and added.subnet_of(_FIRST_OF_10):
        return (
            f"{added} is in {_FIRST_OF_10}, of which AWS adds nothing to a VPC that has a range of {_FIRST_TWO_OF_10} "
            f"({first}); use another range"
        )
    return None


PROBLEM_CHECKS = (
    _check_vpc_and_subnet_sizes,
    _check_service_range_size,
    _check_pod_range_size,
    _check_no_reserved_ranges,
    _check_subnets_inside_vpc,
    _check_subnets_do_not_overlap,
    _check_ranges_do_not_overlap,
    _check_master_addresses,
    _check_dns_address,
    _check_number_of_ranges,
    _check_associations,
    KeyCheck(
        "network.subnetSizes",
        when=lambda cluster: cluster.network.subnet_sizes.model_fields_set and cluster.network.vpc.id,
        message="the free ranges of {cluster.network.vpc.id} are not known; give each subnet a cidr, and remove the "
        "key",
        related=("network.vpc.id",),
    ),
    KeyCheck(
        "network.subnetSizes.public",
        when=lambda cluster: (
            cluster.network.subnet_sizes.public and not cluster.network.vpc.id and not is_private(cluster)
        ),
        message="the subnets of a public cluster have instances; use network.subnetSizes.instances",
        related=("network.topology",),
    ),
)
WARNING_CHECKS = (_warn_of_pods_unreachable_beyond_vpc,)
