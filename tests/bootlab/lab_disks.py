"""EBS volumes as files on loop devices, which appear in an instance as NVMe disks do on Nitro, or as disks of Xen.

An NVMe disk of the lab has its volume's id as the serial number, as on Nitro. It answers no NVMe command, so that the
device name, e.g. `/dev/sdf`, is known to instances of Xen alone: there it is a part of the disk's name.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from lab_network import command

GIBIBYTE = 1 << 30


@dataclass
class Disk:
    """A volume.

    Attributes:
        volume: its id.
        file: a sparse file of its size.
        device: the loop device while it is attached.
        slot: its number among the attached disks; 0 while it is attached to none.
    """

    volume: str
    file: Path
    device: str = ""
    slot: int = 0


@dataclass
class Disks:
    """All volumes.

    Args:
        folder: for the files.
    """

    folder: Path
    disks: dict[str, Disk] = field(default_factory=dict)

    def disk(self, volume: str, gibibytes: int) -> Disk:
        """Return a volume's disk, blank when it is seen for the first time."""
        if volume not in self.disks:
            self.disks[volume] = Disk(volume, self.folder / f"{volume}.img")
        disk = self.disks[volume]
        with disk.file.open("ab") as file:
            if file.tell() < gibibytes * GIBIBYTE:
                file.truncate(gibibytes * GIBIBYTE)
        return disk

    def attach(self, disk: Disk, leader: int, xen_name: str = "") -> None:
        """Let a running instance see a disk.

        Args:
            disk: one that is attached to none.
            leader: process id of the instance's first process.
            xen_name: the disk's name, if the instance is one of Xen; by default it is an NVMe disk.
        """
        disk.device = command("losetup", "--find", "--show", disk.file).strip()
        disk.slot = 1 + max((each.slot for each in self.disks.values()), default=0)
        found = Path(disk.device).stat().st_rdev
        name, serial = xen_name or f"nvme{disk.slot}n1", disk.volume.replace("-", "")
        record = f"echo {serial} > /sys/block/{name}/device/serial" if not xen_name else "true"
        # The kernel's list of disks is that of this machine: the instance sees another in its place. One that has just
        # been started may still be about to mount /sys.
        script = f"""
            timeout 30 sh -c 'until [ -d /sys/block ]; do sleep 0.1; done' &&
            (grep -q '^tmpfs /sys/block ' /proc/mounts || mount -t tmpfs -o mode=0755 tmpfs /sys/block) &&
            mkdir -p /sys/block/{name}/device && {record} &&
            mknod -m 0660 /dev/{name} b {os.major(found)} {os.minor(found)}"""
        command("nsenter", "-t", str(leader), "--mount", "--pid", "sh", "-c", script)

    def detach(self, disk: Disk) -> None:
        """Take a disk away; who used it must be gone."""
        if disk.device:
            subprocess.run(["losetup", "--detach", disk.device], check=False, capture_output=True)
        disk.device, disk.slot = "", 0

    def wipe(self, volume: str) -> None:
        """Make a detached volume blank, as a new one is."""
        file = self.disks[volume].file
        size = file.stat().st_size
        with file.open("wb") as opened:
            opened.truncate(size)

    def copy(self, volume: str, to: str) -> None:
        """Let a volume hold what another one holds: what a snapshot and its restoration amount to."""
        target = self.folder / f"{to}.img"
        command("cp", "--sparse=always", self.disks[volume].file, target)
        self.disks[to] = Disk(to, target)

    def close(self) -> None:
        """Take all disks away."""
        for each in self.disks.values():
            self.detach(each)
            with contextlib.suppress(FileNotFoundError):
                each.file.unlink()
