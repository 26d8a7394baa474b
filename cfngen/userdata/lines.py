"""Joins the lines of configuration files."""

from __future__ import annotations


def text_of(*lines: str) -> str:
    """Return the text of a file with the given lines; the last one ends with a line break, too."""
    return "\n".join(lines) + "\n"
