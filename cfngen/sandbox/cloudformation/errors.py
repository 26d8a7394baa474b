"""What CloudFormation answers when it refuses, under the names of its API's error codes."""

from __future__ import annotations


class ApiError(Exception):
    """A call was refused; nothing has been changed."""

    code = ""


class ValidationError(ApiError):
    """Malformed template, impossible parameters, unknown stack, or a stack in the wrong status."""

    code = "ValidationError"


class AlreadyExistsError(ApiError):
    """A stack of that name exists."""

    code = "AlreadyExistsException"


class InsufficientCapabilitiesError(ApiError):
    """The template makes IAM resources, and the caller did not acknowledge it."""

    code = "InsufficientCapabilitiesException"


class ResourceError(Exception):
    """A resource could not be made, resolved or removed; the message becomes the reason of its event."""


class NotModelledError(Exception):
    """The template asks for something CloudFormation has and this double has not: extend the double."""
