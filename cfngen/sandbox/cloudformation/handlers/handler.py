"""What a resource type must be able to do, and what it is told."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError, UnfinishedError


@functools.cache
def client(service: str, region: str) -> Any:
    """A boto3 client with credentials that mean nothing; it reaches moto only, and is made once for all tests.

    It tries a call once: what is refused is refused, and nobody waits on the wall clock.
    """
    return _session(region).client(service, config=Config(retries={"total_max_attempts": 1}))


@functools.cache
def _session(region: str) -> boto3.Session:
    return boto3.Session("testing", "testing", region_name=region)


@dataclass(frozen=True)
class Created:
    """A resource that has come into being: what Ref and GetAtt give."""

    physical_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """What a handler is told; the physical id and the attributes are empty on creation."""

    region: str
    properties: Mapping[str, Any]
    name: Callable[..., str]
    physical_id: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    update_policy: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.properties[key]

    @property
    def ec2(self) -> Any:
        return client("ec2", self.region)

    @property
    def iam(self) -> Any:
        return client("iam", self.region)

    def only(self, *keys: str) -> dict[str, Any]:
        """Those of the named properties that the template gives."""
        return {key: self.properties[key] for key in keys if key in self.properties}

    def tagged(self, resource_type: str) -> dict[str, Any]:
        """The tags as most calls of EC2 want them."""
        tags = self.properties.get("Tags", [])
        return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]} if tags else {}


@contextlib.contextmanager
def unfinished_on_failure(created: Created) -> Iterator[None]:
    """Let what goes wrong within leave a resource that exists, and that is therefore removed again.

    Raises:
        UnfinishedError: something was refused
    """
    try:
        yield
    except (ResourceError, ClientError, ParamValidationError) as error:
        raise UnfinishedError(str(error), created.physical_id, created.attributes) from error


class Handler:
    """Makes, changes and removes resources of one type through boto3.

    Attributes:
        properties: those it passes on.
        changeable: those of them that it changes in place.
        unchangeable: those that the reference says cannot be updated, although the schema allows it.
        snapshots: whether the type takes the policy Snapshot.
    """

    properties: frozenset[str] = frozenset()
    changeable: frozenset[str] = frozenset()
    unchangeable: frozenset[str] = frozenset()
    snapshots = False

    def create(self, call: Call) -> Created:
        raise NotImplementedError

    def delete(self, call: Call) -> None:
        raise NotImplementedError

    def snapshot(self, call: Call) -> None:
        raise ResourceError("this type has no snapshots")

    def update(self, call: Call, previous: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change a resource in place; returns attributes that have another value now.

        Args:
            call: with the new properties
            previous: the old properties

        Raises:
            ResourceError: refused, before anything was changed
            NotModelledError: a property that CloudFormation changes in place and the double does not
        """
        changed = {key for key in {*call.properties, *previous} if call.properties.get(key) != previous.get(key)}
        if refused := sorted(changed & self.unchangeable):
            raise ResourceError(f"Updates are not supported for the properties {refused}")
        if not_modelled := sorted(changed - self.changeable):
            raise NotModelledError(f"changes of {not_modelled} in place")
        attributes = self.change(call, previous, changed)
        if "Tags" in changed:
            self.retag(call, previous)
        return attributes

    def change(self, call: Call, previous: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        """Change everything but tags."""
        return {}

    def retag(self, call: Call, previous: Mapping[str, Any]) -> None:
        """Change the tags, as EC2 does it."""
        retag(call, self.tagged_id(call), previous.get("Tags", []), call.properties.get("Tags", []))

    def tagged_id(self, call: Call) -> str:
        """What the tags hang on."""
        return call.physical_id

    def replaces(self, call: Call) -> bool:
        """Whether a change that may replace a resource does replace this one."""
        raise NotModelledError("properties that replace a resource under conditions")

    def actual(self, call: Call) -> Mapping[str, Any] | None:
        """Those properties, as the account has them, in which drift is looked for; None if the resource is gone."""
        return {}

    @property
    def detects_drift(self) -> bool:
        """Whether drift is looked for at all."""
        return type(self).actual is not Handler.actual


@contextlib.contextmanager
def removing_on_failure(remove: Callable[[], object]) -> Iterator[None]:
    """Remove what the first call of a creation has made if a later one fails, as CloudFormation's rollback does.

    Args:
        remove: removes it.
    """
    try:
        yield
    except Exception:
        remove()
        raise


def retag(call: Call, resource_id: str, old_tags: list[dict[str, str]], new_tags: list[dict[str, str]]) -> None:
    """Replace tags of a resource of EC2."""
    if removed_keys := [{"Key": key} for key in {tag["Key"] for tag in old_tags} - {tag["Key"] for tag in new_tags}]:
        call.ec2.delete_tags(Resources=[resource_id], Tags=removed_keys)
    if new_tags:
        call.ec2.create_tags(Resources=[resource_id], Tags=new_tags)
