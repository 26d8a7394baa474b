"""Formats durations in seconds."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return `45 s`, `3 min`, `3 min 05 s` or `1 h 02 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"
