"""Writing the output: all files or none, each replaced in one step, others' files never touched.

Everything that can fail for want of space or permission happens first, in a directory of its own inside the output
directory (so that it is on the same file system): the new files are written there and synchronised with the disk, and
the files they replace are linked or copied there. Only then are files renamed into place. Should that fail after all,
or be interrupted, the renames are taken back. A run that is killed leaves its directory behind; a later one removes it.
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

from cfngen.output.directory import own_files, read, stale_files
from cfngen.output.errors import OutputError

_WORK_DIRECTORY = re.compile(r"\.cfngen-[0-9a-f]{16}")
# Far longer than any run takes: what is younger may be that of a run at the same time.
_ABANDONED_AFTER = 60 * 60


@dataclass(frozen=True)
class WriteReport:
    """What became of the files; paths are relative to the directory and sorted.

    Attributes:
        written: files that are new or have changed.
        unchanged: files that were as they should be; not touched, their times stay.
        removed: cfngen's files of an earlier run that are no longer wanted.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def write(directory: Path, files: Mapping[str, bytes]) -> WriteReport:
    """Make a directory hold the given files.

    Args:
        directory: the output directory; made, with its parents, if it does not exist.
        files: content by relative path, as `render` gives it. Without README.md it counts as a part of the output:
            nothing is removed then.

    Raises:
        OutputError: the files cannot be written, or one would replace a file that cfngen did not write. Every file is
            as it was. KeyboardInterrupt leaves it so too.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(directory, "is not a directory", hint="Choose another output directory.")
    own = own_files(directory)
    present = {path: read(directory / path) for path in files}
    for path, content in present.items():
        if content != files[path]:
            _refuse_foreign(directory / path, exists=content is not None, own=path in own)
    changed = tuple(sorted(path for path, content in present.items() if content != files[path]))
    removed = stale_files(directory, files, own)
    if changed or removed:
        change = _Change(directory)
        try:
            change.stage({path: files[path] for path in changed}, removed)
            change.commit()
        except OSError as error:
            change.undo()
            raise OutputError.of(error, change.obstacle(error)) from error
        except BaseException:
            change.undo()
            raise
        finally:
            change.clean_up()
    _remove_abandoned(directory)
    return WriteReport(changed, tuple(sorted(files.keys() - set(changed))), removed)


def _remove_abandoned(directory: Path) -> None:
    """Remove the work directories of runs that were killed; the output is complete, so nobody misses what is in them.

    Only directories of such a name that have not changed for an hour; what cannot be removed stays.
    """
    cutoff = time.time() - _ABANDONED_AFTER
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            if not _WORK_DIRECTORY.fullmatch(path.name):
                continue
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_mtime < cutoff:
                    shutil.rmtree(path, ignore_errors=True)


def _refuse_foreign(path: Path, *, exists: bool, own: bool) -> None:
    if path.is_symlink():
        raise OutputError(
            path, "is a symbolic link and would be replaced", hint="Remove it, or choose another directory."
        )
    if exists and not own:
        raise OutputError(
            path,
            "was not written by cfngen and would be replaced",
            hint="Move it away, or choose another output directory.",
        )


@dataclass
class _Change:
    """A change to a directory, first prepared, then made.

    Attributes:
        directory: the output directory.
        work: directory inside it for new files and for what they replace; None before it is made.
        made: directories that had to be made, outermost first.
        new: staged file by the path it goes to.
        old: saved file by the path it came from.
        done: paths that were changed, in order.
    """

    directory: Path
    work: Path | None = None
    made: list[Path] = field(default_factory=list)
    new: dict[Path, Path] = field(default_factory=dict)
    old: dict[Path, Path] = field(default_factory=dict)
    done: list[Path] = field(default_factory=list)

    def stage(self, changed: Mapping[str, bytes], removed: tuple[str, ...]) -> None:
        """Write new files and save old ones; changes no file of the output."""
        self._make(self.directory)
        self.work = self.directory / f".cfngen-{secrets.token_hex(8)}"
        self.work.mkdir(mode=0o700)
        for number, (name, content) in enumerate(changed.items()):
            target = self.directory / name
            self._make(target.parent)
            self.new[target] = self.work / f"new-{number}"
            _write_file(self.new[target], content)
        for number, target in enumerate((*self.new, *(self.directory / name for name in removed))):
            if target.exists():
                saved = self.work / f"old-{number}"
                _save(target, saved)
                self.old[target] = saved
                if target in self.new:
                    shutil.copymode(target, self.new[target])
                else:
                    self.new[target] = Path(os.devnull)

    def commit(self) -> None:
        """Put everything into place."""
        for target, staged in self.new.items():
            # Noted before it happens: taking back what did not happen does no harm, but an interrupt may come between.
            self.done.append(target)
            if staged == Path(os.devnull):
                target.unlink()
            else:
                staged.replace(target)
        # A role that is gone leaves empty directories; a directory with anything else in it stays.
        for target in self.new:
            if not target.exists():
                with contextlib.suppress(OSError):
                    for parent in target.parents[: target.parents.index(self.directory)]:
                        parent.rmdir()
        for parent in {target.parent for target in self.new if target.parent.is_dir()}:
            _synchronise(parent)

    def undo(self) -> None:
        """Put everything back as it was."""
        for target in reversed(self.done):
            with contextlib.suppress(OSError):
                if target in self.old:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    self.old[target].replace(target)
                else:
                    target.unlink()
        self.clean_up()
        for directory in reversed(self.made):
            with contextlib.suppress(OSError):
                directory.rmdir()

    def obstacle(self, error: OSError) -> Path:
        """Return the path that an error is about; what the work directory lacks, the output directory lacks."""
        path = Path(error.filename) if isinstance(error.filename, (str, os.PathLike)) else self.directory
        return self.directory if self.work and (path == self.work or self.work in path.parents) else path

    def clean_up(self) -> None:
        """Remove the work directory."""
        if self.work:
            shutil.rmtree(self.work, ignore_errors=True)

    def _make(self, directory: Path) -> None:
        missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
        for parent_directory in reversed(missing):
            self.made.append(parent_directory)
            parent_directory.mkdir(exist_ok=True)


def _write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _save(target: Path, saved: Path) -> None:
    """Keep a file's content under a second name: by a link, or by a copy where there are no hard links."""
    try:
        os.link(target, saved)
    except (OSError, NotImplementedError):
        shutil.copy2(target, saved)


def _synchronise(directory: Path) -> None:
    """Wait until renames in a directory are on the disk, where the system can say so."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
