"""Parses a template, and checks its size, its references and the order of its resources.

Sections, resource attributes and the quotas (500 resources, 200 parameters, 200 outputs) are those of the
CloudFormation user guide, "Template anatomy" and "CloudFormation quotas".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import string_checks, template_functions
from cfngen.sandbox.cloudformation.errors import NotModelledError, ValidationError
from cfngen.sandbox.json_types import JsonObject, TemplateBody

SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Rules", "Mappings", "Conditions",
            "Resources", "Outputs"}  # fmt: skip
RESOURCE_ATTRIBUTES = {"Type", "Properties", "DependsOn", "Condition", "Metadata", "CreationPolicy", "UpdatePolicy",
              "DeletionPolicy", "UpdateReplacePolicy"}  # fmt: skip
POLICY_VALUES = {
    "DeletionPolicy": {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"},
    "UpdateReplacePolicy": {"Delete", "Retain", "Snapshot"},
}
QUOTAS = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource of a template, with the logical ids of its dependencies (`needs`)."""

    type: str
    body: TemplateBody
    needs: frozenset[str]

    @property
    def deletion_policy(self) -> str:
        """What happens to the resource when it is removed from the template, or the stack is deleted."""
        return str(self.body.get("DeletionPolicy", "Delete"))

    @property
    def replace_policy(self) -> str:
        """What happens to the old resource when an update replaces it."""
        return str(self.body.get("UpdateReplacePolicy", "Delete"))


@dataclass(frozen=True)
class Template:
    """A template that has been parsed and checked."""

    body: TemplateBody
    resources: Mapping[str, ResourceDefinition]

    @property
    def parameters(self) -> Mapping[str, JsonObject]:
        """The declared parameters, by name."""
        declared: Mapping[str, JsonObject] = self.body.get("Parameters", {})
        return declared


def parse(text: str) -> Template:
    """Read a JSON template.

    Raises:
        ValidationError: CreateStack would refuse the template
        NotModelledError: the template is valid, but the emulator does not support it
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ValidationError(f"Template format error: JSON not well-formed. ({error})") from error
    if not isinstance(body, dict):
        raise ValidationError("Template format error: unsupported structure.")
    if "Transform" in body:
        raise NotModelledError("Transform")
    if unknown := sorted(set(body) - SECTIONS):
        raise ValidationError(f"Invalid template property or properties {unknown}")
    if not body.get("Resources"):
        raise ValidationError("Template format error: At least one Resources member must be defined.")
    for section, quota in QUOTAS.items():
        if len(body.get(section, {})) > quota:
            raise ValidationError(
                f"Template format error: Number of {section.lower()}, {len(body[section])}, is greater than "
                f"maximum allowed, {quota}"
            )
    string_checks.check_template(body)
    template_functions.check_sections_and_functions(body)
    _check_references(body)
    definitions = {key: _definition(body, key, resource) for key, resource in body["Resources"].items()}
    _check_order(definitions)
    return Template(body, definitions)


def references(value: object) -> Iterator[str]:
    """Yield the names that Ref, GetAtt and Sub refer to anywhere in a value."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item
            elif key == "Fn::GetAtt":
                yield item.split(".")[0] if isinstance(item, str) else item[0]
            elif key == "Fn::Sub":
                text, local_values = (item, {}) if isinstance(item, str) else item
                yield from (name.split(".")[0] for name in PLACEHOLDER.findall(text) if name not in local_values)
                yield from references(local_values)
            else:
                yield from references(item)


def attributes(value: object) -> Iterator[tuple[str, str]]:
    """Yield (logical id, attribute) for each GetAtt and Sub in a value.

    A GetAtt whose attribute name is itself computed, e.g. by a Ref, is left out.
    """
    if isinstance(value, list):
        for item in value:
            yield from attributes(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Fn::GetAtt":
                name, attribute = item.split(".", 1) if isinstance(item, str) else item
                if isinstance(attribute, str):
                    yield name, attribute
            elif key == "Fn::Sub":
                text, local_values = (item, {}) if isinstance(item, str) else item
                placeholders = (name for name in PLACEHOLDER.findall(text) if name not in local_values and "." in name)
                yield from (tuple(name.split(".", 1)) for name in placeholders)
                yield from attributes(local_values)
            else:
                yield from attributes(item)


def _definition(body: TemplateBody, logical_id: str, resource: JsonObject) -> ResourceDefinition:
    """Check the attributes of a resource, and return it with its dependencies."""
    if unknown := sorted(set(resource) - RESOURCE_ATTRIBUTES):
        raise ValidationError(f"Invalid template resource property {', '.join(unknown)} ({logical_id})")
    for policy, allowed in POLICY_VALUES.items():
        if resource.get(policy, "Delete") not in allowed:
            raise ValidationError(f"Template error: Unrecognized {policy} {resource[policy]} for resource {logical_id}")
    explicit = resource.get("DependsOn", [])
    explicit = [explicit] if isinstance(explicit, str) else explicit
    if missing := sorted(set(explicit) - set(body["Resources"])):
        raise ValidationError(f"Template format error: Unresolved resource dependencies {missing} in {logical_id}")
    implicit = set(references(resource.get("Properties", {}))) & set(body["Resources"])
    return ResourceDefinition(resource["Type"], resource, frozenset(explicit) | implicit)


def _check_references(body: TemplateBody) -> None:
    """Refuse references to names that the template does not declare, or that a section must not refer to."""
    parameters = set(body.get("Parameters", {}))
    for section, declared in (
        ("Resources", parameters | set(body["Resources"])),
        ("Outputs", parameters | set(body["Resources"])),
        ("Conditions", parameters),
        ("Rules", parameters),
    ):
        used = {name for name in references(body.get(section, {})) if not name.startswith("AWS::")}
        if missing := sorted(used - declared):
            raise ValidationError(
                f"Template format error: Unresolved resource dependencies {missing} in the {section} block of the "
                "template"
            )


def _check_order(definitions: Mapping[str, ResourceDefinition]) -> None:
    """Refuse resources that depend on each other in a circle."""
    remaining = {key: set(definition.needs) for key, definition in definitions.items()}
    while resolvable := [key for key, dependencies in remaining.items() if not dependencies & set(remaining)]:
        for key in resolvable:
            del remaining[key]
    if remaining:
        raise ValidationError(f"Circular dependency between resources: {sorted(remaining)}")
