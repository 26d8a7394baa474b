"""Formats durations in seconds."""

from __future__ import annotations


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
