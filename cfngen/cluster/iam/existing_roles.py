"""Existing IAM roles and instance profiles: which instances have them, and which are left to be made."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.sections.instances import InstanceRole, NodeGroup


def group_role(cluster: Cluster, group: NodeGroup) -> InstanceRole | None:
    """Return the existing role of a node group: its own, or the one of all nodes; None if its role is made."""
    return group.iam or cluster.iam.nodes


def has_own_role(group: NodeGroup) -> bool:
    """Return whether a node group's role, if it is made, is made for this group alone: it has policies of its own."""
    return bool(group.additional_policies or group.policy_statements)


def existing_roles(cluster: Cluster) -> Iterator[tuple[Path, InstanceRole]]:
    """Yield the path and the content of each section of the cluster file that names an existing role."""
    if cluster.iam.masters:
        yield ("iam", "masters"), cluster.iam.masters
    if cluster.iam.nodes:
        yield ("iam", "nodes"), cluster.iam.nodes
    for index, group in enumerate(cluster.node_groups):
        if group.iam:
            yield ("nodeGroups", index, "iam"), group.iam


def account_of_existing_roles(cluster: Cluster) -> str:
    """Return the number of the account that existing roles of instances are in; empty if there is none."""
    return next((existing.role.split(":")[4] for _, existing in existing_roles(cluster)), "")


def shares_made_role(cluster: Cluster) -> bool:
    """Return whether a role is made that node groups share: for all that have no role of their own."""
    return cluster.iam.nodes is None and not _all_groups_name_roles(cluster)


def shares_existing_role(cluster: Cluster) -> bool:
    """Return whether node groups share an existing role, `iam.nodes`."""
    return cluster.iam.nodes is not None and not _all_groups_name_roles(cluster)


def makes_roles(cluster: Cluster) -> bool:
    """Return whether any role is made: of instances or pods, or the one that delivers flow logs to CloudWatch Logs."""
    flow_logs = cluster.network.flow_logs
    return (
        _makes_instance_roles(cluster)
        or cluster.iam.addon_roles
        or any(account.role is None for account in cluster.iam.service_accounts)
        or (flow_logs is not None and flow_logs.destination == "cloudWatchLogs")
    )


def makes_instance_profiles(cluster: Cluster) -> bool:
    """Return whether any instance profile is made, around a role that is made or an existing one."""
    return _makes_instance_roles(cluster) or any(role.instance_profile is None for _, role in existing_roles(cluster))


def last_name(arn: str) -> str:
    """Return the name in the ARN of a role or an instance profile, without its path."""
    return arn.rpartition("/")[2]


def _makes_instance_roles(cluster: Cluster) -> bool:
    return cluster.iam.masters is None or shares_made_role(cluster)


def _all_groups_name_roles(cluster: Cluster) -> bool:
    return bool(cluster.node_groups) and all(group.iam for group in cluster.node_groups)
