"""The file that kubectl reads: which one, and a change of it that is whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cfngen.deploy.access.kubeconfig import KubeconfigError

VARIABLE = "KUBECONFIG"


def location(environ: Mapping[str, str], home: Path) -> Path:
    """Return the file to change: the first of KUBECONFIG, else the one in the home directory.

    Args:
        environ: the environment.
        home: the user's home directory.
    """
    named = next((each for each in environ.get(VARIABLE, "").split(os.pathsep) if each), "")
    return Path(named) if named else home / ".kube" / "config"


def change(path: Path, edit: Callable[[str], str]) -> bool:
    """Replace a file by what becomes of its text; whoever reads it sees the old or the new one.

    A symbolic link stays one, and its target is replaced. Only the owner may read the new file: it holds keys.

    Args:
        path: the file; it need not exist.
        edit: returns the new text; where it raises an error or changes nothing, the file is left alone.

    Returns:
        Whether the file was written.

    Raises:
        KubeconfigError: the file cannot be read or written, or another program is writing it.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise KubeconfigError(f"{path} is not a file", hint="name a file, or use --print.")
        if not target.exists() and not edit(""):
            return False
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            old = target.read_text(encoding="utf-8") if target.exists() else ""
            new = edit(old)
            if new != old:
                _replace(target, new)
            return new != old
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{path} is no kubeconfig: it is not UTF-8 text; nothing was changed") from error
    except OSError as error:
        raise KubeconfigError(
            f"{error.filename or path}: {error.strerror or error}", hint="choose another file with --file, or --print."
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that kubectl takes while it changes the file: a file beside it that must not exist yet."""
    lock = path.with_name(path.name + ".lock")
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise KubeconfigError(
            f"another program is writing {path}: there is {lock}",
            hint="repeat in a moment; remove that file if no kubectl is running.",
        ) from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()


def _replace(target: Path, text: str) -> None:
    # mkstemp makes a file that its owner alone may read and write.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor is no path
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
