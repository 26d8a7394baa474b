"""The base class of the handlers of resource types, and their arguments and results."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import boto3
from botocore import UNSIGNED
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError, UnfinishedError
from cfngen.sandbox.untyped import AwsClient, Expression, JsonDict, Properties

Tag = dict[str, str]  # with "Key" and "Value"
EMULATOR_ACCESS_KEY = "testing"  # of `client`, by which calls of the emulator itself are recognized


@functools.cache
def client(service: str, region: str) -> AwsClient:
    """A boto3 client with dummy credentials, which calls moto only; the same client in each call.

    It never retries a call, because retries would wait in real time, and does not sign it: only its access key is read.
    """
    config = Config(retries={"total_max_attempts": 1}, signature_version=UNSIGNED)
    aws_client = _session(region).client(service, config=config)
    aws_client.meta.events.register("before-sign", _name_access_key)
    return aws_client


def _name_access_key(request: AWSRequest, signing_name: str, region_name: str, **_event: object) -> None:
    credential = f"{EMULATOR_ACCESS_KEY}/20260101/{region_name}/{signing_name}/aws4_request"
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}"


@functools.cache
def _session(region: str) -> boto3.Session:
    return boto3.Session(EMULATOR_ACCESS_KEY, "unused", region_name=region)


@dataclass(frozen=True)
class CreatedResource:
    """A resource that a handler has created: its physical id (Ref) and its attributes by name (GetAtt)."""

    physical_id: str
    attributes: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class HandlerCall:
    """The arguments of a handler's method; `call["Name"]` is short for `call.properties["Name"]`.

    Attributes:
        properties: the resource's resolved properties; for an update, the new ones
        generate_name: returns a new name for the resource, as CloudFormation generates it
        physical_id: the resource's physical id; "" if the resource is to be created
        attributes: the values of GetAtt by attribute name; empty if the resource is to be created
        update_policy: the resolved UpdatePolicy attribute; only for `must_replace`
    """

    region: str
    properties: Properties
    generate_name: Callable[..., str]
    physical_id: str = ""
    attributes: Properties = field(default_factory=dict)
    update_policy: Properties = field(default_factory=dict)

    def __getitem__(self, key: str) -> Expression:
        """A property that the resource must have.

        Raises:
            NotModelledError: CloudFormation takes the resource without it, the emulator does not
        """
        if key not in self.properties:
            raise NotModelledError(f"a resource of this type without {key}")
        return self.properties[key]

    def client(self, service: str) -> AwsClient:
        """A client of a service in the stack's region."""
        return client(service, self.region)

    @property
    def ec2(self) -> AwsClient:
        """A client of EC2."""
        return self.client("ec2")

    @property
    def iam(self) -> AwsClient:
        """A client of IAM."""
        return self.client("iam")

    def pick(self, *keys: str) -> JsonDict:
        """The properties with these names that the template sets, as keyword arguments for a boto3 call."""
        return {key: self.properties[key] for key in keys if key in self.properties}

    def tag_specifications(self, resource_type: str) -> JsonDict:
        """The tags as the TagSpecifications argument of EC2 calls."""
        tags = self.properties.get("Tags", [])
        return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]} if tags else {}


@contextlib.contextmanager
def leave_to_rollback_on_failure(created: CreatedResource) -> Iterator[None]:
    """Report a resource as created although a later call for it fails, so that the stack's rollback deletes it.

    Raises:
        UnfinishedError: a call inside the `with` block failed
    """
    try:
        yield
    except (ResourceError, ClientError, ParamValidationError) as error:
        raise UnfinishedError(str(error), created.physical_id, created.attributes) from error


