"""Names for what boto3 and templates leave untyped, with where its keys are documented; and the clock of operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

AwsObject: TypeAlias = Mapping[str, Any]
"""A response of an AWS service, or an object in one; its keys are those of the service's API reference."""

AwsArguments: TypeAlias = dict[str, Any]
"""Arguments of an API call, or an object in them."""

TemplatePart: TypeAlias = Mapping[str, Any]
"""A CloudFormation template, or an object in one, e.g. a resource or its properties."""

JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON document."""


class Client(Protocol):
    """A boto3 client; boto3 adds its methods at run time, from the model of the service."""

    @property
    def meta(self) -> Any:
        """The client's model and its events."""

    @property
    def exceptions(self) -> Any:
        """The service's exceptions, by error code."""

    def __getattr__(self, operation: str) -> Callable[..., Any]: ...


class Session(Protocol):
    """The part of a boto3 session that cfngen uses."""

    def client(self, service: str, *, region_name: str, config: Any) -> Client:
        """Return a client of a service."""

    def get_available_regions(self, service: str, partition: str) -> list[str]:
        """Return the regions of a partition in which a service exists."""

    def get_available_partitions(self) -> list[str]:
        """Return the names of the partitions, e.g. `aws-cn`."""


class Clock(Protocol):
    """Tells the time, and sleeps."""

    def now(self) -> datetime:
        """Return the time in UTC, as an aware `datetime`."""

    def sleep(self, seconds: float) -> None:
        """Wait for this number of seconds."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time in UTC, as an aware `datetime`."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait for this number of seconds."""
        time.sleep(seconds)
