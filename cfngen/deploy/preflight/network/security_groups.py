"""Judges the existing security groups that take the place of cfngen's: their rules, and the cluster's tag.

The rules of an instance's security groups add up ("Security group rules", Amazon VPC User Guide), so a rule may also be
in an additional security group of all masters or of all nodes, one of a node group in a group of its nodes. A wider
rule does as well as the needed one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, collapse_addresses
from typing import Literal

from cfngen.cluster.checks.sections import all_instances
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import GroupRole, existing_groups, group_key, group_parameter
from cfngen.cluster.sections.network import PrefixList
from cfngen.cluster.security_groups.needed_rules import NeededRule, RuleIdentity, needed_rule
from cfngen.cluster.security_groups.rules import (
    ANYWHERE,
    Rule,
    all_rules,
    bastion_rules,
    ranges_of_role,
    rules_of_existing_groups,
)
from cfngen.cluster.security_groups.sources import OtherGroup
from cfngen.deploy.aws.tags import cluster_tag, is_owned_by, tag_map
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding, problem, warning
from cfngen.deploy.preflight.network.situation import Situation


def find_missing_rules(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each rule that an existing security group lacks.

    A group that does not allow all outgoing traffic gets a warning, and has to allow the traffic within the cluster.
    """
    situation = replace(situation, cluster=_with_ranges_of_public_subnets(situation))
    cluster = situation.cluster
    group_ids = _existing_group_ids(situation)
    # Rules that a command must not add, because the group has them, or an earlier command adds them: roles may share a
    # group, or have the same ranges.
    present = set(_present_rules(situation))
    for rule in rules_of_existing_groups(cluster):
        if group_ids[rule.role] not in _described_groups(situation) or _is_satisfied(situation, rule):
            continue
        if rule.peer == ANYWHERE and rule.is_egress:
            yield _restricted_egress(situation, needed_rule(cluster, rule, group_ids))
            missing = [need for need in _outgoing_rules(situation, rule.role) if not _is_satisfied(situation, need)]
        else:
            missing = [rule]
        for missing_rule in missing:
            needed = needed_rule(cluster, missing_rule, group_ids).without(present)
            if needed.peers:
                present.update(needed.identities)
                yield _missing_rule(situation, needed)


def _with_ranges_of_public_subnets(situation: Situation) -> Cluster:
    """Return the cluster with the ranges of existing public subnets, which the cluster file may leave out."""
    ranges = {
        subnet.zone: IPv4Network(described["CidrBlock"])
        for subnet, described in situation.existing_subnets
        if subnet.is_public and "CidrBlock" in described
    }
    network = situation.cluster.network
    subnets = tuple(
        subnet.model_copy(update={"public": subnet.public.model_copy(update={"cidr": ranges[subnet.zone]})})
        if subnet.public and subnet.public.cidr is None and subnet.zone in ranges
        else subnet
        for subnet in network.subnets
    )
    return situation.cluster.model_copy(update={"network": network.model_copy(update={"subnets": subnets})})


def _present_rules(situation: Situation) -> Iterator[RuleIdentity]:
    """Yield the rules that the VPC's security groups have, as EC2 compares them."""
    for group_id, group in _described_groups(situation).items():
        for direction, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
            for permission in group.get(key, ()):
                peers = (
                    *(item["CidrIp"] for item in permission.get("IpRanges", ())),
                    *(item["GroupId"] for item in permission.get("UserIdGroupPairs", ())),
                    *(item["PrefixListId"] for item in permission.get("PrefixListIds", ())),
                )
                ports = (permission.get("FromPort"), permission.get("ToPort"))
                for peer in peers:
                    yield (group_id, direction, permission["IpProtocol"], *ports, peer)


def _existing_group_ids(situation: Situation) -> dict[GroupRole, str]:
    """Return the ids of the existing security groups by role, as the stack's parameters name them."""
    roles = existing_groups(situation.cluster)
    return {role: situation.values.get(group_parameter(role)) or group_id for role, group_id in roles.items()}


def _described_groups(situation: Situation) -> dict[str, AwsObject]:
    """Return the descriptions of the VPC's security groups by id."""
    return {group["GroupId"]: group for group in situation.facts.security_groups}


