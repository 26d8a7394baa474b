"""Wrapping text at spaces; commands and URLs in it are never broken, so that they can be copied."""

from __future__ import annotations

import re
import shutil
import textwrap

MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
# Commands in a text stand between backticks.
_QUOTED_COMMAND_PATTERN = re.compile(r"`[^`]*`")


def max_line_width(width: int | None = None) -> int:
    """Return how many characters a line of text has at most: fewer than the terminal, from MIN_WIDTH to MAX_WIDTH.

    Args:
        width: width of the terminal in characters; None means the actual one.
    """
    return min(MAX_WIDTH, max(MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1))


def wrapped(text: str, width: int, indent: str = "", *, first_indent: str | None = None) -> list[str]:
    """Return the lines of a wrapped text, at least one; a word that is longer than a line gets its own line.

    Args:
        text: the text, without styles, since their control sequences would count as characters.
        width: maximum width of a line in characters.
        indent: the spaces before every line.
        first_indent: the spaces before the first line; None means `indent`.
    """
    # textwrap does not break a line at a no-break space, so a command stays on one line.
    unbreakable = _QUOTED_COMMAND_PATTERN.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(
        unbreakable,
        width,
        initial_indent=indent if first_indent is None else first_indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [indent.rstrip()]
