"""What a change set says about each resource of one stack: the template and values it has against those submitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation import property_schemas
from cfngen.sandbox.cloudformation.admission import NESTED
from cfngen.sandbox.cloudformation.change_sets import Change, ChangeSet, Detail, Finding
from cfngen.sandbox.cloudformation.errors import PropertyError, ResourceError
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.cloudformation.properties import POLICY_ATTRIBUTES, conforming, known_attribute, wanted
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack, masked
from cfngen.sandbox.cloudformation.template import SUBSTITUTION, ResourceDefinition

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

# What becomes of a nested stack: its resource if there is one, its properties, and what it answers with: the nested
# change set, or nothing where nested ones were not asked for.
Nest = Callable[[str, Resource | None, Mapping[str, Any]], ChangeSet | None]


@dataclass
class Comparison:
    """Changes of a stack's resources, and what early validation has against them."""

    changes: list[Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def differing(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two values differ, with the values there; None for what one of them does not have."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(each for each in after if each not in before)]:
            yield from differing(before.get(key), after.get(key), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            left, right = (each[index] if index < len(each) else None for each in (before, after))
            yield from differing(left, right, f"{path}/{index}")
    elif before != after or type(before) is not type(after):
        yield path, before, after


def compare(service: Region, stack: Stack, revision: Revision, *, nested: bool, nest: Nest) -> Comparison:
    """Compare what a stack has with what it is to become.

    Raises:
        ResourceError: the new template cannot be resolved
    """
    return _Comparer(service, stack, revision, nested, nest).compare()


class _Comparer:
    def __init__(self, service: Region, stack: Stack, revision: Revision, nested: bool, nest: Nest) -> None:
        self._service = service
        self._stack = stack
        self._revision = revision
        self._nested = nested
        self._nest = nest
        self._changes: dict[str, Change | None] = {}  # by logical id; None for what stays as it is
        self._scope = service.bare_scope(revision, stack.name, stack.id, {}, self._attribute)
        self._live = {key: each for key, each in stack.resources.items() if each.exists}
        given = stack.revision.given
        self._changed_parameters = {
            key for key, value in revision.parameters.items()
            if key not in given or stack.revision.parameters.get(key) != value
        }  # fmt: skip

    def compare(self) -> Comparison:
        result = Comparison()
        definitions = self._revision.template.resources
        scope = self._service.bare_scope(self._revision, self._stack.name, self._stack.id)
        keys = wanted(scope, definitions)
        while left := [key for key in keys if key not in self._changes]:
            for key in left:
                if all(need in self._changes for need in definitions[key].needs & set(keys)):
                    try:
                        self._settle(key, self._change(key, definitions[key]))
                    except PropertyError as error:
                        result.findings.append(_finding(key, definitions[key], error))
                        self._settle(key, None)
        result.changes = [each for key in definitions if (each := self._changes.get(key))]
        result.changes += [self._removal(each) for key, each in self._live.items() if key not in keys]
        return result

    def _settle(self, key: str, change: Change | None) -> None:
        self._changes[key] = change
        certain = key in self._live and (change is None or change.replacement == "False")
        self._scope.name(key, self._live[key].physical_id if certain else UNKNOWN)

    def _attribute(self, key: str, name: str) -> Any:
        if key in self._live and self._changes.get(key) is None:
            return known_attribute(self._live[key], name)
        return UNKNOWN

    def _change(self, key: str, definition: ResourceDefinition) -> Change | None:
        after = conforming(self._service.region, self._scope, self._revision.tags, definition)
        before = self._live.get(key)
        if before is not None and before.type != definition.type:
            raise ResourceError(f"Update of resource type is not permitted. The new template modifies resource type of "
                                f"the following resources: [{key}]")  # fmt: skip
        if before is None or (before.status == "CREATE_FAILED" and self._stack.finished):
            child = self._nest(key, None, after) if definition.type == NESTED else None
            return Change("Add", key, "", definition.type, "", "", (), (), child, "", self._context(definition, after))
        details = [*self._property_details(before, definition, after)]
        child = self._nest(key, before, after) if definition.type == NESTED else None
        details += _attribute_details(before.definition, definition, ("Metadata",))
        if definition.type == NESTED and not self._nested and not details:
            details.append(
                Detail("Properties", "", "", "Never", None, None, "Modify", "Dynamic", "Automatic")
            )  # the nested template may have changed, which an update finds out
        failed = before.status == "UPDATE_FAILED"
        if not details and child is None and not failed:
            return None
        details += _attribute_details(before.definition, definition, POLICY_ATTRIBUTES)
        if not details:
            details.append(Detail("Properties", "", "", "Never", None, None, "Modify", "Dynamic", "Automatic"))
        replacement = _replacement(details)
        return Change(
            "Modify", key, before.physical_id, before.type, replacement,
            "" if replacement == "False" else f"ReplaceAnd{definition.replace_policy}",
            tuple(dict.fromkeys(detail.attribute for detail in details)), tuple(details), child,
            self._context(before.definition, before.properties), self._context(definition, after),
        )  # fmt: skip

    def _removal(self, resource: Resource) -> Change:
        policy = resource.definition.deletion_policy.replace("RetainExceptOnCreate", "Retain")
        context = self._context(resource.definition, resource.properties)
        return Change("Remove", resource.logical_id, resource.physical_id, resource.type, "", policy, (), (), None,
                      context, "")  # fmt: skip

    def _property_details(
        self, resource: Resource, definition: ResourceDefinition, after: Mapping[str, Any]
    ) -> Iterator[Detail]:
        holder = property_schemas.tag_property(self._service.region, resource.type)
        raw_before = resource.definition.body.get("Properties", {})
        raw_after = definition.body.get("Properties", {})
        for path, old, new in differing(resource.properties, after):
            name = path.split("/")[1]
            recreation = property_schemas.recreation(self._service.region, resource.type, path)
            tagging = name == holder
            known = not _contains_unknown(new)
            shared = (
                "Tags" if tagging else "Properties",
                "" if tagging else name,
                f"/Properties{path}",
                recreation,
                self._shown(old),
                self._shown(new),
                "Add" if old is None else "Remove" if new is None else "Modify",
            )
            left, right = (_expression(each, path) for each in (raw_before, raw_after))
            causes = [] if left != right else [*self._causes(right)]
            for source, entity in causes:
                static = source == "ParameterReference" and known
                yield Detail(*shared, "Static" if static else "Dynamic", source, entity)
            if not causes or (known and any(source == "ParameterReference" for source, _ in causes)):
                # CloudFormation tells a value that a parameter brings twice: as the parameter's and as the property's.
                yield Detail(*shared, "Dynamic" if causes or not known else "Static", "DirectModification")

    def _causes(self, expression: Any) -> Iterator[tuple[str, str]]:
        for name, attribute in dict.fromkeys(_uses(expression)):
            if name in self._changed_parameters and not attribute:
                yield "ParameterReference", name
            elif change := self._changes.get(name):
                if attribute:
                    yield "ResourceAttribute", f"{name}.{attribute}"
                elif change.replacement != "False":
                    yield "ResourceReference", name

    def _context(self, definition: ResourceDefinition, properties: Mapping[str, Any]) -> str:
        others = {key: value for key, value in definition.body.items() if key in ("Metadata", *POLICY_ATTRIBUTES)}
        return self._masked(json.dumps({"Properties": properties, **others}))

    def _shown(self, value: Any) -> str | None:
        if value is None:
            return None
        return self._masked(value if isinstance(value, str) else json.dumps(value))

    def _masked(self, text: str) -> str:
        return text if text == UNKNOWN else masked(text, self._stack.revision, self._revision)


def _replacement(details: list[Detail]) -> str:
    if any(detail.requires_recreation == "Always" and detail.after != UNKNOWN for detail in details):
        return "True"
    return "False" if all(detail.requires_recreation == "Never" for detail in details) else "Conditional"


def _attribute_details(
    before: ResourceDefinition, after: ResourceDefinition, attributes: tuple[str, ...]
) -> Iterator[Detail]:
    for attribute in attributes:
        old, new = before.body.get(attribute), after.body.get(attribute)
        if old != new:
            kind = "Add" if old is None else "Remove" if new is None else "Modify"
            texts = (None if value is None else value if isinstance(value, str) else json.dumps(value)
                     for value in (old, new))  # fmt: skip
            left, right = texts
            yield Detail(attribute, "", f"/{attribute}", "Never", left, right, kind, "Static", "DirectModification")


def _expression(raw: Any, path: str) -> Any:
    """What the template says at a path: the value there, or the function that makes it."""
    for part in path.split("/")[1:]:
        if isinstance(raw, dict) and len(raw) == 1 and next(iter(raw)).startswith(("Fn::", "Ref")):
            return raw
        if isinstance(raw, dict):
            raw = raw.get(part)
        elif isinstance(raw, list):
            raw = raw[int(part)] if int(part) < len(raw) else None
        else:
            return raw
    return raw


def _uses(value: Any) -> Iterator[tuple[str, str]]:
    """What Ref, GetAtt and Sub name within an expression, with the attribute."""
    if isinstance(value, list):
        for item in value:
            yield from _uses(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item, ""
            elif key == "Fn::GetAtt":
                name, _, attribute = item.partition(".") if isinstance(item, str) else (item[0], "", item[1])
                yield name, attribute
            elif key == "Fn::Sub":
                text, local = (item, {}) if isinstance(item, str) else item
                for found in SUBSTITUTION.findall(text):
                    name, _, attribute = found.partition(".")
                    if found not in local:
                        yield name, attribute
                yield from _uses(local)
            else:
                yield from _uses(item)


def _contains_unknown(value: Any) -> bool:
    return UNKNOWN in (value if isinstance(value, str) else json.dumps(value))


def _finding(key: str, definition: ResourceDefinition, error: PropertyError) -> Finding:
    path = f"/Resources/{key}/Properties{error.path.removeprefix('#')}"
    return Finding(key, definition.type, "AWS::EarlyValidation::PropertyValidation", path, error.message)
