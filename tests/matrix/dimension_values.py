"""What dimensions are made of: values with their keys, the regions, and the keys for networks that exist already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Combination = Mapping[str, str]
"""The name of one value by the name of its dimension."""
Keys = Mapping[str, Any]
"""Values by the path of their key; `[]` is every item of a list."""


@dataclass(frozen=True)
class ByIndex:
    """A value for each item of a list, by the item's index."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A value of a dimension.

    Attributes:
        keys: the keys of the cluster file, or a function that returns those of a combination.
        lived: whether a cluster with it can live in the emulator; others are generated and linted only.
    """

    keys: Keys | Callable[[Combination], Keys]
    lived: bool = True

    def keys_in(self, combination: Combination) -> Keys:
        """Return the keys of the cluster file in a combination."""
        return self.keys(combination) if callable(self.keys) else self.keys


REGIONS: Mapping[str, tuple[str, str, str]] = {
    "us-west-2": ("aws", "us-west-2", "abc"),
    "eu-central-1": ("aws", "eu-central-1", "abc"),
    "gov-cloud": ("aws-us-gov", "us-gov-west-1", "abc"),
    "china": ("aws-cn", "cn-northwest-1", "abc"),
}
"""Partition, name and zones of each region; `{partition}` and `{region}` stand for them in the keys below."""


def is_private(combination: Combination) -> bool:
    """Return whether instances have private addresses only."""
    return combination["network"] != "public"


def has_public_api(combination: Combination) -> bool:
    """Return whether the API has a public endpoint."""
    return combination["api"] != "internal"


def _needs_public_subnets(combination: Combination) -> bool:
    """Return whether a private cluster has public subnets, for NAT gateways, the API or a bastion."""
    is_for_nat = combination["network"] != "private, no NAT" and combination["existing network"] != "subnets"
    return is_private(combination) and (is_for_nat or has_public_api(combination) or combination["bastion"] != "none")


EXISTING_VPC: Keys = {
    "network.vpc": {"id": "vpc-0a1b2c3d4e5f60718", "cidr": "10.20.0.0/16"},
    "network.serviceCidr": "10.250.0.0/16",
    "network.subnets[].cidr": ByIndex(("10.20.0.0/20", "10.20.16.0/20", "10.20.32.0/20")),
}
_PUBLIC_RANGES = ByIndex(("10.20.200.0/26", "10.20.200.64/26", "10.20.200.128/26"))
_PUBLIC_SUBNETS = ByIndex(("subnet-0f1b2c3d4e5f60710", "subnet-0f1b2c3d4e5f60711", "subnet-0f1b2c3d4e5f60712"))


def existing_vpc(combination: Combination) -> Keys:
    """Return the keys for new subnets in an existing VPC."""
    public = {"network.subnets[].public.cidr": _PUBLIC_RANGES} if _needs_public_subnets(combination) else {}
    has_gateway = not is_private(combination) or _needs_public_subnets(combination)
    gateway = {"network.internetGateway": "igw-0a1b2c3d4e5f60718"} if has_gateway else {}
    return {**EXISTING_VPC, **gateway, **public}


def existing_gateways(combination: Combination) -> Keys:
    """Return the keys for new subnets in an existing VPC, with existing route tables or NAT gateways."""
    if not is_private(combination):
        tables = ByIndex(("rtb-0a1b2c3d4e5f60710", "rtb-0a1b2c3d4e5f60711", "rtb-0a1b2c3d4e5f60712"))
        return {**EXISTING_VPC, "network.subnets[].routeTable": tables}
    keys = {**EXISTING_VPC}
    if _needs_public_subnets(combination):
        keys["network.subnets[].public.id"] = _PUBLIC_SUBNETS
    if combination["network"] == "private, no NAT":
        return keys
    if combination["network"] == "private, single NAT" or combination["plugin"] == "vpc-routes":
        return {**keys, "network.subnets[0].natGateway": "nat-0a1b2c3d4e5f60710"}
    gateways = ByIndex(("nat-0a1b2c3d4e5f60710", "nat-0a1b2c3d4e5f60711", "nat-0a1b2c3d4e5f60712"))
    return {**keys, "network.subnets[].natGateway": gateways}


def existing_subnets(combination: Combination) -> Keys:
    """Return the keys for existing subnets."""
    ids = ByIndex(("subnet-0a1b2c3d4e5f60710", "subnet-0a1b2c3d4e5f60711", "subnet-0a1b2c3d4e5f60712"))
    public = {"network.subnets[].public.id": _PUBLIC_SUBNETS} if _needs_public_subnets(combination) else {}
    table = {"network.routeTable": "rtb-0a1b2c3d4e5f60718"} if combination["plugin"] == "vpc-routes" else {}
    return {**EXISTING_VPC, "network.subnets[].id": ids, **public, **table, "network.tagExisting": True}
