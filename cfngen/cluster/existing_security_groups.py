"""The existing security groups that the cluster file names in place of those that cfngen creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted

# Whose security group it is. The first four also have rules for the sources in the cluster file, see
# `cfngen.cluster.allowed_sources`.
GroupRole = Literal["Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer", "Endpoints"]
GROUP_ROLES: tuple[GroupRole, ...] = ("Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer", "Endpoints")
GROUPS_PATH: Path = ("network", "securityGroups")
# Fields of `cfngen.cluster.sections.network.SecurityGroups`, and their keys in the cluster file.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "Master": ("masters", "masters"),
    "Node": ("nodes", "nodes"),
    "ApiLoadBalancer": ("api_load_balancer", "apiLoadBalancer"),
    "InternalApiLoadBalancer": ("internal_api_load_balancer", "internalApiLoadBalancer"),
    "Endpoints": ("endpoints", "endpoints"),
}


def existing_group(cluster: Cluster, role: str) -> str | None:
    """Return the id of the existing security group of a role, or None if cfngen creates the group."""
    if role not in _FIELDS:
        return None
    group_id: str | None = getattr(cluster.network.security_groups, _FIELDS[role][0])
    return group_id


def existing_groups(cluster: Cluster) -> dict[GroupRole, str]:
    """Return the ids of the existing security groups by role."""
    ids_by_role = {role: existing_group(cluster, role) for role in GROUP_ROLES}
    return {role: group_id for role, group_id in ids_by_role.items() if group_id}


def is_one_group_for_instances(cluster: Cluster) -> bool:
    """Return whether masters and nodes share an existing security group.

    A rule that names the masters' group then names the nodes' group too, and EC2 refuses the same rule twice
    (`InvalidPermission.Duplicate`).
    """
    masters_group = existing_group(cluster, "Master")
    return masters_group is not None and masters_group == existing_group(cluster, "Node")


def group_parameter(role: GroupRole) -> str:
    """Return the name of the stack parameter, or output, with the id of a role's first security group."""
    return f"{role}SecurityGroupId"


def group_path(role: GroupRole) -> Path:
    """Return the path of the key in the cluster file that names the existing security group of a role."""
    return (*GROUPS_PATH, _FIELDS[role][1])


def group_key(role: GroupRole) -> str:
    """Return the key in the cluster file that names the existing security group of a role."""
    return dotted(group_path(role))
