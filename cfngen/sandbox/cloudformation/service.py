"""The emulator's entry point: the calls of CloudFormation's API that it implements."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cfngen.sandbox.cloudformation import (
    change_set_creation,
    change_set_execution,
    existing_change_sets,
    lifecycle,
    signals,
    status_checks,
)
from cfngen.sandbox.cloudformation.admission import Submission, SubmissionArguments
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.drift import detect_drift, latest_drifts
from cfngen.sandbox.cloudformation.drift_results import DriftDetection, ResourceDrift
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Stack

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
        **submission: Unpack[SubmissionArguments],
    ) -> Stack:
        """Start to create a stack; use `wait` to wait until it is complete.

        Args:
            name: the stack's name, which no other stack has.
            on_failure: ROLLBACK, DELETE or DO_NOTHING.
            protected: whether to enable termination protection.
            policy: a stack policy as JSON, or "".
            token: the ClientRequestToken.
            submission: the template and its settings.

        Raises:
            ApiError: the call was refused; nothing was created
        """
        return lifecycle.create_stack(
            self,
            name,
            Submission(**submission),
            on_failure=on_failure,
            protected=protected,
            policy=policy,
            token=token,
        )

    def update_stack(
        self,
        name: str,
        *,
        disable_rollback: bool = False,
        policy_during_update: str = "",
        policy: str = "",
        token: str = "",
        **submission: Unpack[SubmissionArguments],
    ) -> Stack:
        """Start to update a stack.

        Args:
            name: the name or id of the stack.
            disable_rollback: whether a failed update leaves the stack in UPDATE_FAILED instead of rolling it back.
            policy_during_update: a stack policy that applies only during this update, or "".
            policy: the new stack policy as JSON; "" keeps the current one.
            token: the ClientRequestToken.
            submission: the template and its settings.

        Raises:
            ApiError: the call was refused, or there is nothing to update
        """
        return lifecycle.update_stack(
            self,
            name,
            Submission(**submission),
            disable_rollback=disable_rollback,
            policy_during_update=policy_during_update,
            policy=policy,
            token=token,
        )

    def cancel_update(self, name: str, *, token: str = "") -> None:
        """Cancel an update, and roll it back."""
        lifecycle.cancel_update(self, self.stack(name), token=token)

    def rollback_stack(self, name: str, *, token: str = "") -> Stack:
        """Roll back a stack that failed with rollback disabled to its last stable state."""
        return lifecycle.rollback_stack(self, self.stack(name), token=token)

    def continue_rollback(
        self, name: str, skip: Collection[str] = (), force: bool = False, *, token: str = ""
    ) -> Stack:
        """Continue a failed rollback of an update.

        Args:
            name: a root stack
            skip: resources to skip: logical ids, or "NestedStackName.LogicalId"
            force: skip all resources that fail
            token: the ClientRequestToken
        """
        return lifecycle.continue_rollback(self, self.stack(name), skip=skip, force=force, token=token)

    def delete_stack(self, name: str, *, retain: Collection[str] = (), force: bool = False, token: str = "") -> Stack:
        """Start to delete a stack.

        Args:
            name: a stack that is not nested
            retain: logical ids of resources to retain; only in status DELETE_FAILED
            force: retain all resources that cannot be deleted; only in status DELETE_FAILED
            token: the ClientRequestToken
        """
        return lifecycle.delete_stack(self, self.stack(name), retain=retain, force=force, token=token)

    def signal_resource(self, stack_name: str, logical_id: str, unique_id: str, status: str) -> None:
        """Receive a signal for a resource. Each unique id counts once; a FAILURE replaces an earlier SUCCESS.

        Args:
            stack_name: the name or id of the stack
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
        status_checks.check_stack_policy_body(body)
        status_checks.check_stack_policy_can_be_set(stack)
        stack.policy = body

    def stack_policy(self, name: str) -> str:
        """The stack policy as JSON; "" if the stack has none."""
        return self.stack(name).policy

    def set_termination_protection(self, name: str, enabled: bool) -> Stack:
        """Enable or disable termination protection; nested stacks have the setting of their root stack."""
        stack = self.stack(name)
        status_checks.check_termination_protection_can_be_set(stack)
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
        **submission: Unpack[SubmissionArguments],
    ) -> ChangeSet:
        """Start to create a change set for an update or a creation of a stack.

        Args:
            stack_name: the stack's name; for an update also its id.
            name: the change set's name.
            kind: the ChangeSetType, CREATE or UPDATE.
            on_failure: what the execution does with the stack if it fails (OnStackFailure), or "".
            nested: whether to create change sets of the nested stacks too (IncludeNestedStacks).
            description: the change set's description.
            express: whether the execution skips waiting until resources are ready (deployment mode EXPRESS).
            token: the ClientRequestToken.
            submission: the template and its settings.

        Raises:
            ApiError: the call was refused
        """
        return change_set_creation.create(
            self,
            stack_name,
            name,
            Submission(**submission),
            change_set_type=kind,
            on_failure=on_failure,
            nested=nested,
            description=description,
            express=express,
            token=token,
        )

    def change_set(self, name: str, stack_name: str = "") -> ChangeSet:
        """Find a change set by its ARN, or by its name and the stack's name or id.

        Raises:
            ChangeSetNotFoundError: no such change set
        """
        return existing_change_sets.find(self, name, stack_name)

    def change_sets(self, stack_name: str) -> list[ChangeSet]:
        """The change sets of a stack."""
        stack = self.stack(stack_name)
        return [change_set for change_set in self.all_change_sets() if change_set.stack is stack]

    def delete_change_set(self, name: str, stack_name: str = "") -> None:
        """Delete a change set; a stack that was created for it stays in REVIEW_IN_PROGRESS."""
        existing_change_sets.delete(self, existing_change_sets.find(self, name, stack_name))

    def execute_change_set(
        self, name: str, stack_name: str = "", *, disable_rollback: bool = False, token: str = ""
    ) -> Stack:
        """Start to execute a change set; returns the stack that it creates or updates."""
        change_set = existing_change_sets.find(self, name, stack_name)
        return change_set_execution.execute(self, change_set, disable_rollback=disable_rollback, token=token)

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
        return latest_drifts(self.drift_detections, self.stack(name))

    # Implementations of the abstract methods of Region

    def cancel_nested(self, child: Stack) -> None:
        """Cancel the creation or update of a nested stack."""
        lifecycle.cancel_nested(self, child)

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
            logical_id: the logical id of the resource
            reason: the status reason of the failure
            during: CREATE, UPDATE or DELETE
            times: how many operations fail
            stack: prefix of the names of the stacks in which the resource fails; "" for all stacks
        """
        self.failures.inject(logical_id, reason, during=during, times=times, stack_name_prefix=stack)
