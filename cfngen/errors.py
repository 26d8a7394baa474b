"""The errors that cfngen raises on purpose.

Every one derives from `CfngenError`; the command line shows its message and chooses the exit code (see
`cfngen.cli.exit_codes`). No other package prints. Each subclass describes one kind of error, with its details as
attributes. Its `code` is part of the public interface, because programs tell errors apart by it: it does not change
when the class is renamed. docs/reference/json.md lists all codes.
"""

from __future__ import annotations

from typing import ClassVar

from cfngen.hints import Hint


class CfngenError(Exception):
    """An error that the user can correct or work around.

    Attributes:
        code: stable name of the error for programs, in kebab case; each subclass has its own.
        hint: one sentence saying what to do next; may be empty.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: Hint = "") -> None:
        super().__init__(message)
        self.hint = hint
