"""The state of one emulated region, which all operations share: stacks, change sets, the clock, names and events."""

from __future__ import annotations

import abc
import hashlib
import itertools
import json
import uuid
from collections.abc import Callable, Mapping

from moto.ssm.models import ssm_backends

from cfngen.sandbox.cloudformation.change_sets import ChangeSet, FailedValidation
from cfngen.sandbox.cloudformation.descriptions import Answers
from cfngen.sandbox.cloudformation.errors import RESOURCE_ERRORS, LimitExceededError, ResourceError, ValidationError
from cfngen.sandbox.cloudformation.simulation import (
    DEFAULT_SEED,
    Clock,
    InjectedFailures,
    Operation,
    ResourceOrder,
    Simulation,
)
from cfngen.sandbox.cloudformation.stack import (
    DriftDetection,
    LaunchedInstance,
    Resource,
    Revision,
    Stack,
    StackEvent,
    mask_no_echo,
)
from cfngen.sandbox.cloudformation.template import NESTED_STACK, WAIT_CONDITION
from cfngen.sandbox.moto_patches import (
    instances,
    networks,  # noqa: F401 - importing it registers its patches, as with the services
    registry,
    speedups,
)
from cfngen.sandbox.services import capacity, launch, resource_tags, scaling_activities, set_clock
from cfngen.sandbox.services.schedule import set_schedule

ACCOUNT_ID = "123456789012"  # the account that moto emulates
MAX_NAME_LENGTH = 128
# How long CloudFormation retries a call that a service throttles. The number is assumed; that CloudFormation gives up
# in the end was seen in aws/aws-cdk#9882.
THROTTLING_TIMEOUT_SECONDS = 600.0
STACK_QUOTA = 2_000  # guide, "Understand CloudFormation quotas"


