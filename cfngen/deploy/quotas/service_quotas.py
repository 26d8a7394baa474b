"""Checks before a deployment whether the account's quotas allow the resources that the deployment adds.

Usage is counted with the services' own API calls; limits come from Service Quotas. Codes: "AWS service endpoints and
quotas", AWS General Reference. If a usage or limit cannot be read, the quota is reported as unknown and the deployment
continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.quotas.demand import Demand
from cfngen.deploy.quotas.quota import Count, Quota, QuotaCheck, check_quota, constant
from cfngen.deploy.quotas.vcpu_quotas import check_vcpu_quotas
from cfngen.deploy.stacks import AUTO_SCALING_GROUP

MAX_THREADS = 12
GIB_PER_TIB = 1024


def check(account: Account, demand: Demand, current: Demand | None = None) -> tuple[Quota, ...]:
    """Check all quotas that a deployment adds something to.

    Args:
        account: the account and region.
        demand: the resources that the cluster will need.
        current: the resources that it has already; None for a new cluster.

    Returns:
        One entry for each quota. Nothing is raised: a quota that cannot be read has no limit, and its hint says why.
    """
    current = current or Demand()
    added_resources = _additions(demand.resources, current.resources)
    # boto3 clients may be shared between threads, but must not be created in several threads.
    for service in ("autoscaling", "ec2", "elbv2", "iam", "service-quotas"):
        account.client(service)
    with ThreadPoolExecutor(max_workers=MAX_THREADS) as pool:
        vcpu_quotas_future = pool.submit(check_vcpu_quotas, account, demand.instances, current.instances)
        quota_checks = [
            *_resource_checks(added_resources),
            *_storage_checks(demand, current),
            *_iam_checks(added_resources),
            *_rules_check(account, demand, current),
            *_groups_check(demand, current),
            *_policies_check(demand, current),
        ]
        quotas = pool.map(lambda quota_check: check_quota(account, quota_check), quota_checks)
        return (*vcpu_quotas_future.result(), *quotas)


def _additions(planned: Mapping[str, int], current: Mapping[str, int]) -> dict[str, int]:
    """Return by how much the planned count of each key exceeds the current count; keys that do not grow are omitted."""
    return {key: count - current.get(key, 0) for key, count in planned.items() if count > current.get(key, 0)}


def _count_listed(service: str, operation: str, key: str) -> Count:
    """Return a function that calls a list operation of a service and counts the items under `key` in all pages."""

    def count(account: Account) -> int:
        return sum(len(page[key]) for page in account.client(service).get_paginator(operation).paginate())

    return count


def _count_elastic_ips(account: Account) -> int:
    return len(account.client("ec2").describe_addresses()["Addresses"])


def _count_nat_gateways(account: Account) -> int:
    """Return the number of NAT gateways in the zone that has the most."""
    ec2 = account.client("ec2")
    states = [{"Name": "state", "Values": ["pending", "available"]}]
    pages = ec2.get_paginator("describe_nat_gateways").paginate(Filter=states)
    subnet_of_each_gateway = [nat_gateway["SubnetId"] for page in pages for nat_gateway in page["NatGateways"]]
    if not subnet_of_each_gateway:
        return 0
    pages = ec2.get_paginator("describe_subnets").paginate(SubnetIds=sorted(set(subnet_of_each_gateway)))
    zones = {subnet["SubnetId"]: subnet["AvailabilityZone"] for page in pages for subnet in page["Subnets"]}
    gateways_by_zone = Counter(zones[subnet] for subnet in subnet_of_each_gateway)
    return max(gateways_by_zone.values())


def _count_network_load_balancers(account: Account) -> int:
    pages = account.client("elbv2").get_paginator("describe_load_balancers").paginate()
    return sum(balancer["Type"] == "network" for page in pages for balancer in page["LoadBalancers"])


# CloudFormation type, name of the quota, service code and quota code in Service Quotas, and how usage is counted.
_COUNTED_RESOURCES: tuple[tuple[str, str, str, str, Count], ...] = (
    ("AWS::EC2::VPC", "VPCs", "vpc", "L-F678F1CE", _count_listed("ec2", "describe_vpcs", "Vpcs")),
    (
        "AWS::EC2::InternetGateway",
        "Internet gateways",
        "vpc",
        "L-A4707A72",
        _count_listed("ec2", "describe_internet_gateways", "InternetGateways"),
    ),
    # All new NAT gateways are assumed to be in the zone that has the most.
    ("AWS::EC2::NatGateway", "NAT gateways in one zone", "vpc", "L-FE5A380F", _count_nat_gateways),
    ("AWS::EC2::EIP", "Elastic IPs", "ec2", "L-0263D0A3", _count_elastic_ips),
    (
        "AWS::EC2::SecurityGroup",
        "Security groups",
        "vpc",
        "L-E79EC296",
        _count_listed("ec2", "describe_security_groups", "SecurityGroups"),
    ),
    # All load balancers of the templates are network load balancers.
    (
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "Network load balancers",
        "elasticloadbalancing",
        "L-69A177A2",
        _count_network_load_balancers,
    ),
    (
        AUTO_SCALING_GROUP,
        "Auto Scaling groups",
        "autoscaling",
        "L-CDE20ADC",
        _count_listed("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups"),
    ),
)


def _resource_checks(added_resources: Mapping[str, int]) -> list[QuotaCheck]:
    """Return a check for each quota of resources in a region, such as VPCs, if the deployment adds such a resource."""
    needed = Counter(added_resources)
    # Every VPC has a default security group.
    needed["AWS::EC2::SecurityGroup"] += needed["AWS::EC2::VPC"]
    return [
        QuotaCheck(name, needed[resource_type], service, code, used)
        for resource_type, name, service, code, used in _COUNTED_RESOURCES
        if needed[resource_type]
    ]


# Quota codes of EBS storage by volume type; Service Quotas counts storage in TiB.
_STORAGE_QUOTA_CODES = {"gp2": "L-D18FCD1D", "gp3": "L-7A658B76"}


def _storage_checks(demand: Demand, current: Demand) -> list[QuotaCheck]:
    """Return a check for each volume type of which the deployment adds storage, now or at the groups' maximum size."""
    needed = _additions(demand.storage, current.storage)
    growing_types = needed.keys() | _additions(demand.max_storage, current.max_storage).keys()
    max_needed = {
        volume_type: demand.max_storage.get(volume_type, 0) - current.storage.get(volume_type, 0)
        for volume_type in growing_types
    }

    def used_storage(volume_type: str) -> Count:
        """Return a function that reads how many GiB the account's volumes of this type have."""

        def sum_sizes(account: Account) -> int:
            filters = [{"Name": "volume-type", "Values": [volume_type]}]
            pages = account.client("ec2").get_paginator("describe_volumes").paginate(Filters=filters)
            return sum(volume["Size"] for page in pages for volume in page["Volumes"])

        return sum_sizes

    return [
        QuotaCheck(
            f"{volume_type} storage (GiB)",
            needed.get(volume_type, 0),
            service="ebs",
            code=code,
            used=used_storage(volume_type),
            units_per_quota_unit=GIB_PER_TIB,
            needed_at_maximum=max_needed[volume_type],
        )
        for volume_type, code in _STORAGE_QUOTA_CODES.items()
        if volume_type in max_needed
    ]


