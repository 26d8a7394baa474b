"""A double of CloudFormation over moto's service APIs; tests/aws/README.md says what it does and what it does not."""

from __future__ import annotations

from cloudformation.errors import (
    AlreadyExistsError,
    ApiError,
    InsufficientCapabilitiesError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cloudformation.handlers import HANDLERS, client
from cloudformation.service import CloudFormation
from cloudformation.stack import Event, Launched, Resource, Stack

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
