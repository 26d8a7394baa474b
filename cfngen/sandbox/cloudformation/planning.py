"""The calls that make, find, delete and execute change sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation import admission, creation, lifecycle, refusals
from cfngen.sandbox.cloudformation.admission import NESTED, Submission
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.differences import compare
from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    ApiError,
    ChangeSetNotFoundError,
    InvalidChangeSetStatusError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack, shown
from cfngen.sandbox.cloudformation.template import ResourceDefinition, Template

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

SECONDS = (1, 4)  # until a change set is begun, and until it is made; a root's takes as long with nested ones
POLICIES = ("", "ROLLBACK", "DELETE", "DO_NOTHING")
# The words of a change set whatever is without effect (aws/aws-cdk#11521), and those of UpdateStack; a change set of a
# template with transforms has those of UpdateStack (aws/aws-cdk#2553), but transforms are not modelled.
NO_CHANGE_SET = "The submitted information didn't contain changes. Submit different information to create a change set."
NO_UPDATE = "No updates are to be performed."
EMPTY_REVISION = Revision("", Template({}, {}), {}, {}, {}, ())  # of a nested stack whose template is refused


def create(
    service: Region,
    stack_name: str,
    name: str,
    submission: Submission,
    kind: str,
    on_failure: str,
    nested: bool,
    description: str,
    express: bool,
    token: str,
) -> ChangeSet:
    """Begin to make a change set.

    Raises:
        ApiError: refused
    """
    admission.check_name("changeSetName", name)
    if kind not in ("CREATE", "UPDATE") or on_failure not in POLICIES:
        raise ValidationError(f"ChangeSetType {kind} or OnStackFailure {on_failure} is no value of the API")
    if on_failure == "DELETE" and kind != "CREATE":
        raise ValidationError("OnStackFailure DELETE is supported only for change sets of type CREATE")
    stack = _existing(service, stack_name)
    if kind == "UPDATE":
        if stack is None:
            raise ValidationError(f"Stack [{stack_name}] does not exist")
        refusals.check_update(stack)
    elif stack is not None and stack.status != "REVIEW_IN_PROGRESS":
        raise ValidationError(
            f"Stack [{stack_name}] already exists and cannot be created again with the changeSet [{name}]."
        )
    same = [each for each in service.all_change_sets() if each.stack is stack and each.name == name]
    if any(each.execution_status != "EXECUTE_COMPLETE" for each in same):
        raise AlreadyExistsError(f"ChangeSet {name} already exists")
    revision = admission.admit(service, submission, stack, stack_name)
    if stack is None:
        admission.check_name("stackName", stack_name)
        stack = service.new_stack(stack_name, revision)
        service.begin(stack, "CREATE_CHANGESET", token)
        service.record(stack, None, "REVIEW_IN_PROGRESS", "User Initiated")
    for each in same:
        service.forget(each)
    change_set = _new(service, stack, name, kind, revision, token)
    change_set.nested, change_set.on_failure, change_set.description = nested, on_failure, description
    change_set.express = express
    stack.operations.append((change_set.operation_id, "CREATE_CHANGESET"))
    began, ends = SECONDS
    service.clock.later(began, lambda: _progress(change_set))
    service.clock.later(began + ends, lambda: _conclude(service, change_set))
    return change_set


def _existing(service: Region, stack_name: str) -> Stack | None:
    found = (stack for stack in service.stacks() if stack_name in (stack.name, stack.id))
    return next((each for each in found if each.status != "DELETE_COMPLETE"), None)


def _new(service: Region, stack: Stack, name: str, kind: str, revision: Revision | None, token: str = "") -> ChangeSet:
    account = stack.id.split(":")[4]
    arn = f"arn:aws:cloudformation:{service.region}:{account}:changeSet/{name}/{service.uuid()}"
    made = ChangeSet(name, arn, stack, kind, service.clock.time, operation_id=service.uuid(), token=token)
    made.revision = revision
    if revision:
        made.parameters, made.tags = shown(revision), dict(revision.tags)
        made.capabilities, made.role_arn = revision.capabilities, revision.role_arn
        made.notification_arns = revision.notification_arns
    service.keep(made)
    return made


def _progress(change_set: ChangeSet) -> None:
    if change_set.status == "CREATE_PENDING":
        change_set.status = "CREATE_IN_PROGRESS"


def _conclude(service: Region, change_set: ChangeSet) -> None:
    if change_set.status != "CREATE_IN_PROGRESS":
        return
    _fill(service, change_set)
    if change_set.status == "FAILED":
        return
    if change_set.kind == "UPDATE" and not change_set.changes:
        revision = change_set.revision
        if revision and changes_nothing(change_set.stack.revision, revision):
            _fail(change_set, NO_CHANGE_SET)
            return
    change_set.status, change_set.execution_status = "CREATE_COMPLETE", "AVAILABLE"


def _fill(service: Region, change_set: ChangeSet) -> None:
    """Work out what a change set says, and those of nested stacks."""
    revision = change_set.revision
    if revision is None:
        return

    def nest(key: str, resource: Resource | None, properties: Mapping[str, Any]) -> ChangeSet | None:
        return _nest(service, change_set, key, resource, properties) if change_set.nested else None

    try:
        found = compare(service, change_set.stack, revision, nested=change_set.nested, nest=nest)
    except ResourceError as error:
        _fail(change_set, str(error))
        return
    change_set.changes, change_set.findings = found.changes, found.findings
    if revision.complaint:
        _fail(change_set, revision.complaint)
    elif found.findings:
        names = ", ".join(dict.fromkeys(finding.validation_name for finding in found.findings))
        _fail(change_set, f"The following hook(s)/validation failed: [{names}]. To troubleshoot Early Validation "
                          "errors, use the DescribeEvents API for detailed failure information.")  # fmt: skip
    elif failed := next((child for child in change_set.children if child.status == "FAILED"), None):
        _fail(change_set, f"Nested change set {failed.id} was not successfully created: Currently in FAILED.")


def _nest(
    service: Region,
    parent: ChangeSet,
    key: str,
    resource: Resource | None,
    properties: Mapping[str, Any],
) -> ChangeSet | None:
    """The change set of a nested stack; None if nothing about the stack changes."""
    stack = resource.child if resource else None
    name = stack.name if stack else service.physical_name(parent.stack, key)
    asked = Resource(key, ResourceDefinition(NESTED, {}, frozenset()), properties=dict(properties))
    revision, refusal = None, ""
    try:
        revision = creation.nested_revision(service, parent.stack, asked, name, parent.revision)
    except ApiError as error:
        refusal = str(error)
    if stack and revision and stack.revision.stays(revision):
        return None
    if stack is None:
        stack = service.new_stack(name, revision or EMPTY_REVISION, parent.stack)
        service.begin(stack, "CREATE_CHANGESET")
        service.record(stack, None, "REVIEW_IN_PROGRESS", "User Initiated")
    suffix = service.physical_name(parent.stack, key, with_stack=False)
    made = _new(service, stack, f"{parent.name}-{suffix}"[:128], "UPDATE" if resource else "CREATE", revision)
    made.parent, made.nested, made.status = parent, True, "CREATE_IN_PROGRESS"
    stack.operations.append((made.operation_id, "CREATE_CHANGESET"))
    if refusal:
        _fail(made, refusal)
    else:
        _fill(service, made)
    if made.status == "CREATE_IN_PROGRESS":
        made.status = "CREATE_COMPLETE"
    return made


def changes_nothing(before: Revision, after: Revision) -> bool:
    """Whether an update that changes no resource changes neither outputs nor tags."""
    outputs = [each.template.body.get("Outputs") for each in (before, after)]
    return outputs[0] == outputs[1] and before.tags == after.tags


def nothing_to_do(service: Region, stack: Stack, revision: Revision) -> str:
    """Why an update without a change set is none, or nothing."""

    def nest(key: str, resource: Resource | None, properties: Mapping[str, Any]) -> None:
        return None

    if revision.complaint:
        return ""
    try:
        found = compare(service, stack, revision, nested=False, nest=nest)
    except ResourceError:
        return ""
    idle = not found.changes and not found.findings
    return NO_UPDATE if idle and changes_nothing(stack.revision, revision) else ""


def _fail(change_set: ChangeSet, reason: str) -> None:
    change_set.status, change_set.execution_status, change_set.reason = "FAILED", "UNAVAILABLE", reason


def find(service: Region, name: str, stack_name: str) -> ChangeSet:
    """A change set by its ARN, or by its name and its stack's.

    Raises:
        ChangeSetNotFoundError: there is none
    """
    for change_set in service.all_change_sets():
        if name == change_set.id or (
            name == change_set.name and stack_name in (change_set.stack.name, change_set.stack.id)
        ):
            return change_set
    raise ChangeSetNotFoundError(f"ChangeSet [{name}] does not exist")


def delete(service: Region, change_set: ChangeSet) -> None:
    """Forget a change set.

    Raises:
        ApiError: refused
    """
    if change_set.parent:
        raise ValidationError(f"ChangeSet [{change_set.id}] is nested; delete its root [{change_set.root.id}]")
    if change_set.status == "CREATE_IN_PROGRESS" or change_set.execution_status == "EXECUTE_IN_PROGRESS":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be deleted in its current status of [{change_set.status}]"
        )
    drop(service, change_set)


def drop(service: Region, change_set: ChangeSet) -> None:
    """Forget a change set, and remove the nested stacks that were made for it only."""
    change_set.status = "DELETE_COMPLETE"
    service.forget(change_set)
    _discard(service, change_set)


def _discard(service: Region, change_set: ChangeSet) -> None:
    for child in change_set.children:
        _discard(service, child)
        _remove_reviewed(service, child.stack)


def _remove_reviewed(service: Region, stack: Stack) -> None:
    if stack.status == "REVIEW_IN_PROGRESS":
        service.begin(stack, "DELETE_STACK")
        stack.deleted = service.clock.time
        service.record(stack, None, "DELETE_COMPLETE")


def execute(
    service: Region,
    change_set: ChangeSet,
    disable_rollback: bool,
    token: str,
) -> Stack:
    """Begin to do what a change set says.

    Raises:
        ApiError: refused
    """
    if change_set.parent:
        raise ValidationError(f"ChangeSet [{change_set.id}] is nested; execute its root [{change_set.root.id}]")
    if change_set.status != "CREATE_COMPLETE":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]"
        )
    if change_set.execution_status != "AVAILABLE":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current execution status of "
            f"[{change_set.execution_status}]"
        )
    if disable_rollback and change_set.on_failure:
        raise ValidationError("DisableRollback cannot be given for a change set that has OnStackFailure")
    stack, revision = change_set.stack, change_set.revision
    if revision is None:
        raise NotModelledError("a change set without a template")
    if change_set.kind == "UPDATE":
        refusals.check_update(stack)
        refusals.check_going_on(stack, disable_rollback=disable_rollback or change_set.on_failure == "DO_NOTHING")
    for each in [each for each in service.all_change_sets() if each.stack is stack and each is not change_set]:
        drop(service, each)
    stack.change_set_id = change_set.id
    _executing(change_set)
    on_failure, express = "DO_NOTHING" if disable_rollback else change_set.on_failure, change_set.express
    if change_set.kind == "CREATE":
        stack.revision, stack.updated = revision, service.clock.time
        lifecycle.start_creation(service, stack, on_failure, token, express=express)
    else:
        keep = on_failure == "DO_NOTHING"
        lifecycle.start_update(service, stack, revision, token, disable_rollback=keep, express=express)
    return stack


def _executing(change_set: ChangeSet) -> None:
    change_set.execution_status = "EXECUTE_IN_PROGRESS"
    for change in change_set.changes:
        if change.child:
            change.child.stack.change_set_id = change.child.id
            change_set.stack.prepared[change.logical_id] = change.child.stack
            _executing(change.child)


def follow(service: Region, stack: Stack) -> None:
    """Let the change set that a stack carries out end as the stack's operation does.

    Nested stacks that were made for the change set and that its execution has not reached are removed.
    """
    if stack.finished or "ROLLBACK" in stack.status:
        unused = list(stack.prepared.values())
        stack.prepared.clear()
        for nested in unused:
            _remove_reviewed(service, nested)
    for change_set in service.all_change_sets():
        if change_set.stack is stack and change_set.execution_status == "EXECUTE_IN_PROGRESS":
            if stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                change_set.execution_status = "EXECUTE_COMPLETE"
            elif "FAILED" in stack.status or "ROLLBACK" in stack.status or "DELETE" in stack.status:
                change_set.execution_status = "EXECUTE_FAILED"
