"""The emulator's entry point: the calls of CloudFormation's API that it implements."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cfngen.sandbox.cloudformation import (
    admission,
    change_set_creation,
    creation,
    deletion,
    existing_change_sets,
    properties,
    rollback,
    signals,
    stack_checks,
    updating,
)
from cfngen.sandbox.cloudformation.admission import Submission
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.drift import detect_drift
from cfngen.sandbox.cloudformation.errors import AlreadyExistsError, ChangeSetNotFoundError, ValidationError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_revision
from cfngen.sandbox.cloudformation.stack import (
    STABLE_STATUSES,
    DriftDetection,
    Resource,
    ResourceDrift,
    Revision,
    Stack,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CloudFormation(Region):
    """CloudFormation's calls, and control over the simulated time and over injected failures.

    It takes the same arguments as `Region`.
    """

    # Stacks

    def create_stack(
        self,
        name: str,
        *,
        on_failure: str = "ROLLBACK",
        protected: bool = False,
        policy: str = "",
        token: str = "",
        **submission: Unpack[Submission],
    ) -> Stack:
        """Start to create a stack; use `wait` to wait until it is complete.

        Args:
            name: the stack's name, which no other stack has.
            on_failure: ROLLBACK, DELETE or DO_NOTHING.
            protected: whether to enable termination protection.
            policy: a stack policy as JSON, or "".

        Raises:
            ApiError: the call was refused; nothing was created
        """
        admission.check_name("stackName", name)
        if any(other.name == name and other.status != "DELETE_COMPLETE" for other in self.stacks()):
            raise AlreadyExistsError(f"Stack [{name}] already exists")
        revision = admission.admit(self, submission, None, name)
        self._check_stack_policy(policy, name, revision)
        stack = self.new_stack(name, revision)
        stack.own_termination_protection, stack.policy = protected, policy
        creation.start(self, stack, on_failure=on_failure, token=token)
        return stack

    def update_stack(
        self,
        name: str,
        *,
        disable_rollback: bool = False,
        policy_during_update: str = "",
        policy: str = "",
        token: str = "",
        **submission: Unpack[Submission],
    ) -> Stack:
        """Start to update a stack.

        Args:
            name: the name or id of the stack.
            disable_rollback: whether a failed update leaves the stack in UPDATE_FAILED instead of rolling it back.
            policy_during_update: a stack policy that applies only during this update, or "".
            policy: the new stack policy as JSON; "" keeps the current one.

        Raises:
            ApiError: the call was refused, or there is nothing to update
        """
        stack = self.stack(name)
        stack_checks.check_update_is_allowed(stack)
        stack_checks.check_rollback_stays_disabled(stack, disable_rollback=disable_rollback)
        revision = admission.admit(self, submission, stack)
        for policy_body in (policy_during_update, policy):
            self._check_stack_policy(policy_body, stack.name, stack.revision, revision)
        if stack.status in STABLE_STATUSES and (
            refusal := change_set_creation.no_updates_message(self, stack, revision)
        ):
            raise ValidationError(refusal)
        stack.policy_during_update, stack.policy = policy_during_update, policy or stack.policy
        for change_set in self.change_sets(stack.id):
            if change_set.execution_status == "AVAILABLE":
                change_set.execution_status = "OBSOLETE"
        updating.start_alone(self, stack, revision, token=token, disable_rollback=disable_rollback)
        return stack

    def cancel_update(self, name: str, *, token: str = "") -> None:
        """Cancel an update, and roll it back."""
        stack = self.stack(name)
        stack_checks.check_update_can_be_cancelled(stack)
        stack.token = token or stack.token
        rollback.cancel(self, stack, "User Initiated")

    def rollback_stack(self, name: str, *, token: str = "") -> Stack:
        """Roll back a stack that failed with rollback disabled; one that was never stable is deleted."""
        stack = self.stack(name)
        stack_checks.check_rollback_can_be_started(stack)
        stack.disable_rollback, stack.token = False, token
        if stack.stable_state is None:
            self.start_operation(stack, "ROLLBACK", token)
            self.simulation.start(deletion.delete(self, stack, "User Initiated"))
        else:
            self.simulation.start(rollback.roll_back(self, stack, "User Initiated"))
        return stack

    def continue_rollback(
        self, name: str, skip: Collection[str] = (), force: bool = False, *, token: str = ""
    ) -> Stack:
        """Continue a failed rollback of an update.

        Args:
            name: the name or id of the stack that was updated
            skip: resources to skip: logical ids, or "NestedStackName.LogicalId"
            force: skip all resources that fail

        Raises:
            ValidationError: no rollback has failed, or a resource to skip has not failed
        """
        stack = self.stack(name)
        stack_checks.check_rollback_can_be_continued(stack)
        if skip and force:
            raise ValidationError("ResourcesToSkip and ForceRollback cannot be given together")
        resources_to_skip = [self._resource_to_skip(stack, skipped) for skipped in skip]
        for owner, resource in resources_to_skip:
            rollback.skip(self, owner, resource)
        stack.force_rollback = force
        rollback.continue_rollback(self, stack, token)
        return stack

    def _resource_to_skip(self, root: Stack, name: str) -> tuple[Stack, Resource]:
        """The failed resource that `LogicalId` or `NestedStackName.LogicalId` names, with its stack."""
        stack_name, _, logical_id = name.rpartition(".")
        owner = self.stack(stack_name) if stack_name else root
        resource = owner.resources.get(logical_id)
        if owner.root is not root or resource is None:
            raise ValidationError(f"Resource [{name}] does not exist in stack [{root.name}] or one that it nests")
        stack_checks.check_resource_can_be_skipped(name, resource)
        return owner, resource

    def delete_stack(self, name: str, *, retain: Collection[str] = (), force: bool = False, token: str = "") -> Stack:
        """Start to delete a stack, after its change sets.

        Args:
            name: the name or id of a stack
            retain: logical ids of resources to retain; only in status DELETE_FAILED
            force: retain all resources that cannot be deleted; only in status DELETE_FAILED
        """
        stack = self.stack(name)
        stack_checks.check_deletion_is_allowed(stack, retaining=bool(retain) or force)
        if unknown := sorted(set(retain) - set(stack.resources)):
            raise ValidationError(f"The specified resources to retain {unknown} are not resources of the stack")
        status_before = stack.status
        self.start_operation(stack, "DELETE_STACK", token)
        for change_set in self.all_change_sets():
            if change_set.stack is stack:
                existing_change_sets.delete_without_checks(self, change_set)
        if status_before == "CREATE_IN_PROGRESS":
            creation.cancel_resources(self, stack)
        self.simulation.start(deletion.delete(self, stack, "User Initiated", retain=retain, force=force))
        return stack

    def signal_resource(self, stack_name: str, logical_id: str, unique_id: str, status: str) -> None:
        """Receive a signal for a resource. Each unique id counts once; a FAILURE replaces an earlier SUCCESS.

        Args:
            logical_id: the resource that waits for signals
            unique_id: identifies the sender of the signal, such as an instance id
            status: SUCCESS or FAILURE

        Raises:
            ValidationError: the stack or resource does not exist or is not waiting for signals, or the signal is a
                duplicate
        """
        stack = self.stack(stack_name)
        resource = stack.resources.get(logical_id)
        if status not in ("SUCCESS", "FAILURE"):
            raise ValidationError(f"{status} is no status")
        if stack.finished:
            raise ValidationError(f"Stack {stack.id} is in {stack.status} state and cannot be signaled")
        if resource is None:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack_name}")
        if resource.status not in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS") or not resource.expected_signals:
            raise ValidationError(f"Resource {logical_id} is in {resource.status} state and cannot be signaled")
        if unique_id in resource.signals and status != "FAILURE":
            raise ValidationError(
                f"Signal with ID {unique_id} for resource {logical_id} already exists. Signals may only be updated "
                "with a FAILURE status."
            )
        resource.signals[unique_id] = status
        self.record_event(stack, resource, resource.status, f"Received {status} signal with UniqueId {unique_id}")

    def set_stack_policy(self, name: str, body: str) -> None:
        """Set the stack policy: a JSON document that says what updates may do to which resources."""
        stack = self.stack(name)
        self._check_stack_policy(body, stack.name, stack.revision)
        stack_checks.check_stack_policy_can_be_set(stack)
        stack.policy = body

    def _check_stack_policy(self, body: str, stack_name: str, *revisions: Revision) -> None:
        """Refuse a stack policy that is invalid, or about resources that none of the revisions has; "" is none."""
        if body:
            logical_ids = {
                logical_id
                for revision in revisions
                for logical_id in properties.enabled_resources(
                    scope_of_revision(self, revision, stack_name), revision.template.resources
                )
            }
            stack_checks.check_stack_policy_body(body, logical_ids)

    def set_termination_protection(self, name: str, enabled: bool) -> Stack:
        """Enable or disable termination protection; nested stacks have the setting of their root stack."""
        stack = self.stack(name)
        stack_checks.check_termination_protection_can_be_set(stack)
        stack.own_termination_protection = enabled
        return stack

    # Change sets

    def create_change_set(
        self,
        stack_name: str,
        name: str,
        *,
        kind: str = "UPDATE",
        on_failure: str = "",
        nested: bool = False,
        description: str = "",
        express: bool = False,
        token: str = "",
        **submission: Unpack[Submission],
    ) -> ChangeSet:
        """Start to create a change set, and for ChangeSetType CREATE the stack in REVIEW_IN_PROGRESS.

        Args:
            stack_name: the stack's name; for an update also its id.
            name: the change set's name; a change set of the same name that was executed is replaced.
            kind: the ChangeSetType, CREATE or UPDATE.
            on_failure: what the execution does with the stack if it fails (OnStackFailure), or "".
            nested: whether to create change sets of the nested stacks too (IncludeNestedStacks).
            express: whether the execution skips waiting until resources are ready (deployment mode EXPRESS).

        Raises:
            ApiError: the call was refused
        """
        admission.check_name("changeSetName", name)
        change_set_creation.check_settings(kind, on_failure)
        stack = self.find_stack(stack_name)
        change_set_creation.check_stack(stack, stack_name, name, kind)
        same_name = change_set_creation.executed_with_name(self, stack, name)
        revision = admission.admit(self, submission, stack, stack_name)
        if stack is None:
            stack = change_set_creation.new_stack_in_review(self, stack_name, revision, token)
        for other in same_name:
            self.remove_change_set(other)
        change_set = change_set_creation.new_change_set(self, stack, name, kind, revision, token)
        change_set.nested, change_set.on_failure = nested, on_failure
        change_set.description, change_set.express = description, express
        change_set_creation.start(self, change_set)
        return change_set

    def change_set(self, name: str, stack_name: str = "") -> ChangeSet:
        """Find a change set by its ARN, or by its name and the stack's name or id.

        Raises:
            ChangeSetNotFoundError: no such change set
        """
        for change_set in self.all_change_sets():
            is_on_named_stack = stack_name in (change_set.stack.name, change_set.stack.id)
            if name == change_set.id or (name == change_set.name and is_on_named_stack):
                return change_set
        raise ChangeSetNotFoundError(f"ChangeSet [{name}] does not exist")

    def change_sets(self, stack_name: str) -> list[ChangeSet]:
        """The change sets of a stack."""
        stack = self.stack(stack_name)
        return [change_set for change_set in self.all_change_sets() if change_set.stack is stack]

    def delete_change_set(self, name: str, stack_name: str = "") -> None:
        """Delete a change set; a stack that was created for it stays in REVIEW_IN_PROGRESS."""
        existing_change_sets.delete(self, self.change_set(name, stack_name))

    def execute_change_set(
        self, name: str, stack_name: str = "", *, disable_rollback: bool = False, token: str = ""
    ) -> Stack:
        """Start to execute a change set; returns the stack that it creates or updates."""
        change_set = self.change_set(name, stack_name)
        return existing_change_sets.execute(self, change_set, disable_rollback=disable_rollback, token=token)

    # Drift

    def detect_drift(self, name: str) -> str:
        """Detect drift of a stack's resources; returns the id of the drift detection."""
        stack = self.stack(name)
        detection = detect_drift(self, stack, self.uuid())
        self.drift_detections.append(detection)
        return detection.id

    def drift_detection(self, detection_id: str) -> DriftDetection:
        """The drift detection with this id."""
        for detection in self.drift_detections:
            if detection.id == detection_id:
                return detection
        raise ValidationError(f"DriftDetection {detection_id} does not exist")

    def resource_drifts(self, name: str) -> list[ResourceDrift]:
        """The drift of each resource of a stack, from the latest drift detection."""
        stack_id = self.stack(name).id
        detections = [detection for detection in self.drift_detections if detection.stack_id == stack_id]
        return list(detections[-1].resources) if detections else []

    # Implementations of the abstract methods of Region

    def cancel_nested(self, child: Stack) -> None:
        """Cancel the creation or update of a nested stack."""
        if child.status == "CREATE_IN_PROGRESS":
            creation.cancel(self, child)
        elif child.status == "UPDATE_IN_PROGRESS":
            rollback.cancel(self, child, "Resource update cancelled")

    def on_stack_status(self, stack: Stack) -> None:
        """Update the execution status of the change set that the stack executes."""
        existing_change_sets.update_execution_status(self, stack)

    def on_group_launched(self, group: str, instance_ids: list[str]) -> None:
        """Call `on_launch` for the instances that an Auto Scaling group launched on its own."""
        signals.notify_later_launches(self, group, instance_ids)

    # Time and failures

    def wait(self, stack: Stack) -> Stack:
        """Advance the simulated time until the stack's operation has ended."""
        self.simulation.run(lambda: stack.finished)
        return stack

    def advance(self, seconds: float) -> None:
        """Advance the simulated time, and run everything that is due in it."""
        self.simulation.advance(seconds)

    def throttle(self, logical_id: str, seconds: float) -> None:
        """Throttle the calls that create a resource, for a number of simulated seconds from now."""
        self.failures.throttle(logical_id, self.clock.now + seconds)

    def fail(self, logical_id: str, reason: str, *, during: str = "CREATE", times: int = 1, stack: str = "") -> None:
        """Make the next operations on a resource fail.

        Args:
            during: CREATE, UPDATE or DELETE
            times: how many operations fail
            stack: prefix of the names of the stacks in which the resource fails; "" for all stacks
        """
        self.failures.inject(logical_id, reason, during=during, times=times, stack_name_prefix=stack)
