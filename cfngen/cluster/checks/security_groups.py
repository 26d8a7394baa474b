"""Checks of the existing security groups that take the place of those that cfngen creates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.checks.sections import all_instances
from cfngen.cluster.existing_security_groups import GROUPS_PATH, GroupRole, existing_group, existing_groups, group_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.security_group_rules import load_balancer_roles, used_roles

# Why a cluster may have no security group of a role.
_REASONS_OF_ABSENCE: Mapping[GroupRole, str] = {
    "ApiLoadBalancer": "the API has no load balancer: clients reach the single master by its own address",
    "InternalApiLoadBalancer": "the API has no internal load balancer beside a public one; a single one, public or "
    "internal, has the group of apiLoadBalancer",
    "Endpoints": "cfngen creates no interface endpoints, which it does with `nat: none` and `endpoints.create`",
}


def _check_groups_have_vpc(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.vpc.id:
        return
    for role, group_id in existing_groups(cluster).items():
        message = (
            f"{group_id} is in an existing VPC; set network.vpc.id (or VPC_ID) to the id of that VPC, or remove the "
            "key: cfngen then creates the group"
        )
        yield Problem(group_path(role), message, related_paths=(("network", "vpc", "id"),))


def _check_groups_used(cluster: Cluster) -> Iterator[Problem]:
    for role in existing_groups(cluster):
        if role not in used_roles(cluster):
            related_paths = (("api",), ("controlPlane", "count"), ("network", "topology"), ("network", "endpoints"))
            yield Problem(group_path(role), f"{_REASONS_OF_ABSENCE[role]}; remove the key", related_paths=related_paths)


def check_groups_not_repeated(cluster: Cluster) -> Iterator[Problem]:
    """Check that no instance gets its first security group a second time: EC2 refuses a group that is named twice."""
    for path, instances in all_instances(cluster):
        role: GroupRole = "Master" if path == ("controlPlane",) else "Node"
        group_id = existing_group(cluster, role)
        if group_id in instances.additional_security_groups:
            position = instances.additional_security_groups.index(group_id)
            message = f"{group_id} is the instances' first security group already; remove it from this list"
            yield Problem((*path, "additionalSecurityGroups", position), message, related_paths=(group_path(role),))


def _warn_of_unknown_clients(cluster: Cluster) -> Iterator[Problem]:
    role: GroupRole = "ApiLoadBalancer" if load_balancer_roles(cluster) else "Master"
    group_id = existing_group(cluster, role)
    if group_id and not (cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists):
        message = (
            f"its rules decide who reaches the API, and cfngen does not know who should: name the ranges in "
            f"api.allowedCidrs, so that `cfngen check network` looks whether {group_id} lets them in"
        )
        yield Problem(group_path(role), message, related_paths=(("api", "allowedCidrs"), GROUPS_PATH))


PROBLEM_CHECKS = (_check_groups_have_vpc, _check_groups_used, check_groups_not_repeated)
WARNING_CHECKS = (_warn_of_unknown_clients,)
