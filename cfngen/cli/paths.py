"""Files and directories as arguments: anything but nothing is taken; whether it can be used shows where it is used.

click's own check would make an unreadable file a mistake in the command line, while a missing one is a failure of the
command. Here every file that cannot be used is a failure, with a message that says what to do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class StandardInput(PosixPath):
    """Standard input in the place of a file: it is read like one, and messages call it what it is."""

    def __str__(self) -> str:
        return "<standard input>"

    def read_bytes(self) -> bytes:
        """Everything up to the end of standard input.

        Raises:
            OSError: it cannot be read, or the process was started without one.
        """
        if sys.stdin is None:
            raise OSError("it is closed")
        return sys.stdin.buffer.read()


class PathArgument(click.Path):
    """The path of a file or of a directory, which need not exist and may not be the empty text.

    Attributes:
        advice: what to name, said where the text is empty.
        directories: whether the shell shall offer directories only.
    """

    def __init__(self, advice: str, *, directories: bool = False) -> None:
        super().__init__(readable=False, path_type=Path)
        self.advice = advice
        self.directories = directories

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """As click does it, but the empty text, which would mean the current directory, is refused."""
        if value == "":
            option = max(param.opts, key=len) if isinstance(param, click.Option) else "a file's name"
            raise click.UsageError(f"{option} is empty; {self.advice}", ctx)
        converted: str | bytes | os.PathLike[str] = super().convert(value, param, ctx)
        return converted

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave the names of files and directories to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir" if self.directories else "file")]
