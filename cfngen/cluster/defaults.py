"""Fills in missing values of the cluster file that are derived from others, such as a subnet's CIDR from its VPC's.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any

from cfngen.cluster import instance_types
from cfngen.cluster.model import Cluster, NodeGroup, Vpc
from cfngen.cluster.paths import Path, dotted, lookup
from cfngen.errors import CfngenError
from cfngen.releases import exact_version

# Defaults of the model, from which other values are derived.
DEFAULT_REGION: str = Cluster.model_fields["region"].default
DEFAULT_KUBERNETES_VERSION: str = Cluster.model_fields["kubernetes_version"].default
DEFAULT_VPC_CIDR = str(Vpc.model_fields["cidr"].default)
DEFAULT_INSTANCE_TYPE: str = NodeGroup.model_fields["instance_type"].default
DEFAULT_MIN_SIZE: int = NodeGroup.model_fields["min_size"].default
DEFAULT_NODE_ROOT_VOLUME_SIZE: int = NodeGroup().root_volume.size
# Prefix length of the subnets that cfngen derives, if the VPC is large enough.
SUBNET_PREFIX = 24
PUBLIC_SUBNET_PREFIX = 26
IPV4_BITS = 32
MAX_MASTER_COUNT = 5
# Host numbers in their range: the first master has the ninth address of its subnet, the cluster DNS the tenth address
# of the service range.
FIRST_MASTER_HOST_NUMBER = 9
DNS_HOST_NUMBER = 10

Section = dict[str, Any]
"""A section of the cluster file, not validated yet."""

# A zone such as `us-west-2a`, or a Local Zone such as `us-west-2-lax-1a`; the first group is the region.
_ZONE_PATTERN = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9])(-[a-z]{3}-[0-9])?[a-z]")
# The keys of `image` that name an AMI or belong to one.
_AMI_KEYS = ("id", "ssmParameter", "rootDevice")


@dataclass(frozen=True)
class Derivation:
    """What a filled-in value was derived from.

    Attributes:
        reason: what the value is derived from, as `cfngen config` shows it, e.g. `from region`.
        source: path of the key that the value is derived from; empty if there is no single one.
    """

    reason: str
    source: Path = ()


@dataclass
class CompletedData:
    """The cluster file's data with missing values filled in.

    Attributes:
        data: the completed data, a deep copy of the file's.
        derived: the derivation of each value that was derived from others, by path. Filled-in values that equal the
            model's defaults have none.
    """

    data: Section
    derived: dict[Path, Derivation] = field(default_factory=dict)

    def fill(self, path: Path, value: object, derivation: Derivation | None = None) -> None:
        """Set the key at `path` to a value, unless it has one; missing parents are created.

        Nothing is set below a value that is neither a mapping nor a list.

        Args:
            path: path of the key.
            value: the value.
            derivation: what the value is derived from; without a derivation it counts as a default.
        """
        parent: Any = self.data
        for part in path[:-1]:
            if isinstance(part, str) and isinstance(parent, dict):
                parent = parent.setdefault(part, {})
            else:
                parent = lookup(parent, (part,))
            if not isinstance(parent, (dict, list)):
                return
        if isinstance(parent, dict) and path[-1] not in parent:
            parent[path[-1]] = value
            if derivation:
                self.derived[path] = derivation

    def sections_in(self, path: Path) -> Iterator[tuple[Path, Section]]:
        """Yield the path and the data of each section in the list at `path`; nothing if there is no list."""
        items = lookup(self.data, path)
        if not isinstance(items, list):
            return
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield (*path, index), item


def complete(data: Mapping[str, object]) -> CompletedData:
    """Return the data with all derived values filled in.

    Args:
        data: a cluster file's content; not changed. Tuples are taken as lists.
    """
    completed = CompletedData(_copy_with_lists(data))
    # In this order: later steps use what earlier ones have filled in.
    _fill_vpc_name(completed)
    _fill_subnets_and_zones(completed)
    _fill_region(completed)
    _fill_topology(completed)
    _fill_subnet_cidrs(completed)
    _fill_public_subnet_cidrs(completed)
    _fill_master_addresses(completed)
    _fill_dns_address(completed)
    _fill_node_groups(completed)
    _fill_root_volume_sizes(completed)
    _fill_images(completed)
    _fill_exact_version(completed)
    return completed


def zone_region(zone: object) -> str | None:
    """Return the region of an Availability Zone or a Local Zone, or None if `zone` is neither."""
    match = _ZONE_PATTERN.fullmatch(zone) if isinstance(zone, str) else None
    return match[1] if match else None


def is_local_zone(zone: str) -> bool:
    """Return whether a zone is a Local Zone, such as us-west-2-lax-1a."""
    region = zone_region(zone)
    return region is not None and zone[len(region) :].startswith("-")


def _without_local_zones(subnets: list[tuple[Path, Section]]) -> list[tuple[Path, Section]]:
    """Return the subnets that are not in Local Zones, or all subnets if each is in a Local Zone.

    A subnet is given by the path and the data of its section.
    """
    in_availability_zones = [(path, subnet) for path, subnet in subnets if not is_local_zone(str(subnet.get("zone")))]
    return in_availability_zones or subnets


def network_of(value: object) -> IPv4Network | None:
    """Return `value` as an IPv4 network, or None if it is not a CIDR."""
    try:
        return IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def _copy_with_lists(data: Any) -> Any:
    """Return a deep copy of plain data in which tuples are lists, and all mappings dicts."""
    if isinstance(data, Mapping):
        return {key: _copy_with_lists(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_copy_with_lists(item) for item in data]
    return copy.deepcopy(data)


def _fill_vpc_name(completed: CompletedData) -> None:
    """Derive the name of the VPC from the cluster's."""
    name = completed.data.get("name")
    if isinstance(name, str):
        completed.fill(("network", "vpc", "name"), f"{name}-vpc", Derivation(reason="from name", source=("name",)))


