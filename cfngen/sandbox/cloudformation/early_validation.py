"""Early validation: the properties of a whole template against the resource schemas, before anything is provisioned.

CloudFormation does it on CreateStack, UpdateStack and CreateChangeSet. Where a property is refused, the change set
fails, or the operation stops before its first resource and the stack's status tells so (user guide, "Validate stack
deployments"). What depends on the account's state fails the resource, in the course of the operation.
"""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import NotModelledError, PropertyError, ResourceError
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN, Scope
from cfngen.sandbox.cloudformation.properties import enabled_resources, resolve_and_validate
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_revision
from cfngen.sandbox.cloudformation.stack import Revision
from cfngen.sandbox.json_types import Expression

PROPERTY_VALIDATION = "AWS::EarlyValidation::PropertyValidation"
# The words that aws-cloudformation/rain#744 shows for a change set.
FAILURE_REASON = (
    f"The following hook(s)/validation failed: [{PROPERTY_VALIDATION}]. To troubleshoot Early Validation errors, use "
    "the DescribeEvents API for detailed failure information."
)


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
