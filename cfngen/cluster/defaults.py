"""Fills in values that are derived from others, such as a subnet's CIDR from its VPC's.

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
REGION: str = Cluster.model_fields["region"].default
KUBERNETES_MINOR: str = Cluster.model_fields["kubernetes_version"].default
VPC_CIDR = str(Vpc.model_fields["cidr"].default)
INSTANCE_TYPE: str = NodeGroup.model_fields["instance_type"].default
NODES: int = NodeGroup.model_fields["min_size"].default
NODE_ROOT_VOLUME_SIZE: int = NodeGroup().root_volume.size
SUBNET_PREFIX = 24
PUBLIC_SUBNET_PREFIX = 26
IPV4_BITS = 32
MAX_MASTERS = 5
MASTER_HOST = 9
DNS_HOST = 10
Section = dict[str, Any]
"""A section of the cluster file, not validated yet."""

_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9])(-[a-z]{3}-[0-9])?[a-z]")
_AMI_KEYS = ("id", "ssmParameter", "rootDevice")


@dataclass(frozen=True)
class Derivation:
    """Why a value was filled in.

    Attributes:
        reason: what it is derived from, as `cfngen config` shows it.
        source: the key it is derived from; empty if there is no single one.
    """

    reason: str
    source: Path = ()


@dataclass
class Completed:
    """The cluster file's data in which missing values are filled in.

    Attributes:
        data: the completed data, a deep copy.
        derived: the derivation of each value that was filled in, by path; defaults are not among them.
    """

    data: Section
    derived: dict[Path, Derivation] = field(default_factory=dict)

    def fill(self, path: Path, value: object, derivation: Derivation | None = None) -> None:
        """Set a key unless it has a value; without a derivation the value counts as a default."""
        parent: Any = self.data
        for part in path[:-1]:
            parent = (
                parent.setdefault(part, {})
                if isinstance(part, str) and isinstance(parent, dict)
                else lookup(parent, (part,))
            )
            if not isinstance(parent, (dict, list)):
                return
        if isinstance(parent, dict) and path[-1] not in parent:
            parent[path[-1]] = value
            if derivation:
                self.derived[path] = derivation

    def items(self, path: Path) -> Iterator[tuple[Path, Section]]:
        """Yield each mapping in the list at `path`, with its own path."""
        value = lookup(self.data, path)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, dict):
                yield (*path, index), item


def complete(data: Mapping[str, object]) -> Completed:
    """Return the data with all derived values filled in.

    Args:
        data: a cluster file's content; not changed. Tuples are taken as lists.
    """
    completed = Completed(_copy_with_lists(data))
    for step in (
        _vpc,
        _subnets,
        _region,
        _topology,
        _cidrs,
        _public_cidrs,
        _master_addresses,
        _services,
        _groups,
        _root_volumes,
        _images,
        _version,
    ):
        step(completed)
    return completed


def zone_region(zone: object) -> str | None:
    """Return the region of an Availability Zone or a Local Zone, or None if `zone` is neither."""
    match = _ZONE.fullmatch(zone) if isinstance(zone, str) else None
    return match[1] if match else None


def is_local_zone(zone: str) -> bool:
    """Return whether a zone is a Local Zone, such as us-west-2-lax-1a."""
    region = zone_region(zone)
    return region is not None and zone[len(region) :].startswith("-")


def _without_local_zones(subnets: list[tuple[Path, Section]]) -> list[tuple[Path, Section]]:
    """Return the subnets outside of Local Zones, or all of them if there are no others."""
    in_availability_zones = [(path, subnet) for path, subnet in subnets if not is_local_zone(str(subnet.get("zone")))]
    return in_availability_zones or subnets


def network_of(value: object) -> IPv4Network | None:
    """Return `value` as an IPv4 network, or None if it is not a CIDR."""
    try:
        return IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def _copy_with_lists(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _copy_with_lists(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_copy_with_lists(item) for item in data]
    return copy.deepcopy(data)


def _vpc(completed: Completed) -> None:
    name = completed.data.get("name")
    if isinstance(name, str):
        completed.fill(("network", "vpc", "name"), f"{name}-vpc", Derivation("from name", ("name",)))


def _subnets(completed: Completed) -> None:
    region = completed.data.get("region")
    completed.fill(("network", "subnets"), [{}])
    subnets = list(completed.items(("network", "subnets")))
    used_zones = [subnet.get("zone") for _, subnet in subnets]
    assumed_region = region if isinstance(region, str) else next(filter(None, map(zone_region, used_zones)), None)
    for path, subnet in subnets:
        if "zone" in subnet:
            continue
        zone = next(
            zone
            for letter in "abcdefghijklmnopqrstuvwxyz"
            if (zone := f"{assumed_region or REGION}{letter}") not in used_zones
        )
        derivation = (
            Derivation("from region", ("region",)) if isinstance(region, str) else Derivation("from the other subnets")
        )
        completed.fill((*path, "zone"), zone, derivation if assumed_region else None)
        used_zones.append(zone)


def _region(completed: Completed) -> None:
    path: Path = ("network", "subnets", 0, "zone")
    region = zone_region(lookup(completed.data, path))
    if region:
        completed.fill(
            ("region",), region, Derivation("from network.subnets[0].zone", path) if region != REGION else None
        )


def _topology(completed: Completed) -> None:
    """Fill in what follows from a private topology: NAT gateways, and nodes without public addresses."""
    path: Path = ("network", "topology")
    if lookup(completed.data, path) != "private":
        return
    if any("id" not in subnet for _, subnet in completed.items(("network", "subnets"))):
        plugin = lookup(completed.data, ("network", "plugin")) or "vpc-routes"
        # The cloud controller manager writes the routes to pods into one route table, which has one default route.
        if plugin == "vpc-routes":
            reason = Derivation("network.plugin vpc-routes has one route table", ("network", "plugin"))
            completed.fill(("network", "nat"), "single", reason)
        else:
            completed.fill(("network", "nat"), "perZone", Derivation("from network.topology", path))
    completed.fill(("nodeGroups",), [{}])
    for group_path, _ in completed.items(("nodeGroups",)):
        completed.fill((*group_path, "publicIp"), False, Derivation("from network.topology", path))


def _used_cidrs(completed: Completed) -> list[IPv4Network]:
    """Return the ranges of all subnets of which the range is known."""
    subnets = [subnet for _, subnet in completed.items(("network", "subnets"))]
    sections = [*subnets, *(subnet["public"] for subnet in subnets if isinstance(subnet.get("public"), dict))]
    return [cidr for section in sections if (cidr := network_of(section.get("cidr")))]


def _share_prefix(vpc: IPv4Network, subnet_count: int) -> int | None:
    """Return the prefix length of an equal share of the VPC for each subnet, or None if there are too many subnets."""
    prefix = vpc.prefixlen + (subnet_count - 1).bit_length()
    return prefix if prefix <= IPV4_BITS else None


def _public_cidrs(completed: Completed) -> None:
    """Give each public subnet of a private cluster the next free range, from the end of the VPC's range downwards.

    So neither a further zone nor a further public subnet moves the ranges of other subnets.
    """
    network = completed.data.get("network")
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or VPC_CIDR)
    if not isinstance(network, dict) or network.get("topology") != "private" or vpc is None:
        return
    needs_public_subnets = network.get("nat") in ("perZone", "single") or (
        lookup(completed.data, ("api", "public")) is not False
    )
    subnets = list(completed.items(("network", "subnets")))
    share_prefix = _share_prefix(vpc, 2 * len(subnets))
    if share_prefix is None:
        return
    prefix = max(PUBLIC_SUBNET_PREFIX, share_prefix)
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
        derivation = Derivation("next free part at the end of network.vpc.cidr", ("network", "vpc", "cidr"))
        completed.fill((*path, "public", "cidr"), str(cidr), derivation)


def _cidrs(completed: Completed) -> None:
    """Give each subnet without a CIDR the next free range of the VPC: a /24, or an equal share if the VPC is small.

    In an existing VPC the free ranges are not known, so its subnets must have a CIDR in the cluster file.
    """
    vpc = network_of(lookup(completed.data, ("network", "vpc", "cidr")) or VPC_CIDR)
    subnets = list(completed.items(("network", "subnets")))
    if vpc is None or not subnets or lookup(completed.data, ("network", "vpc", "id")):
        return
    used_cidrs = _used_cidrs(completed)
    # In a private cluster, each zone may also have a public subnet.
    tier_count = 2 if lookup(completed.data, ("network", "topology")) == "private" else 1
    share_prefix = _share_prefix(vpc, tier_count * len(subnets))
    if share_prefix is None:
        return
    candidates = iter(vpc.subnets(new_prefix=max(SUBNET_PREFIX, share_prefix)))
    for path, subnet in subnets:
        if "cidr" in subnet or "id" in subnet:
            continue
        cidr = next((candidate for candidate in candidates if not any(map(candidate.overlaps, used_cidrs))), None)
        if cidr is None:
            return
        is_default = str(vpc) == VPC_CIDR and len(subnets) == 1
        derivation = (
            None if is_default else Derivation("next free part of network.vpc.cidr", ("network", "vpc", "cidr"))
        )
        completed.fill((*path, "cidr"), str(cidr), derivation)


def _master_addresses(completed: Completed) -> None:
    """Give each master the ninth address of its subnet, as kube-up did; further masters get the next addresses."""
    count = lookup(completed.data, ("controlPlane", "count"))
    # Validation reports a wrong count later; until then one master is assumed.
    count = count if isinstance(count, int) and 0 < count <= MAX_MASTERS else 1
    subnets = _without_local_zones(list(completed.items(("network", "subnets"))))
    addresses: list[str] = []
    for index in range(count if subnets else 0):
        cidr = network_of(subnets[index % len(subnets)][1].get("cidr"))
        host_number = MASTER_HOST + index // len(subnets)
        if cidr is None or host_number >= cidr.num_addresses:
            return
        addresses.append(str(cidr[host_number]))
    if addresses:
        source: Path = (*subnets[0][0], "cidr")
        derivation = Derivation(f"from {dotted(source)}", source) if addresses != ["172.20.0.9"] else None
        completed.fill(("controlPlane", "addresses"), addresses, derivation)


def _services(completed: Completed) -> None:
    path: Path = ("network", "serviceCidr")
    cidr = network_of(lookup(completed.data, path))
    if cidr and cidr.num_addresses > DNS_HOST:
        address = str(cidr[DNS_HOST])
        completed.fill(("network", "dnsServiceIp"), address, Derivation("from network.serviceCidr", path))


def _groups(completed: Completed) -> None:
    completed.fill(("nodeGroups",), [{}])
    subnets = _without_local_zones(list(completed.items(("network", "subnets"))))
    zones = [subnet["zone"] for _, subnet in subnets if isinstance(subnet.get("zone"), str)]
    derivation = None if zones == [f"{REGION}a"] else Derivation("from network.subnets", ("network", "subnets"))
    for path, group in completed.items(("nodeGroups",)):
        if zones:
            completed.fill((*path, "zones"), list(zones), derivation)
        min_size, max_size = group.get("minSize"), group.get("maxSize")
        if isinstance(min_size, int) and "maxSize" not in group:
            completed.fill((*path, "maxSize"), max(min_size, 1), Derivation("from minSize", (*path, "minSize")))
        elif isinstance(max_size, int) and max_size < NODES and "minSize" not in group:
            completed.fill((*path, "minSize"), max(max_size, 0), Derivation("from maxSize", (*path, "maxSize")))


def _root_volumes(completed: Completed) -> None:
    for path, group in completed.items(("nodeGroups",)):
        if isinstance(group.get("rootVolume"), dict):
            completed.fill((*path, "rootVolume", "size"), NODE_ROOT_VOLUME_SIZE)


def _images(completed: Completed) -> None:
    """Merge the cluster's image into the images of masters and groups, and derive the architecture."""
    cluster_image = completed.data.get("image")
    cluster_image = cluster_image if isinstance(cluster_image, dict) else {}
    completed.fill(("controlPlane",), {})
    masters = completed.data["controlPlane"]
    all_instances: list[tuple[Path, Section]] = [(("controlPlane",), masters)] if isinstance(masters, dict) else []
    for path, instances in [*all_instances, *completed.items(("nodeGroups",))]:
        image = instances.get("image", {})
        if isinstance(image, dict):
            for key in _inherited_image_keys(cluster_image, image):
                completed.fill(
                    (*path, "image", key), cluster_image[key], Derivation(f"from image.{key}", ("image", key))
                )
        instance_type = instances.get("instanceType", INSTANCE_TYPE)
        if isinstance(instance_type, str):
            architecture = instance_types.architecture(instance_type)
            derivation = (
                Derivation("from instanceType", (*path, "instanceType")) if "instanceType" in instances else None
            )
            completed.fill((*path, "image", "architecture"), architecture, derivation)


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


def _version(completed: Completed) -> None:
    requested = completed.data.get("kubernetesVersion", KUBERNETES_MINOR)
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
        completed.derived[path] = Derivation(reason, source=path)
