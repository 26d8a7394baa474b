"""Reads the operator's list of prices. cfngen contains no price: prices differ by region, date and contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cfngen.errors import CfngenError

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

    Args:
        path: the file.
        region: the cluster's region, whose prices the file must have.

    Raises:
        PriceListError: the file has problems; it lists all of them.
    """
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except FileNotFoundError:
        raise PriceListError(str(path), [": there is no such file"]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PriceListError(str(path), [f": cannot be read: {reason}"]) from None
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
    """Yield a sentence for each value that is not allowed."""
    for details in error.errors(include_url=False):
        path = tuple(str(part) for part in details["loc"])
        line = f":{lines[path]}" if path in lines else ""
        key = ".".join(path)
        if details["type"] == "missing":
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
