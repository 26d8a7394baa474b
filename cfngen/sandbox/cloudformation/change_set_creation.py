"""Creates change sets, with those of nested stacks: the checks of CreateChangeSet, and the changes it computes."""

from __future__ import annotations

import functools

from cfngen.sandbox.cloudformation import admission, creation, stack_checks
from cfngen.sandbox.cloudformation.change_set_diff import Comparer
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    ApiError,
    NotModelledError,
    ResourceError,
    ValidationError,
    status_reason,
)
from cfngen.sandbox.cloudformation.region import MAX_NAME_LENGTH, Region
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack
from cfngen.sandbox.cloudformation.template import NESTED_STACK, ResourceDefinition, Template
from cfngen.sandbox.untyped import Properties

# How long a change set is in CREATE_PENDING and then in CREATE_IN_PROGRESS, with or without nested change sets.
PENDING_SECONDS = 1
CREATION_SECONDS = 4
ON_STACK_FAILURE_VALUES = ("", "ROLLBACK", "DELETE", "DO_NOTHING")
# The reason of a change set without changes (aws/aws-cdk#11521), and the error of UpdateStack. A change set whose
# template has transforms fails with the latter (aws/aws-cdk#2553), but transforms are not modelled.
NO_CHANGES_REASON = (
    "The submitted information didn't contain changes. Submit different information to create a change set."
)
NO_UPDATES_MESSAGE = "No updates are to be performed."
# The revision of a nested stack whose template is refused.
EMPTY_REVISION = Revision(
    body="", template=Template(body={}, resources={}), parameter_strings={}, parameters={}, tags={}, capabilities=()
)


def check_settings(change_set_type: str, on_failure: str) -> None:
    """Refuse a ChangeSetType or an OnStackFailure that does not exist, or that the other one excludes."""
    if change_set_type not in ("CREATE", "UPDATE") or on_failure not in ON_STACK_FAILURE_VALUES:
        raise ValidationError(f"ChangeSetType {change_set_type} or OnStackFailure {on_failure} is no value of the API")
    if on_failure == "DELETE" and change_set_type != "CREATE":
        raise ValidationError("OnStackFailure DELETE is supported only for change sets of type CREATE")


def check_stack(stack: Stack | None, stack_name: str, name: str, change_set_type: str) -> None:
    """Refuse an update of a stack that cannot be updated, and the creation of one that exists."""
    if change_set_type == "UPDATE":
        if stack is None:
            raise ValidationError(f"Stack [{stack_name}] does not exist")
        stack_checks.check_update_is_allowed(stack)
    elif stack is not None and stack.status != "REVIEW_IN_PROGRESS":
        raise ValidationError(
            f"Stack [{stack_name}] already exists and cannot be created again with the changeSet [{name}]."
        )


def executed_with_name(cloud: Region, stack: Stack | None, name: str) -> list[ChangeSet]:
    """The stack's executed change sets of this name, which a new one replaces.

    Raises:
        AlreadyExistsError: one of this name has not been executed
    """
    same_name = [other for other in cloud.all_change_sets() if other.stack is stack and other.name == name]
    if any(other.execution_status != "EXECUTE_COMPLETE" for other in same_name):
        raise AlreadyExistsError(f"ChangeSet {name} already exists")
    return same_name


def new_stack_in_review(cloud: Region, name: str, revision: Revision, token: str) -> Stack:
    """Add the stack that a change set is to create."""
    admission.check_name("stackName", name)
    return _add_stack_in_review(cloud, name, revision, token=token)


def _add_stack_in_review(
    cloud: Region, name: str, revision: Revision, *, parent: Stack | None = None, token: str = ""
) -> Stack:
    stack = cloud.new_stack(name, revision, parent)
    cloud.start_operation(stack, "CREATE_CHANGESET", token)
    cloud.record_event(stack, None, "REVIEW_IN_PROGRESS", "User Initiated")
    return stack


def start(cloud: Region, change_set: ChangeSet) -> None:
    """Start the creation of a change set, which takes a few seconds."""
    change_set.stack.operations.append((change_set.operation_id, "CREATE_CHANGESET"))
    cloud.clock.schedule(PENDING_SECONDS, lambda: _start_creation(change_set))
    cloud.clock.schedule(PENDING_SECONDS + CREATION_SECONDS, lambda: _finish_creation(cloud, change_set))


