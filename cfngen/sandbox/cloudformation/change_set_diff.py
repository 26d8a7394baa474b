"""Computes the changes of a change set: a stack's current template and values compared with the submitted ones."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cfngen.sandbox.cloudformation import property_schemas
from cfngen.sandbox.cloudformation.change_sets import (
    AUTOMATIC_CHANGE,
    ChangeSet,
    ResourceChange,
    ResourceChangeDetail,
    replacement_by,
    text_in_api,
)
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.cloudformation.properties import POLICY_ATTRIBUTES, enabled_resources, resolve_and_validate
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import attribute_of_existing, exported_value, scope_of_revision
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack, mask_no_echo
from cfngen.sandbox.cloudformation.template import NESTED_STACK, ResourceDefinition, references
from cfngen.sandbox.untyped import Expression, Properties

# Called for a nested stack with its logical id, its current resource (if any) and its new properties; returns the
# nested change set, or None if the nested stack does not change.
CompareNested = Callable[[str, Resource | None, Properties], ChangeSet | None]


@dataclass
class Comparison:
    """The changes of a stack's resources, and warnings of what is not known."""

    changes: list[ResourceChange] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def find_differences(old: object, new: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield (path, old value, new value) wherever two values differ; None stands for a value that is missing.

    Args:
        path: the path of both values, with which the yielded paths begin
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from find_differences(old.get(key), new.get(key), f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for index, (old_item, new_item) in enumerate(itertools.zip_longest(old, new)):
            yield from find_differences(old_item, new_item, f"{path}/{index}")
    elif old != new or type(old) is not type(new):
        yield path, old, new


class Comparer:
    """Compares one stack with a new revision of it, resource by resource in the order of their dependencies.

    Args:
        compare_nested: creates the change set of a nested stack; None if nested change sets were not requested
    """

    def __init__(
        self, cloud: Region, stack: Stack, revision: Revision, *, compare_nested: CompareNested | None
    ) -> None:
        self._cloud = cloud
        self._stack = stack
        self._revision = revision
        self._compare_nested = compare_nested
        self._compared = ""
        self._changes: dict[str, ResourceChange | None] = {}  # by logical id; None for a resource without changes
        self._result = Comparison()
        self._scope = scope_of_revision(
            cloud, revision, stack.name, stack.id, attribute=self._attribute, imported=self._import
        )
        self._existing = {logical_id: resource for logical_id, resource in stack.resources.items() if resource.exists}
        # As recorded, a value that Parameter Store has for the same name as before is no cause.
        self._changed_parameters = {
            name
            for name, text in revision.parameter_strings.items()
            if stack.revision.parameter_strings.get(name) != text
        }

    def compare(self) -> Comparison:
        """Return the changes of all resources, removed ones last.

        Raises:
            ResourceError: the new template cannot be resolved
        """
        result = self._result
        definitions = self._revision.template.resources
        scope = scope_of_revision(self._cloud, self._revision, self._stack.name, self._stack.id)
        logical_ids = enabled_resources(scope, definitions)
        while pending := [logical_id for logical_id in logical_ids if logical_id not in self._changes]:
            for logical_id in pending:
                dependencies = definitions[logical_id].dependencies & set(logical_ids)
                if all(dependency in self._changes for dependency in dependencies):
                    self._compared = logical_id
                    self._record(logical_id, self._change(logical_id, definitions[logical_id]))
        result.changes = [change for logical_id in definitions if (change := self._changes.get(logical_id))]
        result.changes += [
            self._removal(resource) for logical_id, resource in self._existing.items() if logical_id not in logical_ids
        ]
        return result

    def _record(self, logical_id: str, change: ResourceChange | None) -> None:
        """Record the change of a resource, and set the value of Ref to it for the resources that depend on it."""
        self._changes[logical_id] = change
        keeps_physical_id = logical_id in self._existing and (change is None or change.replacement == "False")
        physical_id = self._existing[logical_id].physical_id if keeps_physical_id else UNKNOWN
        self._scope.set_name(logical_id, physical_id)

    def _attribute(self, logical_id: str, name: str) -> Expression:
        if logical_id in self._existing and self._changes.get(logical_id) is None:
            return attribute_of_existing(self._existing[logical_id], name)
        return UNKNOWN

    def _import(self, export_name: str) -> str:
        try:
            return exported_value(self._cloud, export_name)
        except ResourceError as error:
            self._result.warnings.append(f"ChangeSet creation failed for resource [{self._compared}] because: {error}")
            return UNKNOWN

    def _change(self, logical_id: str, definition: ResourceDefinition) -> ResourceChange | None:
        """The change of a resource of the new template; None if it has none."""
        new_properties = resolve_and_validate(self._cloud.region, self._scope, self._revision.tags, definition)
        resource = self._existing.get(logical_id)
        if resource is not None and resource.type != definition.type:
            raise ResourceError(f"Update of resource type is not permitted. The new template modifies resource type of "
                                f"the following resources: [{logical_id}]")  # fmt: skip
        if resource is None or (resource.status == "CREATE_FAILED" and self._stack.finished):
            return ResourceChange(
                action="Add",
                logical_id=logical_id,
                physical_id="",
                type=definition.type,
                child=self._nested_change_set(definition, logical_id, None, new_properties),
                after_context=self._context(definition, new_properties),
            )
        return self._modification(resource, definition, new_properties)

    def _nested_change_set(
        self, definition: ResourceDefinition, logical_id: str, resource: Resource | None, new_properties: Properties
    ) -> ChangeSet | None:
        if definition.type != NESTED_STACK or self._compare_nested is None:
            return None
        return self._compare_nested(logical_id, resource, new_properties)

    def _modification(
        self, resource: Resource, definition: ResourceDefinition, new_properties: Properties
    ) -> ResourceChange | None:
        """The change of a resource that exists; None if it has none."""
        details = list(self._property_details(resource, definition, new_properties))
        nested_change_set = self._nested_change_set(definition, resource.logical_id, resource, new_properties)
        details += _attribute_details(resource.definition, definition, ("Metadata",))
        if definition.type == NESTED_STACK and self._compare_nested is None and not details:
            details.append(AUTOMATIC_CHANGE)  # the nested template may have changed, which only the update will show
        last_update_failed = resource.status == "UPDATE_FAILED"
        if not details and nested_change_set is None and not last_update_failed:
            return None
        details += _attribute_details(resource.definition, definition, POLICY_ATTRIBUTES)
        if not details:
            details.append(AUTOMATIC_CHANGE)
        replacement = replacement_by(details)
        return ResourceChange(
            action="Modify",
            logical_id=resource.logical_id,
            physical_id=resource.physical_id,
            type=resource.type,
            replacement=replacement,
            policy_action="" if replacement == "False" else f"ReplaceAnd{definition.replace_policy}",
            scope=tuple(dict.fromkeys(detail.attribute for detail in details)),
            details=tuple(details),
            child=nested_change_set,
            before_context=self._context(resource.definition, resource.properties),
            after_context=self._context(definition, new_properties),
        )

    def _removal(self, resource: Resource) -> ResourceChange:
        return ResourceChange(
            action="Remove",
            logical_id=resource.logical_id,
            physical_id=resource.physical_id,
            type=resource.type,
            policy_action=resource.definition.deletion_policy.replace("RetainExceptOnCreate", "Retain"),
            before_context=self._context(resource.definition, resource.properties),
        )

    def _property_details(
        self, resource: Resource, definition: ResourceDefinition, new_properties: Properties
    ) -> Iterator[ResourceChangeDetail]:
        """Yield the differences between a resource's properties, with the cause of each."""
        tag_property = property_schemas.tag_property(self._cloud.region, resource.type)
        old_template_properties = resource.definition.body.get("Properties", {})
        new_template_properties = definition.body.get("Properties", {})
        for path, old_value, new_value in find_differences(resource.properties, new_properties):
            property_name = path.split("/")[1]
            is_tag = property_name == tag_property
            is_known = not _contains_unknown(new_value)
            direct_modification = ResourceChangeDetail(
                attribute="Tags" if is_tag else "Properties",
                name="" if is_tag else property_name,
                path=f"/Properties{path}",
                requires_recreation=property_schemas.requires_recreation(self._cloud.region, resource.type, path),
                before=self._as_text(old_value),
                after=self._as_text(new_value),
                change_type=change_type(old_value, new_value),
                evaluation="Static" if is_known else "Dynamic",
            )
            old_expression = _expression_at(old_template_properties, path)
            new_expression = _expression_at(new_template_properties, path)
            # If the template has the same expression as before, something that it refers to has changed.
            causes = list(self._causes(new_expression)) if old_expression == new_expression else []
            if not causes:
                yield direct_modification
            for source, entity in causes:
                is_static = source == "ParameterReference" and is_known
                yield dataclasses.replace(
                    direct_modification,
                    evaluation="Static" if is_static else "Dynamic",
                    change_source=source,
                    causing_entity=entity,
                )
            if is_known and any(source == "ParameterReference" for source, _ in causes):
                # CloudFormation lists a value from a parameter twice: once for the parameter, once for the property.
                yield dataclasses.replace(direct_modification, evaluation="Dynamic")

    def _causes(self, expression: object) -> Iterator[tuple[str, str]]:
        """Yield the parameters, resources and attributes that change the value of an expression.

        Each is a tuple: the ChangeSource of the API (such as ParameterReference), and the CausingEntity (its name).
        """
        for name, attribute in dict.fromkeys(references(expression)):
            if name in self._changed_parameters and not attribute:
                yield "ParameterReference", name
            elif change := self._changes.get(name):
                if attribute:
                    yield "ResourceAttribute", f"{name}.{attribute}"
                elif change.replacement != "False":
                    yield "ResourceReference", name

    def _context(self, definition: ResourceDefinition, properties: Properties) -> str:
        attributes = {key: value for key, value in definition.body.items() if key in ("Metadata", *POLICY_ATTRIBUTES)}
        return self._masked(json.dumps({"Properties": properties, **attributes}))

    def _as_text(self, value: object) -> str | None:
        """A value as the API shows it, with NoEcho values masked; None for a missing value."""
        text = text_in_api(value)
        return None if text is None else self._masked(text)

    def _masked(self, text: str) -> str:
        """The text with the values of NoEcho parameters of both revisions masked."""
        return text if text == UNKNOWN else mask_no_echo(text, self._stack.revision, self._revision)


def _attribute_details(
    old_definition: ResourceDefinition, new_definition: ResourceDefinition, attributes: tuple[str, ...]
) -> Iterator[ResourceChangeDetail]:
    """Yield the differences between attributes such as Metadata, which never replace a resource."""
    for attribute in attributes:
        old, new = old_definition.body.get(attribute), new_definition.body.get(attribute)
        if old != new:
            yield ResourceChangeDetail(
                attribute=attribute,
                path=f"/{attribute}",
                before=text_in_api(old),
                after=text_in_api(new),
                change_type=change_type(old, new),
            )


def change_type(old: object, new: object) -> str:
    """The AttributeChangeType of two values that differ; None stands for a missing value."""
    if old is None:
        return "Add"
    if new is None:
        return "Remove"
    return "Modify"


def _expression_at(template_value: Expression, path: str) -> Expression:
    """The template's value at a path, or the intrinsic function on the way to it, which produces the value.

    Args:
        template_value: a resource's properties in the template
        path: a path below them, such as `/LaunchTemplateData/InstanceType`
    """
    for part in path.split("/")[1:]:
        is_single_key = isinstance(template_value, dict) and len(template_value) == 1
        if is_single_key and next(iter(template_value)).startswith(("Fn::", "Ref")):
            return template_value
        if isinstance(template_value, dict):
            template_value = template_value.get(part)
        elif isinstance(template_value, list):
            template_value = template_value[int(part)] if int(part) < len(template_value) else None
        else:
            return template_value
    return template_value


def _contains_unknown(value: object) -> bool:
    """Whether a value is known only after execution, as a whole or in part."""
    return UNKNOWN in (value if isinstance(value, str) else json.dumps(value))
