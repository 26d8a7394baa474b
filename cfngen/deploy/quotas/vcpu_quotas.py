"""Compares the quotas of vCPUs with what the instances of a deployment add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.quotas import vcpus
from cfngen.deploy.quotas.instance_counts import InstanceCount
from cfngen.deploy.quotas.quota import Quota, QuotaCheck, check_quota, known_usage

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
        account: the account and region.
        planned: the instances of each Auto Scaling group after the deployment.
        current: the instances of each Auto Scaling group now; empty for a new cluster.
        planned_reservations: the instances of each capacity reservation after the deployment.
        current_reservations: those of each capacity reservation now.
    """
    unknown_quotas = [
        Quota(
            f"vCPUs of {instance_type}",
            needed=0,
            used=None,
            limit=None,
            sufficient=None,
            hint=_UNKNOWN_QUOTA_HINT,
        )
        for instance_type in _new_types_without_quota(planned, current)
    ]
    try:
        with translate_aws_errors():
            current_vcpus = vcpus.count_needed_vcpus(account, current)
            current_max_vcpus = vcpus.count_needed_vcpus(account, [group.at_maximum_size for group in current])
            planned_vcpus = vcpus.count_needed_vcpus(account, planned)
            planned_max_vcpus = vcpus.count_needed_vcpus(account, [group.at_maximum_size for group in planned])
            used_vcpus = vcpus.count_used_vcpus(
                account, with_reservations=bool(planned_reservations or current_reservations)
            )
            beside = _count_vcpus_beside(account, current, planned_reservations, current_reservations)
    except AwsError as error:
        return [Quota("vCPUs", needed=0, used=None, limit=None, sufficient=None, hint=str(error)), *unknown_quotas]
    quotas = []
    for vcpu_quota, max_count in planned_max_vcpus.items():
        family, is_spot = vcpu_quota
        name = f"vCPUs of {'spot' if is_spot else 'on-demand'} {family.name} instances"
        quota_code = family.spot_quota_code if is_spot else family.on_demand_quota_code
        used_count = used_vcpus.get(vcpu_quota, 0)
        current_count = current_vcpus.get(vcpu_quota, 0)
        beside_count = beside.get(vcpu_quota, 0)
        added = max(planned_vcpus.get(vcpu_quota, 0) - current_count, 0) + beside_count
        added_at_maximum = max_count - current_count + beside_count
        if current and not added and max_count <= current_max_vcpus.get(vcpu_quota, 0):
            continue  # the deployment adds nothing to this quota
        if quota_code:
            quota_check = QuotaCheck(
                name,
                needed=added,
                service="ec2",
                code=quota_code,
                used=known_usage(used_count),
                needed_at_maximum=added_at_maximum,
            )
            quotas.append(check_quota(account, quota_check))
        else:
            quotas.append(
                Quota(
                    name,
                    needed=added,
                    used=used_count,
                    limit=None,
                    sufficient=None,
                    hint=_UNKNOWN_QUOTA_HINT,
                    needed_at_maximum=added_at_maximum,
                )
            )
    return [*quotas, *unknown_quotas]


def _count_vcpus_beside(
    account: Account,
    current: Sequence[InstanceCount],
    planned_reservations: Sequence[InstanceCount],
    current_reservations: Sequence[InstanceCount],
) -> Mapping[vcpus.VcpuQuota, int]:
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
    return vcpus.count_needed_vcpus(account, new_reservations) if new_reservations else {}


def _new_types_without_quota(planned: Sequence[InstanceCount], current: Sequence[InstanceCount]) -> list[str]:
    """Return the planned instance types that the cluster does not use yet and whose quota is not known, sorted."""
    current_types = {instance_type for group in current for instance_type in group.types}
    return sorted(
        {
            instance_type
            for group in planned
            if group.count
            for instance_type in group.types
            if not vcpus.family_of(instance_type) and instance_type not in current_types
        }
    )
