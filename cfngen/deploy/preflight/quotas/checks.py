"""Checks before a deployment whether the account's quotas allow the resources that the deployment adds.

Usage is counted with the services' own API calls; limits come from Service Quotas. Codes: "AWS service endpoints and
quotas", AWS General Reference. If a usage or limit cannot be read, the quota is reported as unknown and the deployment
continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.usage import (
    SERVICES,
    account_summary_value,
    count_listed,
    count_network_load_balancers,
    known_usage,
    read_max_entries,
    used_storage,
)
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.deploy.preflight.quotas.quota import Quota, QuotaCheck, check_quota, network_checks
from cfngen.deploy.preflight.quotas.vcpus import check_vcpu_quotas

MAX_THREADS = 12
GIB_PER_TIB = 1024


def check_quotas(account: Account, demand: Demand, current: Demand | None = None) -> tuple[Quota, ...]:
    """Check all quotas that a deployment adds something to.

    Args:
        current: the resources that it has already; None for a new cluster.

    Returns:
        One entry for each quota. Nothing is raised: a quota that cannot be read has no limit, and its hint says why.
    """
    current = current or Demand()
    added_resources = _additions(demand.count_by_resource_type, current.count_by_resource_type)
    account.create_clients(SERVICES)
    with ThreadPoolExecutor(max_workers=MAX_THREADS) as pool:
        vcpu_quotas_future = pool.submit(
            check_vcpu_quotas,
            account,
            demand.instances,
            current.instances,
            planned_reservations=demand.reservations,
            current_reservations=current.reservations,
        )
        quota_checks = [
            *_resource_checks(added_resources),
            *network_checks(account, demand, current),
            *_storage_checks(demand, current),
            *_iam_checks(added_resources),
            *_rules_per_security_group_check(account, demand, current),
            *_fullest_interface_and_role_checks(demand, current),
        ]
        quotas = pool.map(lambda quota_check: check_quota(account, quota_check), quota_checks)
        return (*vcpu_quotas_future.result(), *quotas)


def _additions(planned: Mapping[str, int], current: Mapping[str, int]) -> dict[str, int]:
    """Return by how much the planned count of each key exceeds the current count; keys that do not grow are omitted."""
    return {key: count - current.get(key, 0) for key, count in planned.items() if count > current.get(key, 0)}


# Checks by resource type; how many resources the deployment adds is filled in.
_CHECKS_OF_RESOURCES = {
    "AWS::EC2::VPC": QuotaCheck("VPCs", 0, "vpc", "L-F678F1CE", count_listed("ec2.describe_vpcs", "Vpcs")),
    "AWS::EC2::InternetGateway": QuotaCheck(
        "Internet gateways", 0, "vpc", "L-A4707A72", count_listed("ec2.describe_internet_gateways", "InternetGateways")
    ),
    "AWS::EC2::EIP": QuotaCheck(
        "Elastic IPs", 0, "ec2", "L-0263D0A3", count_listed("ec2.describe_addresses", "Addresses")
    ),
    "AWS::EC2::SecurityGroup": QuotaCheck(
        "Security groups", 0, "vpc", "L-E79EC296", count_listed("ec2.describe_security_groups", "SecurityGroups")
    ),
    # All load balancers of the templates are network load balancers.
    "AWS::ElasticLoadBalancingV2::LoadBalancer": QuotaCheck(
        "Network load balancers", 0, "elasticloadbalancing", "L-69A177A2", count_network_load_balancers
    ),
    AUTO_SCALING_GROUP: QuotaCheck(
        "Auto Scaling groups",
        0,
        "autoscaling",
        "L-CDE20ADC",
        count_listed("autoscaling.describe_auto_scaling_groups", "AutoScalingGroups"),
    ),
}


def _resource_checks(added_resources: Mapping[str, int]) -> list[QuotaCheck]:
    """Return a check for each quota of resources in a region, such as VPCs, if the deployment adds such a resource."""
    needed = Counter(added_resources)
    # Every VPC has a default security group.
    needed["AWS::EC2::SecurityGroup"] += needed["AWS::EC2::VPC"]
    return [replace(check, needed=needed[kind]) for kind, check in _CHECKS_OF_RESOURCES.items() if needed[kind]]


# Quota codes of EBS storage by volume type; Service Quotas counts storage in TiB.
_STORAGE_QUOTA_CODES = {"gp2": "L-D18FCD1D", "gp3": "L-7A658B76"}


def _storage_checks(demand: Demand, current: Demand) -> list[QuotaCheck]:
    """Return a check for each volume type of which the deployment adds storage, now or at the groups' maximum size."""
    needed = _additions(demand.gib_by_volume_type, current.gib_by_volume_type)
    needed_at_maximum = _additions(demand.max_gib_by_volume_type, current.max_gib_by_volume_type)
    return [
        QuotaCheck(
            f"{volume_type} storage (GiB)",
            needed=needed.get(volume_type, 0),
            service="ebs",
            code=code,
            used=used_storage(volume_type),
            units_per_quota_unit=GIB_PER_TIB,
            # The account's usage contains what the cluster has now, so only the rest is added at the maximum size.
            needed_at_maximum=(
                demand.max_gib_by_volume_type.get(volume_type, 0) - current.gib_by_volume_type.get(volume_type, 0)
            ),
        )
        for volume_type, code in _STORAGE_QUOTA_CODES.items()
        if volume_type in needed or volume_type in needed_at_maximum
    ]


