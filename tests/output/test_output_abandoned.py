"""What killed runs leave in an output directory is removed by a later one, that of a run at the same time is not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cfngen.output import OutputError, write

FILES = {"vpc.json": b'{"Metadata": {"cfngen": {}}, "Resources": {}}'}


def test_what_killed_runs_left_is_removed_after_an_hour(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    hour_ago = time.time() - 3601
    for name in ("old", "young"):
        work = tmp_path / f".cfngen-{'0a' if name == 'old' else '1b'}{'0' * 14}"
        work.mkdir(mode=0o700)
        (work / "new-0").write_text(name)
        if name == "old":
            os.utime(work, (hour_ago, hour_ago))
    others = [tmp_path / ".cfngen-notes", tmp_path / f".cfngen-{'2c' * 8}"]
    others[0].mkdir()
    others[1].write_text("a file")
    for other in others:
        os.utime(other, (hour_ago, hour_ago))
    write(tmp_path, FILES)
    left = {path.name for path in tmp_path.glob(".cfngen-*")}
    assert left == {f".cfngen-1b{'0' * 14}", *(other.name for other in others)}
    assert (tmp_path / f".cfngen-1b{'0' * 14}" / "new-0").read_text() == "young"


def test_a_write_that_fails_removes_nothing_of_earlier_ones(tmp_path: Path) -> None:
    work = tmp_path / f".cfngen-{'0a' * 8}"
    work.mkdir()
    os.utime(work, (1, 1))
    (tmp_path / "vpc.json").write_text("mine")
    with pytest.raises(OutputError):
        write(tmp_path, FILES)
    assert work.is_dir()
