"""Stack policies: which resources an update may modify, replace or delete.

CloudFormation user guide, "Prevent updates to stack resources": a stack without a policy allows every update; once
there is a policy, what no statement allows is denied, and a denial overrides what is allowed.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.stack import Resource, Stack

KEYS = {"Effect", "Action", "NotAction", "Principal", "Resource", "NotResource", "Condition", "Sid"}


def denial(stack: Stack, resource: Resource, action: str) -> str:
    """Why a policy forbids an action such as Update:Replace; nothing if it does not."""
    text = stack.policy_during_update or stack.policy
    if not text:
        return ""
    target = f"LogicalResourceId/{resource.logical_id}"
    allowed = False
    for number, statement in enumerate(json.loads(text)["Statement"], 1):
        if _applies(statement, action, target, resource.type):
            if statement["Effect"] == "Deny":
                return (
                    f"Action denied by stack policy: Statement [#{number}] does not allow [{action}] for resource "
                    f"[{target}]"
                )
            allowed = True
    return "" if allowed else f"Action not allowed by stack policy: no statement allows [{action}] for [{target}]"


def _applies(statement: Mapping[str, Any], action: str, target: str, resource_type: str) -> bool:
    if unknown := sorted(set(statement) - KEYS):
        raise NotModelledError(f"stack policies with {unknown}")
    return (
        _names(statement, "Action", action)
        and _names(statement, "Resource", target)
        and all(_holds(key, each, resource_type) for key, each in statement.get("Condition", {}).items())
    )


def _names(statement: Mapping[str, Any], key: str, value: str) -> bool:
    if f"Not{key}" in statement:
        return not _matches(statement[f"Not{key}"], value)
    return _matches(statement[key], value)


def _matches(patterns: Any, value: str) -> bool:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _holds(operator: str, condition: Mapping[str, Any], resource_type: str) -> bool:
    if operator not in ("StringEquals", "StringLike") or set(condition) != {"ResourceType"}:
        raise NotModelledError(f"stack policies with the condition {operator} {condition}")
    wanted = condition["ResourceType"]
    wanted = [wanted] if isinstance(wanted, str) else wanted
    return resource_type in wanted if operator == "StringEquals" else _matches(wanted, resource_type)
