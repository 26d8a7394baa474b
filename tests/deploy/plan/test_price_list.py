"""Price lists: what is read, and what is refused with the file, the line and the key."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cfngen.deploy.plan.costs.bill import PriceListError, read_price_list

HEADER = "currency: USD\ndate: 2026-11-01\nregion: us-west-2\n"


def write(tmp_path: Path, text: str) -> Path:
    """Write a price list and return its path."""
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_prices_keep_every_digit(tmp_path: Path) -> None:
    prices = read_price_list(
        write(tmp_path, HEADER + "onDemand: {t3.medium: 0.0416}\nvolumes:\n  gp3: '0.08'\nsecret: 0.4\n"), "us-west-2"
    )
    assert (prices.currency, prices.date, prices.hours_per_month) == ("USD", date(2026, 11, 1), 730)
    assert prices.on_demand == {"t3.medium": Decimal("0.0416")}
    assert prices.volumes == {"gp3": Decimal("0.08")}
    assert prices.secret == Decimal("0.4")
    assert prices.nat_gateway is None


def test_json_is_read_too(tmp_path: Path) -> None:
    text = '{"currency": "EUR", "date": "2026-11-01", "region": "eu-west-1", "spot": {"m5.large": 0.03}}'
    assert read_price_list(write(tmp_path, text), "eu-west-1").spot == {"m5.large": Decimal("0.03")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": does not hold keys and values, such as `currency: USD`"),
        ("- 1\n", ": does not hold keys and values, such as `currency: USD`"),
        ("a: [\n", ":2: is not YAML: expected the node content, but found '<stream end>'"),
        ("date: 2026-11-01\nregion: us-west-2\n", ": currency: is missing"),
        (HEADER.replace("USD", "Dollar"), ":1: currency: must be the three letters of a currency, such as USD"),
        (HEADER.replace("2026-11-01", "May"), ":2: date: must be a day, such as 2026-11-01"),
        (
            HEADER.replace("us-west-2", "eu-west-1"),
            ":3: region: the prices are those of eu-west-1, but the cluster is in us-west-2",
        ),
        (HEADER + "secret: 1\nsecret: 2\n", ":5: secret: appears twice, first in line 4"),
        (HEADER + "secret: [1]\n", ":4: secret: must be a single value"),
        (HEADER + "[1]: 2\n", ":4: a key is a list or a mapping; a key must be text"),
        (HEADER + "volumes: 3\n", ":4: volumes: must hold prices by type, such as `t3.medium: PRICE`"),
        (
            HEADER + "onDemand:\n  t3.medium: $0.04\n",
            ":5: onDemand.t3.medium: $0.04 is not a price; write a number such as 0.005, without currency",
        ),
        (
            HEADER + "kmsKey: -1\n",
            ":4: kmsKey: -1 is not a price; write a number such as 0.005, without currency",
        ),
        (
            HEADER + "secret: NaN\n",
            ":4: secret: NaN is not a price; write a number such as 0.005, without currency",
        ),
    ],
)
def test_problems_name_the_line_and_the_key(tmp_path: Path, text: str, problem: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(PriceListError) as caught:
        read_price_list(file, "us-west-2")
    assert f"{file}{problem}" in caught.value.problems


def test_an_unknown_key_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER + "natGateways: 0.045\n")
    with pytest.raises(PriceListError, match=r"natGateways: is no key of a price list; the keys are .*natGateway, "):
        read_price_list(file, "us-west-2")


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(PriceListError, match=r"there is no such file|cannot be read: Is a directory"):
        read_price_list(tmp_path / name, "us-west-2")


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_bytes(b"currency: \xff")
    with pytest.raises(PriceListError, match="cannot be read: it is not UTF-8"):
        read_price_list(file, "us-west-2")
