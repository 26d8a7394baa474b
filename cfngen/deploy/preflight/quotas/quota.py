"""A quota and how it is checked; and the checks of parts of a network: of one VPC, of one zone, and VPC endpoints.

Codes, names and default limits: "Amazon Virtual Private Cloud endpoints and quotas", AWS General Reference, and "AWS
PrivateLink quotas", AWS PrivateLink Guide; the codes are in the console's address of each quota there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from cfngen.cluster.naming.network_ids import SubnetId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.usage import (
    ReadCount,
    count_endpoints,
    count_listed,
    count_nat_gateways,
    known_usage,
    read_limit,
)
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.hints import Hint

_SERVICE = "vpc"
_NAT_GATEWAYS_PER_ZONE = "L-FE5A380F"
_GATEWAY_ENDPOINTS_PER_REGION = "L-1B52E74A"
# Interface endpoints and endpoints of Gateway Load Balancers count together.
_INTERFACE_ENDPOINTS_PER_VPC = "L-29B6F2EB"
_DEFAULT_INTERFACE_ENDPOINTS = 50
_INTERFACE_TYPES = ("Interface", "GatewayLoadBalancer")
# Types of resources of which a VPC may have a limited number: name and code of the quota, and the call that lists them.
_PARTS_OF_VPC = (
    ("AWS::EC2::RouteTable", "Route tables of one VPC", "L-589F43AA", "ec2.describe_route_tables", "RouteTables"),
    ("AWS::EC2::Subnet", "Subnets of one VPC", "L-407747CB", "ec2.describe_subnets", "Subnets"),
)


def network_checks(account: Account, demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for each quota of a VPC, a zone or of endpoints that the deployment adds something to."""
    yield from _nat_gateway_check(account, demand, current)
    yield from _vpc_checks(demand, current)
    added_gateway_endpoints = demand.gateway_endpoints - current.gateway_endpoints
    if added_gateway_endpoints > 0:
        yield QuotaCheck(
            "Gateway endpoints",
            needed=added_gateway_endpoints,
            service=_SERVICE,
            code=_GATEWAY_ENDPOINTS_PER_REGION,
            used=count_endpoints(("Gateway",)),
        )
    added_endpoints = demand.interface_endpoints - current.interface_endpoints
    vpc_id = demand.vpc_id or current.vpc_id
    # A new VPC has no endpoints; what the default limit allows anybody is not looked up then.
    if added_endpoints > (0 if vpc_id else _DEFAULT_INTERFACE_ENDPOINTS):
        yield QuotaCheck(
            "Interface endpoints of one VPC",
            needed=added_endpoints,
            service=_SERVICE,
            code=_INTERFACE_ENDPOINTS_PER_VPC,
            used=count_endpoints(_INTERFACE_TYPES, vpc_id) if vpc_id else known_usage(0),
        )


def _nat_gateway_check(account: Account, demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for the fullest of the zones that get a NAT gateway; each gets one at most."""
    zones = {
        zone or SubnetId(short_zone).zone_in(account.region)
        for short_zone, zone in demand.nat_gateway_zones.items()
        if short_zone not in current.nat_gateway_zones
    }
    if zones:
        yield QuotaCheck(
            "NAT gateways in one zone",
            needed=1,
            service=_SERVICE,
            code=_NAT_GATEWAYS_PER_ZONE,
            used=count_nat_gateways(zones),
        )


def _vpc_checks(demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield the checks for parts of a VPC that exists; a new VPC has room for them."""
    vpc_id = demand.vpc_id or current.vpc_id
    if not vpc_id:
        return
    for kind, name, code, call, key in _PARTS_OF_VPC:
        added = demand.count_by_resource_type.get(kind, 0) - current.count_by_resource_type.get(kind, 0)
        if added > 0:
            yield QuotaCheck(name, added, _SERVICE, code, count_listed(call, key, vpc_id))


@dataclass(frozen=True)
class Quota:
    """A quota, its usage, and how much a deployment adds to the usage.

    Attributes:
        name: what is limited.
        needed: how much the deployment adds, with every Auto Scaling group at its initial size.
        used: current usage; None if unknown.
        limit: value of the quota; None if unknown.
        sufficient: whether the quota is sufficient; None if unknown.
        hint: what to do if the quota is not sufficient, now or at the maximum size, or why it is unknown.
        needed_at_maximum: how much the deployment adds, with every group at its maximum size.
        room_to_grow: whether the quota is sufficient for the maximum size; None if unknown.
    """

    name: str
    needed: int
    used: int | None
    limit: int | None
    sufficient: bool | None
    hint: Hint = ""
    needed_at_maximum: int = 0
    room_to_grow: bool | None = None


@dataclass(frozen=True)
class QuotaCheck:
    """A quota to check, and how to read its usage and limit.

    Attributes:
        name: what is limited.
        needed: how much the deployment adds, with every group at its initial size.
        service: service code of the quota.
        limit: function that returns the limit; if None, the limit is read from Service Quotas.
        units_per_quota_unit: how many units of `needed` and `used` are one unit of the quota in Service Quotas,
            e.g. 1024 if the quota is in TiB, and `needed` and `used` are in GiB.
        needed_at_maximum: how much the deployment adds, with every group at its maximum size, if that is more.
    """

    name: str
    needed: int
    service: str
    code: str
    used: ReadCount
    limit: ReadCount | None = None
    units_per_quota_unit: int = 1
    needed_at_maximum: int = 0


def check_quota(account: Account, quota_check: QuotaCheck) -> Quota:
    """Read a quota's usage and limit, and compare them with how much the deployment adds."""
    used = limit = sufficient = room_to_grow = None
    hint = ""
    needed_at_maximum = max(quota_check.needed_at_maximum, quota_check.needed)
    try:
        with translate_aws_errors():
            used = quota_check.used(account)
            if quota_check.limit:
                limit = quota_check.limit(account)
            else:
                value = read_limit(account, quota_check.service, quota_check.code)
                limit = int(value * quota_check.units_per_quota_unit)
    except AwsError as error:
        hint = str(error)
    if used is not None and limit is not None:
        sufficient = used + quota_check.needed <= limit
        room_to_grow = used + needed_at_maximum <= limit
        if not room_to_grow:
            hint = _increase_hint(account, quota_check, required_limit=used + needed_at_maximum)
    return Quota(
        quota_check.name,
        needed=quota_check.needed,
        used=used,
        limit=limit,
        sufficient=sufficient,
        hint=hint,
        needed_at_maximum=needed_at_maximum,
        room_to_grow=room_to_grow,
    )


def _increase_hint(account: Account, quota_check: QuotaCheck, *, required_limit: int) -> str:
    # IAM is global, and its quotas are managed in us-east-1.
    region = "us-east-1" if quota_check.service == "iam" else account.region
    desired_value = ceil(required_limit / quota_check.units_per_quota_unit)
    command = (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {quota_check.service} "
        f"--quota-code {quota_check.code} --desired-value {desired_value}"
    )
    return f"delete what is not needed, or request an increase: `{command}`."