def _fill_subnets_and_zones(completed: CompletedData) -> None:
    """Give each subnet without a zone the first zone of the region that no other subnet has; there is one at least.

    The region is the file's, or else that of another subnet's zone, or else the default region.
    """
    completed.fill(("network", "subnets"), [{}])
    subnets = list(completed.sections_in(("network", "subnets")))
    used_zones = [subnet.get("zone") for _, subnet in subnets]
    regions_of_zones = [region for zone in used_zones if (region := zone_region(zone))]
    file_region = completed.data.get("region")
    derivation: Derivation | None
    if isinstance(file_region, str) and file_region:
        region = file_region
        derivation = Derivation(reason="from region", source=("region",))
    elif regions_of_zones and not isinstance(file_region, str):
        region = regions_of_zones[0]
        derivation = Derivation(reason="from the other subnets")
    else:
        region = DEFAULT_REGION
        derivation = None
    for path, subnet in subnets:
        if "zone" in subnet:
            continue
        candidates = [f"{region}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
        zone = next(candidate for candidate in candidates if candidate not in used_zones)
        completed.fill((*path, "zone"), zone, derivation)
        used_zones.append(zone)


def _fill_region(completed: CompletedData) -> None:
    """Derive the region from the zone of the first subnet."""
    zone_path: Path = ("network", "subnets", 0, "zone")
    region = zone_region(lookup(completed.data, zone_path))
    if region == DEFAULT_REGION:
        completed.fill(("region",), region)
    elif region:
        completed.fill(("region",), region, Derivation(reason="from network.subnets[0].zone", source=zone_path))


def _fill_topology(completed: CompletedData) -> None:
    """Fill in what follows from a private topology: NAT gateways, and nodes without public addresses."""
    path: Path = ("network", "topology")
    if lookup(completed.data, path) != "private":
        return
    if any("id" not in subnet for _, subnet in completed.sections_in(("network", "subnets"))):
        plugin = lookup(completed.data, ("network", "plugin")) or "vpc-routes"
        # The cloud controller manager writes the routes to pods into one route table, which has one default route.
        if plugin == "vpc-routes":
            reason = Derivation(reason="network.plugin vpc-routes has one route table", source=("network", "plugin"))
            completed.fill(("network", "nat"), "single", reason)
        else:
            completed.fill(("network", "nat"), "perZone", Derivation(reason="from network.topology", source=path))
    completed.fill(("nodeGroups",), [{}])
    for group_path, _ in completed.sections_in(("nodeGroups",)):
        completed.fill((*group_path, "publicIp"), False, Derivation(reason="from network.topology", source=path))


def _used_cidrs(completed: CompletedData) -> list[IPv4Network]:
    """Return the ranges of all subnets of which the range is known."""
    subnets = [subnet for _, subnet in completed.sections_in(("network", "subnets"))]
    sections = [*subnets, *(subnet["public"] for subnet in subnets if isinstance(subnet.get("public"), dict))]
    return [cidr for section in sections if (cidr := network_of(section.get("cidr")))]


def _share_prefix(vpc: IPv4Network, subnet_count: int) -> int | None:
    """Return the prefix length of an equal share of the VPC for each subnet, or None if there are too many subnets.

    Two subnets need one bit more than the VPC's prefix, three or four subnets two bits, and so on.
    """
    prefix = vpc.prefixlen + (subnet_count - 1).bit_length()
    return prefix if prefix <= IPV4_BITS else None


def _subnet_prefix(
    completed: CompletedData, vpc: IPv4Network, tier: str, default_prefix: int, *, subnet_count: int
) -> int | None:
    """Return the prefix length of the subnets that are derived, or None if the VPC cannot have such subnets.

    It is that of `network.subnetSizes`, or else the default one, with which a small VPC is shared equally.

    Args:
        completed: the cluster file's data.
        vpc: the VPC's range.
        tier: which subnets: the key of `network.subnetSizes`.
        default_prefix: the prefix length in a VPC that is large enough.
        subnet_count: number of subnets of all tiers.
    """
    size = lookup(completed.data, ("network", "subnetSizes", tier))
    # Not `isinstance`, by which a boolean is an int, too; validation reports what is no prefix length.
    if type(size) is int and vpc.prefixlen <= size <= IPV4_BITS:
        return size
    share_prefix = None if size is not None else _share_prefix(vpc, subnet_count)
    return None if share_prefix is None else max(default_prefix, share_prefix)


def _fill_public_subnet_cidrs(completed: CompletedData) -> None:
    """Give each public subnet of a private cluster the next free range, from the end of the VPC's range downwards.

    So neither a further zone nor a further public subnet moves the ranges of other subnets.
    """
    network = completed.data.get("network")
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or DEFAULT_VPC_CIDR)
    if not isinstance(network, dict) or network.get("topology") != "private" or vpc is None:
        return
    needs_public_subnets = network.get("nat") in ("perZone", "single") or (
        lookup(completed.data, ("api", "public")) is not False
    )
    subnets = list(completed.sections_in(("network", "subnets")))
    prefix = _subnet_prefix(completed, vpc, "public", PUBLIC_SUBNET_PREFIX, subnet_count=2 * len(subnets))
    if prefix is None:
        return
    used_cidrs = _used_cidrs(completed)
    block_size = 1 << (IPV4_BITS - prefix)
    last_block = vpc.broadcast_address + 1 - block_size
    candidates = (
        IPv4Network((last_block - index * block_size, prefix)) for index in range(vpc.num_addresses // block_size)
    )
    for path, subnet in subnets:
        if needs_public_subnets and not is_local_zone(str(subnet.get("zone"))):
            completed.fill((*path, "public"), {})
        public = subnet.get("public")
        # In an existing VPC the free ranges are not known.
        if not isinstance(public, dict) or "cidr" in public or "id" in public or "id" in network.get("vpc", {}):
            continue
        cidr = next((candidate for candidate in candidates if not any(map(candidate.overlaps, used_cidrs))), None)
        if cidr is None:
            return
        derivation = Derivation(
            reason="next free part at the end of network.vpc.cidr", source=("network", "vpc", "cidr")
        )
        completed.fill((*path, "public", "cidr"), str(cidr), derivation)


def _fill_subnet_cidrs(completed: CompletedData) -> None:
    """Give each subnet without a CIDR the next free range of the VPC, of the size that `_subnet_prefix` returns.

    In an existing VPC the free ranges are not known, so its subnets must have a CIDR in the cluster file.
    """
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or DEFAULT_VPC_CIDR)
    subnets = list(completed.sections_in(("network", "subnets")))
    if vpc is None or not subnets or lookup(completed.data, ("network", "vpc", "id")):
        return
    used_cidrs = _used_cidrs(completed)
    # In a private cluster, each zone may also have a public subnet.
    tier_count = 2 if lookup(completed.data, ("network", "topology")) == "private" else 1
    prefix = _subnet_prefix(completed, vpc, "instances", SUBNET_PREFIX, subnet_count=tier_count * len(subnets))
    if prefix is None:
        return
    candidates = vpc.subnets(new_prefix=prefix)
    free_cidrs = (candidate for candidate in candidates if not any(map(candidate.overlaps, used_cidrs)))
    is_default = str(vpc) == DEFAULT_VPC_CIDR and len(subnets) == 1
    derivation = Derivation(reason="next free part of network.vpc.cidr", source=("network", "vpc", "cidr"))
    for path, subnet in subnets:
        if "cidr" in subnet or "id" in subnet:
            continue
        cidr = next(free_cidrs, None)
        if cidr is None:
            return
        completed.fill((*path, "cidr"), str(cidr), None if is_default else derivation)


