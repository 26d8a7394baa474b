"""Whether the account's quotas leave room for a new cluster; told before anything is created.

What is used is counted by the services' own calls, what is allowed is asked of Service Quotas. Codes: "AWS service
endpoints and quotas", AWS General Reference. Whatever cannot be found out is said to be unknown and stops nobody:
CloudFormation will find out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.failures import AwsError, aws_errors
from cfngen.deploy.limits import processors
from cfngen.deploy.limits.needs import Instances, needs
from cfngen.deploy.stacks import GROUP
from cfngen.templates.document import Document

WORKERS = 12
GIB_PER_TIB = 1024

Count = Callable[[Account], int]


@dataclass(frozen=True)
class Quota:
    """What a new cluster takes of one quota.

    Attributes:
        name: what is limited.
        needed: how much the cluster takes when it is created.
        used: how much is taken already; None if that is unknown.
        limit: how much the account may have; None if that is unknown.
        enough: whether it will do; None if that is unknown.
        hint: what to do where it will not do, or why it is unknown.
    """

    name: str
    needed: int
    used: int | None
    limit: int | None
    enough: bool | None
    hint: str = ""


@dataclass(frozen=True)
class _Question:
    """A quota that the cluster takes something of, and how to find out about it.

    Attributes:
        name: what is limited.
        needed: how much the cluster takes.
        service: the quota's service.
        code: its code.
        used: counts how much is taken.
        limit: tells how much is allowed; asked of Service Quotas if None.
        unit: how many of what is counted make one of what Service Quotas counts.
    """

    name: str
    needed: int
    service: str
    code: str
    used: Count
    limit: Count | None = None
    unit: int = 1


def check(account: Account, documents: Sequence[Document], values: Mapping[str, str]) -> tuple[Quota, ...]:
    """Compare what a cluster takes with what the account has left.

    Args:
        account: the account.
        documents: the cluster's templates.
        values: values of the root's parameters.

    Returns:
        One entry for each quota that the cluster takes something of. Nothing is raised: what cannot be found out has
        no limit and says why.
    """
    wanted = needs(documents, values)
    # boto3's clients may be shared between threads; making them may not.
    for service in ("autoscaling", "ec2", "elbv2", "iam", "service-quotas"):
        account.client(service)
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        of_processors = pool.submit(_processors, account, wanted.instances)
        questions = [*_counted(wanted.resources), *_storage(wanted.storage), *_roles(wanted.resources)]
        answers = pool.map(lambda each: _answered(account, each), questions)
        return (*of_processors.result(), *answers)


def _answered(account: Account, question: _Question) -> Quota:
    used = limit = None
    why = ""
    try:
        with aws_errors():
            used = question.used(account)
            limit = question.limit(account) if question.limit else _limit(account, question)
    except AwsError as error:
        why = str(error)
    if used is None or limit is None:
        return Quota(question.name, question.needed, used, limit, None, why)
    total = used + question.needed
    if total <= limit:
        return Quota(question.name, question.needed, used, limit, enough=True)
    # IAM is everywhere and its quotas are in one place.
    region = "us-east-1" if question.service == "iam" else account.region
    command = (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {question.service} "
        f"--quota-code {question.code} --desired-value {-(-total // question.unit)}"
    )
    hint = f"give up what is not needed, or ask for more: `{command}`."
    return Quota(question.name, question.needed, used, limit, enough=False, hint=hint)


def _limit(account: Account, question: _Question) -> int:
    client = account.client("service-quotas")
    asked = {"ServiceCode": question.service, "QuotaCode": question.code}
    try:
        answer = client.get_service_quota(**asked)
    except client.exceptions.NoSuchResourceException:
        # Some quotas have an entry of the account's own only once they have been changed.
        answer = client.get_aws_default_service_quota(**asked)
    return int(answer["Quota"]["Value"] * question.unit)


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
    subnets = [each["SubnetId"] for page in pages for each in page["NatGateways"]]
    if not subnets:
        return 0
    pages = ec2.get_paginator("describe_subnets").paginate(SubnetIds=sorted(set(subnets)))
    zones = {each["SubnetId"]: each["AvailabilityZone"] for page in pages for each in page["Subnets"]}
    return max(Counter(zones[each] for each in subnets).values())


def _network_load_balancers(account: Account) -> int:
    pages = account.client("elbv2").get_paginator("describe_load_balancers").paginate()
    return sum(each["Type"] == "network" for page in pages for each in page["LoadBalancers"])


_COUNTED: tuple[tuple[str, str, str, str, Count], ...] = (
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
        for kind, name, service, code, used in _COUNTED
        if needed[kind]
    ]


# Their service calls these quotas by the TiB.
_STORAGE = {"gp2": "L-D18FCD1D", "gp3": "L-7A658B76"}


def _storage(storage: Mapping[str, int]) -> list[_Question]:
    def used(kind: str) -> Count:
        def size(account: Account) -> int:
            of_kind = [{"Name": "volume-type", "Values": [kind]}]
            pages = account.client("ec2").get_paginator("describe_volumes").paginate(Filters=of_kind)
            return sum(each["Size"] for page in pages for each in page["Volumes"])

        return size

    return [
        _Question(f"{kind} storage (GiB)", storage[kind], "ebs", code, used(kind), unit=GIB_PER_TIB)
        for kind, code in _STORAGE.items()
        if storage.get(kind)
    ]


_ROLES = (
    ("AWS::IAM::Role", "IAM roles", "L-FE177D64", "Roles"),
    ("AWS::IAM::InstanceProfile", "Instance profiles", "L-6E65F664", "InstanceProfiles"),
)


def _roles(resources: Mapping[str, int]) -> list[_Question]:
    def summary(key: str) -> Count:
        return lambda account: int(account.client("iam").get_account_summary()["SummaryMap"][key])

    return [
        _Question(name, resources[kind], "iam", code, summary(key), limit=summary(f"{key}Quota"))
        for kind, name, code, key in _ROLES
        if resources.get(kind)
    ]


def _processors(account: Account, instances: Sequence[Instances]) -> list[Quota]:
    """Answer for the vCPUs: which quotas there are is known only once EC2 has told how large the instances are."""
    strange = sorted({each.type for each in instances if each.count and not processors.family_of(each.type)})
    unknown = [Quota(f"vCPUs of {each}", 0, None, None, None, "it is not known which quota counts") for each in strange]
    try:
        with aws_errors():
            needed = processors.needed(account, instances)
            used = processors.used(account)
    except AwsError as error:
        return [Quota("vCPUs", 0, None, None, None, str(error)), *unknown]
    answers = []
    for (family, spot), count in needed.items():
        name = f"vCPUs of {'spot' if spot else 'on-demand'} {family.name} instances"
        code = family.spot if spot else family.on_demand
        taken = used.get((family, spot), 0)
        if code:
            answers.append(_answered(account, _Question(name, count, "ec2", code, _known(taken))))
        else:
            answers.append(Quota(name, count, taken, None, None, "it is not known which quota counts"))
    return [*answers, *unknown]


def _known(count: int) -> Count:
    return lambda _: count
