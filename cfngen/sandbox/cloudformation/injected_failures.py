"""Failures that a test or a user injects: resources that fail, and services that throttle calls."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.sandbox.cloudformation.errors import ResourceError


@dataclass
class _Failure:
    """A failure that still has to happen; see `InjectedFailures.inject` for what its fields mean."""

    logical_id: str
    reason: str
    during: str
    remaining_times: int
    stack_name_prefix: str


class InjectedFailures:
    """The pending failures and throttled resources of a region."""

    def __init__(self) -> None:
        self._pending: list[_Failure] = []
        self._throttled_until: dict[str, float] = {}  # by logical id: when throttling ends, in simulated seconds

    def inject(self, logical_id: str, reason: str, *, during: str, times: int, stack_name_prefix: str) -> None:
        """Make the next operations on a resource fail.

        Args:
            during: CREATE, UPDATE or DELETE.
            times: how many operations fail.
            stack_name_prefix: the resource fails in stacks whose name begins with it; "" for all stacks.
        """
        if during not in ("CREATE", "UPDATE", "DELETE"):
            raise ValueError(during)
        self._pending.append(_Failure(logical_id, reason, during, times, stack_name_prefix))

    def throttle(self, logical_id: str, until: float) -> None:
        """Throttle the creation of a resource until a simulated time."""
        self._throttled_until[logical_id] = until

    def throttled_until(self, logical_id: str) -> float:
        """Return and remove the time until which the creation of a resource is throttled; 0 if it is not throttled."""
        return self._throttled_until.pop(logical_id, 0.0)

    def raise_injected(self, stack_name: str, logical_id: str, during: str) -> None:
        """Raise the failure that was injected for a resource, if any, and count it.

        Args:
            during: the operation: CREATE, UPDATE or DELETE.

        Raises:
            ResourceError: the injected failure
        """
        for failure in self._pending:
            is_same_operation = failure.logical_id == logical_id and failure.during == during
            if is_same_operation and stack_name.startswith(failure.stack_name_prefix):
                failure.remaining_times -= 1
                if failure.remaining_times == 0:
                    self._pending.remove(failure)
                raise ResourceError(failure.reason)
