"""What DescribeChangeSet tells of the changes that a change set has: as much as AWS does, or all of it.

AWS tells less than it does. Sources are the recordings of LocalStack's tests (tests/aws/services/cloudformation,
`*.snapshot.json`, e.g. test_change_set_fn_get_attr), unless a comment says otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cfngen.sandbox.cloudformation.change_sets import ResourceChange, ResourceChangeDetail, replacement_by, text_in_api
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.cloudformation.template import NESTED_STACK

AWS, GENEROUS = "aws", "generous"
ANSWERS = (AWS, GENEROUS)
# Longer values of properties are not shown. The number is assumed: policies of about 3,000 characters were cut off.
MAX_SHOWN_LENGTH = 1_024


@dataclass
class Answers:
    """How an emulated account describes change sets.

    Attributes:
        mode: `aws`, or `generous` for all that the emulator knows.
        max_length: how long a property's value may be, as text, to be shown by AWS.
    """

    mode: str = AWS
    max_length: int = MAX_SHOWN_LENGTH

    def describe(self, changes: Sequence[ResourceChange], *, with_values: bool) -> list[ResourceChange]:
        """Return the changes as they are described, with or without `IncludePropertyValues`."""
        if self.mode == GENEROUS:
            return list(changes)
        in_place = _updated_in_place(changes)
        if not with_values:
            return [replace(change, details=tuple(_without_values(change, in_place))) for change in changes]
        described = (_without_attributes_of(change, in_place) for change in changes)
        return [self._shorten(change) for change in described if change]

    def _shorten(self, change: ResourceChange) -> ResourceChange:
        """Return a change without long values: a property with such a value is listed as a whole."""
        before, after = json.loads(change.before_context or "{}"), json.loads(change.after_context or "{}")
        long_properties = {
            name
            for name in before.get("Properties", {}) | after.get("Properties", {})
            if any(self._is_long(context.get("Properties", {}).get(name)) for context in (before, after))
        }
        details: dict[tuple[str, str, str], ResourceChangeDetail] = {}
        for detail in _with_both_sources(change.details):
            name = detail.path.split("/")[2] if detail.path.startswith("/Properties/") else ""
            if name in long_properties:
                detail = replace(
                    detail,
                    path=f"/Properties/{name}",
                    before=self._shown(before.get("Properties", {}).get(name)),
                    after=self._shown(after.get("Properties", {}).get(name)),
                    change_type="Modify",
                    evaluation="Static",
                    change_source="DirectModification",
                    causing_entity="",
                )
            details.setdefault((detail.path, detail.change_source, detail.causing_entity), detail)
        return replace(
            change,
            details=tuple(_with_tags_as_property(detail) for detail in details.values()),
            before_context=change.before_context and self._context(before),
            after_context=change.after_context and self._context(after),
        )

    def _context(self, definition: dict[str, Any]) -> str:
        properties = {
            name: self._shown(value) if self._is_long(value) else value
            for name, value in definition.get("Properties", {}).items()
        }
        return json.dumps({**definition, "Properties": properties})

    def _is_long(self, value: object) -> bool:
        return len(text_in_api(value) or "") > self.max_length

    def _shown(self, value: object) -> str | None:
        text = text_in_api(value)
        if text is None or not self._is_long(text):
            return text
        # The SHA-256 is of something that is not documented.
        return f"(Truncated-Signature):{hashlib.sha256(text.encode()).hexdigest()}"


def _updated_in_place(changes: Sequence[ResourceChange]) -> set[str]:
    """Return the resources whose attributes are taken for unchanged; an output of a nested stack never is."""
    return {change.logical_id for change in changes if change.replacement == "False" and change.type != NESTED_STACK}


def _without_attributes_of(change: ResourceChange, in_place: Collection[str]) -> ResourceChange | None:
    """Return a change without what follows from resources that are updated in place; None if nothing else changes.

    With values, Fn::GetAtt of such a resource has its old value, whatever the update will do.
    """
    left_out = [detail for detail in change.details if detail.causing_entity.partition(".")[0] in in_place]
    if not left_out:
        return change
    details = tuple(detail for detail in change.details if detail not in left_out)
    if not details and change.child is None:
        return None
    after = json.loads(change.after_context or "{}")
    for detail in left_out:
        _set(after, detail.path, detail.before)
    replacement = replacement_by(details)
    return replace(
        change,
        details=details,
        replacement=replacement,
        policy_action="" if replacement == "False" else change.policy_action,
        after_context=json.dumps(after),
    )


def _without_values(change: ResourceChange, in_place: Collection[str]) -> Iterator[ResourceChangeDetail]:
    """Yield the details of a description without values: one for each property, source and cause, without a path."""
    seen: set[ResourceChangeDetail] = set()
    for detail in change.details:
        cause = detail.causing_entity.partition(".")[0]
        is_reference = detail.change_source in ("ResourceReference", "ResourceAttribute")
        bare = replace(
            _with_tags_as_property(detail),
            path="",
            before=None,
            after=None,
            evaluation=("Dynamic" if cause in in_place else "Static") if is_reference else detail.evaluation,
        )
        if bare not in seen:
            seen.add(bare)
            yield bare


def _with_both_sources(details: Sequence[ResourceChangeDetail]) -> Iterator[ResourceChangeDetail]:
    """Yield details with values: a value that is known later once as the property's change, and once by its cause."""
    for detail in details:
        if UNKNOWN in (detail.after or "") and detail.causing_entity:
            yield replace(detail, evaluation="Dynamic", change_source="DirectModification", causing_entity="")
            yield replace(detail, evaluation="Static")
        else:
            yield detail


def _with_tags_as_property(detail: ResourceChangeDetail) -> ResourceChangeDetail:
    if detail.attribute != "Tags":
        return detail
    return replace(detail, attribute="Properties", name=detail.path.split("/")[2])


def _set(definition: Any, path: str, text: str | None) -> None:
    """Set the value at a path of a definition to the value that a text of the API stands for."""
    *parents, last = path.split("/")[1:]
    for part in parents:
        definition = definition[int(part)] if isinstance(definition, list) else definition.setdefault(part, {})
    if isinstance(definition, list):
        definition[int(last)] = text
    else:
        definition[last] = text
