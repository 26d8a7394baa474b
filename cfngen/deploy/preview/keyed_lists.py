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
            before, after = (items(_at(each, match[0])) if each else None for each in (entry.before, entry.after))
            if before is not None and after is not None:
                return KeyedList(match[0], before, after)
    return None


def _at(definition: Mapping[str, Any], place: str) -> Any:
    """Return what lies at a path; an empty list if there is nothing."""
    found: Any = definition
    for part in place.split("/")[1:]:
        if isinstance(found, list):
            found = found[int(part)] if part.isdecimal() and int(part) < len(found) else []
        elif isinstance(found, Mapping):
            found = found.get(part, [])
        else:
            return None
    return found


def _tags(found: Any) -> dict[str, str] | None:
    """Return tags by their keys; None if it is something else."""
    if not isinstance(found, list) or not all(isinstance(each, Mapping) and "Key" in each for each in found):
        return None
    return {str(each["Key"]): str(each.get("Value", "")) for each in found}


def _statements(found: Any) -> dict[str, str] | None:
    """Return the statements of a policy document, or of a list of policies, by their Sids.

    None where a statement has no Sid or shares one, or the document has other parts than statements and a version.
    """
    if isinstance(found, list):
        documents = {str(each.get("PolicyName", "")): each.get("PolicyDocument") for each in found}
        if len(documents) < len(found):
            return None
        parts = {name: _statements(document) for name, document in documents.items()}
        return _together(parts)
    if not isinstance(found, Mapping) or not found.keys() <= {"Statement", "Version", "Id"}:
        return None
    statements = found.get("Statement", [])
    if not isinstance(statements, list) or not all(
        isinstance(statement, Mapping) and statement.get("Sid") for statement in statements
    ):
        return None
    keyed = {str(statement["Sid"]): json.dumps(statement, sort_keys=True) for statement in statements}
    return keyed if len(keyed) == len(statements) else None


def _together(parts: Mapping[str, dict[str, str] | None]) -> dict[str, str] | None:
    """Return the statements of several policies, each by its policy's name and its Sid."""
    together: dict[str, str] = {}
    for name, statements in parts.items():
        if statements is None:
            return None
        together.update({f"{name}/{sid}": text for sid, text in statements.items()})
    return together
