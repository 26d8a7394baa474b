"""Load balancers and target groups, above all those that Kubernetes created for Services, Ingresses and Gateways."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account, batches
from cfngen.deploy.aws.errors import catch_missing_or_in_use
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.tags import is_created_by_stack, is_owned_by, service_name, tag_map
from cfngen.deploy.aws.types import AwsObject, Client

TAGS_BATCH_SIZE = 20  # maximum number of resources in one call of DescribeTags, in ELB and in ELBv2
DELETION_PROTECTION_ATTRIBUTE = "deletion_protection.enabled"


@dataclass(frozen=True)
class LoadBalancerView:
    """A load balancer of any kind, created by Kubernetes or by anyone else, as it was when it was read.

    Attributes:
        id: its ARN; for a Classic Load Balancer, its name.
        own_addresses: number of its public addresses: one in each zone that has no Elastic IP.
    """

    id: str
    name: str
    vpc_id: str
    own_addresses: int = 0


@dataclass(frozen=True)
class TargetGroupView:
    """A target group: the type of its targets, e.g. `instance`, and its VPC; None if ELB names none."""

    target_type: str
    vpc_id: str | None


def find_target_group(account: Account, arn: str) -> TargetGroupView | None:
    """Return a target group; None if there is none with this ARN. Other errors of boto3 are not translated."""
    absent = ("TargetGroupNotFound",)
    described = account.read("elbv2.describe_target_groups", absent=absent, TargetGroupArns=[arn])
    if described is None:
        return None
    [group] = described["TargetGroups"]
    return TargetGroupView(group["TargetType"], group.get("VpcId"))


def find_orphaned_load_balancers(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the cluster's load balancers and target groups that do not belong to a stack."""
    return (
        *_find_classic(account, inventory),
        *_find_elbv2(account, inventory),
        *_find_target_groups(account, inventory),
    )


def find_load_balancer_arn(account: Account, name: str) -> str:
    """Return the ARN of the load balancer with a name, no classic one; empty if there is none.

    Errors of boto3 are not translated.
    """
    described = account.read("elbv2.describe_load_balancers", absent=("LoadBalancerNotFound",), Names=[name])
    return next((balancer["LoadBalancerArn"] for balancer in (described or {}).get("LoadBalancers", ())), "")


def list_load_balancer_names(account: Account) -> frozenset[str]:
    """Return the names of all load balancers of the region, whoever created them."""
    return frozenset(balancer.name for balancer in _describe_load_balancers(account))


def find_load_balancers(account: Account, ids: Collection[str]) -> tuple[LoadBalancerView, ...]:
    """Return the load balancers with these ARNs, or names of Classic Load Balancers."""
    return tuple(balancer for balancer in _describe_load_balancers(account) if balancer.id in ids) if ids else ()


def find_in_vpc(account: Account, vpc_id: str) -> tuple[LoadBalancerView, ...]:
    """Return all load balancers of a VPC, whoever created them."""
    return tuple(balancer for balancer in _describe_load_balancers(account) if balancer.vpc_id == vpc_id)


def _describe_load_balancers(account: Account) -> Iterator[LoadBalancerView]:
    """Yield all load balancers of the region: first Classic Load Balancers, then those of ELBv2."""
    for classic in account.items("elb.describe_load_balancers", "LoadBalancerDescriptions"):
        name = classic["LoadBalancerName"]
        yield LoadBalancerView(
            id=name, name=name, vpc_id=classic.get("VPCId", ""), own_addresses=_count_own_addresses(classic)
        )
    for balancer in account.items("elbv2.describe_load_balancers", "LoadBalancers"):
        yield LoadBalancerView(
            id=balancer["LoadBalancerArn"],
            name=balancer["LoadBalancerName"],
            vpc_id=balancer.get("VpcId", ""),
            own_addresses=_count_own_addresses(balancer),
        )


def _count_own_addresses(balancer: AwsObject) -> int:
    if balancer.get("Scheme") != "internet-facing":
        return 0
    zones = balancer.get("AvailabilityZones", ())  # those of a Classic Load Balancer are names
    return sum(
        not isinstance(zone, dict)
        or not any(address.get("AllocationId") for address in zone.get("LoadBalancerAddresses", ()))
        for zone in zones
    )


