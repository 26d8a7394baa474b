"""A file system is repaired before it is mounted, or whoever reads the console knows what to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from scripted_machine import ScriptedMachine

from cfngen.boot import machine as seam
from cfngen.boot.host import filesystem
from cfngen.boot.machine import BootError, Machine
from cfngen.boot.master import volume

HINT = volume.REPAIR_HINT.format(volume="vol-1", device="/dev/nvme1n1")


@pytest.mark.parametrize(("code", "said"), [(0, 0), (1, 1), (2, 1), (3, 1), (8, 1)])
def test_repaired_or_older_than_the_file_system_goes_on(code: int, said: int) -> None:
    machine = ScriptedMachine()
    machine.on("e2fsck -p /dev/nvme1n1", (code, "cfngen-master: recovering journal\n"))
    filesystem.check(machine, "/dev/nvme1n1", HINT)
    assert len(machine.said) == said


@pytest.mark.parametrize("code", [4, 12])
def test_errors_that_are_left_need_a_person(code: int) -> None:
    machine = ScriptedMachine()
    text = "cfngen-master: Inode 12 has an invalid extent node (blk 33, lblk 0)\n\n"
    text += "cfngen-master: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.\n\t(i.e., without -a or -p options)\n"
    machine.on("e2fsck -p /dev/nvme1n1", (code, text))
    with pytest.raises(BootError, match="UNEXPECTED INCONSISTENCY") as caught:
        filesystem.check(machine, "/dev/nvme1n1", HINT)
    assert "snapshot of vol-1" in caught.value.hint
    assert "e2fsck -f /dev/nvme1n1" in caught.value.hint


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "cfngen-master", path], check=True)
    return path


def debugfs(disk: Path, order: str) -> None:
    subprocess.run(["debugfs", "-w", "-R", order, disk], check=True, capture_output=True)


class Telling(Machine):
    """The real machine; what it says is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.drill
@pytest.mark.skipif(not shutil.which("e2fsck"), reason="e2fsck is not installed")
def test_real_file_system_with_an_error_noted_is_repaired(disk: Path) -> None:
    debugfs(disk, "set_super_value state 2")
    machine = Telling()
    filesystem.check(machine, str(disk), HINT)
    assert machine.said == [f"the file system of {disk} was repaired"]
    filesystem.check(machine, str(disk), HINT)
    assert len(machine.said) == 1


@pytest.mark.drill
@pytest.mark.skipif(not shutil.which("e2fsck"), reason="e2fsck is not installed")
def test_real_file_system_whose_root_is_gone_needs_a_person(disk: Path) -> None:
    debugfs(disk, "clri <2>")
    debugfs(disk, "set_super_value state 2")
    with pytest.raises(BootError, match=r"not safe to correct: .* Root inode is not a directory"):
        filesystem.check(Telling(), str(disk), HINT)
