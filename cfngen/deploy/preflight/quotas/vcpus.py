"""Quotas of vCPUs: which instance types share a quota, and how many vCPUs instances take from each quota.

Source: "Amazon EC2 instance type quotas", Amazon EC2 Instance Types guide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.instance_types import describe_running_instances, read_vcpus_by_type
from cfngen.deploy.aws.usage import known_usage, read_free_places
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount
from cfngen.deploy.preflight.quotas.quota import Quota, QuotaCheck, check_quota


class Family(NamedTuple):
    """Instance types that share a quota of vCPUs.

    Attributes:
        name: name in the EC2 documentation.
        letters_pattern: pattern of the letters with which the instance types begin, e.g. `m` in `m7g.large`.
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
    """A quota of vCPUs."""

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
    vcpus_by_type = read_vcpus_by_type(account, counted_types)
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
        with_reservations: whether to add the places in capacity reservations that no instance has taken.
    """
    running_counts = Counter(
        (instance["InstanceType"], instance.get("InstanceLifecycle") == "spot")
        for instance in describe_running_instances(account)
    )
    return count_needed_vcpus(
        account,
        [
            InstanceCount(instance_type, count, is_spot=is_spot)
            for (instance_type, is_spot), count in running_counts.items()
        ]
        + [
            InstanceCount(instance_type, count, is_spot=False)
            for instance_type, count in (read_free_places(account) if with_reservations else ())
        ],
    )


_UNKNOWN_QUOTA_HINT = "it is not known which quota applies"


def check_vcpu_quotas(
    account: Account,
    planned: Sequence[InstanceCount],
    current: Sequence[InstanceCount],
    *,
    planned_reservations: Sequence[InstanceCount] = (),
    current_reservations: Sequence[InstanceCount] = (),
) -> list[Quota]:
    """Return the quotas of vCPUs that the instance types of the planned Auto Scaling groups count towards.

    Args:
        planned: the instances of each Auto Scaling group after the deployment.
        current: the instances of each Auto Scaling group now; empty for a new cluster.
    """
    unknown_quotas = [
        _unknown_quota(f"vCPUs of {instance_type}") for instance_type in _new_types_without_quota(planned, current)
    ]
    try:
        with translate_aws_errors():
            current_vcpus = count_needed_vcpus(account, current)
            current_max_vcpus = count_needed_vcpus(account, [group.at_maximum_size for group in current])
            planned_vcpus = count_needed_vcpus(account, planned)
            planned_max_vcpus = count_needed_vcpus(account, [group.at_maximum_size for group in planned])
            used_vcpus = count_used_vcpus(account, with_reservations=bool(planned_reservations or current_reservations))
            beside = _count_vcpus_beside(account, current, planned_reservations, current_reservations)
    except AwsError as error:
        return [_unknown_quota("vCPUs", hint=str(error)), *unknown_quotas]
    quotas = []
    for vcpu_quota, max_count in planned_max_vcpus.items():
        current_count = current_vcpus.get(vcpu_quota, 0)
        beside_count = beside.get(vcpu_quota, 0)
        added = max(planned_vcpus.get(vcpu_quota, 0) - current_count, 0) + beside_count
        if current and not added and max_count <= current_max_vcpus.get(vcpu_quota, 0):
            continue  # the deployment adds nothing to this quota
        added_at_maximum = max_count - current_count + beside_count
        quotas.append(_check_vcpu_quota(account, vcpu_quota, used_vcpus.get(vcpu_quota, 0), added, added_at_maximum))
    return [*quotas, *unknown_quotas]


def _check_vcpu_quota(account: Account, vcpu_quota: VcpuQuota, used: int, added: int, added_at_maximum: int) -> Quota:
    family, is_spot = vcpu_quota
    name = f"vCPUs of {'spot' if is_spot else 'on-demand'} {family.name} instances"
    code = family.spot_quota_code if is_spot else family.on_demand_quota_code
    if not code:
        return _unknown_quota(name, added, used, needed_at_maximum=added_at_maximum)
    quota_check = QuotaCheck(name, added, "ec2", code, known_usage(used), needed_at_maximum=added_at_maximum)
    return check_quota(account, quota_check)


def _unknown_quota(
    name: str, needed: int = 0, used: int | None = None, *, hint: str = _UNKNOWN_QUOTA_HINT, needed_at_maximum: int = 0
) -> Quota:
    """Return a quota of which neither code nor limit is known."""
    return Quota(name, needed, used, limit=None, sufficient=None, hint=hint, needed_at_maximum=needed_at_maximum)


def _count_vcpus_beside(
    account: Account,
    current: Sequence[InstanceCount],
    planned_reservations: Sequence[InstanceCount],
    current_reservations: Sequence[InstanceCount],
) -> Mapping[VcpuQuota, int]:
    """Return the vCPUs of each quota that new reservations take beside the instances that run until they are replaced.

    Active reservations count towards the quota of On-Demand instances, whether instances run in them or not
    ("Quotas", Capacity Reservations, Amazon EC2 User Guide). An instance in a reservation is not counted again, so a
    new cluster, or a new master, needs no more with a reservation than without.
    """
    if not current:
        return {}
    current_counts = Counter(reservation.instance_type for reservation in current_reservations)
    planned_counts = Counter(reservation.instance_type for reservation in planned_reservations)
    new_types = list((planned_counts - current_counts).elements())
    new_masters = max(len(planned_reservations) - len(current_reservations), 0) if current_reservations else 0
    new_reservations = [InstanceCount(instance_type, 1, is_spot=False) for instance_type in new_types[new_masters:]]
    return count_needed_vcpus(account, new_reservations) if new_reservations else {}


def _new_types_without_quota(planned: Sequence[InstanceCount], current: Sequence[InstanceCount]) -> list[str]:
    """Return the planned instance types that the cluster does not use yet and whose quota is not known, sorted."""
    current_types = {instance_type for group in current for instance_type in group.types}
    return sorted(
        {
            instance_type
            for group in planned
            if group.count
            for instance_type in group.types
            if not family_of(instance_type) and instance_type not in current_types
        }
    )
