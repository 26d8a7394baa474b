"""An emulator of CloudFormation on top of moto; tests/aws/README.md describes what it does and does not do."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.change_sets import ChangeSet, ResourceChange, ResourceChangeDetail
from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    ApiError,
    ChangeSetNotFoundError,
    InsufficientCapabilitiesError,
    InvalidChangeSetStatusError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.service import CloudFormation
from cfngen.sandbox.cloudformation.stack import LaunchedInstance, Resource, Stack, StackEvent

__all__ = [
    "HANDLERS",
    "AlreadyExistsError",
    "ApiError",
    "ChangeSet",
    "ChangeSetNotFoundError",
    "CloudFormation",
    "InsufficientCapabilitiesError",
    "InvalidChangeSetStatusError",
    "LaunchedInstance",
    "NotModelledError",
    "Resource",
    "ResourceChange",
    "ResourceChangeDetail",
    "ResourceError",
    "Stack",
    "StackEvent",
    "ValidationError",
    "client",
]