# CloudFormation type, name of the quota, quota code, and the key in the account summary with the usage.
_IAM_QUOTAS = (
    ("AWS::IAM::Role", "IAM roles", "L-FE177D64", "Roles"),
    ("AWS::IAM::InstanceProfile", "Instance profiles", "L-6E65F664", "InstanceProfiles"),
)


def _iam_checks(added_resources: Mapping[str, int]) -> list[QuotaCheck]:
    """Return the checks for roles and instance profiles; IAM's account summary has both usage and limit."""
    return [
        QuotaCheck(
            name,
            added_resources[resource_type],
            service="iam",
            code=code,
            used=_account_summary_value(key),
            limit=_account_summary_value(f"{key}Quota"),
        )
        for resource_type, name, code, key in _IAM_QUOTAS
        if added_resources.get(resource_type)
    ]


def _account_summary_value(key: str) -> Count:
    """Return a function that reads one number of IAM's account summary."""
    return lambda account: int(account.client("iam").get_account_summary()["SummaryMap"][key])


# Quotas per security group, network interface and role, with their default values ("Amazon VPC quotas", Amazon VPC User
# Guide, and "IAM and AWS STS quotas", IAM User Guide). Up to the default value, no quota is read. Each limit applies to
# one security group, interface or role alone, so the usage is 0, and `needed` is what that one resource needs in all.
class _QuotaPerResource(NamedTuple):
    code: str
    default_limit: int


