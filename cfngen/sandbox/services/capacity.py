"""EC2's capacity and Spot prices, which tests can change.

The error messages are those of the EC2 user guide, "Troubleshoot instance launch issues", and of the Auto Scaling user
guide, "Troubleshoot: EC2 instance launch failures".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cfngen.sandbox.services.networks import zones
from cfngen.sandbox.services.rules import Refused

MIN_SPOT_PRICE = 0.001  # dollars per hour: the lowest Spot price, and the lowest maximum price that EC2 accepts


@dataclass
class _RegionCapacity:
    """The missing capacity and the Spot prices of a region.

    Attributes:
        exhausted: pairs of an instance type and the name of a zone that has no capacity for it.
        spot_prices: Spot price by instance type, in dollars per hour.
    """

    exhausted: set[tuple[str, str]] = field(default_factory=set)
    spot_prices: dict[str, float] = field(default_factory=dict)


_CAPACITY_BY_REGION: dict[str, _RegionCapacity] = {}  # a region that is missing has capacity for all instance types


def remove_capacity(region: str, instance_type: str, *zone_names: str) -> None:
    """Remove the capacity for instances of a type.

    Args:
        region: the region.
        instance_type: e.g. `m5.large`.
        zone_names: the zones without capacity; by default all zones of the region.
    """
    _capacity_of(region).exhausted.update((instance_type, zone) for zone in zone_names or zones(region))


def set_spot_price(region: str, instance_type: str, dollars: float) -> None:
    """Set the Spot price of an instance type, in dollars per hour."""
    _capacity_of(region).spot_prices[instance_type] = dollars


def reset(region: str) -> None:
    """Restore the capacity for all instance types, at the lowest Spot price."""
    _CAPACITY_BY_REGION.pop(region, None)


def has_capacity(region: str, instance_type: str, zone: str) -> bool:
    """Return whether a zone has capacity for an instance type."""
    return (instance_type, zone) not in _capacity_of(region).exhausted


def insufficient_capacity(region: str, instance_type: str, zone: str) -> Refused:
    """Return EC2's error for insufficient capacity."""
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
    """Refuse a maximum price below the current Spot price of an instance type; both in dollars per hour.

    Raises:
        Refused: SpotMaxPriceTooLow
    """
    spot_price = _capacity_of(region).spot_prices.get(instance_type, MIN_SPOT_PRICE)
    if max_price < spot_price:
        raise Refused(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {max_price:g} is lower than the minimum required Spot request fulfillment "
            f"price of {spot_price:g}.",
        )


def _capacity_of(region: str) -> _RegionCapacity:
    """Return the missing capacity and the Spot prices of a region."""
    return _CAPACITY_BY_REGION.setdefault(region, _RegionCapacity())
