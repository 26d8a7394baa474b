"""Failures that a test asks for: what goes wrong in an account without the template being at fault."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.sandbox.cloudformation.errors import ResourceError


@dataclass
class _Failure:
    logical_id: str
    reason: str
    during: str
    times: int
    stack: str


class InjectedFailures:
    """What is to fail, and how often still."""

    def __init__(self) -> None:
        self._pending: list[_Failure] = []
        self._throttled: dict[str, float] = {}  # by logical id

    def inject(self, logical_id: str, reason: str, during: str, times: int, stack: str) -> None:
        """Let a resource of a stack fail."""
        if during not in ("CREATE", "UPDATE", "DELETE"):
            raise ValueError(during)
        self._pending.append(_Failure(logical_id, reason, during, times, stack))

    def throttle(self, logical_id: str, until: float) -> None:
        """Let the service of a resource ask for fewer calls until a time of the clock."""
        self._throttled[logical_id] = until

    def throttled_until(self, logical_id: str) -> float:
        """Until when the service of a resource asks for fewer calls; it has been asked then."""
        return self._throttled.pop(logical_id, 0.0)

    def raise_injected(self, stack_name: str, logical_id: str, during: str) -> None:
        """Fail if that was asked for.

        Raises:
            ResourceError: it was
        """
        for failure in self._pending:
            if (failure.logical_id, failure.during) == (logical_id, during) and stack_name.startswith(failure.stack):
                failure.times -= 1
                if failure.times == 0:
                    self._pending.remove(failure)
                raise ResourceError(failure.reason)
