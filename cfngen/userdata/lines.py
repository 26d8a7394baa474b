"""Configuration files are written line by line."""

from __future__ import annotations


def text_of(*lines: str) -> str:
    """Return the text of a file that has these lines."""
    return "\n".join(lines) + "\n"
