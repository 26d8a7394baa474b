"""Texts in lines of whole words, as wide as the terminal and as people can read."""

from __future__ import annotations

import re
import shutil
import textwrap

NARROWEST = 40
WIDEST = 120  # text in longer lines is hard to read
_COMMAND = re.compile(r"`[^`]+`")


def columns(width: int | None = None) -> int:
    """Return how wide lines of text may be.

    Args:
        width: of the terminal; None asks for it.
    """
    return min(WIDEST, max(NARROWEST, (width or shutil.get_terminal_size().columns) - 1))


def wrapped(text: str, width: int, indent: str = "", *, first: str | None = None) -> list[str]:
    """Return a text in lines of whole words; what stands between backticks can still be copied from one line.

    Args:
        text: one paragraph.
        width: columns of a line.
        indent: what lines begin with.
        first: what the first line begins with; like the others if None.
    """
    kept = _COMMAND.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(
        kept,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [indent.rstrip()]
