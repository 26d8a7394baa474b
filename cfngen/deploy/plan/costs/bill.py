"""What AWS charges for a cluster in a month, according to a price list in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cfngen.bounded_files import NestingError, check_nesting, read_text
from cfngen.deploy.preflight.quotas.demand import LOAD_BALANCER, Demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount
from cfngen.errors import CfngenError

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
    return amount.quantize(_CENT, ROUND_HALF_UP)


def _order(item: _Item) -> tuple[bool, str, str]:
    """Return a sort key: instances come first, as they usually cost the most."""
    return (item.unit != "instance", item.unit, item.name)


def _quantities(demand: Demand, prices: PriceList, *, at_maximum: bool = False) -> Counter[_Item]:
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


Price = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PriceList(BaseModel):
    """The prices of one region, in one currency, as of one day.

    Attributes:
        currency: e.g. `USD`.
        date: the day on which the prices were looked up.
        region: the region whose prices they are.
        hours_per_month: hours of a month; AWS's own pricing calculator uses 730.
        on_demand: price of an On-Demand Instance per hour, by instance type.
        spot: price of a Spot Instance per hour, by instance type.
        volumes: price of a GiB of EBS storage per month, by volume type.
        public_ipv4_address: price of a public IPv4 address per hour.
        load_balancer: price of a Network Load Balancer per hour.
        nat_gateway: price of a NAT gateway per hour.
        interface_endpoint: price of an interface endpoint per hour and zone.
        secret: price of a secret of Secrets Manager per month.
        kms_key: price of a KMS key per month.
        hosted_zone: price of a Route 53 hosted zone per month.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    date: date
    region: str
    hours_per_month: Annotated[Decimal, Field(gt=0, le=744)] = Decimal(730)
    on_demand: dict[str, Price] = {}
    spot: dict[str, Price] = {}
    volumes: dict[str, Price] = {}
    public_ipv4_address: Price | None = None
    load_balancer: Price | None = None
    nat_gateway: Price | None = None
    interface_endpoint: Price | None = None
    secret: Price | None = None
    kms_key: Price | None = None
    hosted_zone: Price | None = None


class PriceListError(CfngenError):
    """A price list cannot be read, or has values that are not prices.

    Attributes:
        file: the file's path as the user gave it.
        problems: one sentence for each problem, with the file's path and, if known, the line.
    """

    code = "invalid-price-list"

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        self.file = file
        self.problems = tuple(f"{file}{problem}" for problem in problems)
        super().__init__("\n".join(self.problems), hint="docs/deploy/deploy.md describes the file, under `Prices`.")


def read_price_list(path: Path, region: str) -> PriceList:
    """Return the price list in a YAML or JSON file.

    Raises:
        PriceListError: the file has problems; it lists all of them.
    """
    try:
        text = read_text(path)
        check_nesting(text)
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except FileNotFoundError:
        raise PriceListError(str(path), [": there is no such file"]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PriceListError(str(path), [f": cannot be read: {reason}"]) from None
    except NestingError as error:
        raise PriceListError(str(path), [f":{error.line}: {error}"]) from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PriceListError(str(path), [f"{line}: is not YAML: {error.problem}"]) from None
    except yaml.YAMLError as error:
        raise PriceListError(str(path), [f": is not YAML: {error}"]) from None
    if not isinstance(node, yaml.MappingNode):
        raise PriceListError(str(path), [": does not hold keys and values, such as `currency: USD`"])
    lines: dict[tuple[str, ...], int] = {}
    problems: list[str] = []
    data = _mapping(node, (), lines, problems)
    try:
        price_list = PriceList.model_validate(data)
    except ValidationError as error:
        problems += _describe(error, lines)
        raise PriceListError(str(path), problems) from None
    if price_list.region != region:
        region_line = lines["region",]
        message = f"the prices are those of {price_list.region}, but the cluster is in {region}"
        problems.append(f":{region_line}: region: {message}")
    if problems:
        raise PriceListError(str(path), problems)
    return price_list


def _mapping(
    node: yaml.MappingNode, path: tuple[str, ...], lines: dict[tuple[str, ...], int], problems: list[str]
) -> dict[str, object]:
    """Return the data of a mapping, all scalars as text; collect the lines of its keys, and its problems."""
    data: dict[str, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            problems.append(f":{line}: a key is a list or a mapping; a key must be text")
            continue
        key_path = (*path, key_node.value)
        if key_path in lines:
            problems.append(f":{line}: {'.'.join(key_path)}: appears twice, first in line {lines[key_path]}")
            continue
        lines[key_path] = line
        if isinstance(value_node, yaml.MappingNode) and not path:
            data[key_node.value] = _mapping(value_node, key_path, lines, problems)
        elif isinstance(value_node, yaml.ScalarNode):
            data[key_node.value] = value_node.value
        else:
            problems.append(f":{line}: {'.'.join(key_path)}: must be a single value")
    return data


def _describe(error: ValidationError, lines: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    for details in error.errors(include_url=False):
        path = tuple(str(part) for part in details["loc"])
        line = f":{lines[path]}" if path in lines else ""
        key = ".".join(path)
        if not path:
            yield ": holds half of a character (a surrogate) as a key; write keys as text"
        elif details["type"] == "missing":
            yield f": {key}: is missing"
        elif details["type"] == "extra_forbidden":
            allowed_keys = sorted(field.alias or name for name, field in PriceList.model_fields.items())
            yield f"{line}: {key}: is no key of a price list; the keys are {', '.join(allowed_keys)}"
        elif path[0] == "currency":
            yield f"{line}: {key}: must be the three letters of a currency, such as USD"
        elif path[0] == "date":
            yield f"{line}: {key}: must be a day, such as 2026-11-01"
        elif details["type"] == "dict_type":
            yield f"{line}: {key}: must hold prices by type, such as `t3.medium: PRICE`"
        else:
            yield f"{line}: {key}: {details['input']} is not a price; write a number such as 0.005, without currency"