def groups_of_role(situation: Situation, role: GroupRole, node_group: str = "") -> set[str]:
    """Return the ids of the security groups that every network interface of a role has or will have.

    Of the groups that cfngen creates, those of an existing cluster are returned.

    Args:
        node_group: name of the only node group whose interfaces count; empty for those of the whole role.
    """
    existing_id = _existing_group_ids(situation).get(role)
    group_ids = {existing_id} if existing_id else _created_groups(situation, role)
    lists = [
        set(instances.additional_security_groups)
        for path, instances in all_instances(situation.cluster)
        if role == ("Master" if path == ("controlPlane",) else "Node")
        and (not node_group or node_group == getattr(instances, "name", ""))
    ]
    return group_ids | (set.intersection(*lists) if lists else set())


def _created_groups(situation: Situation, role: GroupRole | Literal["Bastion"]) -> set[str]:
    """Return the id of the first security group of a role that the cluster's stacks have created; empty if none.

    CloudFormation makes the group's name of the stack's name, the logical id and random characters ("Name type", AWS
    CloudFormation User Guide).
    """
    return {
        group_id
        for group_id, group in _described_groups(situation).items()
        if situation.is_own(group) and f"-{role}SecurityGroup-" in group["GroupName"]
    }


def _is_satisfied(situation: Situation, rule: Rule) -> bool:
    """Return whether the security groups of the rule's role allow its traffic."""
    described = _described_groups(situation)
    key = "IpPermissionsEgress" if rule.is_egress else "IpPermissions"
    group_ids = groups_of_role(situation, rule.role, rule.node_group)
    groups = [described[group_id] for group_id in group_ids if group_id in described]
    permissions = [permission for group in groups for permission in group.get(key, ())]
    if isinstance(rule.peer, str):
        return permits(
            permissions,
            rule.protocol,
            rule.ports,
            group_ids=groups_of_role(situation, rule.peer),
            cidrs=ranges_of_role(situation.cluster, rule.peer),
        )
    if isinstance(rule.peer, PrefixList):
        return permits(permissions, rule.protocol, rule.ports, prefix_list=rule.peer.id)
    if isinstance(rule.peer, OtherGroup):
        return permits(permissions, rule.protocol, rule.ports, group_ids=(rule.peer.id,))
    is_for_bastion = rule in bastion_rules(situation.cluster)
    bastion_groups = _created_groups(situation, "Bastion") if is_for_bastion else set()
    return permits(permissions, rule.protocol, rule.ports, group_ids=bastion_groups, cidrs=(rule.peer,))


def _outgoing_rules(situation: Situation, role: GroupRole) -> Iterator[Rule]:
    """Yield the rules for outgoing traffic that a role needs within the cluster: one for each rule of its peers."""
    for rule in all_rules(situation.cluster):
        if rule.peer == role and not rule.is_egress:
            yield replace(rule, role=role, peer=rule.role, is_egress=True)


def _missing_rule(situation: Situation, needed: NeededRule) -> Finding:
    """Return the problem of a group that lacks a rule."""
    direction = "incoming" if needed.direction == "ingress" else "outgoing"
    preposition = "from" if needed.direction == "ingress" else "to"
    return problem(
        needed.key,
        f"{needed.group} has no rule for {direction} {needed.traffic} {preposition} {', '.join(needed.peers)} "
        f"({needed.description})",
        "add the rule, or a wider one",
        needed.command(situation.region),
    )


def _restricted_egress(situation: Situation, needed: NeededRule) -> Finding:
    """Return the warning about a group that does not allow all outgoing traffic."""
    return warning(
        needed.key,
        f"{needed.group} does not allow all outgoing traffic; what instances must reach outside of the cluster was not "
        "compared with its rules",
        "compare them with what the command `config --egress` lists, or allow all outgoing traffic",
        needed.command(situation.region),
    )


