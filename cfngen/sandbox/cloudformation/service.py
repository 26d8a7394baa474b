"""CloudFormation as a caller sees it: create, delete, signal, look."""

from __future__ import annotations

import hashlib
import itertools
import urllib.parse
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import operations, parameters, property_schemas, template
from cfngen.sandbox.cloudformation.clock import Clock, Simulation
from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    InsufficientCapabilitiesError,
    NotModelledError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.intrinsics import Scope
from cfngen.sandbox.cloudformation.stack import Event, Launched, Resource, Stack

ACCOUNT = "123456789012"  # moto's
BODY_LIMIT = 51_200  # bytes of a template in the call itself
OBJECT_LIMIT = 1_048_576  # bytes of a template in S3
NAME_LIMIT = 128
NESTED = "AWS::CloudFormation::Stack"
IAM_TYPES = frozenset({"AWS::IAM::Role", "AWS::IAM::InstanceProfile"})
LOOKUPS: Mapping[str, tuple[str, str, str]] = {
    "AWS::EC2::AvailabilityZone::Name": ("describe_availability_zones", "ZoneNames", "AvailabilityZones"),
    "AWS::EC2::Image::Id": ("describe_images", "ImageIds", "Images"),
    "AWS::EC2::KeyPair::KeyName": ("describe_key_pairs", "KeyNames", "KeyPairs"),
    "AWS::EC2::Subnet::Id": ("describe_subnets", "SubnetIds", "Subnets"),
    "AWS::EC2::VPC::Id": ("describe_vpcs", "VpcIds", "Vpcs"),
}


