"""What services put off until later, on the simulated clock of a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Later = Callable[[float, Callable[[], None]], None]


@dataclass(frozen=True)
class _Schedule:
    later: Later
    durations: Mapping[str, float]


_SCHEDULES: dict[str, _Schedule] = {}


def keep_schedule(region: str, later: Later, durations: Mapping[str, float]) -> None:
    """Let a clock do what services put off in a region, in place of an earlier clock.

    Args:
        region: whose services.
        later: does something after so many seconds.
        durations: seconds that things take, by the names of `cfngen.sandbox.durations`; what is missing takes none.
    """
    _SCHEDULES[region] = _Schedule(later, durations)


def lasting(region: str, name: str) -> float:
    """Return how many seconds something takes; none where nobody has said so."""
    return _SCHEDULES[region].durations.get(name, 0.0) if region in _SCHEDULES else 0.0


def after(region: str, seconds: float, action: Callable[[], None]) -> None:
    """Do something after so many seconds; at once if that is now, and never in a region without a clock."""
    if not seconds:
        action()
    elif region in _SCHEDULES:
        _SCHEDULES[region].later(seconds, action)