def new_change_set(
    cloud: Region, stack: Stack, name: str, change_set_type: str, revision: Revision, token: str = ""
) -> ChangeSet:
    """Add a new change set."""
    account_id = stack.id.split(":")[4]
    arn = f"arn:aws:cloudformation:{cloud.region}:{account_id}:changeSet/{name}/{cloud.uuid()}"
    change_set = ChangeSet(
        name=name,
        id=arn,
        stack=stack,
        kind=change_set_type,
        created=cloud.clock.time,
        operation_id=cloud.uuid(),
        token=token,
        revision=revision,
    )
    cloud.add_change_set(change_set)
    return change_set


def _start_creation(change_set: ChangeSet) -> None:
    """Show that the creation of a change set has started, unless it was deleted."""
    if change_set.status == "CREATE_PENDING":
        change_set.status = "CREATE_IN_PROGRESS"


def _finish_creation(cloud: Region, change_set: ChangeSet) -> None:
    """Compute the changes, and make the change set available for execution or let it fail."""
    if change_set.status != "CREATE_IN_PROGRESS":
        return
    _compute_changes(cloud, change_set)
    if change_set.status == "FAILED":
        return
    is_unchanged = not change_set.changes and has_same_outputs_and_tags(change_set.stack.revision, change_set.revision)
    if change_set.kind == "UPDATE" and is_unchanged:
        _fail(change_set, NO_CHANGES_REASON)
    else:
        change_set.status, change_set.execution_status = "CREATE_COMPLETE", "AVAILABLE"


def _compute_changes(cloud: Region, change_set: ChangeSet) -> None:
    """Set the changes of a change set, and fail it where CloudFormation would."""
    revision = change_set.revision
    if revision.failure_reason:
        _fail(change_set, revision.failure_reason)
        return
    compare_nested = functools.partial(_create_nested, cloud, change_set) if change_set.nested else None
    failures: tuple[type[Exception], ...] = (NotModelledError, *cloud.resource_errors)
    try:
        comparison = Comparer(cloud, change_set.stack, revision, compare_nested=compare_nested).compare()
    except failures as error:
        _fail(change_set, status_reason(error))
        return
    change_set.changes, change_set.warnings = comparison.changes, comparison.warnings
    if failed := next((child for child in change_set.children if child.status == "FAILED"), None):
        _fail(change_set, f"Nested change set {failed.id} was not successfully created: Currently in FAILED.")


def _create_nested(
    cloud: Region, parent: ChangeSet, logical_id: str, resource: Resource | None, properties: Properties
) -> ChangeSet | None:
    """Create the change set of a nested stack, which is a resource of its parent; None if it does not change."""
    stack = resource.child if resource else None
    name = stack.name if stack else cloud.physical_name(parent.stack, logical_id)
    nested_resource = Resource(
        logical_id, ResourceDefinition(NESTED_STACK, {}, frozenset()), properties=dict(properties)
    )
    revision, refusal = EMPTY_REVISION, ""
    try:
        revision = creation.nested_revision(cloud, parent.stack, nested_resource, name, parent_revision=parent.revision)
    except ApiError as error:
        refusal = str(error)
    if stack and stack.revision.is_same_as(revision):
        return None
    if stack is None:
        stack = _add_stack_in_review(cloud, name, revision, parent=parent.stack)
    name_suffix = cloud.physical_name(parent.stack, logical_id, with_stack_name=False)
    change_set_name = f"{parent.name}-{name_suffix}"[:MAX_NAME_LENGTH]
    change_set = new_change_set(cloud, stack, change_set_name, "UPDATE" if resource else "CREATE", revision)
    change_set.parent, change_set.nested, change_set.status = parent, True, "CREATE_IN_PROGRESS"
    stack.operations.append((change_set.operation_id, "CREATE_CHANGESET"))
    if refusal:
        _fail(change_set, refusal)
    else:
        _compute_changes(cloud, change_set)
    if change_set.status == "CREATE_IN_PROGRESS":
        change_set.status = "CREATE_COMPLETE"
    return change_set


def has_same_outputs_and_tags(old: Revision, new: Revision) -> bool:
    """Whether two revisions have the same outputs and tags: if no resource changes either, nothing does."""
    return old.template.body.get("Outputs") == new.template.body.get("Outputs") and old.tags == new.tags


def no_updates_message(cloud: Region, stack: Stack, revision: Revision) -> str:
    """The error message of UpdateStack if there is nothing to update, otherwise ""."""
    if revision.failure_reason:
        return ""
    try:
        comparison = Comparer(cloud, stack, revision, compare_nested=None).compare()
    except ResourceError:
        return ""
    if comparison.changes or not has_same_outputs_and_tags(stack.revision, revision):
        return ""
    return NO_UPDATES_MESSAGE


def _fail(change_set: ChangeSet, reason: str) -> None:
    change_set.status, change_set.execution_status, change_set.reason = "FAILED", "UNAVAILABLE", reason
