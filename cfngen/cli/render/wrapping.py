"""Long texts in lines of whole words; commands and addresses in them can still be copied from one line."""

from __future__ import annotations

import re
import shutil
import textwrap

MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
# What stands between backticks is a command to type.
_COMMAND = re.compile(r"`[^`]*`")


def columns(width: int | None = None) -> int:
    """Return how wide lines of text may be.

    Args:
        width: of the terminal; None asks for it.
    """
    return min(MAX_WIDTH, max(MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1))


def wrapped(text: str, width: int, indent: str = "", *, first: str | None = None) -> list[str]:
    """Return a text in lines, one at least; a word that is longer than a line stands alone in one.

    Args:
        text: the text, without styles.
        width: how wide lines may be.
        indent: what every line begins with.
        first: what the first line begins with, if something else.
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
