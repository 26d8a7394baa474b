"""The error for files that could not be written, with hints for common causes."""

from __future__ import annotations

import errno
from pathlib import Path

from cfngen.errors import CfngenError

# What the user can do about an error of the operating system, by its error number.
_HINTS = {
    errno.ENOSPC: "Free space on that file system, or choose another directory.",
    errno.EDQUOT: "Your disk quota is used up; free space, or choose another directory.",
    errno.EROFS: "The file system is read-only; choose another directory.",
    errno.EACCES: "Check the directory's owner and permissions, or choose another directory.",
    errno.EPERM: "Check the directory's owner and permissions, or choose another directory.",
    errno.ENOTDIR: "A part of the path is a file; choose another directory.",
    errno.ENAMETOOLONG: "Choose a directory with a shorter path.",
}


class OutputError(CfngenError):
    """The files could not be written; all files are unchanged.

    Attributes:
        path: the file or directory that caused it.
    """

    code = "output-not-written"

    def __init__(self, path: Path, problem: str, *, hint: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {problem}; nothing was changed", hint=hint)

    @classmethod
    def of(cls, error: OSError, path: Path, action: str = "written") -> OutputError:
        """Return the OutputError that reports an error of the operating system.

        Args:
            action: `written` or `read`: what could not be done.
        """
        reason = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, "Choose another directory, or check the system's message.")
        return cls(path, f"cannot be {action}: {reason}", hint=hint)
