"""Writes the output: all files or none, each replaced atomically; files that cfngen did not write are never changed.

Everything that can fail for lack of space or permission is done first, in a work directory inside the output directory
(so that it is on the same file system): new files are written and synchronised with the disk, and the files that they
replace are linked or copied. Only then are files renamed into place. If that fails or is interrupted, the renames are
undone. A run that is killed leaves its work directory behind, and a later one removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cfngen.output.directory import files_by_cfngen, read, stale_files
from cfngen.output.errors import OutputError

_WORK_DIRECTORY = re.compile(r"\.cfngen-[0-9a-f]{16}")
# Far longer than a run takes: a younger work directory may be in use by another process.
_ABANDONED_AFTER_SECONDS = 60 * 60


@dataclass(frozen=True)
class WriteReport:
    """The files that a run wrote, left unchanged and removed: sorted paths relative to the directory.

    Attributes:
        written: files that are new or have changed.
        unchanged: files that were up to date; not written, so their times stay.
        removed: cfngen's files of an earlier run that are no longer generated.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def write(directory: Path, files: Mapping[str, bytes]) -> WriteReport:
    """Write files to a directory, and remove stale ones of an earlier run.

    Args:
        directory: the output directory; created, with its parents, if it does not exist.
        files: content by relative path, as returned by `render`. Without README.md, they are only a part of the output,
            and no other file is removed.

    Raises:
        OutputError: the files cannot be written, or one would replace a file that cfngen did not write. No file is
            changed then, nor on KeyboardInterrupt.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(directory, "is not a directory", hint="Choose another output directory.")
    written_by_cfngen = files_by_cfngen(directory)
    present = {path: read(directory / path) for path in files}
    for path, content in present.items():
        if content != files[path]:
            _check_replaceable(
                directory / path, exists=content is not None, is_written_by_cfngen=path in written_by_cfngen
            )
    changed = tuple(sorted(path for path, content in present.items() if content != files[path]))
    removed = stale_files(directory, files, written_by_cfngen)
    if changed or removed:
        change = _Change(directory)
        try:
            change.stage({path: files[path] for path in changed}, removed)
            change.commit()
        except OSError as error:
            change.undo()
            raise OutputError.of(error, change.path_of_error(error)) from error
        except BaseException:
            change.undo()
            raise
        finally:
            change.clean_up()
    _remove_abandoned(directory)
    return WriteReport(changed, tuple(sorted(files.keys() - set(changed))), removed)


def _remove_abandoned(directory: Path) -> None:
    """Remove work directories of killed runs: those that have not changed for an hour.

    Errors are ignored: the output itself is complete.
    """
    cutoff = time.time() - _ABANDONED_AFTER_SECONDS
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            if not _WORK_DIRECTORY.fullmatch(path.name):
                continue
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_mtime < cutoff:
                    shutil.rmtree(path, ignore_errors=True)


def _check_replaceable(path: Path, *, exists: bool, is_written_by_cfngen: bool) -> None:
    """Raise an error if the path is a symbolic link, or a file that cfngen did not write.

    Raises:
        OutputError: the file must not be replaced.
    """
    if path.is_symlink():
        raise OutputError(
            path, "is a symbolic link and would be replaced", hint="Remove it, or choose another directory."
        )
    if exists and not is_written_by_cfngen:
        raise OutputError(
            path,
            "was not written by cfngen and would be replaced",
            hint="Move it away, or choose another output directory.",
        )


@dataclass
class _Change:
    """A change of an output directory: first staged, then committed, or undone.

    Attributes:
        directory: the output directory.
        work: the work directory in it, for staged and saved files; None before it is created.
        created: directories that were created, outermost first.
        staged: staged files by target path; the null device stands for a file to remove.
        saved: saved copies of replaced files, by their path.
        changed: target paths that `commit` has changed, in order.
    """

    directory: Path
    work: Path | None = None
    created: list[Path] = field(default_factory=list)
    staged: dict[Path, Path] = field(default_factory=dict)
    saved: dict[Path, Path] = field(default_factory=dict)
    changed: list[Path] = field(default_factory=list)

    def stage(self, changed: Mapping[str, bytes], removed: tuple[str, ...]) -> None:
        """Write new files and save old ones; changes no file of the output."""
        self._make_directories(self.directory)
        self.work = self.directory / f".cfngen-{secrets.token_hex(8)}"
        self.work.mkdir(mode=0o700)
        for number, (name, content) in enumerate(changed.items()):
            target = self.directory / name
            self._make_directories(target.parent)
            self.staged[target] = self.work / f"new-{number}"
            _write_file(self.staged[target], content)
        for number, target in enumerate((*self.staged, *(self.directory / name for name in removed))):
            if target.exists():
                saved = self.work / f"old-{number}"
                _save(target, saved)
                self.saved[target] = saved
                if target in self.staged:
                    shutil.copymode(target, self.staged[target])
                else:
                    self.staged[target] = Path(os.devnull)

    def commit(self) -> None:
        """Move the staged files into place, and remove the stale files."""
        for target, staged in self.staged.items():
            # Recorded first: an interrupt may come in between, and to undo a change that was not made does no harm.
            self.changed.append(target)
            if staged == Path(os.devnull):
                target.unlink()
            else:
                staged.replace(target)
        # Remove directories that are empty now, such as those of a removed role.
        for target in self.staged:
            if not target.exists():
                with contextlib.suppress(OSError):
                    for parent in target.parents[: target.parents.index(self.directory)]:
                        parent.rmdir()
        for parent in {target.parent for target in self.staged if target.parent.is_dir()}:
            _synchronise(parent)

    def undo(self) -> None:
        """Restore the saved files, and remove new files and directories."""
        for target in reversed(self.changed):
            with contextlib.suppress(OSError):
                if target in self.saved:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    self.saved[target].replace(target)
                else:
                    target.unlink()
        self.clean_up()
        for directory in reversed(self.created):
            with contextlib.suppress(OSError):
                directory.rmdir()

    def path_of_error(self, error: OSError) -> Path:
        """Return the path to name in an error message: the output directory instead of the work directory in it."""
        path = Path(error.filename) if isinstance(error.filename, (str, os.PathLike)) else self.directory
        return self.directory if self.work and (path == self.work or self.work in path.parents) else path

    def clean_up(self) -> None:
        """Remove the work directory."""
        if self.work:
            shutil.rmtree(self.work, ignore_errors=True)

    def _make_directories(self, directory: Path) -> None:
        missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
        for parent_directory in reversed(missing):
            self.created.append(parent_directory)
            parent_directory.mkdir(exist_ok=True)


def _write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _save(target: Path, saved: Path) -> None:
    """Save a file under a second name: by a hard link, or by a copy where there are no hard links."""
    try:
        os.link(target, saved)
    except (OSError, NotImplementedError):
        shutil.copy2(target, saved)


def _synchronise(directory: Path) -> None:
    """Wait until renames in a directory are on the disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
