"""What one set of policies grants more and less than another one, and what templates grant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from cfngen.permissions.statements import Statement


@dataclass(frozen=True)
class RightChange:
    """Actions on one resource that are granted more or less.

    Attributes:
        sid: id of the statement that has the actions, or had them.
        effect: the statement's effect, `Allow` or `Deny`: what is denied more is granted less.
        actions: names of the actions, sorted.
        resource: ARN or pattern, or an expression of a template.
        condition: the condition under which the statement applies; empty if it always does.
    """

    sid: str
    effect: str
    actions: tuple[str, ...]
    resource: Any
    condition: Mapping[str, Any]


@dataclass(frozen=True)
class PermissionDifference:
    """What a grantee is granted more and less.

    Attributes:
        grantee: name of the grantee, as `Grant.name`; of deployed stacks, the logical id of the role.
        more: what is granted in addition.
        less: what is granted no more.
    """

    kind: ClassVar[str] = "permissionDifference"
    grantee: str
    more: tuple[RightChange, ...]
    less: tuple[RightChange, ...]


class _Right(NamedTuple):
    """One action on one resource under a condition; resource and condition as JSON."""

    effect: str
    action: str
    resource: str
    condition: str


def permission_differences(
    former: Mapping[str, Sequence[Statement]], present: Mapping[str, Sequence[Statement]]
) -> Iterator[PermissionDifference]:
    """Yield the differences of each grantee that has any, those of `present` first.

    Statements are compared by what they grant: one that only got another id, or was divided, is no difference.

    Args:
        former: the statements by grantee with which those of `present` are compared.
    """
    for grantee in dict.fromkeys([*present, *former]):
        before, after = (_rights(statements.get(grantee, ())) for statements in (former, present))
        added = {right: sid for right, sid in after.items() if right not in before}
        removed = {right: sid for right, sid in before.items() if right not in after}
        if added or removed:
            yield PermissionDifference(
                grantee,
                more=_changes(allowed=added, no_longer_denied=removed),
                less=_changes(allowed=removed, no_longer_denied=added),
            )


def statements_by_role(templates: Iterable[Mapping[str, Any]]) -> dict[str, list[Statement]]:
    """Return the statements of each role, of its inline and its managed policies, by the role's logical id.

    Args:
        templates: templates of one cluster, in which a managed policy is in the same one as its roles.
    """
    statements: dict[str, list[Statement]] = {}
    for template in templates:
        resources = template.get("Resources", {})
        for logical_id, resource in resources.items():
            if resource["Type"] == "AWS::IAM::Role":
                policies = resource["Properties"].get("Policies", [])
                documents = [policy["PolicyDocument"] for policy in policies]
                statements[logical_id] = [statement for document in documents for statement in document["Statement"]]
        for resource in resources.values():
            if resource["Type"] == "AWS::IAM::ManagedPolicy":
                for role in resource["Properties"]["Roles"]:
                    statements[role["Ref"]] += resource["Properties"]["PolicyDocument"]["Statement"]
    return statements


def _rights(statements: Sequence[Statement]) -> dict[_Right, str]:
    """Return the rights of statements, each with the id of its first statement."""
    rights: dict[_Right, str] = {}
    for statement in statements:
        condition = json.dumps(statement.get("Condition", {}), sort_keys=True)
        for resource in _listed(statement["Resource"]):
            for action in _listed(statement["Action"]):
                right = _Right(statement["Effect"], str(action), json.dumps(resource, sort_keys=True), condition)
                rights.setdefault(right, statement["Sid"])
    return rights


def _changes(*, allowed: Mapping[_Right, str], no_longer_denied: Mapping[_Right, str]) -> tuple[RightChange, ...]:
    actions_by_statement: dict[tuple[str, str, str, str], list[str]] = {}
    for effect, sid_by_right in (("Allow", allowed), ("Deny", no_longer_denied)):
        for right, sid in sid_by_right.items():
            if right.effect == effect:
                key = (sid, effect, right.resource, right.condition)
                actions_by_statement.setdefault(key, []).append(right.action)
    return tuple(
        RightChange(sid, effect, tuple(sorted(actions)), json.loads(resource), json.loads(condition))
        for (sid, effect, resource, condition), actions in actions_by_statement.items()
    )


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
