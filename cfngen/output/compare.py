"""Compares an output directory with the files that would be written to it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from cfngen.output.directory import own_files, read, stale_files
from cfngen.output.errors import OutputError

_MAX_DIFF_LINES = 20
_MAX_LINE_WIDTH = 160


@dataclass(frozen=True)
class Difference:
    """One file of the output directory that is missing, different or stale.

    Attributes:
        path: path relative to the output directory.
        kind: `missing`, `different`, or `stale` (written by an earlier run and no longer generated).
        present: the file's content; empty if missing.
        expected: the content that it should have; empty if stale.
    """

    path: str
    kind: Literal["missing", "different", "stale"]
    present: bytes
    expected: bytes

    @property
    def diff(self) -> str:
        """The first lines of a unified diff from the present to the expected content, each cut to a readable width."""
        present_lines, expected_lines = (content.decode("utf-8", "replace").splitlines() for content in (self.present, self.expected))
        lines = difflib.unified_diff(present_lines, expected_lines, f"{self.path} (present)", f"{self.path} (wanted)", "", "", 1, "")
        diff_lines = [line if len(line) <= _MAX_LINE_WIDTH else f"{line[: _MAX_LINE_WIDTH - 1]}…" for line in islice(lines, _MAX_DIFF_LINES + 1)]
        return "\n".join([*diff_lines[:_MAX_DIFF_LINES], "…"] if len(diff_lines) > _MAX_DIFF_LINES else diff_lines)

    def __str__(self) -> str:
        if self.kind == "different":
            return f"{self.path}: differs\n{self.diff}"
        return f"{self.path}: {'is missing' if self.kind == 'missing' else 'is of an earlier run and no longer wanted'}"


def differences(directory: Path, files: Mapping[str, bytes]) -> tuple[Difference, ...]:
    """Compare a directory with the files that should be in it; changes nothing.

    Files that cfngen did not write are ignored, unless one has the name of a file to generate.

    Args:
        directory: the output directory; it need not exist.
        files: content by relative path, as `render` gives it. Without README.md it counts as a part of the output, and
            files beside it do not count as stale.

    Returns:
        A difference for each file that is not up to date, ordered by path.

    Raises:
        OutputError: the directory is a file, or something in it cannot be read.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(directory, "is not a directory", hint="Choose another output directory.")
    differences = []
    for path, expected in files.items():
        present = read(directory / path)
        if present is None:
            differences.append(Difference(path, "missing", b"", expected))
        elif present != expected:
            differences.append(Difference(path, "different", present, expected))
    for path in stale_files(directory, files, own_files(directory)):
        differences.append(Difference(path, "stale", read(directory / path) or b"", b""))  # noqa: PERF401
    return tuple(sorted(differences, key=lambda difference: difference.path))
