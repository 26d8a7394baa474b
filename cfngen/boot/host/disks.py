"""Combines all instance store volumes into one file system, for the kubelet and containerd.

Instance store volumes are blank after every start except a reboot; they are lost with the instance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import packages
from ..machine import BootError, Machine, Pending
from . import filesystem, kubelet

if TYPE_CHECKING:
    from ..state import Boot

MOUNT = "/mnt/instance-storage"
# Folders whose content is stored on the new file system. Keys are the names of the folders in MOUNT that are mounted
# over them.
BIND_MOUNTS = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "pods": "/var/log/pods"}
SERVICES_ON_MOUNTS = ("containerd", "kubelet")
FSTAB = "/etc/fstab"
# The disk model that NVMe instance store volumes report; EBS volumes report another one (EC2 User Guide, "Identify
# Amazon EBS volumes").
INSTANCE_STORE_MODEL = "Amazon EC2 NVMe Instance Storage"
FILE_SYSTEM_LABEL = "cfngen-storage"
ARRAY_DEVICE = "/dev/md/cfngen"
# By program, the name of its package for apt and for dnf; mdadm is needed only for several disks.
FORMAT_PACKAGES = {"mkfs.ext4": ("e2fsprogs", "e2fsprogs")}
RAID_PACKAGES = {"mdadm": ("mdadm", "mdadm")}
BLOCK_DEVICES_PATH = "meta-data/block-device-mapping/"
# A drop-in for the units of the services, which then do not start without their folders' mounts.
MOUNTS_DROP_IN = "[Unit]\nRequiresMountsFor=" + " ".join(BIND_MOUNTS.values()) + "\n"


def disks(machine: Machine, boot: Boot) -> str:
    """Mount one file system across all instance store volumes, and bind-mount its folders (`BIND_MOUNTS`).

    Blank disks are formatted first: after every start of the instance except a reboot.
    """
    nvme_devices = _nvme_disks(machine)
    devices = nvme_devices
    # Instances on the Xen hypervisor have no NVMe disks. Only there the disks are looked up in the instance metadata.
    if not nvme_devices and machine.glob("/sys/block/xvd*/size"):
        devices = _xen_disks(machine)
    if not devices:
        return "this instance has no instance store disks"
    needs_raid = len(devices) > 1
    is_new = False
    if not machine.mounted(MOUNT):
        # Services that the image or an earlier boot has started must not write below the new mount points.
        machine.run("systemctl", "stop", *reversed(SERVICES_ON_MOUNTS), expect=(0, 5))
        needed_packages = {**FORMAT_PACKAGES, **RAID_PACKAGES} if needs_raid else FORMAT_PACKAGES
        packages.install_missing(machine, needed_packages, boot.remaining(machine))
        is_new = not _has_file_system(machine, devices)
        if is_new:
            # Xen disks are not checked, since EC2 itself formats the first one with ext3.
            _check_blank(machine, nvme_devices)
            # The kubelet's certificate was lost with the disks' content: this instance has to join again.
            machine.remove(kubelet.SET_UP_FILE)
            _format(machine, devices)
        else:
            filesystem.check(
                machine, _labelled_device(machine), "terminate this instance: nothing on its own disks outlives it"
            )
        _write_fstab(machine)
        machine.run("mkdir", "-p", MOUNT)
        machine.run("systemctl", "daemon-reload")
        machine.run("mount", "-o", "noatime", "LABEL=" + FILE_SYSTEM_LABEL, MOUNT)
        if not machine.mounted(MOUNT):
            raise BootError(
                f"the instance's own disks do not stay mounted at {MOUNT}", "`journalctl -b | grep -i mount`"
            )
    for name, folder in BIND_MOUNTS.items():
        if not machine.mounted(folder):
            _bind_mount(machine, f"{MOUNT}/{name}", folder)
    return f"{', '.join(devices)} {'formatted and ' if is_new else ''}mounted at {MOUNT}"


def _nvme_disks(machine: Machine) -> list[str]:
    """Return the device files of the NVMe disks whose model shows that they are instance store volumes."""
    devices = []
    for path in machine.glob("/sys/block/nvme*/device/model"):
        if machine.read(path).strip() == INSTANCE_STORE_MODEL:
            disk_name = path.split("/")[3]  # e.g. nvme1n1
            devices.append("/dev/" + disk_name)
    return devices


def _xen_disks(machine: Machine) -> list[str]:
    """Return the device files of the instance store volumes of a Xen instance, after unmounting them.

    The instance metadata list these disks as ephemeral. cloud-init mounts the first of them at /mnt and adds it to
    /etc/fstab; both are undone.
    """
    names = re.findall(r"(?m)^ephemeral\d+$", machine.metadata(BLOCK_DEVICES_PATH, default=""))
    # The instance metadata have EC2's name of a disk, e.g. sdb, which the kernel calls xvdb.
    paths = ["/dev/" + machine.metadata(BLOCK_DEVICES_PATH + name).replace("sd", "xvd", 1) for name in names]
    devices = sorted(path for path in paths if machine.exists(path))
    for path in devices:
        if re.search(rf"(?m)^{path} /mnt ", machine.read("/proc/mounts")):
            machine.run("umount", path)
    other_lines = [line for line in machine.read(FSTAB).splitlines() if _fstab_device(line) not in devices]
    machine.write(FSTAB, "\n".join([*other_lines, ""]))
    return devices


def _fstab_device(line: str) -> str:
    return re.split("[ \t]", line, maxsplit=1)[0]


def _has_file_system(machine: Machine, devices: list[str]) -> bool:
    if len(devices) > 1:
        # Several disks form a RAID array. After a reboot udev has usually assembled it already; mdadm's exit codes 1
        # and 2 mean that there is nothing to assemble.
        machine.run("mdadm", "--assemble", "--scan", expect=(0, 1, 2))
        machine.run("udevadm", "settle")
    exit_code, _ = machine.run("blkid", "-c", "/dev/null", "-L", FILE_SYSTEM_LABEL, expect=(0, 2))
    return exit_code == 0


def _labelled_device(machine: Machine) -> str:
    _, text = machine.run("blkid", "-c", "/dev/null", "-L", FILE_SYSTEM_LABEL)
    return text.strip()


def _check_blank(machine: Machine, devices: list[str]) -> None:
    """Check that each disk is blank, or is part of a RAID array that an interrupted attempt has created.

    Raises:
        BootError: a disk has other content, which formatting would destroy.
    """
    for path in devices:
        _, text = machine.run("blkid", "-p", "-o", "export", path, expect=(0, 2))
        content = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
        content_type = content.get("TYPE") or content.get("PTTYPE")  # of a file system, or of a partition table
        if content_type and content_type != "linux_raid_member":
            raise BootError(
                f"{path} contains {content_type}; it was not formatted",
                "make sure that nothing else formats it, or set instanceStorage: none in the cluster file",
            )


def _format(machine: Machine, devices: list[str]) -> None:
    """Create one file system: on the disk if there is only one, otherwise on a RAID 0 array of all disks."""
    device = devices[0]
    if len(devices) > 1:
        # An interrupted attempt may have created the array already, but no file system on it.
        machine.run("mdadm", "--stop", ARRAY_DEVICE, expect=(0, 1, 2))
        machine.run("wipefs", "-a", "-q", *devices)
        array_options = ("--level=0", "--name=cfngen", "--homehost=any", f"--raid-devices={len(devices)}")
        machine.run("mdadm", "--create", ARRAY_DEVICE, "--run", *array_options, *devices)
        machine.run("udevadm", "settle")
        device = machine.wait("the array", lambda: _array_device(machine), "`cat /proc/mdstat`")
    machine.run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard", "-L", FILE_SYSTEM_LABEL, device)
    # `mount` later finds the file system by its label, which udev must have seen.
    machine.run("udevadm", "settle")


def _array_device(machine: Machine) -> str:
    """Return ARRAY once udev has created this name for the array.

    Raises:
        Pending: the name does not exist yet.
    """
    if not machine.exists(ARRAY_DEVICE):
        raise Pending(f"there is no {ARRAY_DEVICE}")
    return ARRAY_DEVICE


def _write_fstab(machine: Machine) -> None:
    """Add the mounts to /etc/fstab, and make containerd and the kubelet require them."""
    # With the option nofail an instance whose disks have become blank still boots, and formats them again.
    timeout = "x-systemd.device-timeout=30s"
    own_lines = [f"LABEL={FILE_SYSTEM_LABEL} {MOUNT} ext4 noatime,nofail,{timeout} 0 2"]
    own_lines += [
        f"{MOUNT}/{name} {folder} none bind,nofail,x-systemd.requires-mounts-for={MOUNT} 0 0"
        for name, folder in BIND_MOUNTS.items()
    ]
    other_lines = [line for line in machine.read(FSTAB).splitlines() if MOUNT not in line]
    machine.write(FSTAB, "\n".join([*other_lines, *own_lines, ""]))
    for unit in SERVICES_ON_MOUNTS:
        machine.write(f"/etc/systemd/system/{unit}.service.d/cfngen-storage.conf", MOUNTS_DROP_IN)


def _bind_mount(machine: Machine, source: str, folder: str) -> None:
    """Bind-mount `source`, a folder on the instance store, over `folder`.

    If `source` does not exist yet, the content of `folder` is copied to it first, completely or not at all.
    """
    machine.run("mkdir", "-p", folder)
    if not machine.exists(source):
        # A custom AMI may contain container images that then need not be pulled again.
        machine.remove(source + ".partial")
        machine.run("cp", "-a", folder, source + ".partial")
        machine.run("mv", source + ".partial", source)
    machine.run("mount", "--bind", source, folder)
    if not machine.mounted(folder):
        raise BootError(f"{source} does not stay mounted at {folder}", "`journalctl -b | grep -i mount`")