# Type of resource, name and code of its quota, and its key in IAM's account summary: that of the limit ends in `Quota`.
_IAM_QUOTAS = (
    ("AWS::IAM::Role", "IAM roles", "L-FE177D64", "Roles"),
    ("AWS::IAM::InstanceProfile", "Instance profiles", "L-6E65F664", "InstanceProfiles"),
)


def _iam_checks(added_resources: Mapping[str, int]) -> Iterator[QuotaCheck]:
    """Yield the checks for roles and instance profiles; IAM's account summary has both usage and limit."""
    for kind, name, code, key in _IAM_QUOTAS:
        if needed := added_resources.get(kind):
            used, limit = account_summary_value(key), account_summary_value(f"{key}Quota")
            yield QuotaCheck(name, needed, "iam", code, used, limit)


class _QuotaPerResource(NamedTuple):
    """A quota that limits each security group, network interface or role by itself.

    So the usage in the check is 0, and `needed` is what the one resource with the most needs in all. The quota is only
    read if that is more than AWS's default limit.

    Attributes:
        code: quota code.
        default_limit: AWS's default limit ("Amazon VPC quotas", Amazon VPC User Guide, and "IAM and AWS STS quotas",
            IAM User Guide).
    """

    code: str
    default_limit: int


_RULES_PER_SECURITY_GROUP = _QuotaPerResource("L-0EA8095F", default_limit=60)
_SECURITY_GROUPS_PER_INTERFACE = _QuotaPerResource("L-2AFB9258", default_limit=5)
_POLICIES_PER_ROLE = _QuotaPerResource("L-0DA4ABF3", default_limit=10)


def _rules_per_security_group_check(account: Account, demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for the security group with the most rules, if it has more than the default limit.

    Only security groups whose rules change are compared. During an update a group has its old and its new rules, since
    new rules are created before old ones are deleted. A rule for a prefix list counts as many times as the list has
    entries at most.
    """
    rules_by_changed_group: dict[str, dict[str, str]] = {}
    for security_group, new_rules in demand.prefix_lists_by_security_group.items():
        old_rules = current.prefix_lists_by_security_group.get(security_group, {})
        if new_rules != old_rules:
            rules_by_changed_group[security_group] = {**old_rules, **new_rules}
    prefix_lists = sorted(
        {prefix_list for rules in rules_by_changed_group.values() for prefix_list in rules.values() if prefix_list}
    )
    max_entries = read_max_entries(account, prefix_lists) if prefix_lists else {}
    rule_counts = {
        security_group: sum(max_entries.get(prefix_list, 1) for prefix_list in rules.values())
        for security_group, rules in rules_by_changed_group.items()
    }
    if not rule_counts:
        return
    fullest_group = max(rule_counts, key=lambda security_group: rule_counts[security_group])
    if rule_counts[fullest_group] > _RULES_PER_SECURITY_GROUP.default_limit:
        yield QuotaCheck(
            f"Rules of one security group ({fullest_group})",
            needed=rule_counts[fullest_group],
            service="vpc",
            code=_RULES_PER_SECURITY_GROUP.code,
            used=known_usage(0),
        )


def _fullest_interface_and_role_checks(demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield checks for the network interface with the most security groups, and the role with the most policies.

    Each is only checked if it gets more of them than it has now, and more than the default limit.
    """
    groups, policies = demand.max_groups_per_interface, demand.max_policies_per_role
    if groups > max(current.max_groups_per_interface, _SECURITY_GROUPS_PER_INTERFACE.default_limit):
        yield QuotaCheck(
            "Security groups of one interface",
            needed=groups,
            service="vpc",
            code=_SECURITY_GROUPS_PER_INTERFACE.code,
            used=known_usage(0),
        )
    if policies > max(current.max_policies_per_role, _POLICIES_PER_ROLE.default_limit):
        yield QuotaCheck(
            "Managed policies of one role",
            needed=policies,
            service="iam",
            code=_POLICIES_PER_ROLE.code,
            used=known_usage(0),
            limit=account_summary_value("AttachedPoliciesPerRoleQuota"),
        )
