"""The settings of one run of cfngen that every command and every error message needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Settings:
    """Settings from the global options.

    Attributes:
        debug: whether to show tracebacks.
        color: whether to use colours; None means only on a terminal.
        json: whether standard output is JSON.
        complete_commands: adds the options for the same cluster, stack and account to the commands in a hint.
    """

    debug: bool = False
    color: bool | None = None
    json: bool = False
    complete_commands: Callable[[str], str] = str
