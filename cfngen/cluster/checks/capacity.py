"""Checks of the instance types of node groups, and of how the groups buy capacity.

Rules about capacity without another source come from `InstancesDistribution` and `CapacityReservationSpecification`,
Amazon EC2 Auto Scaling API Reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import GroupCheck, node_groups, repeated
from cfngen.cluster.instances import instance_types
from cfngen.cluster.instances.group_types import matching_types, may_be_spot, required_architecture
from cfngen.cluster.instances.instance_types import facts_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.base import Architecture
from cfngen.cluster.sections.capacity import InstanceRequirements, InstancesDistribution
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.text import join_and

# What is dropped in turn to find out which requirement leaves no type: the key, and the field's value without it.
_DROPPED: tuple[tuple[str, str, object], ...] = (
    ("allowedTypes", "allowed_types", ()),
    ("excludedTypes", "excluded_types", ()),
    ("cpuManufacturers", "cpu_manufacturers", ()),
    ("accelerators", "accelerators", None),
    ("generations", "generations", ("current", "previous")),
    ("burstable", "burstable", "included"),
    ("bareMetal", "bare_metal", "included"),
    ("localStorage", "local_storage", "included"),
)
_HOW_TO_HAVE_SPOT = "set spotPrice, or instancesDistribution.onDemandPercentage below 100"


def _check_one_way_to_choose(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        types_path, requirements_path = (*path, "instanceTypes"), (*path, "instanceRequirements")
        if group.instance_types and group.instance_requirements:
            message = "instanceTypes and instanceRequirements cannot be combined; keep one of them"
            yield Problem(requirements_path, message, related_paths=(types_path,))
        elif group.instance_types and group.instance_type != group.instance_types[0]:
            message = (
                "the group has a list of types, whose first is the preferred one; remove instanceType, or put "
                f"{group.instance_type} first in instanceTypes"
            )
            yield Problem((*path, "instanceType"), message, related_paths=(types_path,))
        elif group.instance_requirements and _has_type_beside_requirements(cluster, group):
            message = "instanceRequirements choose the types; remove instanceType, or remove instanceRequirements"
            yield Problem((*path, "instanceType"), message, related_paths=(requirements_path,))


def _has_type_beside_requirements(cluster: Cluster, group: NodeGroup) -> bool:
    """Return whether a group has a type that was not derived from its requirements."""
    if group.instance_requirements is None or "instance_type" not in group.model_fields_set:
        return False
    types = matching_types(group.instance_requirements, required_architecture(group), cluster.region)
    return bool(types) and group.instance_type != types[0]


def _check_type_lists(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        types = group.instance_types
        list_path = (*path, "instanceTypes")
        if len(types) == 1:
            yield Problem(list_path, f"a list has at least two types; add one, or use instanceType: {types[0]}")
        for position, name in enumerate(types):
            if name in types[:position]:
                yield Problem((*list_path, position), f"{name} appears twice; remove one")
                continue
            yield from _architecture_problem((*list_path, position), name, types[0])
            facts = facts_of(name)
            if may_be_spot(group) and facts and not facts.has_spot:
                message = f"EC2 has no Spot Instances of {name}; remove it, or set onDemandPercentage to 100"
                yield Problem(
                    (*list_path, position),
                    message,
                    related_paths=((*path, "instancesDistribution"), (*path, "spotPrice")),
                )


def _architecture_problem(path: Path, name: str, first_type: str) -> Iterator[Problem]:
    """Yield a problem if a type has another architecture than the first of its list.

    An override could name a launch template with an image of the other architecture, but nodes of one group would then
    differ in more than their size: images of pods, and user data, are for one architecture.
    """
    architecture, first_architecture = map(instance_types.architecture, (name, first_type))
    if architecture != first_architecture:
        message = (
            f"{name} is {architecture}, but {first_type} is {first_architecture}: a group has one image and so one "
            "architecture; make a second group for it"
        )
        yield Problem(path, message)


def _check_requirements(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        requirements = group.instance_requirements
        if requirements is None:
            continue
        problems = list(_contradictions((*path, "instanceRequirements"), requirements, required_architecture(group)))
        yield from problems or _no_match_problem(cluster, path, group, requirements)


def _contradictions(path: Path, requirements: InstanceRequirements, architecture: Architecture) -> Iterator[Problem]:
    """Yield a problem for each pair of requirements that exclude each other; `path` leads to the section."""
    ranges: list[tuple[Path, int, int | None]] = [
        (("vcpus",), requirements.vcpus.min, requirements.vcpus.max),
        (("memory",), requirements.memory.min, requirements.memory.max),
    ]
    if requirements.accelerators:
        gpus = requirements.accelerators.count
        ranges.append((("accelerators", "count"), gpus.min, gpus.max))
    for keys, least, greatest in ranges:
        if greatest is not None and greatest < least:
            message = f"{greatest} is less than min ({least}); raise it or lower min"
            yield Problem((*path, *keys, "max"), message, related_paths=((*path, *keys, "min"),))
    if requirements.allowed_types and requirements.excluded_types:
        message = "allowedTypes and excludedTypes cannot be combined; keep one of them"
        yield Problem((*path, "excludedTypes"), message, related_paths=((*path, "allowedTypes"),))
    for key, values in (
        ("generations", requirements.generations),
        ("cpuManufacturers", requirements.cpu_manufacturers),
        ("allowedTypes", requirements.allowed_types),
        ("excludedTypes", requirements.excluded_types),
    ):
        yield from repeated(values, (*path, key))
    made_for_arm = "amazon-web-services"
    for position, manufacturer in enumerate(requirements.cpu_manufacturers):
        if (manufacturer == made_for_arm) != (architecture == "arm64"):
            other = "amd64" if architecture == "arm64" else "arm64"
            message = (
                f"{manufacturer} makes no CPUs of {architecture}, which the image is for; remove it, or set "
                f"image.architecture to {other}"
            )
            yield Problem((*path, "cpuManufacturers", position), message)


def _no_match_problem(
    cluster: Cluster, path: Path, group: NodeGroup, requirements: InstanceRequirements
) -> Iterator[Problem]:
    """Yield a problem if no known type of the region has what is required: which requirement is to blame, if one is."""
    architecture = required_architecture(group)
    requirements_path = (*path, "instanceRequirements")
    if matching_types(requirements, architecture, cluster.region):
        return
    other_architecture: Architecture = "amd64" if architecture == "arm64" else "arm64"
    without_manufacturers = requirements.model_copy(update={"cpu_manufacturers": ()})
    hints = [
        (f"without {key}", matching_types(requirements.model_copy(update={field: value}), architecture, cluster.region))
        for key, field, value in _DROPPED
        if getattr(requirements, field) != value
    ]
    hints += [
        (
            f"without {key}.max",
            matching_types(
                requirements.model_copy(update={key: getattr(requirements, key).model_copy(update={"max": None})}),
                architecture,
                cluster.region,
            ),
        )
        for key in ("vcpus", "memory")
        if getattr(requirements, key).max is not None
    ]
    hints.append(
        (
            f"with image.architecture: {other_architecture}",
            matching_types(without_manufacturers, other_architecture, cluster.region),
        )
    )
    hints.append(("in other regions", matching_types(requirements, architecture, None)))
    useful = [f"{types[0]} {hint}" for hint, types in hints if types]
    advice = f"there would be {join_and(useful[:2])}" if useful else "ask for less"
    message = f"no instance type of {cluster.region} that is known here ({architecture}) has all of this; {advice}"
    yield Problem(requirements_path, message, related_paths=((*path, "image"), ("region",)))


def _check_distributions(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        distribution = group.instances_distribution
        if distribution is None:
            continue
        distribution_path = (*path, "instancesDistribution")
        if may_be_spot(group):
            yield from _base_problem(distribution_path, group, distribution)
        else:
            yield from _needless_spot_settings(path, group, distribution)
        yield from _strategy_problems(distribution_path, group, distribution)


def _base_problem(path: Path, group: NodeGroup, distribution: InstancesDistribution) -> Iterator[Problem]:
    if distribution.on_demand_base >= group.max_size:
        message = (
            f"with {distribution.on_demand_base} of at most {group.max_size} nodes On-Demand no node is a Spot "
            "Instance; lower it, or raise maxSize"
        )
        yield Problem((*path, "onDemandBase"), message, related_paths=((*path[:-1], "maxSize"),))


def _needless_spot_settings(path: Path, group: NodeGroup, distribution: InstancesDistribution) -> Iterator[Problem]:
    distribution_path = (*path, "instancesDistribution")
    related_paths: tuple[Path, ...] = ((*distribution_path, "onDemandPercentage"),)
    if group.spot_price is not None:
        message = "all nodes are On-Demand Instances; remove it, or lower instancesDistribution.onDemandPercentage"
        yield Problem((*path, "spotPrice"), message, related_paths=related_paths)
        return
    message = f"all nodes are On-Demand Instances; remove it, or {_HOW_TO_HAVE_SPOT}"
    for key, is_set in (
        ("onDemandBase", bool(distribution.on_demand_base)),
        ("spotAllocationStrategy", distribution.spot_allocation_strategy is not None),
        ("spotInstancePools", distribution.spot_instance_pools is not None),
    ):
        if is_set:
            yield Problem((*distribution_path, key), message, related_paths=related_paths)


def _strategy_problems(path: Path, group: NodeGroup, distribution: InstancesDistribution) -> Iterator[Problem]:
    requirements_path = (*path[:-1], "instanceRequirements")
    if group.instance_requirements and distribution.on_demand_allocation_strategy == "prioritized":
        message = "instanceRequirements have no order; use lowest-price, or list the types in instanceTypes"
        yield Problem((*path, "onDemandAllocationStrategy"), message, related_paths=(requirements_path,))
    if group.instance_requirements and distribution.spot_allocation_strategy == "capacity-optimized-prioritized":
        message = "instanceRequirements have no order; use capacity-optimized, or list the types in instanceTypes"
        yield Problem((*path, "spotAllocationStrategy"), message, related_paths=(requirements_path,))
    has_pools = distribution.spot_instance_pools is not None and may_be_spot(group)
    if has_pools and distribution.spot_allocation_strategy != "lowest-price":
        message = (
            f"{distribution.spot_allocation_strategy} does not count pools; remove it, or set spotAllocationStrategy "
            "to lowest-price"
        )
        yield Problem((*path, "spotInstancePools"), message, related_paths=((*path, "spotAllocationStrategy"),))


def _check_price_percentages(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        requirements, distribution = group.instance_requirements, group.instances_distribution
        if requirements is None or distribution is None:
            continue
        section_path = (*path, "instanceRequirements")
        if requirements.max_spot_price_percentage is not None and not may_be_spot(group):
            message = f"all nodes are On-Demand Instances; use maxOnDemandPricePercentage, or {_HOW_TO_HAVE_SPOT}"
            related_paths = ((*path, "instancesDistribution"),)
            yield Problem((*section_path, "maxSpotPricePercentage"), message, related_paths=related_paths)
        all_are_spot = distribution.on_demand_percentage == 0 and not distribution.on_demand_base
        if requirements.max_on_demand_price_percentage is not None and all_are_spot:
            message = "all nodes are Spot Instances; use maxSpotPricePercentage, or set onDemandBase"
            related_paths = ((*path, "instancesDistribution"),)
            yield Problem((*section_path, "maxOnDemandPricePercentage"), message, related_paths=related_paths)


def _check_reservations(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        reservation = group.capacity_reservation
        if reservation is None:
            continue
        reservation_path = (*path, "capacityReservation")
        has_target = bool(reservation.id or reservation.resource_group)
        if may_be_spot(group):
            # "Capacity Reservations ... You can't use Capacity Reservations with Spot Instances": they are On-Demand
            # Capacity Reservations ("On-Demand Capacity Reservations", Amazon EC2 User Guide).
            message = (
                "Spot Instances cannot run in Capacity Reservations; remove it, or make a group of On-Demand Instances "
                "for it"
            )
            related_paths = ((*path, "spotPrice"), (*path, "instancesDistribution"))
            yield Problem(reservation_path, message, related_paths=related_paths)
        if not has_target and reservation.preference is None:
            yield Problem(reservation_path, "is empty; set id, resourceGroup or preference")
        if reservation.id and reservation.resource_group:
            message = "id and resourceGroup cannot be combined; add the reservation to the group, and remove id"
            yield Problem((*reservation_path, "id"), message, related_paths=((*reservation_path, "resourceGroup"),))
        if has_target and reservation.preference in ("none", "default"):
            key = "id" if reservation.id else "resourceGroup"
            message = (
                f"{reservation.preference} does not use the reservations of {key}; use capacity-reservations-first or "
                f"capacity-reservations-only, or remove {key}"
            )
            yield Problem((*reservation_path, "preference"), message, related_paths=((*reservation_path, key),))
        if reservation.resource_group and reservation.resource_group.split(":")[3] != cluster.region:
            region = reservation.resource_group.split(":")[3]
            message = f"the resource group is in {region}, but nodes are in {cluster.region}; use one there"
            yield Problem((*reservation_path, "resourceGroup"), message, related_paths=(("region",),))


def _warn_of_one_reservation_for_several_zones(cluster: Cluster) -> Iterator[Problem]:
    """Warn if nodes of several zones may run in one reservation only: a reservation has one zone.

    They may be the zones of one group, or of several, such as the group for each zone of `oneGroupPerZone`.
    """
    zones_by_reservation: dict[str, set[str]] = {}
    paths_by_reservation: dict[str, list[Path]] = {}
    for path, group in node_groups(cluster):
        reservation = group.capacity_reservation
        if reservation and reservation.id and reservation.preference == "capacity-reservations-only":
            zones_by_reservation.setdefault(reservation.id, set()).update(group.zones)
            paths_by_reservation.setdefault(reservation.id, []).append(path)
    for reservation_id, zones in zones_by_reservation.items():
        if len(zones) > 1:
            message = (
                f"a Capacity Reservation is in one zone, so no node starts in the others of {join_and(sorted(zones))}; "
                "set zones to that one, or use resourceGroup with a reservation in each"
            )
            paths = paths_by_reservation[reservation_id]
            related_paths = tuple(
                (*path, *key) for path in paths for key in (("zones",), ("capacityReservation", "preference"))
            )
            yield Problem((*paths[0], "capacityReservation", "id"), message, related_paths=related_paths)


PROBLEM_CHECKS = (
    _check_one_way_to_choose,
    _check_type_lists,
    _check_requirements,
    _check_distributions,
    _check_price_percentages,
    GroupCheck(
        "capacityRebalance",
        when=lambda cluster, group: group.capacity_rebalance and not may_be_spot(group),
        message=f"only Spot Instances are replaced early; remove it, or {_HOW_TO_HAVE_SPOT}",
        related=(".spotPrice", ".instancesDistribution"),
    ),
    _check_reservations,
)
WARNING_CHECKS = (
    _warn_of_one_reservation_for_several_zones,
    GroupCheck(
        "capacityRebalance",
        when=lambda cluster, group: group.capacity_rebalance and not group.drain_timeout,
        message="Auto Scaling terminates an instance as soon as its replacement works, with all its pods, since "
        "drainTimeout is 0; set drainTimeout",
        related=(".drainTimeout",),
    ),
)
