"""Security groups that Kubernetes made for load balancers, and the rules of other groups that refer to them.

EC2 deletes no group that a rule of another group names, be it a rule of the cluster's own node group, nor one that a
network interface uses. That is what most often keeps a VPC from being deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import of_a_stack, owned, service, tag_map
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, attempt, remove_each
from cfngen.deploy.deletion.scope import Scope

AT_ONCE = 100  # values in one filter; EC2 takes 200
NAMED = ("ip-permission.group-id", "egress.ip-permission.group-id")


@dataclass(frozen=True)
class Reference:
    """Rules of a security group that name others.

    Attributes:
        group_id: the group that has the rules.
        group_name: its name.
        owned: whether the group is the cluster's.
    """

    group_id: str
    group_name: str
    owned: bool


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the cluster's security groups that are in no stack."""
    found = []
    for group in _groups(account, _in(scope.vpc_id)):
        tags = tag_map(group.get("Tags"))
        if owned(tags, scope.cluster) and not of_a_stack(tags) and group["GroupId"] not in scope.ids():
            purpose = service(tags) or group.get("Description", "")
            vpc = group.get("VpcId", "")
            found.append(OrphanedResource("security group", group["GroupId"], group["GroupName"], purpose, vpc_id=vpc))
    return tuple(found)


def references(account: Account, scope: Scope, ids: Sequence[str]) -> tuple[Reference, ...]:
    """Return the groups, other than these, with rules that name one of these.

    Args:
        account: where they are.
        scope: the cluster.
        ids: security groups.
    """
    found: dict[str, Reference] = {}
    for start in range(0, len(ids), AT_ONCE):
        for named in NAMED:
            for group in _groups(account, [{"Name": named, "Values": list(ids[start : start + AT_ONCE])}]):
                identity = group["GroupId"]
                mine = identity in scope.ids() or owned(tag_map(group.get("Tags")), scope.cluster)
                if identity not in ids:
                    found[identity] = Reference(identity, group["GroupName"], mine)
    return tuple(found.values())


def remove(account: Account, scope: Scope, found: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Take the rules that name these groups out of the cluster's groups, and delete the groups; return those deleted.

    A group that is still in use is left for the next time; so is one that a rule of somebody else names.
    """
    ids = [each.id for each in found]
    for holder in (*ids, *(reference.group_id for reference in references(account, scope, ids) if reference.owned)):
        _revoke(account, holder, frozenset(ids) - {holder})
    return remove_each(found, lambda each: account.client("ec2").delete_security_group(GroupId=each.id))


def _revoke(account: Account, holder: str, named: frozenset[str]) -> None:
    """Take the rules that name certain groups out of a group, by the rules' ids: each is exactly what was found."""
    ec2 = account.client("ec2")
    rules: dict[bool, list[str]] = {True: [], False: []}
    pages = ec2.get_paginator("describe_security_group_rules")
    for page in pages.paginate(Filters=[{"Name": "group-id", "Values": [holder]}]):
        for rule in page["SecurityGroupRules"]:
            if rule.get("ReferencedGroupInfo", {}).get("GroupId") in named:
                rules[bool(rule["IsEgress"])].append(rule["SecurityGroupRuleId"])
    for egress, ids in rules.items():
        if ids:
            revoke = ec2.revoke_security_group_egress if egress else ec2.revoke_security_group_ingress
            with attempt():
                revoke(GroupId=holder, SecurityGroupRuleIds=ids)


def _in(vpc_id: str) -> list[dict[str, Any]]:
    return [{"Name": "vpc-id", "Values": [vpc_id]}] if vpc_id else []


def _groups(account: Account, filters: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for page in account.client("ec2").get_paginator("describe_security_groups").paginate(Filters=filters):
        yield from page["SecurityGroups"]
