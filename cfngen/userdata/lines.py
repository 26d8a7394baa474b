"""Joins the lines of configuration files."""

from __future__ import annotations


def text_of(*lines: str) -> str:
    """Return the text of a file with these lines."""
    return "\n".join(lines) + "\n"