def _fill_master_addresses(completed: CompletedData) -> None:
    """Give each master the ninth address of its subnet, as kube-up did; further masters get the next addresses."""
    count = lookup(completed.data, ("controlPlane", "count"))
    if not isinstance(count, int) or not 0 < count <= MAX_MASTER_COUNT:
        # Validation reports a wrong count later; until then one master is assumed.
        count = 1
    subnets = _without_local_zones(list(completed.sections_in(("network", "subnets"))))
    if not subnets:
        return
    addresses: list[str] = []
    for index in range(count):
        # Masters are placed in the subnets in turn; after the last subnet follows the first, with its next address.
        _, subnet = subnets[index % len(subnets)]
        cidr = network_of(subnet.get("cidr"))
        host_number = FIRST_MASTER_HOST_NUMBER + index // len(subnets)
        if cidr is None or host_number >= cidr.num_addresses:
            return
        addresses.append(str(cidr[host_number]))
    first_subnet_path, _ = subnets[0]
    cidr_path: Path = (*first_subnet_path, "cidr")
    derivation = None
    if addresses != ["172.20.0.9"]:
        derivation = Derivation(reason=f"from {dotted(cidr_path)}", source=cidr_path)
    completed.fill(("controlPlane", "addresses"), addresses, derivation)


