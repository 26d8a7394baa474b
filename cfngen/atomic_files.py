"""Writes a file so that whoever reads it finds its old or its complete new content."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file in UTF-8, atomically.

    A symbolic link stays, and its target is written.

    Args:
        private: whether only its owner may read the file, from its first byte on; otherwise it keeps its permissions.

    Raises:
        OSError: the file cannot be written.
    """
    temporary = ""
    try:
        target = Path(os.path.realpath(path))
        # mkstemp makes a file for its owner alone.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if not private:
            Path(temporary).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def create_private_file(path: Path, text: str) -> None:
    """Write a new file in UTF-8 that only its owner may read, from its first byte on.

    Raises:
        FileExistsError: the path exists.
        OSError: the file cannot be written; what was written of it is removed.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
