"""Patterns of what is typed in the console take what EC2 takes, and nothing else."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import Any

import pytest

from cfngen.templates import network_references


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "10.0.0.1", "172.20.0.9", "192.168.100.199", "249.250.255.200", "9.99.100.205"]
)
def test_addresses(address: str) -> None:
    assert re.fullmatch(network_references.IPV4_PATTERN, address)
    assert re.fullmatch(network_references.CIDR_PATTERN, f"{address}/32")


def test_each_byte_and_each_prefix() -> None:
    for value in range(1000):
        text = f"10.{value}.0.{value}"
        assert bool(re.fullmatch(network_references.IPV4_PATTERN, text)) == (value < 256)
        assert bool(re.fullmatch(network_references.CIDR_PATTERN, f"10.0.0.0/{value}")) == (value < 33)
        assert bool(re.fullmatch(network_references.VPC_CIDR_PATTERN, f"10.0.0.0/{value}")) == (15 < value < 29)


@pytest.mark.parametrize(
    "text", ["999.0.0.0/99", "10.0.0/8", "10.0.0.0", "10.0.0.0/", "010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/8 ", "::/0"]
)
def test_what_is_no_range(text: str) -> None:
    assert not re.fullmatch(network_references.CIDR_PATTERN, text)
    assert not re.fullmatch(network_references.VPC_CIDR_PATTERN, text)


def test_every_range_and_address_that_is_asked_for_has_such_a_pattern(templates: Any) -> None:
    subnets = [{"zone": f"us-west-2{zone}"} for zone in "abc"]
    configuration = {"network": {"subnets": subnets}, "controlPlane": {"count": 3}}
    asked: dict[str, Any] = templates(configuration)["standalone"]["Parameters"]
    for name, definition in asked.items():
        default = str(definition.get("Default", ""))
        is_address = bool(re.fullmatch(r"[0-9.]+", default)) and "." in default
        if name.endswith("Cidr") or re.fullmatch(r"[0-9.]+/[0-9]+", default):
            assert definition["AllowedPattern"] in (
                network_references.CIDR_PATTERN,
                network_references.VPC_CIDR_PATTERN,
            ), name
        elif is_address:
            assert definition["AllowedPattern"] == network_references.IPV4_PATTERN, name
            IPv4Address(default)
