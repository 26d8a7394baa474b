"""CloudFormation as a caller sees it: every call of its API that the double answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cfngen.sandbox.cloudformation import lifecycle, planning, refusals
from cfngen.sandbox.cloudformation.admission import Submission
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.drift import Detection, ResourceDrift, detect, latest_drifts
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Stack


class CloudFormation(Region):
    """The calls of CloudFormation, and how time passes and things fail; constructed as a `Region`."""

    # Stacks

    def create_stack(
        self,
        name: str,
        *,
        body: str = "",
        url: str = "",
        parameters: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        capabilities: Sequence[str] = (),
        on_failure: str = "ROLLBACK",
        protected: bool = False,
        policy: str = "",
        notification_arns: Sequence[str] = (),
        role_arn: str = "",
        token: str = "",
    ) -> Stack:
        """Begin to create a stack; `wait` for its end.

        Args:
            name: a name no existing stack has.
            body: the template itself, or
            url: where it is in S3.
            parameters: values by name, texts as in the API.
            tags: passed on to every resource that can be tagged.
            capabilities: what the caller acknowledges.
            on_failure: ROLLBACK, DELETE or DO_NOTHING.
            protected: whether it must not be deleted.
            policy: a stack policy.
            notification_arns: topics.
            role_arn: a service role.
            token: of the call.

        Raises:
            ApiError: refused; nothing was created
        """
        submission = Submission(
            body=body, url=url, parameters=parameters, tags=tags, capabilities=capabilities,
            notification_arns=notification_arns, role_arn=role_arn,
        )  # fmt: skip
        return lifecycle.create_stack(self, name, submission, on_failure, protected, policy, token)

    def update_stack(
        self,
        name: str,
        *,
        body: str = "",
        url: str = "",
        previous_template: bool = False,
        parameters: Mapping[str, str] | None = None,
        previous_parameters: Collection[str] = (),
        tags: Mapping[str, str] | None = None,
        capabilities: Sequence[str] = (),
        disable_rollback: bool = False,
        policy_during_update: str = "",
        policy: str = "",
        notification_arns: Sequence[str] | None = None,
        role_arn: str = "",
        token: str = "",
    ) -> Stack:
        """Begin to update a stack.

        Raises:
            ApiError: refused, or there is nothing to update
        """
        submission = Submission(
            body, url, previous_template, parameters, previous_parameters, tags, capabilities,
            notification_arns, role_arn,
        )  # fmt: skip
        return lifecycle.update_stack(self, name, submission, disable_rollback, policy_during_update, policy, token)

    def cancel_update(self, name: str, *, token: str = "") -> None:
        """Stop an update and undo it."""
        lifecycle.cancel_update(self, self.stack(name), token)

    def rollback_stack(self, name: str, *, token: str = "") -> Stack:
        """Return to the last stable state what failed with rollback turned off."""
        return lifecycle.rollback_stack(self, self.stack(name), token)

    def continue_rollback(
        self, name: str, skip: Collection[str] = (), force: bool = False, *, token: str = ""
    ) -> Stack:
        """Try again to undo an update.

        Args:
            name: a root stack
            skip: resources that are left as they are: logical ids, or "NestedStackName.LogicalId"
            force: skip whatever fails
            token: of the call
        """
        return lifecycle.continue_rollback(self, self.stack(name), skip, force, token)

    def delete_stack(self, name: str, *, retain: Collection[str] = (), force: bool = False, token: str = "") -> Stack:
        """Begin to delete a stack.

        Args:
            name: a stack that is not nested
            retain: resources that are left behind; only if a deletion has failed before
            force: leave behind whatever cannot be deleted; likewise
            token: of the call
        """
        return lifecycle.delete_stack(self, self.stack(name), retain, force, token)

    def signal_resource(self, stack_name: str, logical_id: str, unique_id: str, status: str) -> None:
        """Count a signal of an instance; one unique id counts once, and a FAILURE in place of a SUCCESS.

        Raises:
            ValidationError: no such stack or resource, one that does not wait for signals, or that has this one
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
        self.record(stack, resource, resource.status, f"Received {status} signal with UniqueId {unique_id}")

    def set_stack_policy(self, name: str, body: str) -> None:
        """Say which resources updates may touch."""
        stack = self.stack(name)
        refusals.check_policy(body)
        refusals.check_set_policy(stack)
        stack.policy = body

    def stack_policy(self, name: str) -> str:
        """The stack's policy, or nothing."""
        return self.stack(name).policy

    def set_termination_protection(self, name: str, enabled: bool) -> Stack:
        """Say whether a stack may be deleted; nested stacks follow their root."""
        stack = self.stack(name)
        refusals.check_termination_protection(stack)
        stack.protection = enabled
        return stack

    # Change sets

    def create_change_set(
        self,
        stack_name: str,
        name: str,
        *,
        body: str = "",
        url: str = "",
        previous_template: bool = False,
        parameters: Mapping[str, str] | None = None,
        previous_parameters: Collection[str] = (),
        tags: Mapping[str, str] | None = None,
        capabilities: Sequence[str] = (),
        kind: str = "UPDATE",
        on_failure: str = "",
        nested: bool = False,
        role_arn: str = "",
        notification_arns: Sequence[str] | None = None,
        description: str = "",
        express: bool = False,
        token: str = "",
    ) -> ChangeSet:
        """Begin to work out what an update, or a creation, would do.

        Raises:
            ApiError: refused
        """
        submission = Submission(
            body, url, previous_template, parameters, previous_parameters, tags, capabilities,
            notification_arns, role_arn,
        )  # fmt: skip
        return planning.create(
            self, stack_name, name, submission, kind, on_failure, nested, description, express, token
        )

    def change_set(self, name: str, stack_name: str = "") -> ChangeSet:
        """A change set by its ARN, or by its name and its stack's.

        Raises:
            ChangeSetNotFoundError: there is none
        """
        return planning.find(self, name, stack_name)

    def change_sets(self, stack_name: str) -> list[ChangeSet]:
        """Change sets of a stack."""
        stack = self.stack(stack_name)
        return [change_set for change_set in self.all_change_sets() if change_set.stack is stack]

    def delete_change_set(self, name: str, stack_name: str = "") -> None:
        """Forget a change set; the stack that was made for it stays in REVIEW_IN_PROGRESS."""
        planning.delete(self, planning.find(self, name, stack_name))

    def execute_change_set(
        self, name: str, stack_name: str = "", *, disable_rollback: bool = False, token: str = ""
    ) -> Stack:
        """Begin to do what a change set says."""
        return planning.execute(self, planning.find(self, name, stack_name), disable_rollback, token)

    # Drift

    def detect_drift(self, name: str) -> str:
        """Compare a stack's resources with what the account has; returns the id of the detection."""
        stack = self.stack(name)
        detection = detect(self, stack, self.uuid())
        self.detections.append(detection)
        return detection.id

    def drift(self, detection_id: str) -> Detection:
        """What a detection has found."""
        for detection in self.detections:
            if detection.id == detection_id:
                return detection
        raise ValidationError(f"DriftDetection {detection_id} does not exist")

    def resource_drifts(self, name: str) -> list[ResourceDrift]:
        """What the last detection has found about each resource of a stack."""
        return latest_drifts(self.detections, self.stack(name))

    # Time and what goes wrong in it

    def wait(self, stack: Stack) -> Stack:
        """Let time pass until the stack's operation has ended."""
        self.simulation.run(lambda: stack.finished)
        return stack

    def advance(self, seconds: float) -> None:
        """Let simulated time pass, and everything happen that is due in it."""
        self.simulation.advance(seconds)

    def throttle(self, logical_id: str, seconds: float) -> None:
        """Let the service of a resource that is to be created ask for fewer calls, for so many seconds from now."""
        self.failures.throttle(logical_id, self.clock.now + seconds)

    def fail(self, logical_id: str, reason: str, *, during: str = "CREATE", times: int = 1, stack: str = "") -> None:
        """Let a resource fail.

        Args:
            logical_id: the resource, of any stack whose name begins with `stack`
            reason: what its event says
            during: CREATE, UPDATE or DELETE
            times: so often
            stack: beginning of the stack's name
        """
        self.failures.inject(logical_id, reason, during, times, stack)
