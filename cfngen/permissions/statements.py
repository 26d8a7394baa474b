"""Statements of IAM policies, and policy documents made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

Expression = object
"""A string, or a template's expression for one, such as `Fn::Sub`."""
Condition = Mapping[str, Mapping[str, Expression]]
"""Values by condition operator and condition key; all of them must match."""

MANAGED_POLICY_LIMIT = 6_144
"""Maximum number of characters of a managed policy, without white space ("IAM and AWS STS quotas", IAM User Guide)."""


class _Statement(TypedDict):
    Sid: str
    Effect: str
    Action: list[str]
    Resource: list[Expression]


class Statement(_Statement, total=False):
    """A statement of a policy."""

    Condition: Condition


class Document(TypedDict):
    """A policy document."""

    Version: str
    Statement: list[dict[str, object]]


def allow(
    sid: str, actions: str, resources: Sequence[Expression] = ("*",), condition: Condition | None = None
) -> Statement:
    """Return a statement that allows actions.

    Args:
        sid: the statement's id, which is unique in a policy.
        actions: `service:Action` names, separated by white space.
        resources: ARNs; by default any resource.
        condition: conditions that must all be met, or None.
    """
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": actions.split(), "Resource": list(resources)}
    if condition:
        statement["Condition"] = condition
    return statement


def document(statements: Sequence[Statement]) -> Document:
    """Return a policy document in its shortest form: actions sorted, each once; a single resource not in a list."""
    return {"Version": "2012-10-17", "Statement": [_shortest(statement) for statement in statements]}


def size(policy: Document) -> int:
    """Return the number of characters of a policy document, as IAM counts them."""
    return len(json.dumps(policy, separators=(",", ":"), ensure_ascii=False))


def merge(statements: Sequence[Statement]) -> list[Statement]:
    """Merge statements with the same resources and conditions, since the size of a policy is limited."""
    merged: list[Statement] = []
    for statement in statements:
        same_scope = [
            other for other in merged if _resources_and_condition(other) == _resources_and_condition(statement)
        ]
        if same_scope:
            target = same_scope[0]
            target["Action"] = [*target["Action"], *statement["Action"]]
        else:
            merged.append(statement.copy())
    return merged


def documents(statements: Sequence[Statement], limit: int = MANAGED_POLICY_LIMIT) -> list[Document]:
    """Distribute statements, in their order, over as few policy documents as the size limit requires.

    Args:
        statements: the statements. A statement that exceeds the limit is divided into several.
        limit: maximum size of a document.
    """
    statements_by_document: list[list[Statement]] = [[]]
    for statement in statements:
        for part in _divide(statement, limit):
            if size(document([*statements_by_document[-1], part])) > limit:
                statements_by_document.append([])
            statements_by_document[-1].append(part)
    return [document(document_statements) for document_statements in statements_by_document]


def _divide(statement: Statement, limit: int) -> Iterator[Statement]:
    """Yield a statement that fits into one document, or several statements into which a larger one is divided.

    Each of the several statements has a part of the resources or, if there is one resource, of the actions.

    Raises:
        ValueError: the statement has one action and one resource, and is larger than a document.
    """
    if size(document([statement])) <= limit:
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


def _resources_and_condition(statement: Statement) -> tuple[list[Expression], Condition | None]:
    return statement["Resource"], statement.get("Condition")
