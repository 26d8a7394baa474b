"""The kubeconfig file: finds the one that kubectl uses, and changes it atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cfngen.atomic_files import replace_file
from cfngen.bounded_files import read_bytes
from cfngen.deploy.access.kubeconfig import KubeconfigError

KUBECONFIG_VARIABLE = "KUBECONFIG"


def find_path(environ: Mapping[str, str], home: Path) -> Path:
    """Return the file to change: the first in the variable KUBECONFIG, else `~/.kube/config`."""
    kubeconfig_path = next((entry for entry in environ.get(KUBECONFIG_VARIABLE, "").split(os.pathsep) if entry), "")
    return Path(kubeconfig_path) if kubeconfig_path else home / ".kube" / "config"


def edit_file(path: Path, edit: Callable[[str], str]) -> bool:
    """Edit a file atomically: readers see either the old or the new text.

    If the path is a symbolic link, its target is replaced. Only the owner may read the new file: it contains keys.

    Args:
        path: the file; it need not exist.
        edit: returns the new text for the old one, which is empty if there is no file; if it raises an error or returns
            the same text, the file is not changed.

    Returns:
        Whether the file was written.

    Raises:
        KubeconfigError: the file cannot be read or written, or another program is writing it.
    """
    try:
        # Replacing the link itself would leave the file that it points to unchanged.
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise KubeconfigError(f"{path} is not a file", hint="name a file, or use --print.")
        # If the file does not exist and would be empty, neither its directory nor the lock file is created.
        if not target.exists() and not edit(""):
            return False
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            old_text = read_bytes(target).decode("utf-8") if target.exists() else ""
            new_text = edit(old_text)
            if new_text != old_text:
                replace_file(target, new_text, private=True)
            return new_text != old_text
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{path} is not a kubeconfig: it is not UTF-8 text; nothing was changed") from error
    except OSError as error:
        raise KubeconfigError(
            f"{error.filename or path}: {error.strerror or error}", hint="choose another file with --file, or --print."
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file `<path>.lock`, which kubectl uses too; raise an error if the lock file exists already."""
    lock = path.with_name(path.name + ".lock")
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise KubeconfigError(
            f"another program is writing {path}: the lock file {lock} exists",
            hint="try again in a moment; delete the lock file if no kubectl is running.",
        ) from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()
