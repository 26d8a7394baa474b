"""The disks that an instance type brings along: one file system over all of them, for the kubelet and containerd.

Such disks are blank after every start but a reboot, and nothing on them outlives the instance.
"""

from __future__ import annotations

import re
from typing import Any

from . import filesystem, kubelet, packages
from .machine import BootError, Machine, Pending

MOUNT = "/mnt/instance-storage"
# What is moved there, by its folder's name.
BIND_MOUNTS = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "pods": "/var/log/pods"}
SERVICES = ("containerd", "kubelet")
FSTAB = "/etc/fstab"
# How EC2's NVMe disks call themselves (EC2 User Guide, "Identify Amazon EBS volumes"); EBS volumes have another model.
MODEL = "Amazon EC2 NVMe Instance Storage"
LABEL = "cfngen-storage"
ARRAY = "/dev/md/cfngen"
# Programs with apt's and dnf's package; the second only where there are several disks.
FORMATTING = {"mkfs.ext4": ("e2fsprogs", "e2fsprogs")}
ARRAYS = {"mdadm": ("mdadm", "mdadm")}
MAPPING = "meta-data/block-device-mapping/"
DROP_IN = "[Unit]\nRequiresMountsFor=" + " ".join(BIND_MOUNTS.values()) + "\n"


def disks(machine: Machine, config: dict[str, Any]) -> str:
    """Make one file system of the instance's own disks, unless it is there; put the kubelet and containerd on it."""
    nvme = _nvme_disks(machine)
    # Only instances on Xen need to be asked about.
    devices = nvme or (machine.glob("/sys/block/xvd*/size") and _xen_disks(machine))
    if not devices:
        return "this instance has no disks of its own"
    is_new = False
    if not machine.mounted(MOUNT):
        # What an image started, or a boot after the disks were lost, must not write below the new mounts.
        machine.run("systemctl", "stop", *reversed(SERVICES), expect=(0, 5))
        packages.install(machine, {**config, "packages": {**FORMATTING, **(ARRAYS if devices[1:] else {})}})
        is_new = not _has_file_system(machine, devices)
        if is_new:
            # On Xen, EC2 itself has put an ext3 onto the first one.
            _check_blank(machine, nvme)
            # The kubelet's certificate went with what was on the disks before: this instance joins anew.
            machine.remove(kubelet.ESTABLISHED)
            _format(machine, devices)
        else:
            filesystem.check(
                machine, _labelled_device(machine), "terminate this instance: nothing on its own disks outlives it"
            )
        _write_fstab(machine)
        machine.run("mkdir", "-p", MOUNT)
        machine.run("systemctl", "daemon-reload")
        machine.run("mount", "-o", "noatime", "LABEL=" + LABEL, MOUNT)
        if not machine.mounted(MOUNT):
            raise BootError(
                f"the instance's own disks do not stay mounted at {MOUNT}", "`journalctl -b | grep -i mount`"
            )
    for name, folder in BIND_MOUNTS.items():
        if not machine.mounted(folder):
            _bind_mount(machine, f"{MOUNT}/{name}", folder)
    return f"{', '.join(devices)} {'formatted and ' if is_new else ''}mounted at {MOUNT}"


def _nvme_disks(machine: Machine) -> list[str]:
    models = "/sys/block/nvme*/device/model"
    disks = [path.split("/")[3] for path in machine.glob(models) if machine.read(path).strip() == MODEL]
    return ["/dev/" + name for name in disks]


def _xen_disks(machine: Machine) -> list[str]:
    """Return the disks that EC2 says are ephemeral."""
    names = re.findall(r"(?m)^ephemeral\d+$", machine.metadata(MAPPING, missing=""))
    paths = ["/dev/" + machine.metadata(MAPPING + name).replace("sd", "xvd", 1) for name in names]
    devices = sorted(path for path in paths if machine.exists(path))
    for path in devices:
        # cloud-init mounts the first one at /mnt by itself.
        if re.search(rf"(?m)^{path} /mnt ", machine.read("/proc/mounts")):
            machine.run("umount", path)
    lines = [
        line for line in machine.read(FSTAB).splitlines() if line.split(" ", 1)[0].split("\t", 1)[0] not in devices
    ]
    machine.write(FSTAB, "\n".join([*lines, ""]))
    return devices