_RULES_QUOTA = _QuotaPerResource("L-0EA8095F", default_limit=60)
_GROUPS_QUOTA = _QuotaPerResource("L-2AFB9258", default_limit=5)
_POLICIES_QUOTA = _QuotaPerResource("L-0DA4ABF3", default_limit=10)


def _rules_check(account: Account, demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for the security group with the most rules, if it has more than the default limit.

    Only security groups whose rules change are compared. During an update a group has its old and its new rules, since
    new rules are created before old ones are deleted. A rule for a prefix list counts as many times as the list has
    entries at most.
    """
    rules_by_changed_group = {
        group: {**current.rules.get(group, {}), **rules}
        for group, rules in demand.rules.items()
        if rules != current.rules.get(group)
    }
    prefix_lists = sorted(
        {prefix_list for rules in rules_by_changed_group.values() for prefix_list in rules.values() if prefix_list}
    )
    max_entries = _read_max_entries(account, prefix_lists) if prefix_lists else {}
    rule_counts = {
        group: sum(max_entries.get(prefix_list, 1) for prefix_list in rules.values())
        for group, rules in rules_by_changed_group.items()
    }
    if rule_counts:
        fullest_group = max(rule_counts, key=lambda group: rule_counts[group])
        rule_count = rule_counts[fullest_group]
        code, default_limit = _RULES_QUOTA
        if rule_count > default_limit:
            name = f"Rules of one security group ({fullest_group})"
            yield QuotaCheck(name, rule_count, service="vpc", code=code, used=constant(0))


def _read_max_entries(account: Account, prefix_lists: Sequence[str]) -> Mapping[str, int]:
    """Return the maximum number of entries of each prefix list; nothing if they cannot be read."""
    try:
        with translate_aws_errors():
            pages = (
                account.client("ec2")
                .get_paginator("describe_managed_prefix_lists")
                .paginate(PrefixListIds=prefix_lists)
            )
            return {
                prefix_list["PrefixListId"]: prefix_list.get("MaxEntries", 1)
                for page in pages
                for prefix_list in page["PrefixLists"]
            }
    except AwsError:
        return {}


def _groups_check(demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for the network interface with the most security groups, if it has more than the default limit."""
    code, default_limit = _GROUPS_QUOTA
    if demand.groups > max(current.groups, default_limit):
        name = "Security groups of one interface"
        yield QuotaCheck(name, demand.groups, service="vpc", code=code, used=constant(0))


def _policies_check(demand: Demand, current: Demand) -> Iterator[QuotaCheck]:
    """Yield a check for the role with the most managed policies, if it has more than the default limit."""
    code, default_limit = _POLICIES_QUOTA
    if demand.policies > max(current.policies, default_limit):
        yield QuotaCheck(
            "Managed policies of one role",
            demand.policies,
            service="iam",
            code=code,
            used=constant(0),
            limit=_account_summary_value("AttachedPoliciesPerRoleQuota"),
        )
