"""The errors that cfngen raises on purpose.

Every one derives from `CfngenError`; the command line maps each to a message and an exit code, nothing below it
prints. A subclass stands for one situation and carries the facts of it as attributes.
"""

from __future__ import annotations

from cfngen.hints import Hint


class CfngenError(Exception):
    """Something the user can do something about.

    Attributes:
        exit_code: what the process exits with when this error ends a command.
        hint: one sentence saying what to do next; may be empty.
    """

    exit_code: int = 1

    def __init__(self, message: str, *, hint: Hint = "") -> None:
        super().__init__(message)
        self.hint = hint
