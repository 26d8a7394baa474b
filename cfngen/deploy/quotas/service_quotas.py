"""Whether the account's quotas leave room for what a deployment adds; told before anything is changed.

What is used is counted by the services' own calls, what is allowed is asked of Service Quotas. Codes: "AWS service
endpoints and quotas", AWS General Reference. Whatever cannot be found out is said to be unknown and stops nobody:
CloudFormation will find out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.quotas import vcpus
from cfngen.deploy.quotas.demand import Demand, Instances
from cfngen.deploy.stacks import GROUP

WORKERS = 12
GIB_PER_TIB = 1024

Count = Callable[[Account], int]


@dataclass(frozen=True)
class Quota:
    """What a deployment takes of one quota.

    Attributes:
        name: what is limited.
        needed: how much it adds, with every group at the size that it starts with.
        used: how much is taken already; None if that is unknown.
        limit: how much the account may have; None if that is unknown.
        enough: whether it will do; None if that is unknown.
        hint: what to do where it will not do, now or later, or why it is unknown.
        most: how much it adds once every group has its greatest size.
        room_to_grow: whether that will do as well; None if that is unknown.
    """

    name: str
    needed: int
    used: int | None
    limit: int | None
    enough: bool | None
    hint: str = ""
    most: int = 0
    room_to_grow: bool | None = None


@dataclass(frozen=True)
class _Question:
    """A quota that the cluster takes something of, and how to find out about it.

    Attributes:
        name: what is limited.
        needed: how much is added.
        service: the quota's service.
        code: its code.
        used: counts how much is taken.
        limit: tells how much is allowed; asked of Service Quotas if None.
        unit: how many of what is counted make one of what Service Quotas counts.
        most: how much is added once every group has its greatest size, where that is more.
    """

    name: str
    needed: int
    service: str
    code: str
    used: Count
    limit: Count | None = None
    unit: int = 1
    most: int = 0


def check(account: Account, demand: Demand, current: Demand | None = None) -> tuple[Quota, ...]:
    """Compare what a deployment adds with what the account has left.

    Args:
        account: the account.
        wanted: what the cluster will take.
        before: what it takes already; None for a new one.

    Returns:
        One entry for each quota that something is added to. Nothing is raised: what cannot be found out has no limit
        and says why.
    """
    current = current or Demand()
    resources = _added(demand.resources, current.resources)
    # boto3's clients may be shared between threads; making them may not.
    for service in ("autoscaling", "ec2", "elbv2", "iam", "service-quotas"):
        account.client(service)
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        vcpu_quotas = pool.submit(_processors, account, demand.instances, current.instances)
        questions = [
            *_counted(resources),
            *_storage(demand, current),
            *_roles(resources),
            *_rules(account, demand, current),
            *_groups(demand, current),
            *_policies(demand, current),
        ]
        answers = pool.map(lambda question: _answered(account, question), questions)
        return (*vcpu_quotas.result(), *answers)


def _added(planned: Mapping[str, int], current: Mapping[str, int]) -> dict[str, int]:
    return {key: count - current.get(key, 0) for key, count in planned.items() if count > current.get(key, 0)}


def _answered(account: Account, question: _Question) -> Quota:
    used = limit = None
    reason = ""
    try:
        with translate_aws_errors():
            used = question.used(account)
            limit = question.limit(account) if question.limit else _limit(account, question)
    except AwsError as error:
        reason = str(error)
    max_needed = max(question.most, question.needed)
    if used is None or limit is None:
        return Quota(question.name, question.needed, used, limit, None, reason, max_needed)
    is_enough, room_to_grow = used + question.needed <= limit, used + max_needed <= limit
    if room_to_grow:
        return Quota(question.name, question.needed, used, limit, is_enough, "", max_needed, room_to_grow)
    # IAM is everywhere and its quotas are in one place.
    region = "us-east-1" if question.service == "iam" else account.region
    command = (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {question.service} "
        f"--quota-code {question.code} --desired-value {-(-(used + max_needed) // question.unit)}"
    )
    hint = f"give up what is not needed, or ask for more: `{command}`."
    return Quota(question.name, question.needed, used, limit, is_enough, hint, max_needed, room_to_grow)


def _limit(account: Account, question: _Question) -> int:
    client = account.client("service-quotas")
    quota_id = {"ServiceCode": question.service, "QuotaCode": question.code}
    try:
        response = client.get_service_quota(**quota_id)
    except client.exceptions.NoSuchResourceException:
        # Some quotas have an entry of the account's own only once they have been changed.
        response = client.get_aws_default_service_quota(**quota_id)
    return int(response["Quota"]["Value"] * question.unit)


def _listed(service: str, operation: str, key: str) -> Count:
    def count(account: Account) -> int:
        return sum(len(page[key]) for page in account.client(service).get_paginator(operation).paginate())

    return count


def _addresses(account: Account) -> int:
    return len(account.client("ec2").describe_addresses()["Addresses"])


def _nat_gateways(account: Account) -> int:
    """Return how many NAT gateways the fullest zone has."""
    ec2 = account.client("ec2")
    states = [{"Name": "state", "Values": ["pending", "available"]}]
    pages = ec2.get_paginator("describe_nat_gateways").paginate(Filter=states)
    subnets = [nat_gateway["SubnetId"] for page in pages for nat_gateway in page["NatGateways"]]
    if not subnets:
        return 0
    pages = ec2.get_paginator("describe_subnets").paginate(SubnetIds=sorted(set(subnets)))
    zones = {subnet["SubnetId"]: subnet["AvailabilityZone"] for page in pages for subnet in page["Subnets"]}
    return max(Counter(zones[subnet] for subnet in subnets).values())


def _network_load_balancers(account: Account) -> int:
    pages = account.client("elbv2").get_paginator("describe_load_balancers").paginate()
    return sum(balancer["Type"] == "network" for page in pages for balancer in page["LoadBalancers"])


_COUNTED_RESOURCES: tuple[tuple[str, str, str, str, Count], ...] = (
    ("AWS::EC2::VPC", "VPCs", "vpc", "L-F678F1CE", _listed("ec2", "describe_vpcs", "Vpcs")),
    (
        "AWS::EC2::InternetGateway",
        "Internet gateways",
        "vpc",
        "L-A4707A72",
        _listed("ec2", "describe_internet_gateways", "InternetGateways"),
    ),
    # Counted as if all of them came into the zone that has the most already.
    ("AWS::EC2::NatGateway", "NAT gateways in one zone", "vpc", "L-FE5A380F", _nat_gateways),
    ("AWS::EC2::EIP", "Elastic IPs", "ec2", "L-0263D0A3", _addresses),
    (
        "AWS::EC2::SecurityGroup",
        "Security groups",
        "vpc",
        "L-E79EC296",
        _listed("ec2", "describe_security_groups", "SecurityGroups"),
    ),
    # Every load balancer of the templates is one.
    (
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "Network load balancers",
        "elasticloadbalancing",
        "L-69A177A2",
        _network_load_balancers,
    ),
    (
        GROUP,
        "Auto Scaling groups",
        "autoscaling",
        "L-CDE20ADC",
        _listed("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups"),
    ),
)


def _counted(resources: Mapping[str, int]) -> list[_Question]:
    needed = Counter(resources)
    # Every VPC comes with a security group of its own.
    needed["AWS::EC2::SecurityGroup"] += needed["AWS::EC2::VPC"]
    return [
        _Question(name, needed[kind], service, code, used)
        for kind, name, service, code, used in _COUNTED_RESOURCES
        if needed[kind]
    ]


# Their service calls these quotas by the TiB.
_STORAGE_QUOTA_CODES = {"gp2": "L-D18FCD1D", "gp3": "L-7A658B76"}


def _storage(demand: Demand, current: Demand) -> list[_Question]:
    needed = _added(demand.storage, current.storage)
    grown = needed.keys() | _added(demand.most_storage, current.most_storage).keys()
    max_needed = {kind: demand.most_storage.get(kind, 0) - current.storage.get(kind, 0) for kind in grown}

    def used(kind: str) -> Count:
        def size(account: Account) -> int:
            filters = [{"Name": "volume-type", "Values": [kind]}]
            pages = account.client("ec2").get_paginator("describe_volumes").paginate(Filters=filters)
            return sum(volume["Size"] for page in pages for volume in page["Volumes"])

        return size

    return [
        _Question(
            f"{kind} storage (GiB)", needed.get(kind, 0), "ebs", code, used(kind), None, GIB_PER_TIB, max_needed[kind]
        )
        for kind, code in _STORAGE_QUOTA_CODES.items()
        if kind in max_needed
    ]


_IAM_QUOTAS = (
    ("AWS::IAM::Role", "IAM roles", "L-FE177D64", "Roles"),
    ("AWS::IAM::InstanceProfile", "Instance profiles", "L-6E65F664", "InstanceProfiles"),
)


def _roles(resources: Mapping[str, int]) -> list[_Question]:
    def summary(key: str) -> Count:
        return lambda account: int(account.client("iam").get_account_summary()["SummaryMap"][key])

    return [
        _Question(name, resources[kind], "iam", code, summary(key), limit=summary(f"{key}Quota"))
        for kind, name, code, key in _IAM_QUOTAS
        if resources.get(kind)
    ]


# What is counted in each thing of its kind: "Amazon VPC quotas", Amazon VPC User Guide, and "IAM and AWS STS quotas".
# Every account has these at least, so nobody is asked about less.
_RULES, _GROUPS, _ROLE_POLICIES = ("L-0EA8095F", 60), ("L-2AFB9258", 5), ("L-0DA4ABF3", 10)


def _rules(account: Account, demand: Demand, current: Demand) -> Iterator[_Question]:
    """Ask for the security group that is fullest during the deployment: new rules come before old ones go."""
    changed = {
        group: {**current.rules.get(group, {}), **rules}
        for group, rules in demand.rules.items()
        if rules != current.rules.get(group)
    }
    prefix_lists = sorted({rule for rules in changed.values() for rule in rules.values() if rule})
    entries = _entries(account, prefix_lists) if prefix_lists else {}
    sizes = {group: sum(entries.get(rule, 1) for rule in rules.values()) for group, rules in changed.items()}
    if sizes:
        fullest = max(sizes, key=lambda group_id: sizes[group_id])
        code, default_limit = _RULES
        if sizes[fullest] > default_limit:
            yield _Question(f"Rules of one security group ({fullest})", sizes[fullest], "vpc", code, _known(0))


def _entries(account: Account, prefix_lists: Sequence[str]) -> Mapping[str, int]:
    """Return the greatest number of entries of prefix lists; nothing if that cannot be found out."""
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


def _groups(demand: Demand, current: Demand) -> Iterator[_Question]:
    code, default_limit = _GROUPS
    if demand.groups > max(current.groups, default_limit):
        yield _Question("Security groups of one interface", demand.groups, "vpc", code, _known(0))


def _policies(demand: Demand, current: Demand) -> Iterator[_Question]:
    def limit(account: Account) -> int:
        return int(account.client("iam").get_account_summary()["SummaryMap"]["AttachedPoliciesPerRoleQuota"])

    code, default_limit = _ROLE_POLICIES
    if demand.policies > max(current.policies, default_limit):
        yield _Question("Managed policies of one role", demand.policies, "iam", code, _known(0), limit=limit)


def _processors(account: Account, planned: Sequence[Instances], current: Sequence[Instances]) -> list[Quota]:
    """Answer for the vCPUs: which quotas there are is known only once EC2 has told how large the instances are."""
    current_types = {group.type for group in current}
    unknown_types = sorted(
        {
            group.type
            for group in planned
            if group.count and not vcpus.family_of(group.type) and group.type not in current_types
        }
    )
    unknown = [
        Quota(f"vCPUs of {instance_type}", 0, None, None, None, "it is not known which quota counts")
        for instance_type in unknown_types
    ]
    try:
        with translate_aws_errors():
            current_vcpus = vcpus.needed(account, current)
            current_max_vcpus = vcpus.needed(account, [group.grown for group in current])
            needed = vcpus.needed(account, planned)
            max_vcpus = vcpus.needed(account, [group.grown for group in planned])
            used = vcpus.used(account)
    except AwsError as error:
        return [Quota("vCPUs", 0, None, None, None, str(error)), *unknown]
    quotas = []
    for (family, spot), count in max_vcpus.items():
        name = f"vCPUs of {'spot' if spot else 'on-demand'} {family.name} instances"
        code = family.spot if spot else family.on_demand
        used_count, current_count = used.get((family, spot), 0), current_vcpus.get((family, spot), 0)
        added = max(needed.get((family, spot), 0) - current_count, 0)
        if current and not added and count <= current_max_vcpus.get((family, spot), 0):
            continue
        if code:
            question = _Question(name, added, "ec2", code, _known(used_count), most=count - current_count)
            quotas.append(_answered(account, question))
        else:
            quotas.append(
                Quota(name, added, used_count, None, None, "it is not known which quota counts", count - current_count)
            )
    return [*quotas, *unknown]


def _known(count: int) -> Count:
    return lambda _: count
