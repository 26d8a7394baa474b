"""Writes the output: all files or none, each replaced atomically; files that cfngen did not write are never changed.

Everything that can fail for lack of space or permission is done first, in a work directory inside the output directory
(so that it is on the same file system): new files are written and synchronised with the disk, and the files that they
replace are linked or copied. Only then are files renamed into place. If that fails or is interrupted, the renames are
undone. A run that is killed leaves its work directory behind, and a later run removes it.
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

from cfngen.output.directory import OutputError, files_by_cfngen, read, stale_files
from cfngen.output.readme import MARKER, README

_WORK_DIRECTORY_PATTERN = re.compile(r"\.cfngen-[0-9a-f]{16}")
# Age from which a work directory counts as left behind by a killed run. It is far longer than a run takes; a younger
# work directory may be in use by another process.
_ABANDONED_AFTER_SECONDS = 60 * 60


@dataclass(frozen=True)
class WriteReport:
    """The files that a run wrote, left unchanged and removed: sorted paths relative to the directory.

    Attributes:
        written: files that are new or have changed.
        unchanged: files that were up to date. They were not written again, so their modification times are unchanged.
        removed: files that an earlier run wrote and that are no longer generated.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def write(directory: Path, files: Mapping[str, bytes]) -> WriteReport:
    """Write files to a directory, and remove files of an earlier run that are no longer generated.

    If the function raises an exception, such as KeyboardInterrupt, no file is changed.

    Args:
        directory: the output directory; created, with its parents, if it does not exist.
        files: contents by path relative to the directory, as `render` returns them. If README.md is not among them,
            they are only a part of the output, and no other file is removed.

    Raises:
        OutputError: the files cannot be written, or one would replace a file that cfngen did not write.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(directory, "is not a directory", hint="Choose another output directory.")
    _check_purpose(directory, files)
    written_by_cfngen = files_by_cfngen(directory)
    current_contents = {path: read(directory / path) for path in files}
    for path, content in current_contents.items():
        if content != files[path]:
            _check_replaceable(
                directory / path, exists=content is not None, is_written_by_cfngen=path in written_by_cfngen
            )
    changed_paths = tuple(sorted(path for path, content in current_contents.items() if content != files[path]))
    stale_paths = stale_files(directory, files, written_by_cfngen)
    if changed_paths or stale_paths:
        directory_change = _DirectoryChange(directory)
        try:
            directory_change.stage({path: files[path] for path in changed_paths}, stale_paths)
            directory_change.commit()
        except OSError as error:
            directory_change.undo()
            raise OutputError.of(error, directory_change.path_of_error(error)) from error
        except BaseException:
            directory_change.undo()
            raise
        finally:
            directory_change.clean_up()
    _remove_abandoned(directory)
    return WriteReport(changed_paths, tuple(sorted(files.keys() - set(changed_paths))), stale_paths)


def _check_purpose(directory: Path, files: Mapping[str, bytes]) -> None:
    """Raise OutputError if cfngen has written files for another purpose there, which would count as stale."""
    current_lines, new_lines = (read(directory / README) or b"").splitlines(), files.get(README, b"").splitlines()
    if (
        len(current_lines) > 1
        and current_lines[0] == MARKER.encode()
        and new_lines[1:2] not in ([], current_lines[1:2])
    ):
        raise OutputError(
            directory,
            f"holds other files of cfngen ({current_lines[1].decode().removeprefix('# ')}), which would be removed",
            hint="Choose another directory.",
        )


def _remove_abandoned(directory: Path) -> None:
    """Remove work directories of killed runs, unchanged for an hour; errors do not matter, the output is complete."""
    cutoff = time.time() - _ABANDONED_AFTER_SECONDS
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            if not _WORK_DIRECTORY_PATTERN.fullmatch(path.name):
                continue
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_mtime < cutoff:
                    shutil.rmtree(path, ignore_errors=True)


def _check_replaceable(path: Path, *, exists: bool, is_written_by_cfngen: bool) -> None:
    """Raise OutputError if the path is a symbolic link, or a file that cfngen did not write."""
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
class _DirectoryChange:
    """A change of several files in an output directory, which is first staged, then committed, or undone.

    Attributes:
        work: the work directory in it, for staged and saved files; None before it is created.
        staged: paths of the new files in the work directory, by the path that each will have; the null device stands
            for a file to remove.
        saved: paths of the copies of replaced files in the work directory, by the path of the replaced file.
    """

    directory: Path
    work: Path | None = None
    created_directories: list[Path] = field(default_factory=list)
    staged: dict[Path, Path] = field(default_factory=dict)
    saved: dict[Path, Path] = field(default_factory=dict)
    changed_paths: list[Path] = field(default_factory=list)

    def stage(self, changed: Mapping[str, bytes], removed: tuple[str, ...]) -> None:
        """Write new files and copies of old files to the work directory; no file of the output is changed yet."""
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
                _keep_copy(target, saved)
                self.saved[target] = saved
                if target in self.staged:
                    shutil.copymode(target, self.staged[target])
                else:
                    self.staged[target] = Path(os.devnull)

    def commit(self) -> None:
        """Move the staged files into place, and remove the stale files."""
        for target, staged in self.staged.items():
            # The path is recorded before the change, since an interrupt may come in between. Undoing a change that was
            # not made does no harm.
            self.changed_paths.append(target)
            if staged == Path(os.devnull):
                target.unlink()
            else:
                staged.replace(target)
        # Remove directories that are empty now, such as `userdata/nodes-gpu` of a removed node group.
        for target in self.staged:
            if not target.exists():
                with contextlib.suppress(OSError):
                    for parent in target.parents[: target.parents.index(self.directory)]:
                        parent.rmdir()
        for parent in {target.parent for target in self.staged if target.parent.is_dir()}:
            _synchronise(parent)

    def undo(self) -> None:
        """Restore the saved files, and remove new files and directories."""
        for target in reversed(self.changed_paths):
            with contextlib.suppress(OSError):
                if target in self.saved:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    self.saved[target].replace(target)
                else:
                    target.unlink()
        self.clean_up()
        for directory in reversed(self.created_directories):
            with contextlib.suppress(OSError):
                directory.rmdir()

    def path_of_error(self, error: OSError) -> Path:
        """Return the path to name in an error message: the output directory instead of the work directory in it."""
        path = Path(error.filename) if isinstance(error.filename, (str, os.PathLike)) else self.directory
        return self.directory if self.work and (path == self.work or self.work in path.parents) else path

    def clean_up(self) -> None:
        if self.work:
            shutil.rmtree(self.work, ignore_errors=True)

    def _make_directories(self, directory: Path) -> None:
        """Create a directory and its missing parents, and record them for `undo`."""
        missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
        for parent_directory in reversed(missing):
            self.created_directories.append(parent_directory)
            parent_directory.mkdir(exist_ok=True)


def _write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _keep_copy(target: Path, saved: Path) -> None:
    """Keep a file under a second name, by a hard link or, where the file system has no hard links, by a copy."""
    try:
        os.link(target, saved)
    except (OSError, NotImplementedError):
        shutil.copy2(target, saved)


def _synchronise(directory: Path) -> None:
    """Wait until renames in a directory are on the disk, if the operating system supports that."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
