"""What a resource type must be able to do, and what it is told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

from cfngen.sandbox.cloudformation.errors import ResourceError


@functools.cache
def client(service: str, region: str) -> Any:
    """A boto3 client with credentials that mean nothing; it reaches moto only, and is made once for all tests."""
    return _session(region).client(service)


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


class Handler:
    """Makes and removes resources of one type through boto3."""

    properties: frozenset[str] = frozenset()
    snapshots = False

    def create(self, call: Call) -> Created:
        raise NotImplementedError

    def delete(self, call: Call) -> None:
        raise NotImplementedError

    def snapshot(self, call: Call) -> None:
        raise ResourceError("this type has no snapshots")
