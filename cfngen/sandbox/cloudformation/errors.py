"""What CloudFormation answers when it refuses, under the names of its API's error codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """A call was refused; nothing has been changed."""

    code = ""


class ValidationError(ApiError):
    """Malformed template, impossible parameters, unknown stack, or a stack in the wrong status."""

    code = "ValidationError"


class AlreadyExistsError(ApiError):
    """A stack or a change set of that name exists."""

    code = "AlreadyExistsException"


class InsufficientCapabilitiesError(ApiError):
    """The template makes IAM resources, and the caller did not acknowledge it."""

    code = "InsufficientCapabilitiesException"


class LimitExceededError(ApiError):
    """The account has as many stacks as it can have."""

    code = "LimitExceededException"


class ChangeSetNotFoundError(ApiError):
    """No change set has that name or ARN."""

    code = "ChangeSetNotFound"


class InvalidChangeSetStatusError(ApiError):
    """The change set cannot be executed or deleted as it is."""

    code = "InvalidChangeSetStatus"


class ResourceError(Exception):
    """A resource could not be made, resolved, changed or removed; the message becomes the reason of its event."""


class UnfinishedError(ResourceError):
    """A resource was made and could not be completed, so that there is something to remove.

    Attributes:
        physical_id: of what was made.
        attributes: what GetAtt gives for it.
    """

    def __init__(self, message: str, physical_id: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.physical_id = physical_id
        self.attributes = attributes


class PropertyError(ResourceError):
    """A property is unknown, missing, read-only or malformed.

    Attributes:
        path: where, e.g. `#/Tags/0/Key`.
        message: what is wrong with it.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"Properties validation failed: {path}: {message}")
        self.path = path
        self.message = message


class NotModelledError(Exception):
    """The template asks for something CloudFormation has and this double has not: extend the double."""
