"""EC2's capacity and Spot prices, which tests can change.

The error messages are from the EC2 user guide, "Troubleshoot instance launch issues", and the Auto Scaling user
guide, "Troubleshoot: EC2 instance launch failures".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cfngen.sandbox.services.networks import zones
from cfngen.sandbox.services.rules import Refused
from cfngen.sandbox.untyped import MotoBackend

MIN_SPOT_PRICE = 0.001  # dollars per hour: the lowest Spot price, and the lowest maximum price that EC2 accepts


@dataclass
class _RegionCapacity:
    """The missing capacity and the Spot prices of a region.

    Attributes:
        limits: how many instances run at most, by instance type, name of the zone, and whether it is a Spot pool.
        spot_prices: Spot price by instance type, in dollars per hour.
    """

    limits: dict[tuple[str, str, bool], int] = field(default_factory=dict)
    spot_prices: dict[str, float] = field(default_factory=dict)


_CAPACITY_BY_REGION: dict[str, _RegionCapacity] = {}  # a region that is missing has capacity for all instance types


def remove_capacity(region: str, instance_type: str, *zone_names: str) -> None:
    """Remove the capacity for instances of a type in these zones; by default in all zones of the region."""
    for spot in (False, True):
        limit_capacity(region, instance_type, 0, *zone_names, spot=spot)


def remove_spot_capacity(region: str, instance_type: str, *zone_names: str) -> None:
    """Empty the Spot pools of a type in these zones, or in all; On-Demand Instances can still be launched."""
    limit_capacity(region, instance_type, 0, *zone_names, spot=True)


def limit_capacity(region: str, instance_type: str, count: int, *zone_names: str, spot: bool) -> None:
    """Limit how many instances of a type run in each of these zones, or of all; those that run already stay.

    Args:
        spot: whether this is the limit of the Spot pools, or of On-Demand Instances.
    """
    limits = _capacity_of(region).limits
    limits.update({(instance_type, zone, spot): count for zone in zone_names or zones(region)})


def restore_capacity(region: str, instance_type: str, *zone_names: str) -> None:
    """Restore the capacity for a type, Spot and On-Demand, in these zones; by default in all zones of the region."""
    limits = _capacity_of(region).limits
    for zone in zone_names or zones(region):
        for spot in (False, True):
            limits.pop((instance_type, zone, spot), None)


def free_count(backend: MotoBackend, instance_type: str, zone: str, *, spot: bool) -> float:
    """Return how many more instances of a type a zone has capacity for; infinite unless a test limits it."""
    limit = _capacity_of(str(backend.region_name)).limits.get((instance_type, zone, spot))
    if limit is None:
        return math.inf
    running: int = sum(
        instance.state in ("pending", "running")
        and instance.instance_type == instance_type
        and instance.placement.zone == zone
        and (instance.lifecycle == "spot") is spot
        for instance in backend.all_instances()
    )
    return max(limit - running, 0)


def spot_price(region: str, instance_type: str) -> float | None:
    """Return the Spot price that a test has set for a type, in dollars per hour; None if it has set none."""
    return _capacity_of(region).spot_prices.get(instance_type)


def set_spot_price(region: str, instance_type: str, dollars: float) -> None:
    """Set the Spot price of an instance type, in dollars per hour."""
    _capacity_of(region).spot_prices[instance_type] = dollars


def reset(region: str) -> None:
    """Restore the capacity for all instance types, at the lowest Spot price."""
    _CAPACITY_BY_REGION.pop(region, None)


def has_capacity(region: str, instance_type: str, zone: str) -> bool:
    """Return whether a zone has capacity for On-Demand Instances of a type."""
    return _capacity_of(region).limits.get((instance_type, zone, False)) != 0


def insufficient_capacity(region: str, instance_type: str, zone: str, *, spot: bool = False) -> Refused:
    """Return EC2's error for insufficient capacity."""
    if spot:
        # cortexlabs/cortex#1258 has the code and the words.
        return Refused("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.")
    message = (
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone})."
        " Our system will be working on provisioning additional capacity."
    )
    zones_with_capacity = [name for name in zones(region) if has_capacity(region, instance_type, name)]
    if zones_with_capacity:
        message += (
            f" You can currently get {instance_type} capacity by not specifying an Availability Zone in your request "
            f"or choosing {', '.join(zones_with_capacity)}."
        )
    return Refused("InsufficientInstanceCapacity", message)


def check_max_price(region: str, instance_type: str, max_price: float) -> None:
    """Refuse a maximum price below the current Spot price of an instance type; both in dollars per hour."""
    spot_price = _capacity_of(region).spot_prices.get(instance_type, MIN_SPOT_PRICE)
    if max_price < spot_price:
        raise Refused(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {max_price:g} is lower than the minimum required Spot request fulfillment "
            f"price of {spot_price:g}.",
        )


def _capacity_of(region: str) -> _RegionCapacity:
    return _CAPACITY_BY_REGION.setdefault(region, _RegionCapacity())
