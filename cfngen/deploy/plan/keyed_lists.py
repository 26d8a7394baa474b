"""Compares lists in a resource's definition by the keys of their items: tags, and the statements of policies.

CloudFormation compares lists by position, so an item that is added in the middle seems to change all items after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.aws.types import TemplatePart
from cfngen.templates.evaluation import value_at, with_placeholders

_TAGS_PATH = re.compile(r"/.*?/Tags(?=/|$)")
# Inline policies of a role, or the policy document of a managed policy, a key, a bucket, or a role's trust policy.
_POLICIES_PATH = re.compile(r"/Properties/(Policies|[A-Za-z]*(?:PolicyDocument|KeyPolicy))(?=/|$)")


@dataclass(frozen=True)
class KeyedList:
    """A list before and after a change.

    Attributes:
        path: path of the list, e.g. `/Properties/Tags`.
        before: the old items by their keys, each as text.
        after: the new items by their keys, each as text.
    """

    path: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def find_keyed_list(resource_change: ResourceChange, value_path: str) -> KeyedList | None:
    """Return the keyed list that contains a changed value; None if there is none, or the definitions are not known."""
    for pattern, items_by_key in ((_TAGS_PATH, _tags_by_key), (_POLICIES_PATH, _statements_by_sid)):
        if match := pattern.match(value_path):
            list_path = match[0]
            # An empty definition means that the definition is not known.
            before = items_by_key(_list_at(resource_change.before, list_path)) if resource_change.before else None
            after = items_by_key(_list_at(resource_change.after, list_path)) if resource_change.after else None
            if before is not None and after is not None:
                return KeyedList(list_path, before, after)
    return None


def with_tags_in_order_of(old: Any, new: Any) -> Any:
    """Return the new definition; lists in it that have the tags of the old one have them in the order of the old one.

    Tags are a set: tools such as the CDK sort them, which changes no resource.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return {key: with_tags_in_order_of(old.get(key), value) for key, value in new.items()}
    if not isinstance(old, list) or not isinstance(new, list):
        return new
    if _tags_by_key(new) and sorted(map(_as_text, old)) == sorted(map(_as_text, new)):
        return old
    return [with_tags_in_order_of(*pair) for pair in zip_longest(old[: len(new)], new)]


def _as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _list_at(definition: TemplatePart, path: str) -> object:
    """Return the list at a path, an empty one if the definition has none; a text if a function makes it."""
    value = with_placeholders(value_at(definition, path.split("/")[1:]))
    return [] if value is None else value


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
            return None  # two policies have the same name
        return _join_policies({name: _statements_by_sid(document) for name, document in documents.items()})
    if not isinstance(value, Mapping) or not value.keys() <= {"Statement", "Version", "Id"}:
        return None
    statements = value.get("Statement", [])
    if not isinstance(statements, list) or not all(
        isinstance(statement, Mapping) and statement.get("Sid") for statement in statements
    ):
        return None
    texts_by_sid = {str(statement["Sid"]): _as_text(statement) for statement in statements}
    return texts_by_sid if len(texts_by_sid) == len(statements) else None


def _join_policies(statements_by_policy: Mapping[str, dict[str, str] | None]) -> dict[str, str] | None:
    """Return the statements of several policies by `name/Sid`; None if the statements of one policy have no Sids."""
    joined: dict[str, str] = {}
    for name, statements in statements_by_policy.items():
        if statements is None:
            return None
        joined.update({f"{name}/{sid}": text for sid, text in statements.items()})
    return joined
