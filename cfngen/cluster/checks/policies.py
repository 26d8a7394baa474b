"""Checks of the statements that a cluster file adds to the roles of node groups and of service accounts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from cfngen.cluster.model import Cluster, PolicyStatement
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

# IAM allows 10,240 characters for all inline policies of a role, white space not counted ("IAM and AWS STS quotas",
# IAM User Guide). The rest is for what every node needs; the role of a service account has nothing else.
MAX_OWN_CHARACTERS = 6_000
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
    "nodeGroups": "whoever takes over a node, or a pod with the host's network, may do all of it",
    "iam": "every pod of the service account may do all of it",
}


def _statement_lists(cluster: Cluster) -> Iterator[tuple[Path, tuple[PolicyStatement, ...], int]]:
    """Yield the path and the statements of each role, and how many characters they may have."""
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


PROBLEM_CHECKS = (_check_size, _check_conditions)
WARNING_CHECKS = (_warn_of_everything,)
