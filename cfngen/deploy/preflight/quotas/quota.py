"""Checks of quotas on parts of a network: of one VPC, of one zone, and VPC endpoints.

Codes, names and default limits: "Amazon Virtual Private Cloud endpoints and quotas", AWS General Reference, and "AWS
PrivateLink quotas", AWS PrivateLink Guide; the codes are in the console's address of each quota there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from cfngen.cluster.naming.network_ids import SubnetId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.hints import Hint

_SERVICE = "vpc"
_NAT_GATEWAYS_PER_ZONE = "L-FE5A380F"
_GATEWAY_ENDPOINTS_PER_REGION = "L-1B52E74A"
# Interface endpoints and endpoints of Gateway Load Balancers count together.
_INTERFACE_ENDPOINTS_PER_VPC = "L-29B6F2EB"
_DEFAULT_INTERFACE_ENDPOINTS = 50
_INTERFACE_TYPES = ("Interface", "GatewayLoadBalancer")


class _PartOfVpc(NamedTuple):
    """A type of resource of which a VPC may have a limited number.

    Attributes:
        resource_type: its CloudFormation type.
        quota_name: what is limited.
        code: quota code.
        operation: the method of boto3's client that lists such resources.
        result_key: key of the list in the response.
    """

    resource_type: str
    quota_name: str
    code: str
    operation: str
    result_key: str


_PARTS_OF_VPC = (
    _PartOfVpc("AWS::EC2::RouteTable", "Route tables of one VPC", "L-589F43AA", "describe_route_tables", "RouteTables"),
    _PartOfVpc("AWS::EC2::Subnet", "Subnets of one VPC", "L-407747CB", "describe_subnets", "Subnets"),
)


def network_checks(account: Account, demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for each quota of a VPC, a zone or of endpoints that the deployment adds something to.

    Args:
        account: the account and region.
        demand: the resources that the cluster will need.
        current: the resources that it has already.
    """
    yield from _nat_gateway_check(account, demand, current)
    yield from _vpc_checks(demand, current)
    added_gateway_endpoints = demand.gateway_endpoints - current.gateway_endpoints
    if added_gateway_endpoints > 0:
        yield QuotaCheck(
            "Gateway endpoints",
            needed=added_gateway_endpoints,
            service=_SERVICE,
            code=_GATEWAY_ENDPOINTS_PER_REGION,
            used=_count_endpoints(("Gateway",)),
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
            used=_count_endpoints(_INTERFACE_TYPES, vpc_id) if vpc_id else known_usage(0),
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
            used=_count_nat_gateways(zones),
        )


def _count_nat_gateways(zones: Collection[str]) -> ReadCount:
    """Return a function that reads how many NAT gateways the fullest of these zones has."""

    def count(account: Account) -> int:
        ec2 = account.client("ec2")
        states = [{"Name": "state", "Values": ["pending", "available"]}]
        pages = ec2.get_paginator("describe_nat_gateways").paginate(Filter=states)
        subnet_of_each_gateway = [nat_gateway["SubnetId"] for page in pages for nat_gateway in page["NatGateways"]]
        if not subnet_of_each_gateway:
            return 0
        pages = ec2.get_paginator("describe_subnets").paginate(SubnetIds=sorted(set(subnet_of_each_gateway)))
        zone_by_subnet = {
            subnet["SubnetId"]: subnet["AvailabilityZone"] for page in pages for subnet in page["Subnets"]
        }
        gateways_by_zone = Counter(zone_by_subnet[subnet] for subnet in subnet_of_each_gateway)
        return max(gateways_by_zone[zone] for zone in zones)

    return count


def _vpc_checks(demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield the checks for parts of a VPC that exists; a new VPC has room for them."""
    vpc_id = demand.vpc_id or current.vpc_id
    if not vpc_id:
        return
    for part in _PARTS_OF_VPC:
        planned = demand.count_by_resource_type.get(part.resource_type, 0)
        added = planned - current.count_by_resource_type.get(part.resource_type, 0)
        if added > 0:
            yield QuotaCheck(
                part.quota_name,
                needed=added,
                service=_SERVICE,
                code=part.code,
                used=_count_in_vpc(part, vpc_id),
            )


def _count_in_vpc(part: _PartOfVpc, vpc_id: str) -> ReadCount:
    """Return a function that reads how many resources of a type a VPC has."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}]

    def count(account: Account) -> int:
        pages = account.client("ec2").get_paginator(part.operation).paginate(Filters=filters)
        return sum(len(page[part.result_key]) for page in pages)

    return count


def _count_endpoints(types: Collection[str], vpc_id: str = "") -> ReadCount:
    """Return a function that reads how many VPC endpoints of these types a VPC, or the region, has."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}] if vpc_id else []

    def count(account: Account) -> int:
        pages = account.client("ec2").get_paginator("describe_vpc_endpoints").paginate(Filters=filters)
        return sum(endpoint["VpcEndpointType"] in types for page in pages for endpoint in page["VpcEndpoints"])

    return count


ReadCount = Callable[[Account], int]
"""A function that reads a usage or a limit from AWS."""


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
        code: quota code.
        used: function that returns the current usage.
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
            limit = quota_check.limit(account) if quota_check.limit else _read_limit(account, quota_check)
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
    """Return what to do about a quota that is below the required limit."""
    # IAM is global, and its quotas are managed in us-east-1.
    region = "us-east-1" if quota_check.service == "iam" else account.region
    desired_value = ceil(required_limit / quota_check.units_per_quota_unit)
    command = (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {quota_check.service} "
        f"--quota-code {quota_check.code} --desired-value {desired_value}"
    )
    return f"delete what is not needed, or request an increase: `{command}`."


def _read_limit(account: Account, quota_check: QuotaCheck) -> int:
    """Return the account's limit, or AWS's default limit if the account has none of its own."""
    client = account.client("service-quotas")
    quota_id = {"ServiceCode": quota_check.service, "QuotaCode": quota_check.code}
    try:
        response = client.get_service_quota(**quota_id)
    except client.exceptions.NoSuchResourceException:
        # Some quotas have a value for the account only once it has been changed.
        response = client.get_aws_default_service_quota(**quota_id)
    return int(response["Quota"]["Value"] * quota_check.units_per_quota_unit)


def known_usage(count: int) -> ReadCount:
    """Return a function for `QuotaCheck.used` that returns a known usage without calling AWS."""
    return lambda _: count
