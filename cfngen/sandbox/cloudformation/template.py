"""Parses a template, and checks its size, its references and the order of its resources.

Sections, resource attributes and the quotas (500 resources, 200 parameters, 200 outputs) are those of the
CloudFormation user guide, "Template anatomy" and "CloudFormation quotas".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import string_checks, template_sections
from cfngen.sandbox.cloudformation.errors import NotModelledError, ValidationError
from cfngen.sandbox.cloudformation.function_arguments import PLACEHOLDER_PATTERN, refuse_unresolved
from cfngen.sandbox.untyped import Expression, JsonObject, TemplateBody

# The resource types for which operations on stacks have special cases.
AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
NESTED_STACK = "AWS::CloudFormation::Stack"
WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Rules", "Mappings", "Conditions",
            "Resources", "Outputs"}  # fmt: skip
RESOURCE_ATTRIBUTES = {"Type", "Properties", "DependsOn", "Condition", "Metadata", "CreationPolicy", "UpdatePolicy",
              "DeletionPolicy", "UpdateReplacePolicy"}  # fmt: skip
POLICY_VALUES = {
    "DeletionPolicy": {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"},
    "UpdateReplacePolicy": {"Delete", "Retain", "Snapshot"},
}
QUOTAS = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource of a template.

    Attributes:
        body: the resource as it stands in the template.
        dependencies: logical ids of the resources that it depends on, by DependsOn or by a reference.
    """

    type: str
    body: TemplateBody
    dependencies: frozenset[str]

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
    """A template that has been parsed and checked; `resources` has the definitions by logical id."""

    body: TemplateBody
    resources: Mapping[str, ResourceDefinition]

    @property
    def parameters(self) -> Mapping[str, JsonObject]:
        """The declarations of the template's parameters, by name."""
        declarations: Mapping[str, JsonObject] = self.body.get("Parameters", {})
        return declarations


def parse(text: str) -> Template:
    """Parse and check a template in JSON.

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
    template_sections.check_sections_and_functions(body)
    _check_references(body)
    definitions = {
        logical_id: _definition(body, logical_id, resource) for logical_id, resource in body["Resources"].items()
    }
    _refuse_circular_dependencies(definitions)
    return Template(body, definitions)


def references(value: object) -> Iterator[tuple[str, Expression]]:
    """Yield (name, attribute) for each Ref, GetAtt and Sub anywhere in a value.

    The name is that of a parameter or a resource. The attribute of a Ref is ""; that of a GetAtt may be an expression.
    """
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item, ""
            elif key == "Fn::GetAtt":
                name, _, attribute = item.partition(".") if isinstance(item, str) else (item[0], "", item[1])
                yield name, attribute
            elif key == "Fn::Sub":
                text, local_values = (item, {}) if isinstance(item, str) else item
                for placeholder in PLACEHOLDER_PATTERN.findall(text):
                    name, _, attribute = placeholder.partition(".")
                    if placeholder not in local_values:
                        yield name, attribute
                yield from references(local_values)
            else:
                yield from references(item)


def _definition(body: TemplateBody, logical_id: str, resource: JsonObject) -> ResourceDefinition:
    if unknown := sorted(set(resource) - RESOURCE_ATTRIBUTES):
        raise ValidationError(f"Invalid template resource property {', '.join(unknown)} ({logical_id})")
    for policy, allowed in POLICY_VALUES.items():
        if resource.get(policy, "Delete") not in allowed:
            raise ValidationError(f"Template error: Unrecognized {policy} {resource[policy]} for resource {logical_id}")
    depends_on = resource.get("DependsOn", [])
    explicit_dependencies = [depends_on] if isinstance(depends_on, str) else depends_on
    if missing := set(explicit_dependencies) - set(body["Resources"]):
        refuse_unresolved(missing, "Resources")
    referenced_names = {name for name, _ in references(resource.get("Properties", {}))}
    referenced_resources = referenced_names & set(body["Resources"])
    return ResourceDefinition(
        type=resource["Type"], body=resource, dependencies=frozenset(explicit_dependencies) | referenced_resources
    )


def _check_references(body: TemplateBody) -> None:
    """Refuse references to names that the template does not declare, or that a section must not refer to."""
    parameters = set(body.get("Parameters", {}))
    parameters_and_resources = parameters | set(body["Resources"])
    for section, allowed_names in (
        ("Resources", parameters_and_resources),
        ("Outputs", parameters_and_resources),
        ("Conditions", parameters),
        ("Rules", parameters),
    ):
        used_names = {name for name, _ in references(body.get(section, {})) if not name.startswith("AWS::")}
        if missing := used_names - allowed_names:
            refuse_unresolved(missing, section)
    for name in import_value_arguments(body):
        if {used for used, _ in references(name)} & set(body["Resources"]):
            raise ValidationError(
                "Template error: the attribute in Fn::ImportValue must not depend on any resources, imported values, "
                "or Fn::GetAZs"
            )
    for output_name, output in body.get("Outputs", {}).items():
        export_name = output.get("Export", {}).get("Name")
        if used_resources := {name for name, _ in references(export_name)} & set(body["Resources"]):
            raise ValidationError(
                f"Template format error: Output {output_name} is malformed. The Name of an Export cannot depend on "
                f"the resources {sorted(used_resources)}"
            )


def import_value_arguments(value: object) -> Iterator[object]:
    """Yield the argument of each Fn::ImportValue in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "Fn::ImportValue":
                yield item
            yield from import_value_arguments(item)
    elif isinstance(value, list):
        for item in value:
            yield from import_value_arguments(item)


def _refuse_circular_dependencies(definitions: Mapping[str, ResourceDefinition]) -> None:
    dependencies = {logical_id: definition.dependencies for logical_id, definition in definitions.items()}
    if circular := template_sections.names_in_circles(dependencies):
        raise ValidationError(f"Circular dependency between resources: {circular}")
