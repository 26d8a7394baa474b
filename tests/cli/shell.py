"""What a command line leaves behind; by a name of its own, since every directory of tests has a `conftest`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """What a command line left behind."""

    code: int
    out: str
    err: str


Shell = Callable[..., Ran]
