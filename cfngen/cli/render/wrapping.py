"""Wrapping text at spaces; commands and URLs in it are never broken, so that they can be copied."""

from __future__ import annotations

import re
import shutil
import textwrap

MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
# Text between backticks is a command.
_COMMAND = re.compile(r"`[^`]*`")


def columns(width: int | None = None) -> int:
    """Return the maximum width of lines of text.

    Args:
        width: width of the terminal in columns; None means the actual one.
    """
    return min(MAX_WIDTH, max(MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1))


def wrapped(text: str, width: int, indent: str = "", *, first: str | None = None) -> list[str]:
    """Return the lines of a wrapped text, at least one; a word that is longer than a line gets its own line.

    Args:
        text: the text, without styles.
        width: maximum width of a line.
        indent: indentation of every line.
        first: indentation of the first line; None means `indent`.
    """
    unbreakable = _COMMAND.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(
        unbreakable,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [indent.rstrip()]
