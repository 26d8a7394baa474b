"""The properties of a resource: resolved, with the stack's tags, and validated against the type's schema.

Early validation does so with a whole template before anything is provisioned, on CreateStack, UpdateStack and
CreateChangeSet. Where a property is refused, the change set fails, or the operation stops before its first resource and
the stack's status tells so (user guide, "Validate stack deployments"). What depends on the account's state fails the
resource, in the course of the operation.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.sandbox.cloudformation import property_schemas, string_checks
from cfngen.sandbox.cloudformation.errors import NotModelledError, PropertyError, ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, HandlerCall
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN, Scope
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import importing_stacks, scope_of_revision, scope_of_stack
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP, ResourceDefinition
from cfngen.sandbox.services.modelled_parameters import unmodelled_setting
from cfngen.sandbox.untyped import Expression, JsonDict

NESTED_STACK_PROPERTIES = frozenset({"Parameters", "Tags", "TemplateURL"})  # supported for nested stacks
POLICY_ATTRIBUTES = ("CreationPolicy", "UpdatePolicy", "DeletionPolicy", "UpdateReplacePolicy")
PROPERTY_VALIDATION = "AWS::EarlyValidation::PropertyValidation"
# The words that aws-cloudformation/rain#744 shows for a change set.
EARLY_VALIDATION_FAILED = (
    f"The following hook(s)/validation failed: [{PROPERTY_VALIDATION}]. To troubleshoot Early Validation errors, use "
    "the DescribeEvents API for detailed failure information."
)


def resolve_properties(cloud: Region, stack: Stack, definition: ResourceDefinition) -> JsonDict:
    """Resolve and validate the properties of a resource whose dependencies are complete.

    Raises:
        ResourceError: they cannot be resolved, or the schema or the service refuses them
    """
    properties = resolve_and_validate(cloud.region, scope_of_stack(cloud, stack), stack.tags, definition)
    string_checks.check_properties(definition.type, properties)
    return properties


def resolve_and_validate(
    region: str, scope: Scope, stack_tags: Mapping[str, str], definition: ResourceDefinition
) -> JsonDict:
    """Resolve properties in a scope, add the stack's tags, and convert values to the types of the schema.

    Raises:
        ResourceError: they cannot be resolved, or the schema refuses them
        NotModelledError: the emulator does not support one of them
    """
    resolved = scope.resolve(definition.body.get("Properties", {}))
    tag_property = property_schemas.tag_property(region, definition.type)
    tags = resolved.get("Tags", [])
    if tag_property == "Tags" and stack_tags and isinstance(tags, list):
        resolved["Tags"] = _with_stack_tags(stack_tags, definition.type, tags)
    properties = property_schemas.validate_and_convert(region, definition.type, resolved)
    if definition.type in HANDLERS:
        supported = HANDLERS[definition.type].supported_properties
    else:  # a nested stack
        supported = NESTED_STACK_PROPERTIES
    unsupported = set(properties) - {name.partition("=")[0].partition(".")[0] for name in supported}
    if name := min(unsupported, default="") or unmodelled_setting(_known(properties), supported):
        raise NotModelledError(f"property {name} of {definition.type}")
    return properties


def _known(value: Expression) -> Expression:
    """A value without what is not known yet, at any depth."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items() if item != UNKNOWN}
    return [_known(item) for item in value if item != UNKNOWN] if isinstance(value, list) else value


def _with_stack_tags(stack_tags: Mapping[str, str], resource_type: str, tags: list[JsonDict]) -> list[JsonDict]:
    """A resource's own tags, followed by those stack tags whose keys the resource does not set itself."""
    own_keys = {tag.get("Key") for tag in tags if isinstance(tag, dict)}  # not validated yet
    inherited_tags: list[JsonDict] = []
    for key, value in stack_tags.items():
        if key not in own_keys:
            inherited_tag: JsonDict = {"Key": key, "Value": value}
            if resource_type == AUTO_SCALING_GROUP:
                inherited_tag["PropagateAtLaunch"] = True
            inherited_tags.append(inherited_tag)
    return [*tags, *inherited_tags]