class Region(abc.ABC):
    """The state of one region of one account.

    The operations on stacks import this class, so it cannot import them. It calls them by its abstract methods, which
    the subclass `CloudFormation` implements.

    Args:
        parameter_store: contents of Parameter Store (values by name), for the type AWS::SSM::Parameter::Value.
        on_launch: called for each instance that a stack's Auto Scaling group launches, right after the launch. It may
            schedule on the clock what the instance does later. Without it, instances do nothing.
        durations: how many seconds operations take, by the names of `cfngen.sandbox.durations`: a resource type, with
            "update " or "delete " before it where these take another time than the creation, and "*" for all other
            types. Without it, operations take no time.
        seed: draws the order of resources that do not depend on each other; see `ResourceOrder`.
        draws_durations: whether operations without a duration take any time, which is drawn, too.
    """

    def __init__(
        self,
        region: str,
        *,
        parameter_store: Mapping[str, str] | None = None,
        on_launch: Callable[[LaunchedInstance], None] = lambda launched: None,
        durations: Mapping[str, float] | None = None,
        seed: int = DEFAULT_SEED,
        draws_durations: bool = False,
    ) -> None:
        registry.apply()
        instances.offer_instance_types_everywhere()
        speedups.apply()
        self.region = region
        # The URL at which a server of the emulator answers in place of AWS's endpoints; empty within one process.
        self.endpoint = ""
        # The errors that fail the operation on a resource. Others end it, so that a test sees them; a server, whose
        # clock has no caller, fails the resource with all of them.
        self.resource_errors: tuple[type[Exception], ...] = RESOURCE_ERRORS
        self.clock = Clock()
        self.simulation = Simulation(self.clock)
        self.on_launch = on_launch
        # Called with the id of an instance that a lifecycle hook holds in Terminating:Wait.
        self.on_terminating: Callable[[str], None] = lambda instance_id: None
        self.durations = dict(durations or {})
        self.order = ResourceOrder(seed, draws_durations=draws_durations)
        self.parameter_store = dict(parameter_store or {})
        self.failures = InjectedFailures()
        self.answers = Answers()
        # The instances that Auto Scaling groups have launched, in this order: by instance id, what the
        # group launched instances from at that time (`signals.launch_source`).
        self.launched: dict[str, str] = {}
        # The groups with a rolling update in progress: by group name, the desired capacity before the update.
        self.capacities_before_update: dict[str, int] = {}
        self.drift_detections: list[DriftDetection] = []
        self.failed_validations: list[FailedValidation] = []  # of operations on stacks
        self._stacks: list[Stack] = []
        self._change_sets: list[ChangeSet] = []
        self._sequence = itertools.count()
        self._set_up_services()

    def _set_up_services(self) -> None:
        """Give the services of this region its clock, and forget what earlier emulators left there."""
        set_clock(self.region, lambda: self.clock.now)
        set_schedule(self.region, self.clock.schedule, self.durations)
        capacity.reset(self.region)
        resource_tags.set_tags_in_metadata(self.region, False)
        launch.set_stored_values(self.region, self.stored_value)
        scaling_activities.set_observer(
            self.region,
            scaling_activities.Observer(
                on_launched=self.on_group_launched,
                # A lambda, because `on_terminating` is set after the region was created.
                on_terminating=lambda instance_id: self.on_terminating(instance_id),
                time=lambda: self.clock.time,
            ),
        )

    def stored_value(self, name: str) -> str | None:
        """The value of a parameter of Parameter Store: a public one, or one of the account's; None if there is none.

        Raises:
            ValidationError: it is a SecureString, which CloudFormation does not support for parameters ("Unsupported
                Systems Manager parameter types", CloudFormation User Guide)
        """
        if name in self.parameter_store:
            return self.parameter_store[name]
        parameter = ssm_backends[ACCOUNT_ID][self.region].get_parameter(name)
        if parameter is None:
            return None
        if parameter.parameter_type == "SecureString":
            raise ValidationError(
                f"Parameters [{name}] referenced by template have types not supported by CloudFormation."
            )
        return str(parameter.value)

    def stacks(self) -> list[Stack]:
        """All stacks in the order of creation, including nested and deleted ones."""
        return list(self._stacks)

    def find_stack(self, name: str) -> Stack | None:
        """The stack with this name or id; a deleted stack can be named by its id only."""
        for stack in self._stacks:
            if name == stack.id or (name == stack.name and stack.status != "DELETE_COMPLETE"):
                return stack
        return None

    def stack(self, name: str) -> Stack:
        """As `find_stack`, for a stack that must exist."""
        if stack := self.find_stack(name):
            return stack
        raise ValidationError(f"Stack with id {name} does not exist")

    def exports(self) -> list[tuple[str, str, str]]:
        """All exports as tuples: the id of the exporting stack, the export's name and its value."""
        existing_stacks = [stack for stack in self._stacks if stack.status != "DELETE_COMPLETE"]
        return [(stack.id, name, value) for stack in existing_stacks for name, value in stack.exports.items()]

    def add_stack(self, stack: Stack) -> None:
        """Add a stack to the region."""
        self._stacks.append(stack)

    def add_change_set(self, change_set: ChangeSet) -> None:
        """Add a change set to the region."""
        self._change_sets.append(change_set)

    def remove_change_set(self, change_set: ChangeSet) -> None:
        """Remove a change set and those of its nested stacks."""
        for child in change_set.children:
            self.remove_change_set(child)
        if change_set in self._change_sets:
            self._change_sets.remove(change_set)

    def all_change_sets(self) -> list[ChangeSet]:
        """All change sets that have not been deleted."""
        return list(self._change_sets)

    def wait_for_duration(self, resource_type: str, verb: str = "create") -> Operation:
        """Wait for as long as it takes to create, update or delete a resource of this type.

        A wait condition takes no time: it starts to wait for signals at once.

        Args:
            verb: create, update or delete
        """
        if resource_type == WAIT_CONDITION:
            return
        # From the most specific name to the most general one; the first that has a duration applies.
        names = (f"{verb} {resource_type}", resource_type, "*")
        configured_seconds = next((self.durations[name] for name in names if name in self.durations), 0)
        seconds = self.order.vary_duration(configured_seconds)
        if seconds:
            end = self.clock.now + seconds
            self.clock.schedule(seconds, lambda: None)  # so that the clock stops at that time
            yield lambda: self.clock.now >= end

    def retry_while_throttled(self, logical_id: str) -> Operation:
        """Retry while the resource's service throttles calls, and give up after a timeout, as CloudFormation does.

        Raises:
            ResourceError: the service throttled calls for too long
        """
        throttled_until = self.failures.throttled_until(logical_id)
        deadline = self.clock.now + THROTTLING_TIMEOUT_SECONDS
        if throttled_until > self.clock.now:
            wait_until = min(throttled_until, deadline)
            self.clock.schedule(wait_until - self.clock.now, lambda: None)  # so that the clock stops at that time
            yield lambda: self.clock.now >= wait_until
            if throttled_until > deadline:
                raise ResourceError("Rate exceeded (Status Code: 400; Error Code: Throttling)")

    @abc.abstractmethod
    def cancel_nested(self, child: Stack) -> None:
        """Cancel the creation or update of a nested stack, because its parent has failed or was cancelled."""

    @abc.abstractmethod
    def on_stack_status(self, stack: Stack) -> None:
        """Called when a stack gets a new status, before the event is added."""

    @abc.abstractmethod
    def on_group_launched(self, group: str, instance_ids: list[str]) -> None:
        """Called with the instances that an Auto Scaling group launched on its own, for example as replacements."""

    def new_stack(self, name: str, revision: Revision, parent: Stack | None = None) -> Stack:
        """Add a new stack, whose creation is not started yet.

        Raises:
            LimitExceededError: the account has reached its quota of stacks
        """
        existing_stacks = [stack for stack in self._stacks if stack.status != "DELETE_COMPLETE"]
        if len(existing_stacks) >= STACK_QUOTA:
            raise LimitExceededError(f"Limit for stack has been exceeded ({STACK_QUOTA})")
        stack_id = f"arn:aws:cloudformation:{self.region}:{ACCOUNT_ID}:stack/{name}/{self.uuid()}"
        stack = Stack(name, stack_id, revision, parent, created=self.clock.time, led_by=parent)
        self.add_stack(stack)
        return stack

    def start_operation(self, stack: Stack, operation_type: str, token: str = "") -> int:
        """Start an operation of a stack, which supersedes the current one; returns the stack's new generation.

        Args:
            operation_type: the OperationType of the API, such as CREATE_STACK
            token: the ClientRequestToken of the call, or ""
        """
        stack.generation += 1
        stack.token = token
        stack.operations.append((self.uuid(), operation_type))
        if operation_type in ("CREATE_STACK", "UPDATE_STACK") and stack.revision.invalid_properties:
            failed = FailedValidation(stack, stack.revision, *stack.operations[-1], self.clock.time, token)
            self.failed_validations.append(failed)
        return stack.generation

    def physical_name(
        self, stack: Stack, logical_id: str, *, limit: int = MAX_NAME_LENGTH, with_stack_name: bool = True
    ) -> str:
        """Generate a name as CloudFormation does: stack name, logical id and a unique suffix of twelve characters."""
        seed = f"{stack.id} {logical_id} {next(self._sequence)}"
        suffix = hashlib.sha256(seed.encode()).hexdigest()[:12].upper()
        return generated_name(stack.name if with_stack_name else "", logical_id, random_suffix=suffix, max_length=limit)

    def record_event(self, stack: Stack, resource: Resource | None, status: str, reason: str = "") -> None:
        """Set the status of a resource, or of the stack itself if `resource` is None, and add the event."""
        operation_id = stack.operations[-1][0] if stack.operations else ""
        if resource is None:
            stack.status, stack.reason = status, reason
            self.on_stack_status(stack)
            event_id, resource_properties = self.uuid(), ""
            logical_id, physical_id, resource_type = stack.name, stack.id, NESTED_STACK
        else:
            resource.status, resource.reason, resource.last_event_time = status, reason, self.clock.time
            event_id = f"{resource.logical_id}-{self.uuid()}"
            resource_properties = mask_no_echo(json.dumps(resource.properties), stack.revision)
            logical_id, physical_id, resource_type = resource.logical_id, resource.physical_id, resource.type
        stack.events.append(
            StackEvent(
                time=self.clock.time,
                stack_name=stack.name,
                logical_id=logical_id,
                physical_id=physical_id,
                type=resource_type,
                status=status,
                reason=reason,
                id=event_id,
                operation_id=operation_id,
                token=stack.token,
                properties=resource_properties,
            )
        )

    def uuid(self) -> str:
        """A new UUID; the sequence of UUIDs is the same in every run, so that tests can be repeated."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.region} {next(self._sequence)}"))


def generated_name(stack_name: str, logical_id: str, random_suffix: str, max_length: int) -> str:
    """Return `<stack name>-<logical id>-<random suffix>`, truncated to the length that the service allows.

    Stack name and logical id share the length that the suffix leaves. Each gets half of it (the stack name gets the odd
    character), plus the characters that the other does not need (`fair_split`,
    aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py; names seen: KensioSoftware/yulin#1113,
    convox/rack#2297).

    Args:
        stack_name: the stack's name; empty for resource types whose names do not include it.
    """
    remaining_length = max_length - len(f"-{random_suffix}")
    if not stack_name:
        return f"{logical_id[:remaining_length]}-{random_suffix}"
    remaining_length -= len("-")  # between stack name and logical id
    half_length = (remaining_length + 1) // 2
    stack_length = min(len(stack_name), max(half_length, remaining_length - len(logical_id)))
    logical_id_length = remaining_length - stack_length
    return f"{stack_name[:stack_length]}-{logical_id[:logical_id_length]}-{random_suffix}"
