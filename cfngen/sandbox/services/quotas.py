"""Quotas of the account: what Service Quotas answers, and what the services refuse beyond them.

An account has the values here unless somebody has set others for it (`kept`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """A quota: what AWS gives at first, and what this account has, None if it never asked for more."""

    service: str
    code: str
    name: str
    default: float
    value: float | None = None


Key = tuple[str, str]
ON_DEMAND = ("ec2", "L-1216C47A")
SPOT = ("ec2", "L-34B43A08")
ADDRESSES = ("ec2", "L-0263D0A3")
VPCS = ("vpc", "L-F678F1CE")
INTERNET_GATEWAYS = ("vpc", "L-A4707A72")
SECURITY_GROUPS = ("vpc", "L-E79EC296")
RULES = ("vpc", "L-0EA8095F")
GROUPS_OF_AN_INTERFACE = ("vpc", "L-2AFB9258")
SUBNETS = ("vpc", "L-407747CB")
ROUTES = ("vpc", "L-93826ACB")

# Codes, names and defaults: "AWS service endpoints and quotas" in the AWS general reference.
QUOTAS = (
    Quota(*ON_DEMAND, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5, 64),
    Quota(*SPOT, "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5, 64),
    Quota(*ADDRESSES, "EC2-VPC Elastic IPs", 5, 5),
    Quota(*VPCS, "VPCs per Region", 5, 5),
    Quota(*INTERNET_GATEWAYS, "Internet gateways per Region", 5, 5),
    Quota("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", 5, 5),
    Quota(*SECURITY_GROUPS, "VPC security groups per Region", 2500, 2500),
    Quota(*RULES, "Inbound or outbound rules per security group", 60, 60),
    Quota(*GROUPS_OF_AN_INTERFACE, "Security groups per network interface", 5, 5),
    Quota(*SUBNETS, "Subnets per VPC", 200, 200),
    Quota(*ROUTES, "Routes per route table", 500, 500),
    Quota("ebs", "L-D18FCD1D", "Storage for General Purpose SSD (gp2) volumes, in TiB", 50, 50),
    Quota("ebs", "L-7A658B76", "Storage for General Purpose SSD (gp3) volumes, in TiB", 50, 50),
    Quota("autoscaling", "L-CDE20ADC", "Auto Scaling groups per region", 500),
    Quota("elasticloadbalancing", "L-69A177A2", "Network Load Balancers per Region", 50, 50),
)
_DEFAULTS: Mapping[Key, Quota] = {(quota.service, quota.code): quota for quota in QUOTAS}
_KEPT: list[Mapping[Key, Quota]] = [_DEFAULTS]


@contextlib.contextmanager
def kept(quotas: Mapping[Key, Quota]) -> Iterator[None]:
    """Let these quotas be the account's.

    Args:
        quotas: by service and code; those left out have their usual values. It may change meanwhile.
    """
    _KEPT.append(quotas)
    try:
        yield
    finally:
        _KEPT.remove(quotas)


def applied(quota: Key) -> float:
    """Return what the account has of a quota."""
    entry = _KEPT[-1].get(quota) or _DEFAULTS[quota]
    return entry.default if entry.value is None else entry.value
