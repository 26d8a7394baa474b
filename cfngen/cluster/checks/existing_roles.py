"""Checks of existing IAM roles and instance profiles: what excludes each other, and what does not fit together."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.existing_roles import existing_roles, group_role, makes_roles, shares_existing_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem


def _check_no_policies_for_existing_roles(cluster: Cluster) -> Iterator[Problem]:
    if cluster.control_plane.additional_policies and cluster.iam.masters:
        yield _policies_problem(("controlPlane", "additionalPolicies"), ("iam", "masters"))
    for index, group in enumerate(cluster.node_groups):
        role_path: Path = ("nodeGroups", index, "iam") if group.iam else ("iam", "nodes")
        if group.additional_policies and group_role(cluster, group):
            yield _policies_problem(("nodeGroups", index, "additionalPolicies"), role_path)
        if group.policy_statements and group_role(cluster, group):
            yield _policies_problem(("nodeGroups", index, "policyStatements"), role_path)


def _policies_problem(path: Path, role_path: Path) -> Problem:
    """Return the problem of further policies for an existing role."""
    message = (
        f"{dotted(role_path)} names an existing role, which cfngen leaves as it is; attach the policies to the role "
        f"yourself and remove the key, or remove {dotted(role_path)}"
    )
    return Problem(path, message, related_paths=(role_path,))


def _check_boundary_has_role(cluster: Cluster) -> Iterator[Problem]:
    if cluster.iam.permissions_boundary and not makes_roles(cluster):
        message = (
            "no role is made that it could bound, since all roles exist; set the boundary of these roles yourself and "
            "remove the key"
        )
        related_paths = tuple(path for path, _ in existing_roles(cluster))
        yield Problem(("iam", "permissionsBoundary"), message, related_paths=related_paths)


def _check_nodes_role_used(cluster: Cluster) -> Iterator[Problem]:
    if cluster.iam.nodes and not shares_existing_role(cluster):
        message = "no node group has this role, since each names a role of its own; remove the key"
        related_paths = tuple(("nodeGroups", index, "iam") for index in range(len(cluster.node_groups)))
        yield Problem(("iam", "nodes"), message, related_paths=related_paths)


def _check_accounts(cluster: Cluster) -> Iterator[Problem]:
    """Check that an instance profile is in the account of its role: a profile holds no role of another account."""
    for path, existing in existing_roles(cluster):
        if existing.instance_profile is None:
            continue
        role_account, profile_account = (arn.split(":")[4] for arn in (existing.role, existing.instance_profile))
        if role_account != profile_account:
            message = (
                f"the instance profile is in account {profile_account}, and the role in {role_account}; use the "
                f"instance profile that holds the role"
            )
            yield Problem((*path, "instanceProfile"), message, related_paths=((*path, "role"),))


def _warn_of_shared_role(cluster: Cluster) -> Iterator[Problem]:
    masters = cluster.iam.masters
    for path, existing in existing_roles(cluster):
        if masters and existing is not masters and existing.role == masters.role:
            message = (
                "nodes have the masters' role: whoever takes over a node, or a pod with the host's network, may read "
                "the cluster's certificate authorities; use a role of its own"
            )
            yield Problem((*path, "role"), message, related_paths=(("iam", "masters", "role"),))


PROBLEM_CHECKS = (
    _check_no_policies_for_existing_roles,
    _check_boundary_has_role,
    _check_nodes_role_used,
    _check_accounts,
)
WARNING_CHECKS = (_warn_of_shared_role,)