def find_tag_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if the nodes' existing group has no cluster tag, or one with which `cfngen delete` would take it.

    The cloud controller manager adds the rules for load balancers of Services to the one security group of a node that
    has the cluster's tag; of several groups without it, it takes none (`findSecurityGroupForInstance` in
    pkg/providers/v1/aws.go of cloud-provider-aws). The masters' role may only change groups with the tag.
    """
    cluster = situation.cluster
    key = cluster_tag(cluster.name)
    for role, group_id in _existing_group_ids(situation).items():
        tags = tag_map(_described_groups(situation).get(group_id, {}).get("Tags"))
        if group_id not in _described_groups(situation):
            continue
        command = (
            f"aws ec2 create-tags --region {situation.region} --resources {group_id} --tags Key={key},Value=shared"
        )
        if is_owned_by(tags, cluster.name):
            yield problem(
                group_key(role),
                f"{group_id} has the tags of what belongs to the cluster {cluster.name} alone, and is deleted with it",
                f"give the tag {key} the value shared",
                command,
            )
        elif role == "Node" and key not in tags and not _additional_groups_have_tag(situation):
            yield warning(
                group_key(role),
                f"{group_id} has no tag {key}, so the cloud controller manager does not open it for load balancers of "
                "Services: they reach no node, unless the group has rules for the node ports (30000-32767)",
                "add the tag; the controller then adds and removes rules for load balancers in the group",
                command,
            )


def _additional_groups_have_tag(situation: Situation) -> bool:
    """Return whether each node group has one additional security group with the cluster's tag."""
    described = _described_groups(situation)
    key = cluster_tag(situation.cluster.name)
    return all(
        sum(key in tag_map(described.get(id_, {}).get("Tags")) for id_ in instances.additional_security_groups) == 1
        for path, instances in all_instances(situation.cluster)
        if path != ("controlPlane",)
    )


_ALL = "-1"
# Rules for all of these protocols take the place of one for all protocols: the cluster uses no others.
_PROTOCOLS: tuple[tuple[str, tuple[int, int]], ...] = (("tcp", (0, 65535)), ("udp", (0, 65535)), ("icmp", (-1, -1)))
_NUMBERS = {"1": "icmp", "6": "tcp", "17": "udp"}


def permits(
    permissions: Sequence[AwsObject],
    protocol: str,
    ports: tuple[int, int] | None,
    *,
    group_ids: Collection[str] = (),
    cidrs: Iterable[IPv4Network] = (),
    prefix_list: str = "",
) -> bool:
    """Return whether permissions of security groups (`IpPermission` in the EC2 API) allow some traffic.

    What a prefix list contains is not known here; it is taken to contain the ranges.

    Args:
        permissions: the permissions for the direction of the traffic.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        ports: first and last port, or type and code for `icmp`; None, as of all protocols, for all traffic.
        group_ids: security groups, one of which the permissions may name.
        cidrs: the address ranges that the permissions otherwise must contain.
        prefix_list: the prefix list that the permissions may name; empty if there is none.
    """
    traffic = _PROTOCOLS if ports is None else ((protocol, ports),)
    return all(
        _permits_peer(
            [permission for permission in permissions if _includes_ports(permission, one_protocol, its_ports)],
            group_ids,
            tuple(cidrs),
            prefix_list,
        )
        for one_protocol, its_ports in traffic
    )


def _includes_ports(permission: AwsObject, protocol: str, ports: tuple[int, int]) -> bool:
    """Return whether a permission is for all ports of `ports`, or for the type and code of `icmp`."""
    permitted_protocol = str(permission["IpProtocol"])
    permitted_protocol = _NUMBERS.get(permitted_protocol, permitted_protocol)
    if permitted_protocol == _ALL:
        return True
    if permitted_protocol != protocol:
        return False
    first, last = int(permission.get("FromPort", -1)), int(permission.get("ToPort", -1))
    if protocol == "icmp":
        return first in (-1, ports[0]) and last in (-1, ports[1])
    # -1 stands for all ports.
    return first == -1 or (first <= ports[0] and ports[1] <= last)


def _permits_peer(
    permissions: Sequence[AwsObject], group_ids: Collection[str], cidrs: Sequence[IPv4Network], prefix_list: str
) -> bool:
    """Return whether permissions name a group or the prefix list, or contain all of the ranges."""
    named_groups = {pair["GroupId"] for permission in permissions for pair in permission.get("UserIdGroupPairs", ())}
    if named_groups.intersection(group_ids):
        return True
    named_lists = {item["PrefixListId"] for permission in permissions for item in permission.get("PrefixListIds", ())}
    permitted = list(
        collapse_addresses(
            IPv4Network(item["CidrIp"]) for permission in permissions for item in permission.get("IpRanges", ())
        )
    )
    if prefix_list:
        return prefix_list in named_lists or IPv4Network("0.0.0.0/0") in permitted
    if cidrs and named_lists:
        return True
    return bool(cidrs) and all(any(cidr.subnet_of(range_) for range_ in permitted) for cidr in cidrs)