def _fill_dns_address(completed: CompletedData) -> None:
    """Derive the address of the cluster DNS, the tenth of the service range, if the file has a service range."""
    cidr_path: Path = ("network", "serviceCidr")
    cidr = network_of(lookup(completed.data, cidr_path))
    if cidr and cidr.num_addresses > DNS_HOST_NUMBER:
        address = str(cidr[DNS_HOST_NUMBER])
        derivation = Derivation(reason="from network.serviceCidr", source=cidr_path)
        completed.fill(("network", "dnsServiceIp"), address, derivation)


def _fill_node_groups(completed: CompletedData) -> None:
    """Fill in one node group if the file has none, and the zones and sizes that node groups lack."""
    completed.fill(("nodeGroups",), [{}])
    subnets = _without_local_zones(list(completed.sections_in(("network", "subnets"))))
    zones = [subnet["zone"] for _, subnet in subnets if isinstance(subnet.get("zone"), str)]
    derivation = None
    if zones != [f"{DEFAULT_REGION}a"]:
        derivation = Derivation(reason="from network.subnets", source=("network", "subnets"))
    for path, group in completed.sections_in(("nodeGroups",)):
        if zones:
            completed.fill((*path, "zones"), list(zones), derivation)
        min_size = group.get("minSize")
        max_size = group.get("maxSize")
        if isinstance(min_size, int) and "maxSize" not in group:
            size_derivation = Derivation(reason="from minSize", source=(*path, "minSize"))
            completed.fill((*path, "maxSize"), max(min_size, 1), size_derivation)
        elif isinstance(max_size, int) and max_size < DEFAULT_MIN_SIZE and "minSize" not in group:
            size_derivation = Derivation(reason="from maxSize", source=(*path, "maxSize"))
            completed.fill((*path, "minSize"), max(max_size, 0), size_derivation)


