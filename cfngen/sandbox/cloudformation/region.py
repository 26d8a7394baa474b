"""One region of one account, as the operations see it: what they remember, the clock they run on, names and events."""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import (
    admission,
    creation,
    generated_names,
    moto_patches,
    moto_speedups,
    planning,
    properties,
    rollback,
    signals,
)
from cfngen.sandbox.cloudformation.admission import LOOKUPS, NESTED
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.clock import Clock, Operation, Simulation
from cfngen.sandbox.cloudformation.drift import Detection
from cfngen.sandbox.cloudformation.errors import LimitExceededError, NotModelledError, ResourceError, ValidationError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.sandbox.cloudformation.injected_failures import InjectedFailures
from cfngen.sandbox.cloudformation.intrinsics import Scope
from cfngen.sandbox.cloudformation.order import Order
from cfngen.sandbox.cloudformation.stack import Event, Launched, Resource, Revision, Stack, masked
from cfngen.sandbox.services import capacity, keep_time, metadata_tags, scaling_activities
from cfngen.sandbox.services.schedule import keep_schedule

ACCOUNT = "123456789012"  # moto's
NAME_LIMIT = 128
# Seconds for which CloudFormation repeats a call that a service has throttled; assumed. That it gives up at last is
# seen: aws/aws-cdk#9882.
PATIENCE = 600.0
STACK_QUOTA = 2_000  # guide, "Understand CloudFormation quotas"


