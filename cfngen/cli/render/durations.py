"""Formats durations: exact ones in minutes and seconds, ages in their largest unit, options as they are typed."""

from __future__ import annotations

from datetime import timedelta

from cfngen.text import pluralize

# The largest first, with their seconds.
_UNITS_AND_SECONDS = (
    ("year", 365 * 86400), ("month", 30 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)
)  # fmt: skip


def duration_text(seconds: float) -> str:
    """Return a duration as text: `45 s`, `3 min`, `3 min 05 s` or `1 h 02 min`."""
    total = max(0, round(seconds))
    if total < 60:
        return f"{total} s"
    minutes, remaining = divmod(total, 60)
    if minutes < 60:
        return f"{minutes} min {remaining:02} s" if remaining else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def age_text(age: timedelta) -> str:
    """Return an age in whole numbers of its largest unit, e.g. `3 hours`; a negative one (clocks differ) is 0."""
    seconds = max(int(age.total_seconds()), 0)
    noun, unit_seconds = next((unit for unit in _UNITS_AND_SECONDS if seconds >= unit[1]), ("second", 1))
    return pluralize(seconds // unit_seconds, noun)


def format_duration(duration: timedelta) -> str:
    """Return a duration in the form of the command line, e.g. `1h30m`."""
    remaining = int(duration.total_seconds())
    text = ""
    for letter, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, remaining = divmod(remaining, seconds)
        text += f"{count}{letter}" if count else ""
    return text or "0s"
