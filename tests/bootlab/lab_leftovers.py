"""What a run left behind that was killed before it could clean up: its processes, networks, disks and files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import lab_root
from lab_network import command

NAMESPACES = Path("/run/netns")
GROUPS = Path("/sys/fs/cgroup")
NAME = re.compile(r"bootlab-(\d+)(-\d+)?")
PATIENCE = 5.0  # seconds that the kernel may take to end processes
FOLDER = re.compile(r"run-(\d+)-")


def sweep() -> None:
    """Remove what belongs to runs whose process is gone."""
    for path in sorted(NAMESPACES.glob("bootlab-*")) if NAMESPACES.exists() else ():
        match = NAME.fullmatch(path.name)
        if match and not _alive(match[1]):
            if match[2]:
                _kill(path.name)
            command("ip", "netns", "del", path.name)
    for folder in lab_root.cache().glob("run-*"):
        match = FOLDER.match(folder.name)
        if match and not _alive(match[1]):
            _discard(folder)


def groups(name: str, top: Path = GROUPS) -> list[Path]:
    """Return the control groups of a container, one of each hierarchy.

    Others' groups come and go meanwhile: what vanishes while it is looked at is passed over (os.walk does, Path.glob
    would fail).
    """
    return [Path(folder, name) for folder, folders, _ in os.walk(top) if name in folders]


def remove_groups(name: str, top: Path = GROUPS) -> None:
    """Remove the control groups of a container whose processes are gone or about to go, the innermost first."""
    end = time.monotonic() + PATIENCE
    while tops := groups(name, top):
        for folder in (folder for each in tops for folder, _, _ in os.walk(each, topdown=False)):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        if time.monotonic() > end:
            return
        time.sleep(0.05)


def _alive(pid: str) -> bool:
    return Path("/proc", pid).exists()


def _kill(name: str) -> None:
    """End the processes of a container, which its control group knows."""
    for folder in (folder for top in groups(name) for folder, _, _ in os.walk(top)):
        with contextlib.suppress(OSError):
            for pid in Path(folder, "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
    remove_groups(name)


def _discard(folder: Path) -> None:
    for line in Path("/proc/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    for line in command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines():
        device, _, file = line.partition(" ")
        if file.strip().startswith(f"{folder}/"):
            subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