def _has_file_system(machine: Machine, devices: list[str]) -> bool:
    """Return whether the file system of an earlier boot is there."""
    if devices[1:]:
        # After a reboot udev has mostly put it together already; 1 and 2 say that there is nothing to do.
        machine.run("mdadm", "--assemble", "--scan", expect=(0, 1, 2))
        machine.run("udevadm", "settle")
    return machine.run("blkid", "-c", "/dev/null", "-L", LABEL, expect=(0, 2))[0] == 0


def _labelled_device(machine: Machine) -> str:
    return machine.run("blkid", "-c", "/dev/null", "-L", LABEL)[1].strip()


def _check_blank(machine: Machine, devices: list[str]) -> None:
    """See that the disks hold nothing, or what an attempt that was cut off has left.

    Raises:
        BootError: one holds something else.
    """
    for path in devices:
        _, text = machine.run("blkid", "-p", "-o", "export", path, expect=(0, 2))
        content = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
        kind = content.get("TYPE") or content.get("PTTYPE")
        if kind and kind != "linux_raid_member":
            raise BootError(
                f"{path} holds {kind} and is left as it is",
                "let nothing else format it, or say instanceStorage: none in the cluster file",
            )


def _format(machine: Machine, devices: list[str]) -> None:
    """Format one disk, or several as one."""
    device = devices[0]
    if devices[1:]:
        # An attempt that was cut off leaves an array without a file system.
        machine.run("mdadm", "--stop", ARRAY, expect=(0, 1, 2))
        machine.run("wipefs", "-a", "-q", *devices)
        array = ("--level=0", "--name=cfngen", "--homehost=any", f"--raid-devices={len(devices)}")
        machine.run("mdadm", "--create", ARRAY, "--run", *array, *devices)
        machine.run("udevadm", "settle")
        device = machine.wait("the array", lambda: _array_device(machine), "`cat /proc/mdstat`")
    machine.run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard", "-L", LABEL, device)
    # mount finds it by its label, which udev must have seen.
    machine.run("udevadm", "settle")


def _array_device(machine: Machine) -> str:
    if not machine.exists(ARRAY):
        raise Pending(f"there is no {ARRAY}")
    return ARRAY


def _write_fstab(machine: Machine) -> None:
    # nofail: an instance whose disks are gone must still boot, to make them anew.
    timeout = "x-systemd.device-timeout=30s"
    own_lines = [f"LABEL={LABEL} {MOUNT} ext4 noatime,nofail,{timeout} 0 2"]
    own_lines += [
        f"{MOUNT}/{name} {folder} none bind,nofail,x-systemd.requires-mounts-for={MOUNT} 0 0"
        for name, folder in BIND_MOUNTS.items()
    ]
    other_lines = [line for line in machine.read(FSTAB).splitlines() if MOUNT not in line]
    machine.write(FSTAB, "\n".join([*other_lines, *own_lines, ""]))
    for unit in SERVICES:
        machine.write(f"/etc/systemd/system/{unit}.service.d/cfngen-storage.conf", DROP_IN)


def _bind_mount(machine: Machine, source: str, folder: str) -> None:
    """Let a folder be one of the new file system; what it holds is taken along, whole or not at all."""
    machine.run("mkdir", "-p", folder)
    if not machine.exists(source):
        # An image of one's own may hold container images that need not be pulled again.
        machine.remove(source + ".partial")
        machine.run("cp", "-a", folder, source + ".partial")
        machine.run("mv", source + ".partial", source)
    machine.run("mount", "--bind", source, folder)
    if not machine.mounted(folder):
        raise BootError(f"{source} does not stay mounted at {folder}", "`journalctl -b | grep -i mount`")
