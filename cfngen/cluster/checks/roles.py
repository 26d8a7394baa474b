"""Checks of IAM roles: existing ones, and the statements that are added to the roles of nodes and service accounts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from cfngen.cluster.iam.existing_roles import existing_roles, group_role, makes_roles, shares_existing_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import Instances
from cfngen.cluster.sections.service_accounts import PolicyStatement

# IAM allows 10,240 characters for all inline policies of a role, white space not counted ("IAM and AWS STS quotas",
# IAM User Guide). The rest is for what every node needs; the role of a service account has nothing else.
MAX_OWN_CHARACTERS = 6_000
# Masters have them in a managed policy, of 6,144 characters, where each statement has an id as well.
MAX_MASTER_CHARACTERS = 4_800
MAX_SERVICE_ACCOUNT_CHARACTERS = 10_000
# "IAM JSON policy elements: Condition operators", IAM User Guide.
_COMPARISON = "(Less|Greater)Than(Equals)?"
_OPERATOR = re.compile(
    "((ForAllValues|ForAnyValue):)?"
    f"((String(Not)?(Equals(IgnoreCase)?|Like)|(Numeric|Date)((Not)?Equals|{_COMPARISON})|Bool|(Not)?IpAddress"
    "|Arn(Not)?(Equals|Like))(IfExists)?|Null)"
    "|BinaryEquals"
)
_WHO_MAY = {
    "controlPlane": "whoever takes over a master, or a pod with the host's network, may do all of it",
    "nodeGroups": "whoever takes over a node, or a pod with the host's network, may do all of it",
    "iam": "every pod of the service account may do all of it",
}


def _check_no_policies_for_existing_roles(cluster: Cluster) -> Iterator[Problem]:
    if cluster.iam.masters:
        yield from _policies_problems(("controlPlane",), cluster.control_plane, ("iam", "masters"))
    for index, group in enumerate(cluster.node_groups):
        if group_role(cluster, group):
            role_path: Path = ("nodeGroups", index, "iam") if group.iam else ("iam", "nodes")
            yield from _policies_problems(("nodeGroups", index), group, role_path)


def _policies_problems(path: Path, instances: Instances, role_path: Path) -> Iterator[Problem]:
    message = (
        f"{dotted(role_path)} names an existing role, which cfngen leaves as it is; attach the policies to the role "
        f"yourself and remove the key, or remove {dotted(role_path)}"
    )
    # A group whose own role is refused has the role of all nodes only for want of it.
    own_path: Path = (*path, "iam")
    related_paths = (role_path,) if own_path == role_path or path == ("controlPlane",) else (role_path, own_path)
    if instances.additional_policies:
        yield Problem((*path, "additionalPolicies"), message, related_paths=related_paths)
    if instances.policy_statements:
        yield Problem((*path, "policyStatements"), message, related_paths=related_paths)


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


def _statement_lists(cluster: Cluster) -> Iterator[tuple[Path, tuple[PolicyStatement, ...], int]]:
    """Yield the path and the statements of each role, and how many characters they may have."""
    yield ("controlPlane", "policyStatements"), cluster.control_plane.policy_statements, MAX_MASTER_CHARACTERS
    for index, group in enumerate(cluster.node_groups):
        yield ("nodeGroups", index, "policyStatements"), group.policy_statements, MAX_OWN_CHARACTERS
    for index, account in enumerate(cluster.iam.service_accounts):
        path = ("iam", "serviceAccounts", index, "policyStatements")
        yield path, account.policy_statements, MAX_SERVICE_ACCOUNT_CHARACTERS


def policy_statements(cluster: Cluster) -> Iterator[tuple[Path, PolicyStatement]]:
    """Yield the path and the content of each statement."""
    for path, statements, _ in _statement_lists(cluster):
        for position, statement in enumerate(statements):
            yield (*path, position), statement


def _check_size(cluster: Cluster) -> Iterator[Problem]:
    for path, statements, max_characters in _statement_lists(cluster):
        characters = len(json.dumps([statement.model_dump() for statement in statements], separators=(",", ":")))
        if characters > max_characters:
            message = (
                f"the statements have {characters:,} characters, and the role has room for {max_characters:,}; "
                "make a managed policy of them and name it in additionalPolicies"
            )
            yield Problem(path, message)


def _check_conditions(cluster: Cluster) -> Iterator[Problem]:
    """Check operators, keys and values of conditions, for which IAM refuses the whole role otherwise.

    A key is compared as it is: neither CloudFormation nor IAM replaces anything in it.
    """
    for path, statement in policy_statements(cluster):
        for operator, values_by_key in statement.conditions.items():
            if not _OPERATOR.fullmatch(operator):
                message = f"{operator} is no condition operator of IAM, such as StringEquals; they differ in case, too"
                yield Problem((*path, "conditions", operator), message)
            for key, value in values_by_key.items():
                if ":" not in key or "${" in key:
                    message = (
                        "is no condition key, such as aws:ResourceTag/team; a variable can only be in the value with "
                        "which it is compared"
                    )
                    yield Problem((*path, "conditions", operator, key), message)
                values = value if isinstance(value, list) else [value]
                if not values or not all(isinstance(item, (str, int, float)) for item in values):
                    message = "a condition compares with a text, a number, true or false, or a list of these"
                    yield Problem((*path, "conditions", operator, key), f"{message}; write the value as one of them")


def _warn_of_everything(cluster: Cluster) -> Iterator[Problem]:
    for path, statement in policy_statements(cluster):
        allows_all = statement.effect == "Allow" and "*" in statement.resources and not statement.conditions
        for position, action in enumerate(statement.actions):
            if allows_all and action.endswith(":*"):
                message = f"{action} on every resource: {_WHO_MAY[str(path[0])]}; name the actions or the resources"
                yield Problem((*path, "actions", position), message, related_paths=((*path, "resources"),))


PROBLEM_CHECKS = (
    _check_no_policies_for_existing_roles,
    _check_boundary_has_role,
    _check_nodes_role_used,
    _check_accounts,
    _check_size,
    _check_conditions,
)
WARNING_CHECKS = (_warn_of_shared_role, _warn_of_everything)