def _find_classic(account: Account, inventory: Inventory) -> Iterator[OrphanedResource]:
    elb = account.client("elb")
    balancers = account.items("elb.describe_load_balancers", "LoadBalancerDescriptions")
    descriptions_by_name = _select_in_vpc(balancers, id_key="LoadBalancerName", vpc_key="VPCId", inventory=inventory)
    for batch in batches(descriptions_by_name, TAGS_BATCH_SIZE):
        tag_descriptions = _describe_tags(
            lambda requested_names: elb.describe_tags(LoadBalancerNames=requested_names), batch
        )
        for tag_description in tag_descriptions:
            name, tags = tag_description["LoadBalancerName"], tag_map(tag_description.get("Tags"))
            if _is_created_by_kubernetes(name, tags, inventory):
                vpc_id = descriptions_by_name[name].get("VPCId", "")
                yield OrphanedResource(
                    kind="load balancer",
                    id=name,
                    name=name,
                    purpose=service_name(tags),
                    generation="classic",
                    vpc_id=vpc_id,
                )


def _find_elbv2(account: Account, inventory: Inventory) -> Iterator[OrphanedResource]:
    elbv2 = account.client("elbv2")
    balancers = account.items("elbv2.describe_load_balancers", "LoadBalancers")
    balancers_by_arn = _select_in_vpc(balancers, id_key="LoadBalancerArn", vpc_key="VpcId", inventory=inventory)
    for arn, tags in _read_tags_by_arn(elbv2, balancers_by_arn):
        if not _is_created_by_kubernetes(arn, tags, inventory):
            continue
        name = balancers_by_arn[arn]["LoadBalancerName"]
        vpc_id = balancers_by_arn[arn].get("VpcId", "")
        attributes: list[dict[str, str]] = []
        with catch_missing_or_in_use():
            attributes = elbv2.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
        is_protected = {"Key": DELETION_PROTECTION_ATTRIBUTE, "Value": "true"} in attributes
        yield OrphanedResource(
            kind="load balancer", id=arn, name=name, purpose=service_name(tags), protected=is_protected, vpc_id=vpc_id
        )


def _find_target_groups(account: Account, inventory: Inventory) -> Iterator[OrphanedResource]:
    elbv2 = account.client("elbv2")
    groups = account.items("elbv2.describe_target_groups", "TargetGroups")
    groups_by_arn = _select_in_vpc(groups, id_key="TargetGroupArn", vpc_key="VpcId", inventory=inventory)
    for arn, tags in _read_tags_by_arn(elbv2, groups_by_arn):
        if _is_created_by_kubernetes(arn, tags, inventory):
            group = groups_by_arn[arn]
            yield OrphanedResource(
                kind="target group",
                id=arn,
                name=group["TargetGroupName"],
                purpose=service_name(tags),
                vpc_id=group.get("VpcId", ""),
            )


def _select_in_vpc(
    items: Iterable[AwsObject], *, id_key: str, vpc_key: str, inventory: Inventory
) -> dict[str, AwsObject]:
    """Return the items that are in the cluster's VPC, by name or ARN; all items if the VPC is not known."""
    return {item[id_key]: item for item in items if inventory.vpc_id in ("", item.get(vpc_key, ""))}


def _read_tags_by_arn(elbv2: Client, arns: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for batch in batches(arns, TAGS_BATCH_SIZE):
        tag_descriptions = _describe_tags(
            lambda requested_arns: elbv2.describe_tags(ResourceArns=requested_arns), batch
        )
        for tag_description in tag_descriptions:
            yield tag_description["ResourceArn"], tag_map(tag_description.get("Tags"))


def _describe_tags(describe: Callable[[list[str]], AwsObject], requested_ids: list[str]) -> list[AwsObject]:
    """Return the tag descriptions of those of the requested resources that still exist.

    A resource may have been deleted after it had been listed. AWS rejects the whole call if one of the resources is
    missing; then each resource is described by its own call.
    """
    tag_descriptions: list[AwsObject] = []
    with catch_missing_or_in_use() as outcome:
        tag_descriptions = describe(requested_ids)["TagDescriptions"]
    if outcome.not_found and len(requested_ids) > 1:
        return [
            tag_description
            for requested_id in requested_ids
            for tag_description in _describe_tags(describe, [requested_id])
        ]
    return tag_descriptions


def _is_created_by_kubernetes(name_or_arn: str, tags: Mapping[str, str], inventory: Inventory) -> bool:
    """Return whether the tags name this cluster as the only owner, and no stack created the resource."""
    is_of_stack = is_created_by_stack(tags) or name_or_arn in inventory.ids()
    return is_owned_by(tags, inventory.cluster) and not is_of_stack
