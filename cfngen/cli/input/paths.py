"""Paths of files and directories as arguments: any path that is not empty is accepted, and checked when it is used.

click's own check would report an unreadable file as a usage error. Here a file that cannot be used is an error of the
command, with a message that says what to do.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class StandardInput(PosixPath):
    """Standard input as a path: it is read like a file, and messages call it <standard input>."""

    def __str__(self) -> str:
        return "<standard input>"

    def open(self, *_: Any, **__: Any) -> Any:
        """Return standard input in bytes, which stays open after a `with` block.

        Raises:
            OSError: the process was started without one.
        """
        if sys.stdin is None:
            raise OSError("it is closed")
        return nullcontext(sys.stdin.buffer)


class PathArgument(click.Path):
    """A click parameter type for the path of a file or directory, which need not exist but must not be empty.

    Attributes:
        advice: what the user should give, as the end of the error message for an empty path.
        directories: whether shell completion offers directories only.
    """

    def __init__(self, advice: str, *, directories: bool = False) -> None:
        super().__init__(readable=False, path_type=Path)
        self.advice = advice
        self.directories = directories

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Convert the value as click does, but reject the empty string: its `Path` is the current directory."""
        if value == "":
            # Of an option's names, such as -f and --cluster, the message has the long one.
            subject = max(param.opts, key=len) if isinstance(param, click.Option) else "a file's name"
            raise click.UsageError(f"{subject} is empty; {self.advice}", ctx)
        converted_path: str | bytes | os.PathLike[str] = super().convert(value, param, ctx)
        return converted_path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave the completion of file names to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir" if self.directories else "file")]
