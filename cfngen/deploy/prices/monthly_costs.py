"""What AWS charges for a cluster in a month, according to a price list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from cfngen.deploy.prices.price_list import PriceList
from cfngen.deploy.quotas.demand import LOAD_BALANCER, Demand
from cfngen.deploy.quotas.instance_counts import InstanceCount

_CENT = Decimal("0.01")


@dataclass(frozen=True)
class MonthlyCost:
    """What AWS charges for one kind of item in a month.

    Attributes:
        item: what is charged, e.g. `t3.medium`, `gp3 volumes`; of instances among whose types AWS chooses, which type's
            price stands for the others.
        quantity: how many instances, GiB, addresses and so on the cluster will have.
        unit: what is counted, e.g. `instance`, `GiB`.
        current: what AWS charges for those that the cluster has now; None if the price list has no price.
        planned: what AWS charges for those that it will have; None if the price list has no price.
        maximum: the same with every node group at its maximum size; None if the price list has no price.
        price_key: key of the price list, e.g. `onDemand.t3.medium`; empty for instances of which only requirements are
            known, and so no type.
    """

    item: str
    quantity: int
    unit: str
    current: Decimal | None
    planned: Decimal | None
    maximum: Decimal | None
    price_key: str


@dataclass(frozen=True)
class MonthlyBill:
    """What AWS charges for a cluster in a month of constant operation, in the price list's currency.

    Charges by use are not included: traffic, requests, snapshots, log data, and what Kubernetes creates.

    Attributes:
        currency: e.g. `USD`.
        date: the day of the prices, e.g. `2026-11-01`.
        hours: hours of the month.
        current: total for what the cluster has now; 0 for a new cluster.
        planned: total for what it will have, with every node group at its initial size.
        maximum: total with every node group at its maximum size.
        costs: the items; those that are unpriced are in no total.
    """

    currency: str
    date: str
    hours: Decimal
    current: Decimal
    planned: Decimal
    maximum: Decimal
    costs: tuple[MonthlyCost, ...]

    @property
    def difference(self) -> Decimal:
        """What the deployment adds to the bill; negative if it saves."""
        return self.planned - self.current

    @property
    def unpriced(self) -> tuple[MonthlyCost, ...]:
        """The items for which the price list has no price."""
        return tuple(cost for cost in self.costs if cost.planned is None)


@dataclass(frozen=True)
class _Item:
    """A kind of item that AWS charges for, with its price in a month."""

    name: str
    unit: str
    price_key: str
    price: Decimal | None


def monthly_bill(current: Demand, planned: Demand, prices: PriceList) -> MonthlyBill:
    """Return what AWS charges for a cluster in a month, before and after a deployment.

    Args:
        current: what the cluster has now; an empty `Demand` for a new cluster.
        planned: what it will have.
        prices: the price list of the cluster's region.
    """
    current_quantities = _quantities(current, prices)
    planned_quantities = _quantities(planned, prices)
    maximum_quantities = _quantities(planned, prices, at_maximum=True)
    costs = []
    for item in sorted({**current_quantities, **planned_quantities, **maximum_quantities}, key=_order):
        quantity = planned_quantities[item]
        current_cost, planned_cost, maximum_cost = (
            None if item.price is None else _round(item.price * quantities[item])
            for quantities in (current_quantities, planned_quantities, maximum_quantities)
        )
        costs.append(
            MonthlyCost(
                item=item.name,
                quantity=quantity,
                unit=item.unit,
                current=current_cost,
                planned=planned_cost,
                maximum=maximum_cost,
                price_key=item.price_key,
            )
        )
    return MonthlyBill(
        currency=prices.currency,
        date=prices.date.isoformat(),
        hours=prices.hours_per_month,
        current=sum((cost.current or Decimal() for cost in costs), Decimal()),
        planned=sum((cost.planned or Decimal() for cost in costs), Decimal()),
        maximum=sum((cost.maximum or Decimal() for cost in costs), Decimal()),
        costs=tuple(costs),
    )


def _round(amount: Decimal) -> Decimal:
    """Return an amount of money with two decimals."""
    return amount.quantize(_CENT, ROUND_HALF_UP)


def _order(item: _Item) -> tuple[bool, str, str]:
    """Return a sort key: instances come first, as they usually cost the most."""
    return (item.unit != "instance", item.unit, item.name)


def _quantities(demand: Demand, prices: PriceList, *, at_maximum: bool = False) -> Counter[_Item]:
    """Return how much a cluster has of each item, with its node groups at their initial or maximum size."""
    quantities: Counter[_Item] = Counter()
    for item, quantity in _items(demand, prices, at_maximum=at_maximum):
        if quantity:
            quantities[item] += quantity
    return quantities


def _items(demand: Demand, prices: PriceList, *, at_maximum: bool) -> Iterator[tuple[_Item, int]]:
    """Yield the items that AWS charges for, each with its quantity; an item may appear several times."""
    hours = prices.hours_per_month

    def per_hour(name: str, unit: str, price_key: str, price: Decimal | None) -> _Item:
        return _Item(name, unit, price_key, None if price is None else price * hours)

    for instances in demand.instances:
        count = (instances.at_maximum_size if at_maximum else instances).count
        table, key, suffix = (
            (prices.spot, "spot", " (spot)") if instances.is_spot else (prices.on_demand, "onDemand", "")
        )
        instance_type = instances.instance_type
        price_key = f"{key}.{instance_type}" if instances.types else ""
        yield per_hour(_instance_item(instances) + suffix, "instance", price_key, table.get(instance_type)), count
    gib_by_volume_type: Mapping[str, int] = demand.gib_by_volume_type
    if at_maximum:
        gib_by_volume_type = demand.max_gib_by_volume_type
    for volume_type, gib in gib_by_volume_type.items():
        yield _Item(f"{volume_type} volumes", "GiB", f"volumes.{volume_type}", prices.volumes.get(volume_type)), gib
    addresses = demand.count_by_resource_type.get("AWS::EC2::EIP", 0)
    addresses += demand.max_public_addresses if at_maximum else demand.public_addresses
    yield per_hour("public IPv4", "address", "publicIpv4Address", prices.public_ipv4_address), addresses
    yield (
        per_hour("PrivateLink", "endpoint", "interfaceEndpoint", prices.interface_endpoint),
        demand.endpoint_interfaces,
    )
    for resource_type, item in (
        (LOAD_BALANCER, per_hour("Elastic Load Balancing", "load balancer", "loadBalancer", prices.load_balancer)),
        ("AWS::EC2::NatGateway", per_hour("NAT", "gateway", "natGateway", prices.nat_gateway)),
        ("AWS::SecretsManager::Secret", _Item("Secrets Manager", "secret", "secret", prices.secret)),
        ("AWS::KMS::Key", _Item("KMS", "key", "kmsKey", prices.kms_key)),
        ("AWS::Route53::HostedZone", _Item("Route 53", "zone", "hostedZone", prices.hosted_zone)),
    ):
        yield item, demand.count_by_resource_type.get(resource_type, 0)


def _instance_item(instances: InstanceCount) -> str:
    """Return what an item of instances is called: its type, and how many others AWS may choose instead."""
    if not instances.types:
        return instances.label
    if instances.other_types:
        return f"{instances.instance_type}, the first of {len(instances.types)} types"
    return instances.instance_type
