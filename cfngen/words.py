"""Numbers and lists as a sentence holds them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """`1 file`, `3 files`; thousands are separated."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def enumerated(texts: Sequence[str]) -> str:
    """`one`, `one and two`, `one, two and three`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
