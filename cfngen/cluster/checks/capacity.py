"""Checks of how node groups buy capacity: shares of Spot Instances, rebalancing, and Capacity Reservations.

Rules without another source come from `InstancesDistribution` and `CapacityReservationSpecification`, Amazon EC2
Auto Scaling API Reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import GroupCheck, node_groups
from cfngen.cluster.group_types import may_be_spot
from cfngen.cluster.model import Cluster, InstancesDistribution, NodeGroup
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import join_and

_HOW_TO_HAVE_SPOT = "set spotPrice, or instancesDistribution.onDemandPercentage below 100"


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
            yield Problem((*section_path, "maxSpotPricePercentage"), message)
        all_are_spot = distribution.on_demand_percentage == 0 and not distribution.on_demand_base
        if requirements.max_on_demand_price_percentage is not None and all_are_spot:
            message = "all nodes are Spot Instances; use maxSpotPricePercentage, or set onDemandBase"
            yield Problem((*section_path, "maxOnDemandPricePercentage"), message)


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
            yield Problem(reservation_path, message, related_paths=((*path, "spotPrice"),))
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
    paths_by_reservation: dict[str, Path] = {}
    for path, group in node_groups(cluster):
        reservation = group.capacity_reservation
        if reservation and reservation.id and reservation.preference == "capacity-reservations-only":
            zones_by_reservation.setdefault(reservation.id, set()).update(group.zones)
            paths_by_reservation.setdefault(reservation.id, (*path, "capacityReservation", "id"))
    for reservation_id, zones in zones_by_reservation.items():
        if len(zones) > 1:
            message = (
                f"a Capacity Reservation is in one zone, so no node starts in the others of {join_and(sorted(zones))}; "
                "set zones to that one, or use resourceGroup with a reservation in each"
            )
            yield Problem(paths_by_reservation[reservation_id], message)


PROBLEM_CHECKS = (
    _check_distributions,
    _check_price_percentages,
    GroupCheck(
        "capacityRebalance",
        when=lambda cluster, group: group.capacity_rebalance and not may_be_spot(group),
        message=f"only Spot Instances are replaced early; remove it, or {_HOW_TO_HAVE_SPOT}",
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