def handler_call(cloud: Region, stack: Stack, resource: Resource) -> HandlerCall:
    """The call of a resource's handler: the resource's current properties, physical id and attributes."""

    def generate_name(*, limit: int = 128, with_stack_name: bool = True) -> str:
        return cloud.physical_name(stack, resource.logical_id, limit=limit, with_stack_name=with_stack_name)

    return HandlerCall(
        region=cloud.region,
        properties=resource.properties,
        generate_name=generate_name,
        physical_id=resource.physical_id,
        attributes=resource.attributes,
    )


def enabled_resources(scope: Scope, definitions: Mapping[str, ResourceDefinition]) -> list[str]:
    """Logical ids of the resources that have no condition, or whose condition is true."""
    return [key for key, definition in definitions.items() if scope.is_enabled(definition.body)]


def resolve_outputs(cloud: Region, stack: Stack) -> tuple[dict[str, str], dict[str, str]]:
    """Resolve the outputs and exports of a stack whose resources are all complete.

    Returns:
        the values of the outputs by name, and the values of the exports by export name

    Raises:
        ResourceError: they cannot be resolved, another stack has the same export, or a changed export is in use
    """
    scope = scope_of_stack(cloud, stack)
    values: dict[str, str] = {}
    exports: dict[str, str] = {}
    for key, output in stack.template.body.get("Outputs", {}).items():
        if not scope.is_enabled(output):
            continue
        value = scope.resolve(output["Value"])
        if isinstance(value, (dict, list)):
            message = f"Template format error: Output {key} is malformed."
            raise ResourceError(f"{message} The Value field of every Outputs member must evaluate to a String.")
        values[key] = str(value)
        if "Export" in output:
            exports[str(scope.resolve(output["Export"]["Name"]))] = values[key]
    _check_exports(cloud, stack, exports)
    return values, exports


def _check_exports(cloud: Region, stack: Stack, exports: Mapping[str, str]) -> None:
    for owner_id, name, _ in cloud.exports():
        if name in exports and owner_id != stack.id:
            raise ResourceError(f"Export with name {name} is already exported by stack {cloud.stack(owner_id).name}")
    for name, current_value in stack.exports.items():
        if exports.get(name) == current_value:
            continue
        if importers := importing_stacks(cloud, name):
            verb = "updated" if name in exports else "deleted"
            raise ResourceError(f"Export {name} cannot be {verb} as it is in use by {' and '.join(importers)}")


class _ForeseenScope(Scope):
    """The scope of a template of which no resource exists yet: what depends on a resource is unknown."""

    def _ref(self, name: str) -> Expression:
        return UNKNOWN if name in self._body["Resources"] else super()._ref(name)

    def _call_function(self, name: str, argument: Expression) -> Expression:
        try:
            return super()._call_function(name, argument)
        except ResourceError:
            return UNKNOWN  # if the function fails in the operation as well, the resource does


def invalid_properties(cloud: Region, revision: Revision, stack_name: str) -> dict[str, PropertyError]:
    """Return what the schemas refuse in a revision's resources, by logical id.

    Raises:
        NotModelledError: nothing is refused, but the emulator does not support a property or a function
    """
    scope = scope_of_revision(
        cloud, revision, stack_name, attribute=lambda logical_id, name: UNKNOWN, scope_class=_ForeseenScope
    )
    definitions = revision.template.resources
    refused: dict[str, PropertyError] = {}
    not_modelled: NotModelledError | None = None
    for logical_id in enabled_resources(scope, definitions):
        try:
            resolve_and_validate(cloud.region, scope, revision.tags, definitions[logical_id])
        except PropertyError as error:
            refused[logical_id] = error
        except NotModelledError as error:
            not_modelled = error
    if not_modelled and not refused:
        raise not_modelled
    return refused
