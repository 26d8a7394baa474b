"""What EC2 has no room for, and what Spot Instances cost: what a test can ask for.

EC2 user guide, "Troubleshoot instance launch issues", and Auto Scaling user guide, "Troubleshoot: EC2 instance launch
failures", have the words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cfngen.sandbox.services.networks import zones
from cfngen.sandbox.services.rules import Refused

MIN_SPOT_PRICE = 0.001  # dollars for an hour: no bid is taken below it


@dataclass
class _RegionCapacity:
    """What a region lacks.

    Attributes:
        short: instance types and zones that have no room.
        prices: what a Spot Instance of a type costs.
    """

    exhausted: set[tuple[str, str]] = field(default_factory=set)
    prices: dict[str, float] = field(default_factory=dict)


_CAPACITY_BY_REGION: dict[str, _RegionCapacity] = {}


def exhaust(region: str, instance_type: str, *names: str) -> None:
    """Let there be no room for instances of a type.

    Args:
        region: where.
        instance_type: e.g. `m5.large`.
        names: of the zones; all of the region if left out.
    """
    _capacity_of(region).exhausted.update((instance_type, name) for name in names or zones(region))


def price(region: str, instance_type: str, dollars: float) -> None:
    """Let a Spot Instance of a type cost so much for an hour."""
    _capacity_of(region).prices[instance_type] = dollars


def restore(region: str) -> None:
    """Let there be room for everything, at the lowest price."""
    _CAPACITY_BY_REGION.pop(region, None)


def has_room(region: str, instance_type: str, zone: str) -> bool:
    """Return whether there is room for instances of a type in a zone."""
    return (instance_type, zone) not in _capacity_of(region).exhausted


def no_room(region: str, instance_type: str, zone: str) -> Refused:
    """Return what EC2 answers where there is no room."""
    zones_with_room = [name for name in zones(region) if has_room(region, instance_type, name)]
    elsewhere = (
        f" You can currently get {instance_type} capacity by not specifying an Availability Zone in your request or "
        f"choosing {', '.join(zones_with_room)}."
    )
    return Refused(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone})."
        f" Our system will be working on provisioning additional capacity.{elsewhere if zones_with_room else ''}",
    )


def check_bid(region: str, instance_type: str, bid: float) -> None:
    """Refuse a Spot Instance for less than it costs.

    Raises:
        Refused: SpotMaxPriceTooLow
    """
    minimum = _capacity_of(region).prices.get(instance_type, MIN_SPOT_PRICE)
    if bid < minimum:
        raise Refused(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {bid:g} is lower than the minimum required Spot request fulfillment price of "
            f"{minimum:g}.",
        )


def _capacity_of(region: str) -> _RegionCapacity:
    return _CAPACITY_BY_REGION.setdefault(region, _RegionCapacity())
