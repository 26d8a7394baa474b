"""A double of CloudFormation over moto's service APIs; tests/aws/README.md says what it does and what it does not."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    ApiError,
    InsufficientCapabilitiesError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.service import CloudFormation
from cfngen.sandbox.cloudformation.stack import Event, Launched, Resource, Stack

__all__ = [
    "HANDLERS",
    "AlreadyExistsError",
    "ApiError",
    "CloudFormation",
    "Event",
    "InsufficientCapabilitiesError",
    "Launched",
    "NotModelledError",
    "Resource",
    "ResourceError",
    "Stack",
    "ValidationError",
    "client",
]
