"""The errors that cfngen raises on purpose.

Every one derives from `CfngenError`; the command line shows its message and decides the exit code (see
`cfngen.cli.exit_codes`), nothing below it prints. A subclass stands for one situation and carries the facts of it as
attributes. Its `code` is part of the public interface: programs tell errors apart by it, so it stays when a class is
renamed, and docs/json.md lists it.
"""

from __future__ import annotations

from typing import ClassVar

from cfngen.hints import Hint


class CfngenError(Exception):
    """Something the user can do something about.

    Attributes:
        code: stable name of the error for programs, in kebab case; each subclass has its own.
        hint: one sentence saying what to do next; may be empty.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: Hint = "") -> None:
        super().__init__(message)
        self.hint = hint
