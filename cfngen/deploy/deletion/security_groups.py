"""Security groups that Kubernetes created for load balancers, and the rules of other groups that refer to them.

EC2 does not delete a security group while a rule of another group refers to it (even a rule of the cluster's own node
security group), or while a network interface uses it. Security groups that remain for these reasons are the most
frequent reason why a VPC cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import AwsArguments, AwsObject
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.kubernetes_tags import is_created_by_stack, is_owned_by, service_name, tag_map
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, catch_missing_or_in_use, remove_each

FILTER_BATCH_SIZE = 100  # values in one filter; EC2 takes 200
REFERENCE_FILTERS = ("ip-permission.group-id", "egress.ip-permission.group-id")


@dataclass(frozen=True)
class ReferringGroup:
    """A security group with rules that refer to other groups.

    Attributes:
        group_id: the group that has the rules.
        group_name: its name.
        owned: whether the group that has the rules is the cluster's, or an existing one that the cluster's nodes use.
    """

    group_id: str
    group_name: str
    owned: bool


def find_orphaned_groups(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the cluster's security groups that belong to no stack."""
    orphans = []
    for group in _describe_groups(account, _vpc_filter(inventory.vpc_id)):
        tags = tag_map(group.get("Tags"))
        if (
            is_owned_by(tags, inventory.cluster)
            and not is_created_by_stack(tags)
            and group["GroupId"] not in inventory.ids()
            and group["GroupId"] not in inventory.existing_security_groups
        ):
            purpose = service_name(tags) or group.get("Description", "")
            vpc_id = group.get("VpcId", "")
            orphans.append(
                OrphanedResource(
                    kind="security group",
                    id=group["GroupId"],
                    name=group["GroupName"],
                    purpose=purpose,
                    vpc_id=vpc_id,
                )
            )
    return tuple(orphans)


def find_references(account: Account, inventory: Inventory, ids: Sequence[str]) -> tuple[ReferringGroup, ...]:
    """Return the security groups with rules that refer to one of the given groups, without the given groups.

    Args:
        account: the AWS account.
        inventory: the cluster.
        ids: ids of the security groups.
    """
    references_by_group: dict[str, ReferringGroup] = {}
    for start in range(0, len(ids), FILTER_BATCH_SIZE):
        for filter_name in REFERENCE_FILTERS:
            for group in _describe_groups(
                account, [{"Name": filter_name, "Values": list(ids[start : start + FILTER_BATCH_SIZE])}]
            ):
                group_id = group["GroupId"]
                is_owned = group_id in inventory.ids() or is_owned_by(tag_map(group.get("Tags")), inventory.cluster)
                # The cloud controller manager makes rules in the nodes' existing group too.
                is_owned = is_owned or group_id in inventory.existing_security_groups
                if group_id not in ids:
                    references_by_group[group_id] = ReferringGroup(
                        group_id=group_id, group_name=group["GroupName"], owned=is_owned
                    )
    return tuple(references_by_group.values())


def remove(account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete orphaned security groups, after revoking the cluster's rules that refer to them; return the deleted ones.

    A group is not deleted while a network interface uses it, or while a rule of a foreign group refers to it.
    """
    orphan_ids = [orphan.id for orphan in orphans]
    references = find_references(account, inventory, orphan_ids)
    cluster_group_ids = [reference.group_id for reference in references if reference.owned]
    for group_id in (*orphan_ids, *cluster_group_ids):
        _revoke_references(account, group_id, frozenset(orphan_ids) - {group_id})
    return remove_each(orphans, lambda orphan: account.client("ec2").delete_security_group(GroupId=orphan.id))


def _revoke_references(account: Account, group_id: str, referenced_ids: frozenset[str]) -> None:
    """Revoke the rules of a group that refer to the given groups; rule ids make sure that no other rule is revoked."""
    ec2 = account.client("ec2")
    ingress_rule_ids: list[str] = []
    egress_rule_ids: list[str] = []
    pages = ec2.get_paginator("describe_security_group_rules")
    for page in pages.paginate(Filters=[{"Name": "group-id", "Values": [group_id]}]):
        for rule in page["SecurityGroupRules"]:
            if rule.get("ReferencedGroupInfo", {}).get("GroupId") in referenced_ids:
                rule_ids = egress_rule_ids if rule["IsEgress"] else ingress_rule_ids
                rule_ids.append(rule["SecurityGroupRuleId"])
    if egress_rule_ids:
        with catch_missing_or_in_use():
            ec2.revoke_security_group_egress(GroupId=group_id, SecurityGroupRuleIds=egress_rule_ids)
    if ingress_rule_ids:
        with catch_missing_or_in_use():
            ec2.revoke_security_group_ingress(GroupId=group_id, SecurityGroupRuleIds=ingress_rule_ids)


def _vpc_filter(vpc_id: str) -> list[AwsArguments]:
    """Return the EC2 filter for the security groups of a VPC; no filter if the VPC is not known (empty id)."""
    # Without a filter, EC2 describes the security groups of all VPCs.
    return [{"Name": "vpc-id", "Values": [vpc_id]}] if vpc_id else []


def _describe_groups(account: Account, filters: list[AwsArguments]) -> Iterator[AwsObject]:
    """Yield the security groups that match all filters, as EC2 describes them."""
    for page in account.client("ec2").get_paginator("describe_security_groups").paginate(Filters=filters):
        yield from page["SecurityGroups"]
