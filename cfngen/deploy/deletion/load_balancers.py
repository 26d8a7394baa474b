"""Load balancers and target groups that Kubernetes made for Services, Ingresses and Gateways of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import of_a_stack, owned, service, tag_map
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, attempt, remove_each
from cfngen.deploy.deletion.scope import Scope

AT_ONCE = 20  # load balancers or target groups in one DescribeTags, of either generation
PROTECTION = "deletion_protection.enabled"


@dataclass(frozen=True)
class Balancer:
    """A load balancer, whoever made it.

    Attributes:
        id: its ARN; the name of a Classic Load Balancer.
        name: its name.
        vpc_id: where it is.
    """

    id: str
    name: str
    vpc_id: str


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the cluster's load balancers and target groups that are in no stack."""
    return (*_classic(account, scope), *_current(account, scope), *_target_groups(account, scope))


def names(account: Account) -> frozenset[str]:
    """Return the names of all load balancers of the region, whoever made them."""
    return frozenset(each.name for each in _all(account))


def of_vpc(account: Account, vpc_id: str) -> tuple[Balancer, ...]:
    """Return all load balancers of a VPC, whoever made them."""
    return tuple(each for each in _all(account) if each.vpc_id == vpc_id)


def _all(account: Account) -> Iterator[Balancer]:
    for page in account.client("elb").get_paginator("describe_load_balancers").paginate():
        for balancer_description in page["LoadBalancerDescriptions"]:
            yield Balancer(
                balancer_description["LoadBalancerName"],
                balancer_description["LoadBalancerName"],
                balancer_description.get("VPCId", ""),
            )
    for page in account.client("elbv2").get_paginator("describe_load_balancers").paginate():
        for balancer in page["LoadBalancers"]:
            yield Balancer(balancer["LoadBalancerArn"], balancer["LoadBalancerName"], balancer.get("VpcId", ""))


def remove(account: Account, found: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Ask AWS to delete load balancers and target groups; return what it has accepted.

    A target group that a load balancer still uses is left for the next time.
    """
    return remove_each(found, lambda each: _delete(account, each))


def _delete(account: Account, each: OrphanedResource) -> None:
    elbv2 = account.client("elbv2")
    if each.kind == "target group":
        elbv2.delete_target_group(TargetGroupArn=each.id)
    elif each.generation:
        account.client("elb").delete_load_balancer(LoadBalancerName=each.id)
    else:
        if each.protected:
            off = [{"Key": PROTECTION, "Value": "false"}]
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=each.id, Attributes=off)
        elbv2.delete_load_balancer(LoadBalancerArn=each.id)


def _classic(account: Account, scope: Scope) -> Iterator[OrphanedResource]:
    elb = account.client("elb")
    pages = elb.get_paginator("describe_load_balancers").paginate()
    there = _there(pages, "LoadBalancerDescriptions", "LoadBalancerName", "VPCId", scope)
    names = list(there)
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        for each in _described(lambda asked: elb.describe_tags(LoadBalancerNames=asked), some):
            name, tags = each["LoadBalancerName"], tag_map(each.get("Tags"))
            if _made_by_kubernetes(name, tags, scope):
                vpc = there[name].get("VPCId", "")
                yield OrphanedResource("load balancer", name, name, service(tags), generation="classic", vpc_id=vpc)


def _current(account: Account, scope: Scope) -> Iterator[OrphanedResource]:
    elbv2 = account.client("elbv2")
    pages = elbv2.get_paginator("describe_load_balancers").paginate()
    there = _there(pages, "LoadBalancers", "LoadBalancerArn", "VpcId", scope)
    for arn, tags in _tags(elbv2, list(there)):
        if not _made_by_kubernetes(arn, tags, scope):
            continue
        name, vpc = there[arn]["LoadBalancerName"], there[arn].get("VpcId", "")
        attributes: list[dict[str, str]] = []
        with attempt():
            attributes = elbv2.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
        protected = {"Key": PROTECTION, "Value": "true"} in attributes
        yield OrphanedResource("load balancer", arn, name, service(tags), protected=protected, vpc_id=vpc)


def _target_groups(account: Account, scope: Scope) -> Iterator[OrphanedResource]:
    elbv2 = account.client("elbv2")
    pages = elbv2.get_paginator("describe_target_groups").paginate()
    there = _there(pages, "TargetGroups", "TargetGroupArn", "VpcId", scope)
    for arn, tags in _tags(elbv2, list(there)):
        if _made_by_kubernetes(arn, tags, scope):
            each = there[arn]
            yield OrphanedResource(
                "target group", arn, each["TargetGroupName"], service(tags), vpc_id=each.get("VpcId", "")
            )


def _there(pages: Iterable[Any], items: str, name: str, vpc: str, scope: Scope) -> dict[str, Mapping[str, Any]]:
    """Return what some pages list in the VPC that is looked at, by name."""
    listed = (each for page in pages for each in page[items])
    return {each[name]: each for each in listed if scope.vpc_id in ("", each.get(vpc, ""))}


def _tags(elbv2: Any, arns: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for start in range(0, len(arns), AT_ONCE):
        some = arns[start : start + AT_ONCE]
        for each in _described(lambda asked: elbv2.describe_tags(ResourceArns=asked), some):
            yield each["ResourceArn"], tag_map(each.get("Tags"))


def _described(describe: Callable[[list[str]], Any], asked: list[str]) -> list[Mapping[str, Any]]:
    """Tags of several things; AWS refuses to tell of any when one has gone since it was listed."""
    found: list[Mapping[str, Any]] = []
    with attempt() as tried:
        found = describe(asked)["TagDescriptions"]
    if tried.gone and len(asked) > 1:
        return [each for one in asked for each in _described(describe, [one])]
    return found


def _made_by_kubernetes(name: str, tags: Mapping[str, str], scope: Scope) -> bool:
    return owned(tags, scope.cluster) and not of_a_stack(tags) and name not in scope.ids()
