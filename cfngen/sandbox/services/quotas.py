"""Quotas of the account: for the answers of Service Quotas, and for the checks of the services.

The values here are the account's, unless `override_quotas` sets others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """A quota of Service Quotas.

    Attributes:
        service: service code, e.g. `ec2`.
        code: quota code, e.g. `L-1216C47A`.
        applied: the account's applied value; None if it was never changed.
    """

    service: str
    code: str
    name: str
    default: float
    applied: float | None = None


QuotaKey = tuple[str, str]  # service code, quota code
# The quotas that the rules of this package check; the others are for the answers of Service Quotas only.
ON_DEMAND = ("ec2", "L-1216C47A")
SPOT = ("ec2", "L-34B43A08")
ADDRESSES = ("ec2", "L-0263D0A3")
VPCS = ("vpc", "L-F678F1CE")
INTERNET_GATEWAYS = ("vpc", "L-A4707A72")
NAT_GATEWAYS = ("vpc", "L-FE5A380F")
GATEWAY_ENDPOINTS = ("vpc", "L-1B52E74A")
INTERFACE_ENDPOINTS = ("vpc", "L-29B6F2EB")
SECURITY_GROUPS = ("vpc", "L-E79EC296")
RULES = ("vpc", "L-0EA8095F")
GROUPS_OF_AN_INTERFACE = ("vpc", "L-2AFB9258")
SUBNETS = ("vpc", "L-407747CB")
ROUTES = ("vpc", "L-93826ACB")
ROUTE_TABLES = ("vpc", "L-589F43AA")

# Codes, names and defaults: "AWS service endpoints and quotas" in the AWS general reference.
QUOTAS = (
    Quota(*ON_DEMAND, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", default=5, applied=64),
    Quota(*SPOT, "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", default=5, applied=64),
    Quota(*ADDRESSES, "EC2-VPC Elastic IPs", default=5, applied=5),
    Quota(*VPCS, "VPCs per Region", default=5, applied=5),
    Quota(*INTERNET_GATEWAYS, "Internet gateways per Region", default=5, applied=5),
    Quota(*NAT_GATEWAYS, "NAT gateways per Availability Zone", default=5, applied=5),
    Quota(*GATEWAY_ENDPOINTS, "Gateway VPC endpoints per Region", default=20, applied=20),
    Quota(*INTERFACE_ENDPOINTS, "Interface VPC endpoints per VPC", default=50, applied=50),
    Quota(*SECURITY_GROUPS, "VPC security groups per Region", default=2500, applied=2500),
    Quota(*RULES, "Inbound or outbound rules per security group", default=60, applied=60),
    Quota(*GROUPS_OF_AN_INTERFACE, "Security groups per network interface", default=5, applied=5),
    Quota("vpc", "L-DF5E4CA3", "Network interfaces per Region", default=5000, applied=5000),
    Quota(*SUBNETS, "Subnets per VPC", default=200, applied=200),
    Quota(*ROUTES, "Routes per route table", default=500, applied=500),
    Quota(*ROUTE_TABLES, "Route tables per VPC", default=200, applied=200),
    Quota("ebs", "L-D18FCD1D", "Storage for General Purpose SSD (gp2) volumes, in TiB", default=50, applied=50),
    Quota("ebs", "L-7A658B76", "Storage for General Purpose SSD (gp3) volumes, in TiB", default=50, applied=50),
    Quota("autoscaling", "L-CDE20ADC", "Auto Scaling groups per region", default=500),
    Quota("elasticloadbalancing", "L-69A177A2", "Network Load Balancers per Region", default=50, applied=50),
)
_QUOTAS_BY_KEY: Mapping[QuotaKey, Quota] = {(quota.service, quota.code): quota for quota in QUOTAS}
_QUOTAS_IN_EFFECT: list[Mapping[QuotaKey, Quota]] = [_QUOTAS_BY_KEY]  # a stack: the last ones apply


@contextlib.contextmanager
def override_quotas(quotas: Mapping[QuotaKey, Quota]) -> Iterator[None]:
    """Use these quotas as the account's until the end of the block; others keep their values above.

    The mapping may change during the block.
    """
    _QUOTAS_IN_EFFECT.append(quotas)
    try:
        yield
    finally:
        _QUOTAS_IN_EFFECT.remove(quotas)


def applied_value(key: QuotaKey) -> float:
    """Return the account's applied value of a quota."""
    quota = _QUOTAS_IN_EFFECT[-1].get(key) or _QUOTAS_BY_KEY[key]
    return quota.default if quota.applied is None else quota.applied
