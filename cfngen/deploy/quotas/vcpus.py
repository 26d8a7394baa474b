"""Quotas of vCPUs: which instance types share a quota, and how many vCPUs instances take from each quota.

Source: "Amazon EC2 instance type quotas", Amazon EC2 Instance Types guide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.quotas.instance_counts import InstanceCount

MAX_TYPES_PER_CALL = 100  # instance types in one call of DescribeInstanceTypes


class Family(NamedTuple):
    """Instance types that share a quota of vCPUs.

    Attributes:
        name: name in the EC2 documentation.
        letters_pattern: pattern of the letters with which the instance types begin, e.g. `m` in `m7g.large`.
        on_demand_quota_code: code of the quota for on-demand instances.
        spot_quota_code: code of the quota for spot instances; empty if there is none.
    """

    name: str
    letters_pattern: str
    on_demand_quota_code: str
    spot_quota_code: str


# Each with its name, the pattern of its letters, and the codes of its quotas for on-demand and for spot instances.
FAMILIES = (
    Family("standard (A, C, D, H, I, M, R, T, Z)", "[acdhimrtz]|im|is", "L-1216C47A", "L-34B43A08"),
    Family("G and VT", "g|gr|vt", "L-DB2E81BA", "L-3819A6DF"),
    Family("P", "p", "L-417A185B", "L-7212CCBC"),
    Family("F", "f", "L-74FC7D96", "L-88CF9481"),
    Family("X", "x", "L-7295265B", "L-E3A00192"),
    Family("Inf", "inf", "L-1945791B", "L-B5D1601B"),
    Family("Trn", "trn", "L-2C3B7624", "L-6B0D517C"),
    Family("DL", "dl", "L-6E869C2A", "L-85EED4F7"),
    Family("HPC", "hpc", "L-F7808C92", ""),
    Family("high memory", "u", "L-43DA4232", ""),
)


class VcpuQuota(NamedTuple):
    """A quota of vCPUs.

    Attributes:
        family: the instance types that share the quota.
        is_spot: whether it is the quota for spot instances.
    """

    family: Family
    is_spot: bool


def family_of(instance_type: str) -> Family | None:
    """Return the family that an instance type belongs to; None if its quota is not known."""
    letters = re.match("[a-z]*", instance_type)
    return next((family for family in FAMILIES if letters and re.fullmatch(family.letters_pattern, letters[0])), None)


def count_needed_vcpus(account: Account, instance_counts: Collection[InstanceCount]) -> Mapping[VcpuQuota, int]:
    """Return how many vCPUs of each quota the given instances need; instance types of unknown quotas do not count.

    Where AWS chooses among several types, the largest of each family counts.

    Raises:
        botocore.exceptions.ClientError: EC2 refuses the call, or an instance type does not exist.
    """
    counted_types = {
        instance_type
        for instances in instance_counts
        if instances.count
        for instance_type in instances.types
        if family_of(instance_type)
    }
    vcpus_by_type = _read_vcpus_by_type(account, counted_types)
    vcpus_by_quota: Counter[VcpuQuota] = Counter()
    for instances in instance_counts:
        for family, vcpus in _vcpus_by_family(instances, vcpus_by_type).items():
            vcpus_by_quota[VcpuQuota(family, instances.is_spot)] += instances.count * vcpus
    return vcpus_by_quota


def _vcpus_by_family(instances: InstanceCount, vcpus_by_type: Mapping[str, int]) -> dict[Family, int]:
    """Return how many vCPUs an instance has at most, for each family that it may be of; empty without instances.

    If requirements stand for the types, that is the least that they ask for, of the standard family: the cheapest types
    come first.
    """
    if not instances.count:
        return {}
    if instances.least_vcpus:
        return {FAMILIES[0]: instances.least_vcpus}
    vcpus_by_family: dict[Family, int] = {}
    for instance_type in instances.types:
        family = family_of(instance_type)
        if family:
            vcpus_by_family[family] = max(vcpus_by_family.get(family, 0), vcpus_by_type[instance_type])
    return vcpus_by_family


def count_used_vcpus(account: Account, *, with_reservations: bool = False) -> Mapping[VcpuQuota, int]:
    """Return how many vCPUs of each quota the account's running instances use.

    Args:
        account: the account and region.
        with_reservations: whether to add the places in capacity reservations that no instance has taken.
    """
    running_counts = Counter(
        (instance["InstanceType"], instance.get("InstanceLifecycle") == "spot")
        for instance in _describe_running_instances(account)
    )
    return count_needed_vcpus(
        account,
        [
            InstanceCount(instance_type, count, is_spot=is_spot)
            for (instance_type, is_spot), count in running_counts.items()
        ]
        + (_read_free_places(account) if with_reservations else []),
    )


def _read_free_places(account: Account) -> list[InstanceCount]:
    """Return for how many further instances the account's capacity reservations have room, by type."""
    filters = [{"Name": "state", "Values": ["active", "pending"]}]
    pages = account.client("ec2").get_paginator("describe_capacity_reservations").paginate(Filters=filters)
    return [
        InstanceCount(reservation["InstanceType"], int(reservation["AvailableInstanceCount"]), is_spot=False)
        for page in pages
        for reservation in page["CapacityReservations"]
    ]


def _describe_running_instances(account: Account) -> Iterator[AwsObject]:
    """Yield each instance of the account that is running or starting."""
    filters = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    for page in pages:
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def _read_vcpus_by_type(account: Account, instance_types: Collection[str]) -> dict[str, int]:
    """Return the number of vCPUs of each instance type."""
    sorted_types = sorted(instance_types)
    vcpus_by_type: dict[str, int] = {}
    for start in range(0, len(sorted_types), MAX_TYPES_PER_CALL):
        response = account.client("ec2").describe_instance_types(
            InstanceTypes=sorted_types[start : start + MAX_TYPES_PER_CALL]
        )
        for description in response["InstanceTypes"]:
            vcpus_by_type[description["InstanceType"]] = int(description["VCpuInfo"]["DefaultVCpus"])
    return vcpus_by_type
