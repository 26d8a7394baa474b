"""Formats (only if blank) and mounts the further EBS volumes of a node, before anything uses their folders.

A volume is new with the instance and deleted with it, so an error on it is no loss: the instance can be terminated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..machine import BootError, Machine, Pending
from . import filesystem, nvme

if TYPE_CHECKING:
    from ..contract import MountedVolume
    from ..state import Boot

FSTAB = "/etc/fstab"
# The disk model of EBS volumes on Nitro instances (Amazon EBS User Guide, "Map Amazon EBS volumes to NVMe device
# names").
EBS_MODEL = "Amazon Elastic Block Store"
# The services whose containers may use the volumes: they do not start without the mounts.
SERVICES = ("containerd", "kubelet")
# Nothing is discarded first: the volumes are new.
FORMAT_COMMANDS = {"ext4": ("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard"), "xfs": ("mkfs.xfs", "-q", "-K")}
DISK_WAIT_SECONDS = 300


def mount(machine: Machine, boot: Boot) -> str:
    """Mount each volume at its folder, formatted first if it is blank."""
    volumes = boot.config["volumes"]
    folders = " ".join(volume["folder"] for volume in volumes)
    for unit in SERVICES:
        machine.write(
            f"/etc/systemd/system/{unit}.service.d/cfngen-volumes.conf", f"[Unit]\nRequiresMountsFor={folders}\n"
        )
    return ", ".join(_mount_volume(machine, volume) for volume in volumes)


def _mount_volume(machine: Machine, volume: MountedVolume) -> str:
    device, folder, file_system = volume["device"], volume["folder"], volume["fileSystem"]
    hint = "check that the launch template still has the volume, and what `lsblk` shows"
    disk = machine.wait(f"the disk of {device}", lambda: _disk(machine, device), hint, DISK_WAIT_SECONDS)
    if machine.mounted(folder):
        mounted_disk = _mounted_disk(machine, folder)
        if mounted_disk != disk:
            raise BootError(
                f"{mounted_disk} is mounted at {folder}, where {device} ({disk}) belongs",
                "use another mountPath, or an image that mounts nothing there",
            )
        return f"{device} mounted at {folder}"
    is_blank = not _content(machine, disk)
    if is_blank:
        machine.run(*FORMAT_COMMANDS[file_system], disk)
        # systemd unmounts a file system while udev has not created its device unit yet (systemd/systemd#9869).
        machine.run("udevadm", "settle")
    content = _content(machine, disk)
    if content.get("TYPE") != file_system:
        actual_type = content.get("TYPE") or content.get("PTTYPE")  # of a file system, or of a partition table
        raise BootError(
            f"{device} ({disk}) contains {actual_type}, not {file_system}; it was not changed",
            "make sure that nothing else formats it, or remove mountPath from the cluster file",
        )
    if file_system == "ext4":
        filesystem.check(machine, disk, "terminate this instance: nothing on its volumes outlives it")
    # Services that the image or an earlier boot has started must not write below the new mount point.
    machine.run("systemctl", "stop", *reversed(SERVICES), expect=(0, 5))
    _write_fstab(machine, content["UUID"], folder, file_system)
    machine.run("mkdir", "-p", folder)
    machine.run("systemctl", "daemon-reload")
    # With the entry's `nofail`, mounting by the folder alone would not fail.
    machine.run("mount", "-o", "noatime", disk, folder)
    if not machine.mounted(folder):
        raise BootError(f"{device} ({disk}) does not stay mounted at {folder}", "`journalctl -b | grep -i mount`")
    return f"{device} {'formatted and ' if is_blank else ''}mounted at {folder}"


def _disk(machine: Machine, device: str) -> str:
    """Return the device file of the disk with a device name in EC2.

    Raises:
        Pending: the disk has not appeared yet.
    """
    ebs_disks = [
        "/dev/" + path.split("/")[3]
        for path in machine.glob("/sys/block/nvme*/device/model")
        if machine.read(path).strip() == EBS_MODEL
    ]
    for disk in ebs_disks:
        _, name = machine.run(*nvme.COMMAND, disk)
        # A launch template's `/dev/sdf` may be told as `/dev/xvdf`.
        if name.strip().replace("/dev/xvd", "/dev/sd") == device:
            return disk
    # Instances on the Xen hypervisor have no EBS volume as an NVMe disk. Their kernel calls `/dev/sdf` `/dev/xvdf`.
    xen_disk = device.replace("/dev/sd", "/dev/xvd")
    if not ebs_disks and machine.exists(xen_disk):
        return xen_disk
    raise Pending("the disk has not appeared yet")


def _content(machine: Machine, disk: str) -> dict[str, str]:
    """Return the fields that `blkid` prints for a disk, e.g. TYPE and UUID; an empty mapping if the disk is blank."""
    # blkid's exit code 2 means that the disk is blank or cannot be read. If it cannot be read, dd fails.
    machine.run("dd", f"if={disk}", "of=/dev/null", "bs=1M", "count=1")
    _, text = machine.run("blkid", "-p", "-o", "export", disk, expect=(0, 2))
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", text))


def _mounted_disk(machine: Machine, folder: str) -> str:
    """Return what is mounted at a folder; of several mounts, the last one, which hides the others."""
    mounts = [line.split() for line in machine.read("/proc/mounts").splitlines()]
    return next((fields[0] for fields in reversed(mounts) if fields[1:2] == [folder]), "another file system")


def _write_fstab(machine: Machine, uuid: str, folder: str, file_system: str) -> None:
    """Add a volume to /etc/fstab for later boots: by its UUID, as the disk's name may change with a reboot."""
    # An instance without the volume still boots, so that it says what is missing; the services require the mount.
    options = "noatime,nofail,x-systemd.device-timeout=30s"
    # xfs is not checked at boot, fsck.xfs(8).
    entry = f"UUID={uuid} {folder} {file_system} {options} 0 {2 if file_system == 'ext4' else 0}"
    other_lines = [line for line in machine.read(FSTAB).splitlines() if f" {folder} " not in line]
    machine.write(FSTAB, "\n".join([*other_lines, entry, ""]))
