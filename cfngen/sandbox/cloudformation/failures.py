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


class Failures:
    """What is to fail, and how often still."""

    def __init__(self) -> None:
        self._pending: list[_Failure] = []

    def inject(self, logical_id: str, reason: str, during: str, times: int, stack: str) -> None:
        """Let a resource of a stack fail."""
        if during not in ("CREATE", "UPDATE", "DELETE"):
            raise ValueError(during)
        self._pending.append(_Failure(logical_id, reason, during, times, stack))

    def strike(self, stack_name: str, logical_id: str, during: str) -> None:
        """Fail if that was asked for.

        Raises:
            ResourceError: it was
        """
        for each in self._pending:
            if (each.logical_id, each.during) == (logical_id, during) and stack_name.startswith(each.stack):
                each.times -= 1
                if each.times == 0:
                    self._pending.remove(each)
                raise ResourceError(each.reason)
