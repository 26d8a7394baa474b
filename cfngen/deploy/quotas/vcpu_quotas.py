"""Compares the quotas of vCPUs with what the instances of a deployment add."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.quotas import vcpus
from cfngen.deploy.quotas.demand import Instances
from cfngen.deploy.quotas.quota import Quota, QuotaCheck, check_quota, constant


def check_vcpu_quotas(account: Account, planned: Sequence[Instances], current: Sequence[Instances]) -> list[Quota]:
    """Return the quotas of vCPUs that the instance types of the planned Auto Scaling groups count towards.

    Args:
        account: the account and region.
        planned: the instances of each group after the deployment.
        current: the instances of each group now; empty for a new cluster.
    """
    # An instance type whose quota is not known is reported only if the cluster does not use the type yet.
    current_types = {instances.type for instances in current}
    unknown_types = sorted(
        {
            instances.type
            for instances in planned
            if instances.count and not vcpus.family_of(instances.type) and instances.type not in current_types
        }
    )
    unknown_quotas = [
        Quota(
            f"vCPUs of {instance_type}",
            needed=0,
            used=None,
            limit=None,
            sufficient=None,
            hint="it is not known which quota applies",
        )
        for instance_type in unknown_types
    ]
    try:
        with translate_aws_errors():
            current_vcpus = vcpus.count_needed(account, current)
            current_max_vcpus = vcpus.count_needed(account, [instances.at_maximum_size for instances in current])
            planned_vcpus = vcpus.count_needed(account, planned)
            planned_max_vcpus = vcpus.count_needed(account, [instances.at_maximum_size for instances in planned])
            used_vcpus = vcpus.count_used(account)
    except AwsError as error:
        return [Quota("vCPUs", needed=0, used=None, limit=None, sufficient=None, hint=str(error)), *unknown_quotas]
    quotas = []
    for (family, spot), max_count in planned_max_vcpus.items():
        name = f"vCPUs of {'spot' if spot else 'on-demand'} {family.name} instances"
        code = family.spot if spot else family.on_demand
        used_count = used_vcpus.get((family, spot), 0)
        current_count = current_vcpus.get((family, spot), 0)
        added = max(planned_vcpus.get((family, spot), 0) - current_count, 0)
        added_at_maximum = max_count - current_count
        if current and not added and max_count <= current_max_vcpus.get((family, spot), 0):
            continue  # the deployment adds nothing to this quota
        if code:
            quota_check = QuotaCheck(
                name,
                added,
                service="ec2",
                code=code,
                used=constant(used_count),
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
                    hint="it is not known which quota applies",
                    needed_at_maximum=added_at_maximum,
                )
            )
    return [*quotas, *unknown_quotas]
