"""The error with which the Kubernetes API refuses a request."""

from __future__ import annotations


class RefusedError(Exception):
    """The API refuses a request.

    Args:
        reason: machine-readable reason, e.g. `NotFound`.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