class Region:
    """One region of one account.

    Args:
        region: where everything is created.
        stored: Parameter Store, for parameters of type AWS::SSM::Parameter::Value: values by name.
        instances: called for each instance that a stack's Auto Scaling group launches, as soon as the group has
            launched it; what the instance does later it asks the clock for. Without it, instances do nothing.
        durations: seconds that things take, by the names of `cfngen.sandbox.durations`: making, changing or removing a
            resource by its type, "update" or "delete" before it where that is not the same, "*" for other types;
            without it, no time at all.
        seed: draws an order for resources that do not depend on each other, any that their dependencies allow; without
            it, they come in the order of the template.
    """

    def __init__(
        self,
        region: str,
        *,
        stored: Mapping[str, str] | None = None,
        instances: Callable[[Launched], None] = lambda launched: None,
        durations: Mapping[str, float] | None = None,
        seed: int | None = None,
    ) -> None:
        moto_patches.repair()
        moto_speedups.apply()
        self.region = region
        self.clock = Clock()
        keep_time(region, lambda: self.clock.now)
        capacity.restore(region)
        metadata_tags.show(region, False)
        self.simulation = Simulation(self.clock)
        self.instances = instances
        self.leaving: Callable[[str], None] = lambda instance_id: None  # told whom a lifecycle hook holds at its end
        self.durations = dict(durations or {})
        keep_schedule(region, self.clock.later, self.durations)
        scaling_activities.observe(
            region,
            scaling_activities.Observer(
                launched=lambda group, ids: signals.launched_by_itself(self, group, ids),
                leaving=lambda instance_id: self.leaving(instance_id),
                time=lambda: self.clock.time,
            ),
        )
        self.order = Order(seed)
        self.stored = dict(stored or {})
        self.failures = InjectedFailures()
        self.launched: dict[str, str] = {}  # by instance, in the order of launch: the launch template it came from
        self.capacities: dict[str, int] = {}  # by group: instances to have after the rolling update under way
        self.detections: list[Detection] = []
        self._stacks: list[Stack] = []
        self._change_sets: list[ChangeSet] = []
        self._numbers = itertools.count()

    @property
    def metadata_tags(self) -> bool:
        """The account's default: whether instances read their tags from their metadata."""
        return metadata_tags.shown(self.region)

    @metadata_tags.setter
    def metadata_tags(self, shown: bool) -> None:
        metadata_tags.show(self.region, shown)

    def stacks(self) -> list[Stack]:
        """Every stack there ever was, nested ones too, in the order of creation."""
        return list(self._stacks)

    def stack(self, name: str) -> Stack:
        """A stack by name, or by id also when it is deleted."""
        for stack in self._stacks:
            if name == stack.id or (name == stack.name and stack.status != "DELETE_COMPLETE"):
                return stack
        raise ValidationError(f"Stack with id {name} does not exist")

    def exports(self) -> list[tuple[str, str, str]]:
        """What stacks export: id of the stack, name and value."""
        live = [each for each in self._stacks if each.status != "DELETE_COMPLETE"]
        return [(stack.id, name, value) for stack in live for name, value in stack.exports.items()]

    def imports(self, export_name: str) -> list[str]:
        """Names of the stacks that import something."""
        live = [stack for stack in self._stacks if stack.status not in ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS")]
        return [each.name for each in live if export_name in properties.imported(self, each)]

    def add(self, stack: Stack) -> None:
        """Remember a stack."""
        self._stacks.append(stack)

    def keep(self, change_set: ChangeSet) -> None:
        """Remember a change set."""
        self._change_sets.append(change_set)

    def forget(self, change_set: ChangeSet) -> None:
        """Forget a change set and those of its nested stacks."""
        for child in change_set.children:
            self.forget(child)
        if change_set in self._change_sets:
            self._change_sets.remove(change_set)

    def all_change_sets(self) -> list[ChangeSet]:
        """Every change set there is."""
        return list(self._change_sets)

    def take_time(self, resource_type: str, verb: str = "create") -> Operation:
        """Let as much time pass as it takes to create, update or delete a resource of a type.

        A wait condition is nothing that must be made: it waits as soon as CloudFormation comes to it.
        """
        if resource_type == properties.WAIT_CONDITION:
            return
        names = (f"{verb} {resource_type}", resource_type, "*")
        seconds = self.order.lasting(next((self.durations[name] for name in names if name in self.durations), 0))
        if seconds:
            end = self.clock.now + seconds
            self.clock.later(seconds, lambda: None)
            yield lambda: self.clock.now >= end

    def outlast_throttling(self, logical_id: str) -> Operation:
        """Try again for as long as a resource's service asks for fewer calls, as CloudFormation does, and then give up.

        Raises:
            ResourceError: it has asked for too long
        """
        end, patience = self.failures.throttled(logical_id), self.clock.now + PATIENCE
        if end > self.clock.now:
            seen = min(end, patience)
            self.clock.later(seen - self.clock.now, lambda: None)
            yield lambda: self.clock.now >= seen
            if end > patience:
                raise ResourceError("Rate exceeded (Status Code: 400; Error Code: Throttling)")

    def cancel_nested(self, child: Stack) -> None:
        """Give up the operation of a nested stack."""
        if child.status == "CREATE_IN_PROGRESS":
            creation.cancel(self, child)
        elif child.status == "UPDATE_IN_PROGRESS":
            rollback.cancel(self, child, "Resource update cancelled")

    def fetch(self, url: str) -> str:
        """A template from S3, by its virtual-hosted address."""
        return admission.fetch(self, url)

    def new_stack(self, name: str, revision: Revision, parent: Stack | None = None) -> Stack:
        """A stack that is about to be created.

        Raises:
            LimitExceededError: there are too many
        """
        if len([each for each in self._stacks if each.status != "DELETE_COMPLETE"]) >= STACK_QUOTA:
            raise LimitExceededError(f"Limit for stack has been exceeded ({STACK_QUOTA})")
        identifier = f"arn:aws:cloudformation:{self.region}:{ACCOUNT}:stack/{name}/{self.uuid()}"
        stack = Stack(name, identifier, revision, parent, created=self.clock.time)
        self.add(stack)
        return stack

    def begin(self, stack: Stack, kind: str, token: str = "") -> int:
        """Begin an operation of a stack, superseding any other; returns its turn."""
        stack.turn += 1
        stack.token = token
        stack.operations.append((self.uuid(), kind))
        return stack.turn

    def bare_scope(self, revision: Revision, name: str, stack_id: str = "", resources: Mapping[str, Any] | None = None,
                   attribute: Callable[[str, str], Any] = properties.no_attribute) -> Scope:  # fmt: skip
        """Where expressions of a template are resolved before there is a resource, or against given ones."""
        names: dict[str, Any] = {
            "AWS::AccountId": ACCOUNT,
            "AWS::NotificationARNs": list(revision.notification_arns),
            "AWS::Partition": "aws",
            "AWS::Region": self.region,
            "AWS::StackId": stack_id,
            "AWS::StackName": name,
            "AWS::URLSuffix": "amazonaws.com",
            **revision.parameters,
            **(resources or {}),
        }
        return Scope(revision.template.body, names, attribute, self._zones, self._imported)

    def scope(self, stack: Stack) -> Scope:
        """Where the expressions of a stack's template are resolved while an operation works on it."""
        settled = {key: each.physical_id for key, each in stack.resources.items() if each.progress == "settled"}
        return self.bare_scope(
            stack.revision, stack.name, stack.id, settled, lambda key, name: properties.attribute(stack, key, name)
        )

    def physical_name(self, stack: Stack, logical_id: str, *, limit: int = NAME_LIMIT, with_stack: bool = True) -> str:
        """A name as CloudFormation makes it: stack, logical id and twelve characters that no other resource has."""
        suffix = hashlib.sha256(f"{stack.id} {logical_id} {next(self._numbers)}".encode()).hexdigest()[:12].upper()
        return generated_names.generated(stack.name if with_stack else "", logical_id, suffix, limit)

    def record(self, stack: Stack, resource: Resource | None, status: str, reason: str = "") -> None:
        """Set a status and keep the event; without a resource it is the stack's own."""
        operation = stack.operations[-1][0] if stack.operations else ""
        if resource is None:
            stack.status, stack.reason = status, reason
            planning.follow(self, stack)
            identity, described = self.uuid(), ""
            logical_id, physical_id, kind = stack.name, stack.id, NESTED
        else:
            resource.status, resource.reason, resource.time = status, reason, self.clock.time
            identity, described = (
                f"{resource.logical_id}-{self.uuid()}",
                masked(json.dumps(resource.properties), stack.revision),
            )
            logical_id, physical_id, kind = resource.logical_id, resource.physical_id, resource.type
        stack.events.append(
            Event(
                self.clock.time, stack.name, logical_id, physical_id, kind, status, reason,
                identity, operation, stack.token, described,
            )
        )  # fmt: skip

    def exists(self, declared: str, value: str) -> bool:
        """Whether the account has an object of a parameter's AWS-specific type."""
        if declared not in LOOKUPS:
            raise NotModelledError(f"parameter type {declared}")
        method, argument, items = LOOKUPS[declared]
        try:
            return bool(getattr(client("ec2", self.region), method)(**{argument: [value]})[items])
        except ClientError:
            return False

    def uuid(self) -> str:
        """A new identifier, the same in every run."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.region} {next(self._numbers)}"))

    def _zones(self, region: str) -> list[str]:
        return [
            availability_zone["ZoneName"]
            for availability_zone in client("ec2", region).describe_availability_zones()["AvailabilityZones"]
        ]

    def _imported(self, name: str) -> str:
        return properties.import_value(self, name)
