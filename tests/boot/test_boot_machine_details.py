"""What of the seam only shows in an accident: order, modes and sizes on the disk, pauses, what is sent at once."""

from __future__ import annotations

import io
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cfngen.boot import machine as seam
from cfngen.boot.machine import BootError, Machine, Pending


class Quick(Machine):
    """A real machine whose time passes only by sleeping, which it notes."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 1000.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.passed += seconds


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quick:
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    return Quick()


def test_file_is_on_the_disk_before_it_has_its_name(
    machine: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_size, (tmp_path / "a").exists())))
    assert machine.write(str(tmp_path / "a"), "content") is True
    assert synced == [(len("content"), False)]
    assert machine.write(str(tmp_path / "a"), "content") is False
    assert machine.write(str(tmp_path / "empty"), "") is True, "a file that is empty is not a file that is missing"
    assert (tmp_path / "empty").exists()


def test_secret_is_root_s_alone_while_it_is_still_on_its_way(machine: Quick, tmp_path: Path) -> None:
    modes = []

    class Source(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            modes.append(stat.S_IMODE((tmp_path / "a" / "b" / "snapshot.db.part").stat().st_mode))
            return super().read(size)

    for content in (b"one", b"two"):
        machine.receive(Source(content), f"{tmp_path}/a/b/snapshot.db", "", "s3://backups/key", 0o600)
        assert (tmp_path / "a" / "b" / "snapshot.db").read_bytes() == content
    assert set(modes) == {0o600}


def test_files_are_found_in_order_and_folders_are_none(machine: Quick, tmp_path: Path) -> None:
    names = [f"{number:02}" for number in (5, 17, 3, 11, 1, 9, 16, 2)]
    for name in names:
        machine.write(f"{tmp_path}/x/{name}", name)
    (tmp_path / "x" / "04").mkdir()
    assert machine.glob(f"{tmp_path}/x/*") == [f"{tmp_path}/x/{name}" for name in sorted(names)]


def test_log_begins_anew_once_it_is_longer_than_it_may_be(
    machine: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seam, "LOG_SIZE", 10)
    for text in ("1" * 9, "2" * 9, "3" * 9):
        machine.log(text)
    assert (tmp_path / "log.1").read_text() == "1" * 9 + "\n" + "2" * 9 + "\n"
    assert (tmp_path / "log").read_text() == "3" * 9 + "\n"


def test_command_ends_after_a_quarter_of_an_hour_unless_more_is_said(
    machine: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    def run(command: Any, timeout: float, **_: Any) -> subprocess.CompletedProcess[str]:
        limits.append(timeout)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    machine.run("true")
    machine.run("true", timeout=21600)
    assert limits == [15 * 60, 6 * 3600]


def test_line_is_on_the_console_at_once(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    class Console(io.StringIO):
        shown = ""

        def flush(self) -> None:
            self.shown = self.getvalue()

    console = Console()
    monkeypatch.setattr("sys.stdout", console)
    machine.say("a step that takes long")
    assert console.shown == "cfngen: a step that takes long\n"


def test_boto3_that_was_installed_a_moment_ago_is_looked_for_anew(
    machine: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(seam, "invalidate_caches", lambda: done.append("anew"))
    monkeypatch.setattr(seam, "import_module", done.append)
    assert machine.has_boto3()
    assert done == ["anew", "boto3"]


def test_pauses_grow_to_ten_seconds(machine: Quick) -> None:
    def probe() -> None:
        raise Pending("nothing")

    with pytest.raises(BootError, match=r"^waited 51 s for rain: nothing$"):
        machine.wait("rain", probe, "look up", 45)
    assert machine.pauses == [1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10, 10, 10]


@pytest.mark.parametrize(("seconds", "tries"), [(2.5, 3), (2.6, 4)])
def test_wait_ends_when_its_time_is_up_to_the_second(machine: Quick, seconds: float, tries: int) -> None:
    tried: list[float] = []

    def probe() -> None:
        tried.append(machine.passed)
        raise Pending("nothing")

    with pytest.raises(BootError):
        machine.wait("rain", probe, "look up", seconds)
    assert len(tried) == tries


def test_word_is_given_each_minute(machine: Quick, capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((1000.0, 1059.9, 1060.0, 1119.9, 1120.0, 1130.0))

    def probe() -> str:
        machine.passed = next(times)
        if machine.passed == 1130:
            return "rain"
        raise Pending("nothing")

    assert machine.wait("rain", probe, "look up", 500) == "rain"
    said = ["cfngen: waiting for rain (60 s): nothing", "cfngen: waiting for rain (120 s): nothing"]
    assert capsys.readouterr().out.splitlines() == said
