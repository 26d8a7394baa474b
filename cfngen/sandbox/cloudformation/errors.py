"""CloudFormation's API errors, and the errors that make a resource fail."""

from __future__ import annotations

import logging

from botocore.exceptions import ClientError, ParamValidationError

from cfngen.sandbox.untyped import Properties


class ApiError(Exception):
    """An API call was refused; nothing has been changed."""

    code = ""


class ValidationError(ApiError):
    """The template or a parameter is invalid, or the stack does not exist or is in the wrong status."""

    code = "ValidationError"


class AlreadyExistsError(ApiError):
    """A stack or a change set with that name exists already."""

    code = "AlreadyExistsException"


class InsufficientCapabilitiesError(ApiError):
    """The template creates IAM resources, and the caller did not acknowledge that."""

    code = "InsufficientCapabilitiesException"


class LimitExceededError(ApiError):
    """The account has reached its quota of stacks."""

    code = "LimitExceededException"


class ChangeSetNotFoundError(ApiError):
    """No change set has that name or ARN."""

    code = "ChangeSetNotFound"


class InvalidChangeSetStatusError(ApiError):
    """The change set cannot be executed or deleted in its current status."""

    code = "InvalidChangeSetStatus"


class ResourceError(Exception):
    """A resource could not be created, updated or deleted; the message becomes its status reason."""


class UnfinishedError(ResourceError):
    """A resource was created but a later call for it failed, so a rollback has to delete it.

    Attributes:
        attributes: the values of GetAtt for it.
    """

    def __init__(self, message: str, physical_id: str, attributes: Properties) -> None:
        super().__init__(message)
        self.physical_id = physical_id
        self.attributes = attributes


class PropertyError(ResourceError):
    """A property is unknown, missing, read-only or malformed.

    Attributes:
        path: the path of the property, e.g. `#/Tags/0/Key`.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"Properties validation failed: {path}: {message}")
        self.path = path
        self.message = message


class NotModelledError(Exception):
    """The template uses a feature of CloudFormation that the emulator does not support (yet)."""


# The errors that put a resource into a FAILED status.
RESOURCE_ERRORS = (ApiError, ResourceError, ClientError, ParamValidationError)


def status_reason(error: Exception) -> str:
    """Return an error as the status reason of a resource; one of the emulator itself is called so, and logged."""
    if isinstance(error, RESOURCE_ERRORS):
        return str(error)
    if isinstance(error, (NotModelledError, NotImplementedError)):
        return f"the sandbox does not support this: {error}"
    logging.getLogger(__name__).error("an operation on a resource failed", exc_info=error)
    return f"internal error of the sandbox: {type(error).__name__}: {error}"
