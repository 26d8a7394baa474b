"""Lets actions of AWS services happen later, on the simulated clock of a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

RunLater = Callable[[float, Callable[[], None]], None]  # calls a function after a number of simulated seconds


@dataclass(frozen=True)
class _Schedule:
    """The scheduler of one region's services; see `set_schedule` for the attributes."""

    run_later: RunLater
    durations: Mapping[str, float]


_SCHEDULES: dict[str, _Schedule] = {}  # by region


def set_schedule(region: str, run_later: RunLater, durations: Mapping[str, float]) -> None:
    """Set the scheduler of a region's services; replaces an earlier one.

    Args:
        durations: seconds that operations take, by the names of `cfngen.sandbox.durations`; others take none.
    """
    _SCHEDULES[region] = _Schedule(run_later, durations)


def duration_of(region: str, name: str) -> float:
    """Return the configured seconds of an operation; 0 if its duration is not configured."""
    return _SCHEDULES[region].durations.get(name, 0.0) if region in _SCHEDULES else 0.0


def run_after(region: str, seconds: float, action: Callable[[], None]) -> None:
    """Run an action after a number of seconds; at once if it is 0, and never in a region without a scheduler."""
    if not seconds:
        action()
    elif region in _SCHEDULES:
        _SCHEDULES[region].run_later(seconds, action)