def _fill_root_volume_sizes(completed: CompletedData) -> None:
    """Give each root volume of a node group the default size for nodes, which differs from that of other volumes."""
    for path, group in completed.sections_in(("nodeGroups",)):
        if isinstance(group.get("rootVolume"), dict):
            completed.fill((*path, "rootVolume", "size"), DEFAULT_NODE_ROOT_VOLUME_SIZE)


def _fill_images(completed: CompletedData) -> None:
    """Merge the cluster's image into the images of masters and groups, and derive the architecture."""
    cluster_image = completed.data.get("image")
    if not isinstance(cluster_image, dict):
        cluster_image = {}
    completed.fill(("controlPlane",), {})
    control_plane = completed.data["controlPlane"]
    all_instances = list(completed.sections_in(("nodeGroups",)))
    if isinstance(control_plane, dict):
        all_instances.insert(0, (("controlPlane",), control_plane))
    for path, instances in all_instances:
        image = instances.get("image", {})
        if isinstance(image, dict):
            for key in _inherited_image_keys(cluster_image, image):
                derivation = Derivation(reason=f"from image.{key}", source=("image", key))
                completed.fill((*path, "image", key), cluster_image[key], derivation)
        instance_type = instances.get("instanceType", DEFAULT_INSTANCE_TYPE)
        if isinstance(instance_type, str):
            architecture = instance_types.architecture(instance_type)
            type_derivation = None
            if "instanceType" in instances:
                type_derivation = Derivation(reason="from instanceType", source=(*path, "instanceType"))
            completed.fill((*path, "image", "architecture"), architecture, type_derivation)


def _inherited_image_keys(cluster_image: Mapping[str, object], image: Mapping[str, object]) -> Sequence[str]:
    """Return the keys of the cluster's image that masters or a group with an `image` of their own inherit.

    The cluster's AMI is not inherited by an `image` with another AMI, distribution or architecture: an AMI is for one
    distribution and one architecture. Without an AMI, instances use the newest image of their distribution.
    """
    has_other_system = any(
        key in image and image[key] != cluster_image.get(key) for key in ("distribution", "architecture")
    )
    has_other_ami = has_other_system or "id" in image or "ssmParameter" in image
    return [key for key in cluster_image if not (has_other_ami and key in _AMI_KEYS)]


def _fill_exact_version(completed: CompletedData) -> None:
    """Replace a minor version of Kubernetes by its newest patch; validation reports a version that is not known."""
    requested = completed.data.get("kubernetesVersion", DEFAULT_KUBERNETES_VERSION)
    if not isinstance(requested, str):
        return
    try:
        exact = exact_version(requested)
    except CfngenError:
        return
    if "kubernetesVersion" not in completed.data:
        completed.fill(("kubernetesVersion",), exact)
    elif exact != requested:
        completed.data["kubernetesVersion"] = exact
        is_only_spelling = exact == requested.removeprefix("v")
        reason = f"from {requested}" if is_only_spelling else f"newest known patch of {requested}"
        path: Path = ("kubernetesVersion",)
        completed.derived[path] = Derivation(reason=reason, source=path)
