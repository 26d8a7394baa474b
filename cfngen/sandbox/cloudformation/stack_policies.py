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
    """Why the stack policy denies an action such as Update:Replace on a resource; "" if it allows the action."""
    text = stack.policy_during_update or stack.policy
    if not text:
        return ""
    target = f"LogicalResourceId/{resource.logical_id}"
    allowed = False
    for number, statement in enumerate(json.loads(text)["Statement"], 1):
        if _applies_to(statement, action, target, resource.type):
            if statement["Effect"] == "Deny":
                return (
                    f"Action denied by stack policy: Statement [#{number}] does not allow [{action}] for resource "
                    f"[{target}]"
                )
            allowed = True
    return "" if allowed else f"Action not allowed by stack policy: no statement allows [{action}] for [{target}]"


def _applies_to(statement: JsonObject, action: str, target: str, resource_type: str) -> bool:
    """Whether a statement is about this action on this resource."""
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
    """Whether the patterns of an element such as Action, or of NotAction, match a value."""
    if f"Not{key}" in statement:
        return not _matches(statement[f"Not{key}"], value)
    return _matches(statement[key], value)


def _matches(patterns: str | list[str], value: str) -> bool:
    """Whether one of the patterns, in which `*` stands for any text, matches a value."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _condition_is_met(operator: str, condition: JsonObject, resource_type: str) -> bool:
    """Whether the resource type meets a condition of a statement."""
    if operator not in ("StringEquals", "StringLike") or set(condition) != {"ResourceType"}:
        raise NotModelledError(f"stack policies with the condition {operator} {condition}")
    resource_types = condition["ResourceType"]
    resource_types = [resource_types] if isinstance(resource_types, str) else resource_types
    return resource_type in resource_types if operator == "StringEquals" else _matches(resource_types, resource_type)
