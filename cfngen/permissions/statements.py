"""Statements of IAM policies, and policy documents made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

Expression = object
"""A text, or an expression such as `Fn::Sub` from which CloudFormation computes the text."""
Condition = Mapping[str, Mapping[str, Expression]]
"""An IAM condition: values by operator and key, e.g. `{"StringEquals": {"aws:RequestedRegion": "us-west-2"}}`."""

MANAGED_POLICY_LIMIT = 6_144
"""Maximum number of characters of a managed policy, without white space ("IAM and AWS STS quotas", IAM User Guide)."""


class _StatementWithoutCondition(TypedDict):
    """The keys that every statement has."""

    Sid: str
    Effect: str
    Action: list[str]
    Resource: list[Expression]


class Statement(_StatementWithoutCondition, total=False):
    """A statement of an IAM policy; `Condition` is optional."""

    Condition: Condition


class PolicyDocument(TypedDict):
    """An IAM policy document as JSON-ready data."""

    Version: str
    Statement: list[dict[str, object]]


def allow(
    sid: str, actions: str, resources: Sequence[Expression] = ("*",), condition: Condition | None = None
) -> Statement:
    """Return a statement that allows actions.

    Args:
        actions: names of actions such as `ec2:CreateTags`, separated by white space.
        resources: ARNs of the resources; by default any resource.
    """
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": actions.split(), "Resource": list(resources)}
    if condition:
        statement["Condition"] = condition
    return statement


def policy_document(statements: Sequence[Statement]) -> PolicyDocument:
    """Return a policy document in its shortest form: actions sorted and once each, a single resource not in a list."""
    return {"Version": "2012-10-17", "Statement": [_shortest(statement) for statement in statements]}


def policy_size(policy: PolicyDocument) -> int:
    """Return the number of characters of a policy document as IAM counts them: without white space."""
    return len(json.dumps(policy, separators=(",", ":"), ensure_ascii=False))


def merge_statements(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements, of which those with the same resources and condition are one, under the ids of all.

    Actions that an earlier statement allows on the same resources and more, under the same condition, are left out.
    """
    merged: list[Statement] = []
    for statement in statements:
        remaining = statement.copy()
        remaining["Action"] = [
            action
            for action in statement["Action"]
            if not any(_allows(earlier, action, statement) for earlier in merged)
        ]
        if not remaining["Action"]:
            continue
        for earlier in merged:
            if _resources_and_condition(earlier) == _resources_and_condition(statement):
                earlier["Action"] = [*earlier["Action"], *remaining["Action"]]
                earlier["Sid"] += f"And{statement['Sid']}"
                break
        else:
            merged.append(remaining)
    return merged


def split_into_documents(statements: Sequence[Statement], limit: int = MANAGED_POLICY_LIMIT) -> list[PolicyDocument]:
    """Distribute statements over as few documents as the limit requires; one that exceeds it alone is divided."""
    documents = [policy_document([])]
    size = empty = policy_size(documents[0]) - 1  # each statement brings a comma, but one
    for statement in statements:
        for part in _divide(statement, limit):
            document = policy_document([part])
            added = policy_size(document) - empty
            if documents[-1]["Statement"] and size + added > limit:
                documents.append(policy_document([]))
                size = empty
            size += added
            documents[-1]["Statement"] += document["Statement"]
    return documents


def _divide(statement: Statement, limit: int) -> Iterator[Statement]:
    """Divide a statement into statements that each fit into one document; one that fits is yielded unchanged.

    A statement is halved until the halves fit: each half has one half of the resources or, if there is only one
    resource, of the actions.

    Raises:
        ValueError: a statement with one action and one resource is larger than a document may be.
    """
    if policy_size(policy_document([statement])) <= limit:
        yield statement
        return
    first_half = statement.copy()
    second_half = statement.copy()
    first_half["Sid"] = f"{statement['Sid']}A"
    second_half["Sid"] = f"{statement['Sid']}B"
    resources = statement["Resource"]
    actions = statement["Action"]
    if len(resources) > 1:
        middle = len(resources) // 2
        first_half["Resource"] = resources[:middle]
        second_half["Resource"] = resources[middle:]
    elif len(actions) > 1:
        middle = len(actions) // 2
        first_half["Action"] = actions[:middle]
        second_half["Action"] = actions[middle:]
    else:
        raise ValueError(f"the statement {statement['Sid']} does not fit into a policy of {limit} characters")
    yield from _divide(first_half, limit)
    yield from _divide(second_half, limit)


def _shortest(statement: Statement) -> dict[str, object]:
    resources = statement["Resource"]
    return {
        **statement,
        "Action": sorted(set(statement["Action"])),
        "Resource": resources[0] if len(resources) == 1 else resources,
    }


def _allows(statement: Statement, action: str, other: Statement) -> bool:
    """Return whether a statement allows an action on all resources of another one, under the other one's condition."""
    return (
        action in statement["Action"]
        and statement.get("Condition") == other.get("Condition")
        and all(resource in statement["Resource"] for resource in other["Resource"])
    )


def _resources_and_condition(statement: Statement) -> tuple[list[Expression], Condition | None]:
    """Return what two statements must share to be merged."""
    return statement["Resource"], statement.get("Condition")
