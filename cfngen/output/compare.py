"""Compares an output directory with the files that would be written to it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from cfngen.output.directory import OutputError, files_by_cfngen, read, stale_files

_MAX_DIFF_LINES = 20
_MAX_LINE_WIDTH = 160


@dataclass(frozen=True)
class Difference:
    """A file of the output directory that is missing, has other content than cfngen would write, or is stale.

    Attributes:
        path: path relative to the output directory.
        kind: `missing`, `different`, or `stale` (written by an earlier run and no longer generated).
        present: the file's current content; empty if the file is missing.
        expected: the content that cfngen would write; empty if the file is stale.
    """

    path: str
    kind: Literal["missing", "different", "stale"]
    present: bytes
    expected: bytes

    @property
    def diff(self) -> str:
        """The first lines of a unified diff from the file's current to its expected content; long lines are cut."""
        lines = difflib.unified_diff(
            self.present.decode("utf-8", "replace").splitlines(),
            self.expected.decode("utf-8", "replace").splitlines(),
            fromfile=f"{self.path} (present)",
            tofile=f"{self.path} (expected)",
            n=1,
            lineterm="",
        )
        # One line more than is shown, to know whether there are more.
        diff_lines = list(islice(lines, _MAX_DIFF_LINES + 1))
        if len(diff_lines) > _MAX_DIFF_LINES:
            diff_lines[_MAX_DIFF_LINES] = "…"
        return "\n".join(map(_cut_to_width, diff_lines))

    def __str__(self) -> str:
        if self.kind == "different":
            return f"{self.path}: differs\n{self.diff}"
        if self.kind == "missing":
            return f"{self.path}: is missing"
        return f"{self.path}: was written by an earlier run and is no longer generated"


def _cut_to_width(line: str) -> str:
    return line if len(line) <= _MAX_LINE_WIDTH else f"{line[: _MAX_LINE_WIDTH - 1]}…"


def differences(directory: Path, files: Mapping[str, bytes]) -> tuple[Difference, ...]:
    """Return a difference for each file of an output directory that is not up to date, ordered by path.

    Files that cfngen did not write are ignored, unless one has the name of a file to generate.

    Args:
        directory: the output directory; it need not exist.
        files: expected contents by path relative to the directory, as `render` returns them. If README.md is not among
            them, they are only a part of the output, and no other file is reported as stale.

    Raises:
        OutputError: the directory is a file, or something in it cannot be read.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(directory, "is not a directory", hint="Choose another output directory.")
    differences = []
    for path, expected in files.items():
        current = read(directory / path)
        if current is None:
            differences.append(Difference(path, kind="missing", present=b"", expected=expected))
        elif current != expected:
            differences.append(Difference(path, kind="different", present=current, expected=expected))
    for path in stale_files(directory, files, files_by_cfngen(directory)):
        differences.append(Difference(path, kind="stale", present=read(directory / path) or b"", expected=b""))  # noqa: PERF401
    return tuple(sorted(differences, key=lambda difference: difference.path))