class CloudFormation:
    """One region of one account.

    Args:
        region: where everything is created.
        stored: Parameter Store, for parameters of type AWS::SSM::Parameter::Value: values by name.
        instances: called for each instance that a stack's Auto Scaling group launches, as soon as the group is created;
            what the instance does later it asks the clock for. Without it, instances do nothing.
    """

    def __init__(
        self,
        region: str,
        *,
        stored: Mapping[str, str] | None = None,
        instances: Callable[[Launched], None] = lambda launched: None,
    ) -> None:
        self.region = region
        self.clock = Clock()
        self.simulation = Simulation(self.clock)
        self.instances = instances
        self._stored = dict(stored or {})
        self._stacks: list[Stack] = []
        self._numbers = itertools.count()

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
    ) -> Stack:
        """Begin to create a stack; `wait` for its end.

        Args:
            name: a name no existing stack has.
            body: the template itself, or
            url: where it is in S3.
            parameters: values by name, texts as in the API.
            tags: passed on to every resource that can be tagged.
            capabilities: what the caller acknowledges.
            on_failure: ROLLBACK or DO_NOTHING.

        Raises:
            ApiError: refused; nothing was created
        """
        if any(each.name == name and each.status != "DELETE_COMPLETE" for each in self._stacks):
            raise AlreadyExistsError(f"Stack [{name}] already exists")
        if len(body.encode()) > BODY_LIMIT:
            raise ValidationError(f"'templateBody' must have length less than or equal to {BODY_LIMIT}")
        text = body or self.fetch(url)
        stack, complaint = self.prepare(name, text, parameters or {}, tags or {}, capabilities, None)
        self.simulation.start(operations.create(self, stack, complaint, rollback=on_failure == "ROLLBACK"))
        return stack

    def delete_stack(self, name: str) -> Stack:
        """Begin to delete a stack."""
        stack = self.stack(name)
        if stack.parent or not stack.finished:
            raise ValidationError(f"Stack {name} is nested or in status {stack.status} and cannot be deleted")
        self.simulation.start(operations.delete(self, stack, "User Initiated"))
        return stack

    def signal_resource(self, stack_name: str, logical_id: str, unique_id: str, status: str) -> None:
        """Count a signal of an instance; one unique id counts once.

        Raises:
            ValidationError: no such stack or resource, or one that does not wait for signals
        """
        resource = self.stack(stack_name).resources.get(logical_id)
        if resource is None or status not in ("SUCCESS", "FAILURE"):
            raise ValidationError(
                f"Resource {logical_id} does not exist for stack {stack_name}, or {status} is no status"
            )
        if resource.status != "CREATE_IN_PROGRESS" or not resource.signals_wanted:
            raise ValidationError(f"Resource {logical_id} is in {resource.status} state and cannot be signaled")
        if unique_id not in resource.signals:
            resource.signals[unique_id] = status
            reason = f"Received {status} signal with UniqueId {unique_id}"
            self.record(self.stack(stack_name), resource, resource.status, reason)

    def stack(self, name: str) -> Stack:
        """A stack by name, or by id also when it is deleted."""
        for stack in self._stacks:
            if name == stack.id or (name == stack.name and stack.status != "DELETE_COMPLETE"):
                return stack
        raise ValidationError(f"Stack with id {name} does not exist")

    def wait(self, stack: Stack) -> Stack:
        """Let time pass until the stack's operation has ended."""
        self.simulation.run(lambda: stack.finished)
        return stack

    def fetch(self, url: str) -> str:
        """A template from S3, by its virtual-hosted address."""
        parts = urllib.parse.urlsplit(url)
        bucket, _, service = parts.netloc.partition(".s3.")
        if parts.scheme != "https" or service not in (f"{self.region}.amazonaws.com", "amazonaws.com"):
            raise ValidationError(f"TemplateURL must be a supported URL. ({url})")
        try:
            data: bytes = client("s3", self.region).get_object(Bucket=bucket, Key=parts.path.lstrip("/"))["Body"].read()
        except ClientError as error:
            raise ValidationError(f"S3 error: {error} ({url})") from error
        if len(data) > OBJECT_LIMIT:
            raise ValidationError(f"Template may not exceed {OBJECT_LIMIT} bytes in size.")
        return data.decode()

    def prepare(
        self,
        name: str,
        text: str,
        given: Mapping[str, str],
        tags: Mapping[str, str],
        capabilities: Sequence[str],
        parent: Stack | None,
    ) -> tuple[Stack, str]:
        """A stack that is about to be created, and why it must fail at once (or nothing).

        Raises:
            ApiError: refused
        """
        parsed = template.parse(text)
        self._check_types(parsed)
        values, complaint = parameters.values(parsed, given, self._stored, self._exists)
        identifier = f"arn:aws:cloudformation:{self.region}:{ACCOUNT}:stack/{name}/{self._uuid()}"
        stack = Stack(name, identifier, parsed, values, dict(tags), tuple(capabilities), parent)
        self._check_rules(stack)
        if IAM_TYPES & {each.type for each in parsed.resources.values()} and not set(capabilities) & {
            "CAPABILITY_IAM",
            "CAPABILITY_NAMED_IAM",
        }:
            raise InsufficientCapabilitiesError("Requires capabilities : [CAPABILITY_IAM]")
        self._stacks.append(stack)
        return stack, complaint

    def scope(self, stack: Stack) -> Scope:
        """Where the template's expressions are resolved."""
        names: dict[str, Any] = {
            "AWS::AccountId": ACCOUNT,
            "AWS::NotificationARNs": [],
            "AWS::Partition": "aws",
            "AWS::Region": self.region,
            "AWS::StackId": stack.id,
            "AWS::StackName": stack.name,
            "AWS::URLSuffix": "amazonaws.com",
            **stack.parameters,
            **{key: each.physical_id for key, each in stack.resources.items() if each.status == "CREATE_COMPLETE"},
        }
        return Scope(stack.template.body, names, lambda key, name: operations.attribute(stack, key, name), self._zones)

    def physical_name(self, stack: Stack, logical_id: str, *, limit: int = NAME_LIMIT, with_stack: bool = True) -> str:
        """A name as CloudFormation makes it: stack, logical id and twelve characters that no other resource has."""
        suffix = hashlib.sha256(f"{stack.id} {logical_id} {next(self._numbers)}".encode()).hexdigest()[:12].upper()
        prefix = f"{stack.name}-{logical_id}" if with_stack else logical_id
        return f"{prefix[: limit - len(suffix) - 1]}-{suffix}"

    def record(self, stack: Stack, resource: Resource | None, status: str, reason: str = "") -> None:
        """Set a status and keep the event; without a resource it is the stack's own."""
        if resource is None:
            stack.status, stack.reason = status, reason
            event = Event(self.clock.time, stack.name, stack.name, stack.id, NESTED, status, reason)
        else:
            resource.status, resource.reason = status, reason
            event = Event(
                self.clock.time, stack.name, resource.logical_id, resource.physical_id, resource.type, status, reason
            )
        stack.events.append(event)

    def _check_types(self, parsed: template.Template) -> None:
        types = {each.type for each in parsed.resources.values()}
        if unknown := sorted(each for each in types if not property_schemas.known(self.region, each)):
            raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
        if missing := sorted(types - set(HANDLERS) - {NESTED}):
            raise NotModelledError(f"resource types {missing}")
        for key, each in parsed.resources.items():
            if each.deletion_policy == "Snapshot" and not (each.type in HANDLERS and HANDLERS[each.type].snapshots):
                raise ValidationError(f"Template error: resource type {each.type} does not support snapshots ({key})")

    def _check_rules(self, stack: Stack) -> None:
        scope = self.scope(stack)
        for name, rule in stack.template.body.get("Rules", {}).items():
            if not scope.resolve(rule.get("RuleCondition", {"Fn::Equals": ["", ""]})):
                continue
            for assertion in rule["Assertions"]:
                if not scope.resolve(assertion["Assert"]):
                    raise ValidationError(f"Rule {name} is not satisfied: {assertion.get('AssertDescription', '')}")

    def _exists(self, declared: str, value: str) -> bool:
        if declared not in LOOKUPS:
            raise NotModelledError(f"parameter type {declared}")
        method, argument, items = LOOKUPS[declared]
        try:
            return bool(getattr(client("ec2", self.region), method)(**{argument: [value]})[items])
        except ClientError:
            return False

    def _zones(self, region: str) -> list[str]:
        return [each["ZoneName"] for each in client("ec2", region).describe_availability_zones()["AvailabilityZones"]]

    def _uuid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"stack {next(self._numbers)}"))
