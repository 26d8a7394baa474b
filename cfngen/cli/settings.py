"""The settings of one run of cfngen that every command and every error message needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cfngen.hints import Hint


@dataclass
class Settings:
    """The settings of one run of cfngen.

    Attributes:
        color: whether to use colours; None means only on a terminal.
        json: whether standard output is JSON, because of --output json.
        terminated: whether SIGTERM ends this run; the exit code says so, however the command ends.
        render_hint: returns a hint as text; adds the options for this cluster and account to the hint's commands.
    """

    debug: bool = False
    color: bool | None = None
    json: bool = False
    terminated: bool = False
    render_hint: Callable[[Hint], str] = str
