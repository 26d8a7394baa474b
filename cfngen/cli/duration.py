"""Durations on the command line: `45s`, `10m`, `12h`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from datetime import timedelta

import click

# By the letter of each unit: the argument of `timedelta`.
_TIMEDELTA_ARGUMENTS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DURATION_PATTERN = re.compile(
    "".join(rf"(?:(?P<{word}>\d{{1,6}}){letter})?" for letter, word in _TIMEDELTA_ARGUMENTS.items())
)


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """A click parameter type for durations that are at least as long as `minimum`."""

    name = "duration"

    def __init__(self, minimum: timedelta = timedelta(0)) -> None:
        self._minimum = minimum

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> timedelta:
        """Parse a duration such as `1h30m`; click shows the error if it is wrong or too short."""
        if isinstance(value, timedelta):
            return value
        match = _DURATION_PATTERN.fullmatch(str(value).strip())
        if not value or not match or not any(match.groups()):
            self.fail(f"{value!r} is not a duration, such as 45s, 10m, 12h, 1h30m or 2d.", parameter, context)
        duration = timedelta(**{key: int(number) for key, number in match.groupdict().items() if number})
        if duration < self._minimum:
            self.fail(f"{value} is too short; the minimum is {format_duration(self._minimum)}.", parameter, context)
        return duration


def format_duration(duration: timedelta) -> str:
    """Return a duration in the form of the command line, e.g. `1h30m`."""
    remaining = int(duration.total_seconds())
    text = ""
    for letter, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, remaining = divmod(remaining, seconds)
        text += f"{count}{letter}" if count else ""
    return text or "0s"
