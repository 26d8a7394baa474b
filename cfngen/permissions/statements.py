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
        sid: its name.
        actions: `service:Action` names, separated by white space.
        resources: ARNs.
        condition: conditions that must all be met.
    """
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": actions.split(), "Resource": list(resources)}
    if condition:
        statement["Condition"] = condition
    return statement


def document(statements: Sequence[Statement]) -> Document:
    """Return a policy document in its shortest form: actions sorted, each once; a single resource without a list."""
    return {"Version": "2012-10-17", "Statement": [_shortest(statement) for statement in statements]}


def size(policy: Document) -> int:
    """Return the number of characters of a policy document, as IAM counts them."""
    return len(json.dumps(policy, separators=(",", ":"), ensure_ascii=False))


def merge(statements: Sequence[Statement]) -> list[Statement]:
    """Merge statements with the same resources and conditions, since the size of a policy is limited."""
    merged: list[Statement] = []
    for statement in statements:
        same_scope = (other for other in merged if _scope(other) == _scope(statement))
        mergeable = next(same_scope, None)
        if mergeable is None:
            merged.append(statement.copy())
        else:
            mergeable["Action"] = [*mergeable["Action"], *statement["Action"]]
    return merged


def documents(statements: Sequence[Statement], limit: int = MANAGED_POLICY_LIMIT) -> list[Document]:
    """Return the statements, in their order, as few policy documents that are not larger than the limit.

    Args:
        statements: the statements; one that is too large for a document is divided.
        limit: maximum size of a document.
    """
    pages: list[list[Statement]] = [[]]
    for statement in statements:
        for part in _divide(statement, limit):
            if size(document([*pages[-1], part])) > limit:
                pages.append([])
            pages[-1].append(part)
    return [document(page) for page in pages]


def _divide(statement: Statement, limit: int) -> Iterator[Statement]:
    """Yield the statement; if no document can hold it, as several with a part of the resources, or actions, each.

    Raises:
        ValueError: the statement has one action and one resource, and is larger than a document.
    """
    if size(document([statement])) <= limit:
        yield statement
        return
    part = statement.copy()
    for suffix in "AB":
        part["Sid"] = f"{statement['Sid']}{suffix}"
        for key in ("Resource", "Action"):
            values = statement[key]
            if len(values) > 1:
                middle = len(values) // 2
                part[key] = values[:middle] if suffix == "A" else values[middle:]
                break
        else:
            raise ValueError(f"the statement {statement['Sid']} does not fit into a policy of {limit} characters")
        yield from _divide(part.copy(), limit)


def _shortest(statement: Statement) -> dict[str, object]:
    resources = statement["Resource"]
    return {
        **statement,
        "Action": sorted(set(statement["Action"])),
        "Resource": resources[0] if len(resources) == 1 else resources,
    }


def _scope(statement: Statement) -> tuple[list[Expression], Condition | None]:
    return statement["Resource"], statement.get("Condition")