class Handler:
    """Creates, updates and deletes resources of one type through boto3.

    Attributes:
        supported_properties: the properties that the handler supports, and settings in them, in the form of
            `MODELLED`; templates with others are refused.
        non_updatable_properties: the properties that cannot be updated according to the reference, although the schema
            allows it.
        never_updated_properties: the properties that the emulator does not update in place.
        supports_snapshots: whether the type supports the deletion policy Snapshot.
        deletion: the call that deletes a resource: service, method, and the argument that takes the physical id.
    """

    supported_properties: frozenset[str] = frozenset()
    non_updatable_properties: frozenset[str] = frozenset()
    never_updated_properties: frozenset[str] = frozenset()
    supports_snapshots = False
    deletion = ("", "", "")

    def create(self, call: HandlerCall) -> CreatedResource:
        """Create the resource; returns its physical id and its attributes."""
        raise NotImplementedError

    def delete(self, call: HandlerCall) -> None:
        """Delete the resource."""
        service, method, argument = self.deletion
        getattr(call.client(service), method)(**{argument: call.physical_id})

    def snapshot(self, call: HandlerCall) -> None:
        """Take a snapshot of the resource before it is deleted; called for the deletion policy Snapshot only."""
        raise ResourceError("this type has no snapshots")

    def update(self, call: HandlerCall, old_properties: Properties) -> Properties:
        """Update a resource in place; returns the attributes whose values have changed.

        Raises:
            ResourceError: the update was refused before anything was changed
            NotModelledError: CloudFormation updates a property in place, but the emulator does not support that
        """
        changed = {
            key for key in {*call.properties, *old_properties} if call.properties.get(key) != old_properties.get(key)
        }
        if refused := sorted(changed & self.non_updatable_properties):
            raise ResourceError(f"Updates are not supported for the properties {refused}")
        if not_modelled := sorted(changed & self.never_updated_properties):
            raise NotModelledError(f"changes of {not_modelled} in place")
        attributes = self.update_properties(call, old_properties, changed)
        if "Tags" in changed:
            self.retag(call, old_properties)
        return attributes or {}

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties | None:
        """Update the changed properties except tags; returns the attributes whose values have changed, if any."""

    def retag(self, call: HandlerCall, old_properties: Properties) -> None:
        """Update the tags."""
        self.change_tags(call, old_properties.get("Tags", []), call.properties.get("Tags", []))

    def change_tags(self, call: HandlerCall, old_tags: list[Tag], new_tags: list[Tag]) -> None:
        """Remove the tags that the resource no longer has, and set all others."""
        removed_keys, tags = tag_changes(old_tags, new_tags)
        if removed_keys:
            self.remove_tags(call, removed_keys)
        if tags:
            self.add_tags(call, tags)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        """Set tags; this default works for EC2 resources."""
        call.ec2.create_tags(Resources=[self.tagged_resource_id(call)], Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        """Remove tags; this default works for EC2 resources."""
        call.ec2.delete_tags(Resources=[self.tagged_resource_id(call)], Tags=[{"Key": key} for key in keys])

    def tagged_resource_id(self, call: HandlerCall) -> str:
        """The id by which EC2 tags the resource: the physical id, unless a handler overrides this method."""
        return call.physical_id

    def must_replace(self, call: HandlerCall) -> bool:
        """Whether a changed property replaces the resource; called for those that replace it only conditionally."""
        raise NotModelledError("properties that replace a resource under some conditions")

    def read_actual(self, call: HandlerCall) -> Properties | None:
        """The actual values of the properties that drift detection compares; None if the resource is deleted."""
        return {}

    @property
    def supports_drift_detection(self) -> bool:
        """Whether the type supports drift detection."""
        return type(self).read_actual is not Handler.read_actual


@contextlib.contextmanager
def delete_on_failure(remove: Callable[[], object]) -> Iterator[None]:
    """Delete a new resource at once if a later call for it fails, instead of leaving that to the stack's rollback.

    Args:
        remove: called to delete the resource if a call inside the `with` block fails
    """
    try:
        yield
    except Exception:
        remove()
        raise


def whole_number(name: str, value: object) -> int:
    """Return what a template says for a number, often as a text.

    Args:
        name: of the property.

    Raises:
        ResourceError: it is no whole number.
    """
    try:
        return int(str(value))
    except ValueError:
        raise ResourceError(f"Value {value} of property {name} is no whole number") from None


def tag_changes(old_tags: list[Tag], new_tags: list[Tag]) -> tuple[list[str], list[Tag]]:
    """The keys of the tags that are removed, and the tags that are set."""
    return sorted({tag["Key"] for tag in old_tags} - {tag["Key"] for tag in new_tags}), new_tags


class Ec2Resource(Handler):
    """A row of the table of handlers: an EC2 resource with an id, which one call creates and one deletes.

    Args:
        properties: the properties, all of which the creating call takes as arguments; only the tags can be updated.
        path: where the response has the id; the last key is the argument of the deleting call.
        attribute: the name by which GetAtt returns the id; by default, the last key of the path.
        tagged_as: the resource type of its tags; "" if it has none.
        arguments: further arguments of the creating call.
    """

    def __init__(
        self,
        *properties: str,
        create: str,
        delete: str,
        path: tuple[str, ...],
        attribute: str = "",
        tagged_as: str = "",
        arguments: Mapping[str, object] = {},
    ) -> None:
        self.own_properties = properties
        self.create_call, self.deletion, self.path = create, ("ec2", delete, path[-1]), path
        self.attribute, self.tagged_as, self.arguments = attribute or path[-1], tagged_as, arguments
        self.supported_properties = frozenset({*properties, *(["Tags"] if tagged_as else [])})

    def create(self, call: HandlerCall) -> CreatedResource:
        tags = call.tag_specifications(self.tagged_as) if self.tagged_as else {}
        response = getattr(call.ec2, self.create_call)(**call.pick(*self.own_properties), **tags, **self.arguments)
        identifier = functools.reduce(operator.getitem, self.path, response)
        return CreatedResource(identifier, {self.attribute: identifier})
