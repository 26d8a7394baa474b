"""Checks of the statements that a cluster file adds to the roles of node groups."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cfngen.cluster.model import Cluster, PolicyStatement
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

# IAM allows 10,240 characters for all inline policies of a role, white space not counted ("IAM and AWS STS quotas",
# IAM User Guide). The rest is for what every node needs.
MAX_OWN_CHARACTERS = 6_000


def _statements(cluster: Cluster) -> Iterator[tuple[Path, PolicyStatement]]:
    """Yield the path and the content of each statement."""
    for index, group in enumerate(cluster.node_groups):
        for position, statement in enumerate(group.policy_statements):
            yield ("nodeGroups", index, "policyStatements", position), statement


def _check_size(cluster: Cluster) -> Iterator[Problem]:
    """Check that the statements of each group fit into the inline policy of its role."""
    for index, group in enumerate(cluster.node_groups):
        statements = [statement.model_dump() for statement in group.policy_statements]
        characters = len(json.dumps(statements, separators=(",", ":")))
        if characters > MAX_OWN_CHARACTERS:
            message = (
                f"the statements have {characters:,} characters, and the role has room for {MAX_OWN_CHARACTERS:,}; "
                "make a managed policy of them and name it in additionalPolicies"
            )
            yield Problem(("nodeGroups", index, "policyStatements"), message)


def _check_conditions(cluster: Cluster) -> Iterator[Problem]:
    """Check that conditions compare keys with texts, numbers or booleans, or lists of these, as IAM requires."""
    for path, statement in _statements(cluster):
        for operator, values_by_key in statement.conditions.items():
            for key, value in values_by_key.items():
                values = value if isinstance(value, list) else [value]
                if not values or not all(isinstance(item, (str, int, float)) for item in values):
                    message = "a condition compares with a text, a number, true or false, or a list of these"
                    yield Problem((*path, "conditions", operator, key), f"{message}; write the value as one of them")


def _warn_of_everything(cluster: Cluster) -> Iterator[Problem]:
    """Warn of a statement that allows all actions of a service on all resources, without a condition."""
    for path, statement in _statements(cluster):
        allows_all = statement.effect == "Allow" and "*" in statement.resources and not statement.conditions
        for position, action in enumerate(statement.actions):
            if allows_all and action.endswith(":*"):
                message = (
                    f"{action} on every resource: whoever takes over a node, or a pod with the host's network, may do "
                    "all of it; name the actions or the resources"
                )
                yield Problem((*path, "actions", position), message, related_paths=((*path, "resources"),))


PROBLEM_CHECKS = (_check_size, _check_conditions)
WARNING_CHECKS = (_warn_of_everything,)
