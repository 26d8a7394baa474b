"""Lists in a resource's definition whose items a person knows by a key: tags, and the statements of policies.

CloudFormation compares lists by position, so that most of a list changes when an item is added in the middle of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.preview.change_set_reading import Entry

_TAGS = re.compile(r"/.*?/Tags(?=/|$)")
# A role's inline policies, or a policy document by itself: of a managed policy, a key, a bucket, or a role's trust.
_POLICIES = re.compile(r"/Properties/(Policies|[A-Za-z]*(?:PolicyDocument|KeyPolicy))(?=/|$)")


@dataclass(frozen=True)
class KeyedList:
    """A list before and after a change.

    Attributes:
        place: its path, e.g. `/Properties/Tags`.
        before: its items by their keys, each as text.
        after: likewise.
    """

    place: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def keyed_list(entry: Entry, place: str) -> KeyedList | None:
    """Return the list that a changed value lies in; None if it is in none, or the definitions are not told.

    Args:
        entry: the resource.
        place: path of the value, e.g. `/Properties/Tags/3/Value`.
    """
    for pattern, items in ((_TAGS, _tags), (_POLICIES, _statements)):
        if match := pattern.match(place):
            before, after = (
                items(_at(definition, match[0])) if definition else None for definition in (entry.before, entry.after)
            )
            if before is not None and after is not None:
                return KeyedList(match[0], before, after)
    return None


def _at(definition: Mapping[str, Any], place: str) -> Any:
    """Return what lies at a path; an empty list if there is nothing."""
    value: Any = definition
    for part in place.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else []
        elif isinstance(value, Mapping):
            value = value.get(part, [])
        else:
            return None
    return value


def _tags(value: Any) -> dict[str, str] | None:
    """Return tags by their keys; None if it is something else."""
    if not isinstance(value, list) or not all(isinstance(tag, Mapping) and "Key" in tag for tag in value):
        return None
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in value}


def _statements(value: Any) -> dict[str, str] | None:
    """Return the statements of a policy document, or of a list of policies, by their Sids.

    None where a statement has no Sid or shares one, or the document has other parts than statements and a version.
    """
    if isinstance(value, list):
        documents = {str(policy.get("PolicyName", "")): policy.get("PolicyDocument") for policy in value}
        if len(documents) < len(value):
            return None
        parts = {name: _statements(document) for name, document in documents.items()}
        return _together(parts)
    if not isinstance(value, Mapping) or not value.keys() <= {"Statement", "Version", "Id"}:
        return None
    statements = value.get("Statement", [])
    if not isinstance(statements, list) or not all(
        isinstance(statement, Mapping) and statement.get("Sid") for statement in statements
    ):
        return None
    keyed = {str(statement["Sid"]): json.dumps(statement, sort_keys=True) for statement in statements}
    return keyed if len(keyed) == len(statements) else None


def _together(parts: Mapping[str, dict[str, str] | None]) -> dict[str, str] | None:
    """Return the statements of several policies, each by its policy's name and its Sid."""
    joined: dict[str, str] = {}
    for name, statements in parts.items():
        if statements is None:
            return None
        joined.update({f"{name}/{sid}": text for sid, text in statements.items()})
    return joined
