"""Stack policies: which resources an update may modify, replace or delete.

CloudFormation user guide, "Prevent updates to stack resources": a stack without a policy allows all updates. With a
policy, updates are denied unless a statement allows them, and Deny overrides Allow.
"""

from __future__ import annotations

import fnmatch
import json

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.json_types import JsonObject

STATEMENT_KEYS = {"Effect", "Action", "NotAction", "Principal", "Resource", "NotResource", "Condition", "Sid"}


def denial_reason(stack: Stack, resource: Resource, action: str) -> str:
    """Why the stack policy denies an action on a resource; "" if it allows the action.

    Args:
        action: Update:Modify, Update:Replace or Update:Delete
    """
    policy_body = stack.policy_during_update or stack.policy
    if not policy_body:
        return ""
    target = f"LogicalResourceId/{resource.logical_id}"
    allowed = False
    for number, statement in enumerate(json.loads(policy_body)["Statement"], start=1):
        if _applies_to(statement, action, target, resource.type):
            if statement["Effect"] == "Deny":
                return (
                    f"Action denied by stack policy: Statement [#{number}] does not allow [{action}] for resource "
                    f"[{target}]"
                )
            allowed = True
    return "" if allowed else f"Action not allowed by stack policy: no statement allows [{action}] for [{target}]"


def _applies_to(statement: JsonObject, action: str, target: str, resource_type: str) -> bool:
    """Whether a statement of a policy is about an action on a resource.

    Args:
        target: the resource as policies name it: `LogicalResourceId/<logical id>`
    """
    if unknown := sorted(set(statement) - STATEMENT_KEYS):
        raise NotModelledError(f"stack policies with {unknown}")
    return (
        _matches_element(statement, "Action", action)
        and _matches_element(statement, "Resource", target)
        and all(
            _condition_is_met(key, condition, resource_type)
            for key, condition in statement.get("Condition", {}).items()
        )
    )


def _matches_element(statement: JsonObject, key: str, value: str) -> bool:
    """Whether an element such as Action, or its opposite NotAction, makes a statement apply to a value."""
    opposite_key = f"Not{key}"
    if opposite_key in statement:
        return not _matches_any(statement[opposite_key], value)
    return _matches_any(statement[key], value)


def _matches_any(patterns: str | list[str], value: str) -> bool:
    """Whether a value matches one of the patterns, in which `*` stands for any text; a single pattern needs no list."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _condition_is_met(operator: str, condition: JsonObject, resource_type: str) -> bool:
    """Whether the resource type meets a condition of a statement."""
    if operator not in ("StringEquals", "StringLike") or set(condition) != {"ResourceType"}:
        raise NotModelledError(f"stack policies with the condition {operator} {condition}")
    wanted_types = condition["ResourceType"]
    if operator == "StringLike":
        return _matches_any(wanted_types, resource_type)
    return resource_type in ([wanted_types] if isinstance(wanted_types, str) else wanted_types)
