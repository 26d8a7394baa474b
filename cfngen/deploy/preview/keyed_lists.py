"""Lists in a resource's definition whose items have a key: tags, and the statements of policies.

CloudFormation compares lists by position, so an item that is added in the middle changes all items after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.preview.change_set_reading import ResourceChange

_TAGS = re.compile(r"/.*?/Tags(?=/|$)")
# Inline policies of a role, or the policy document of a managed policy, a key, a bucket, or a role's trust policy.
_POLICIES = re.compile(r"/Properties/(Policies|[A-Za-z]*(?:PolicyDocument|KeyPolicy))(?=/|$)")


@dataclass(frozen=True)
class KeyedList:
    """A list before and after a change.

    Attributes:
        path: path of the list, e.g. `/Properties/Tags`.
        before: the old items by their keys, each as text.
        after: the new items, likewise.
    """

    path: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def keyed_list(entry: ResourceChange, value_path: str) -> KeyedList | None:
    """Return the keyed list that contains a changed value; None if there is none, or the definitions are not known.

    Args:
        entry: the change of the resource.
        value_path: path of the value, e.g. `/Properties/Tags/3/Value`.
    """
    for pattern, items in ((_TAGS, _tags_by_key), (_POLICIES, _statements_by_sid)):
        if match := pattern.match(value_path):
            before, after = (
                items(_value_at(definition, match[0])) if definition else None
                for definition in (entry.before, entry.after)
            )
            if before is not None and after is not None:
                return KeyedList(match[0], before, after)
    return None


def _value_at(definition: TemplatePart, place: str) -> object:
    """Return the value at a path; an empty list if there is none."""
    value: object = definition
    for part in place.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else []
        elif isinstance(value, Mapping):
            value = value.get(part, [])
        else:
            return None
    return value


def _tags_by_key(value: object) -> dict[str, str] | None:
    """Return the values of tags by their keys; None if the value is not a list of tags."""
    if not isinstance(value, list) or not all(isinstance(tag, Mapping) and "Key" in tag for tag in value):
        return None
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in value}


def _statements_by_sid(value: object) -> dict[str, str] | None:
    """Return the statements of a policy document, or of a list of policies, by their Sids.

    Return None if a statement has no Sid or one that is not unique, or if the document has other keys.
    """
    if isinstance(value, list):
        documents = {str(policy.get("PolicyName", "")): policy.get("PolicyDocument") for policy in value}
        if len(documents) < len(value):
            return None
        parts = {name: _statements_by_sid(document) for name, document in documents.items()}
        return _join_policies(parts)
    if not isinstance(value, Mapping) or not value.keys() <= {"Statement", "Version", "Id"}:
        return None
    statements = value.get("Statement", [])
    if not isinstance(statements, list) or not all(
        isinstance(statement, Mapping) and statement.get("Sid") for statement in statements
    ):
        return None
    keyed = {str(statement["Sid"]): json.dumps(statement, sort_keys=True) for statement in statements}
    return keyed if len(keyed) == len(statements) else None


def _join_policies(parts: Mapping[str, dict[str, str] | None]) -> dict[str, str] | None:
    """Return the statements of several policies by policy name and Sid; None if one of the policies has no keys."""
    joined: dict[str, str] = {}
    for name, statements in parts.items():
        if statements is None:
            return None
        joined.update({f"{name}/{sid}": text for sid, text in statements.items()})
    return joined
