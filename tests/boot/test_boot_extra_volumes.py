"""Further volumes of nodes: found by their names in EC2, formatted only if blank, mounted before anything uses them."""

from __future__ import annotations

import ctypes
import functools
import re
import runpy
import struct
from pathlib import Path
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot.host import extra_volumes, nvme
from cfngen.boot.machine import BootError

EBS = "Amazon Elastic Block Store              \n"
CACHE = {"device": "/dev/sdf", "folder": "/cache", "fileSystem": "ext4"}
IMAGES = {"device": "/dev/sdg", "folder": "/var/lib/containerd", "fileSystem": "xfs"}
ROOT_LINE = "LABEL=root / ext4 defaults 0 1\n"


class Node(ScriptedMachine):
    """A node whose disks have names in EC2, and file systems that commands make.

    Attributes:
        names: the names in EC2 by disk, as the disks tell them.
        content: what `blkid -p` finds on a disk.
    """

    def __init__(self, **names: str) -> None:
        super().__init__()
        self.names = {"nvme0n1": "/dev/sda1", **names}
        self.content: dict[str, str] = {}
        for disk in self.names:
            self.files[f"/sys/block/{disk}/device/model"] = EBS
        self.on(r"/usr/bin/python3 -m boot\.host\.nvme", lambda text: (0, self.names[text.split("/")[-1]] + "\n"))
        self.on(
            "blkid -p",
            lambda text: (0, self.content[text.split()[-1]]) if text.split()[-1] in self.content else (2, ""),
        )
        self.on(r"mkfs\.", self._format)
        self.on("mount", self._mount)

    def _format(self, text: str) -> tuple[int, str]:
        disk = text.split()[-1]
        self.content[disk] = f"UUID=uuid-of-{disk[5:]}\nTYPE={text.split()[0].removeprefix('mkfs.')}\n"
        return 0, ""

    def _mount(self, text: str) -> tuple[int, str]:
        disk, folder = text.split()[-2:]
        self.mounts.add(folder)
        self.files["/proc/mounts"] = self.read("/proc/mounts") + f"{disk} {folder} ext4 rw,noatime 0 0\n"
        return 0, ""


def run(machine: ScriptedMachine, *volumes: dict[str, Any]) -> str:
    return extra_volumes.mount(machine, boot_of({"volumes": list(volumes), "deadline": 1080}))


def test_blank_volumes_are_formatted_and_mounted_by_their_names_in_ec2() -> None:
    # The kernel has numbered them the other way around.
    machine = Node(nvme1n1="/dev/sdg", nvme2n1="/dev/xvdf")
    done = run(machine, CACHE, IMAGES)
    assert done == "/dev/sdf formatted and mounted at /cache, /dev/sdg formatted and mounted at /var/lib/containerd"
    assert machine.ran("mount") == [
        "mount -o noatime /dev/nvme2n1 /cache",
        "mount -o noatime /dev/nvme1n1 /var/lib/containerd",
    ]
    assert machine.files["/etc/fstab"] == ROOT_LINE + (
        "UUID=uuid-of-nvme2n1 /cache ext4 noatime,nofail,x-systemd.device-timeout=30s 0 2\n"
        "UUID=uuid-of-nvme1n1 /var/lib/containerd xfs noatime,nofail,x-systemd.device-timeout=30s 0 0\n"
    )
    for unit in ("containerd", "kubelet"):
        drop_in = machine.files[f"/etc/systemd/system/{unit}.service.d/cfngen-volumes.conf"]
        assert drop_in == "[Unit]\nRequiresMountsFor=/cache /var/lib/containerd\n"


def test_blank_volume_takes_these_commands_in_this_order() -> None:
    machine = Node(nvme1n1="/dev/sdf")
    run(machine, CACHE)
    looked = ["dd if=/dev/nvme1n1 of=/dev/null bs=1M count=1", "blkid -p -o export /dev/nvme1n1"]
    assert machine.commands == [
        "/usr/bin/python3 -m boot.host.nvme /dev/nvme0n1",
        "/usr/bin/python3 -m boot.host.nvme /dev/nvme1n1",
        *looked,
        "mkfs.ext4 -q -m 0 -E nodiscard /dev/nvme1n1",
        "udevadm settle",
        *looked,
        "e2fsck -p /dev/nvme1n1",
        "systemctl stop kubelet containerd",
        "mkdir -p /cache",
        "systemctl daemon-reload",
        "mount -o noatime /dev/nvme1n1 /cache",
    ]


def test_next_boot_of_the_program_changes_nothing() -> None:
    machine = Node(nvme1n1="/dev/sdf")
    run(machine, CACHE)
    before, machine.commands = dict(machine.files), []
    assert run(machine, CACHE) == "/dev/sdf mounted at /cache"
    assert machine.files == before
    assert {command.split()[0] for command in machine.commands} == {"/usr/bin/python3"}


def test_volume_that_did_not_come_with_a_reboot_is_mounted_with_what_it_holds() -> None:
    machine = Node(nvme1n1="/dev/sdf")
    run(machine, CACHE)
    machine.mounts.clear()
    machine.commands = []
    assert run(machine, CACHE) == "/dev/sdf mounted at /cache"
    assert machine.ran("mkfs") == []
    assert machine.files["/etc/fstab"].count(" /cache ") == 1


@pytest.mark.parametrize("step", range(12))
def test_boot_that_fails_anywhere_is_completed_by_the_next(step: int) -> None:
    machine = Node(nvme1n1="/dev/sdf")
    machine.fault = step
    with pytest.raises(BootError, match="a bad moment"):
        run(machine, CACHE)
    assert run(machine, CACHE).endswith("mounted at /cache")
    assert len(machine.ran("mkfs")) == 1
    assert machine.files["/etc/fstab"].count(" /cache ") == 1


def test_disk_of_a_xen_instance_has_the_name_of_the_kernel() -> None:
    machine = ScriptedMachine()
    machine.files["/dev/xvdf"] = ""
    machine.on("blkid -p", (0, "UUID=aaaa\nTYPE=ext4\n"))

    def mount(text: str) -> tuple[int, str]:
        machine.mounts.add(text.split()[-1])
        return 0, ""

    machine.on("mount", mount)
    assert run(machine, CACHE) == "/dev/sdf mounted at /cache"
    assert machine.ran("mount") == ["mount -o noatime /dev/xvdf /cache"]


def test_disk_of_the_instance_type_is_none_of_the_volumes() -> None:
    machine = Node()
    machine.files["/sys/block/nvme1n1/device/model"] = "Amazon EC2 NVMe Instance Storage\n"
    with pytest.raises(BootError, match=r"waited 30. s for the disk of /dev/sdf: the disk has not appeared yet"):
        run(machine, CACHE)
    assert machine.ran("mkfs") == []


def test_disk_that_appears_late_is_waited_for() -> None:
    machine = Node()

    def appear() -> None:
        if machine.passed > 20:
            machine.names["nvme1n1"] = "/dev/sdf"
            machine.files["/sys/block/nvme1n1/device/model"] = EBS

    machine.between = appear
    assert run(machine, CACHE) == "/dev/sdf formatted and mounted at /cache"


@pytest.mark.parametrize(("content", "kind"), [("TYPE=xfs\nUUID=a\n", "xfs"), ("PTTYPE=gpt\n", "gpt")])
def test_volume_with_other_content_is_left_as_it_is(content: str, kind: str) -> None:
    machine = Node(nvme1n1="/dev/sdf")
    machine.content["/dev/nvme1n1"] = content
    with pytest.raises(BootError) as raised:
        run(machine, CACHE)
    assert str(raised.value) == f"/dev/sdf (/dev/nvme1n1) contains {kind}, not ext4; it was not changed"
    assert "mountPath" in raised.value.hint
    assert machine.ran("mkfs|mount") == []


def test_folder_at_which_something_else_is_mounted_ends_the_boot() -> None:
    machine = Node(nvme1n1="/dev/sdf")
    machine.mounts.add("/cache")
    machine.files["/proc/mounts"] = "/dev/md127 /cache ext4 rw 0 0\n"
    with pytest.raises(BootError, match=re.escape("/dev/md127 is mounted at /cache, where /dev/sdf (/dev/nvme1n1)")):
        run(machine, CACHE)


def test_mount_that_does_not_stay_ends_the_boot() -> None:
    machine = Node(nvme1n1="/dev/sdf")
    machine.on("mount", (0, ""))
    with pytest.raises(BootError, match="does not stay mounted at /cache"):
        run(machine, CACHE)


@pytest.mark.parametrize("name", [b"/dev/sdf", b"sdf"])
@pytest.mark.parametrize("padding", [b" ", b"\0"])
@pytest.mark.parametrize(("structure", "offset"), [(nvme.IDENTIFY_NAMESPACE, 384), (nvme.IDENTIFY_CONTROLLER, 3072)])
def test_name_in_ec2_is_read_from_what_the_disk_says(name: bytes, padding: bytes, structure: int, offset: int) -> None:
    answer = bytes(offset) + name.ljust(32, padding) + b"\1" * (4096 - offset - 32)
    assert nvme.device_name(answer, structure) == "/dev/sdf"
    assert nvme.device_name(bytes(4096), structure) == ""


class AdminCommand(ctypes.Structure):
    """`struct nvme_admin_cmd` of linux/nvme_ioctl.h."""

    _fields_ = (
        *(("opcode", ctypes.c_uint8), ("flags", ctypes.c_uint8), ("rsvd1", ctypes.c_uint16)),
        *((name, ctypes.c_uint32) for name in ("nsid", "cdw2", "cdw3")),
        *((name, ctypes.c_uint64) for name in ("metadata", "addr")),
        *((name, ctypes.c_uint32) for name in ("metadata_len", "data_len", "cdw10", "cdw11", "cdw12")),
        *((name, ctypes.c_uint32) for name in ("cdw13", "cdw14", "cdw15", "timeout_ms", "result")),
    )


# Where the vendor-specific part of a structure is, by opcode (06h is Identify), CNS (00h: of a namespace, 01h: of the
# controller) and number of the namespace, for the second namespace of a disk (NVM Express Base Specification).
STRUCTURES = {(0x06, 0x00, 2): (384, "namespace"), (0x06, 0x01, 0): (3072, "controller")}
USED = {"opcode", "nsid", "addr", "data_len", "cdw10"}


def identified(names: dict[str, bytes], _descriptor: int, request: int, argument: bytearray) -> int:
    """Answer as the kernel does for a disk whose structures have these names, and return the status."""
    command = AdminCommand.from_buffer(argument)
    assert request == nvme.ADMIN_COMMAND
    assert {name for name, _ in AdminCommand._fields_ if getattr(command, name)} <= USED
    offset, structure = STRUCTURES[command.opcode, command.cdw10, command.nsid]
    if structure not in names:
        return 0x4002
    answer = bytes(offset) + names[structure].ljust(32, b" ")
    assert command.data_len == 4096
    ctypes.memmove(command.addr, answer.ljust(4096, b"\1"), 4096)
    return 0


@pytest.mark.parametrize(
    ("names", "printed"),
    [
        ({"namespace": b"/dev/sdf", "controller": b"/dev/sdg"}, "/dev/sdf\n"),
        ({"namespace": b"", "controller": b"sdg"}, "/dev/sdg\n"),
        ({"namespace": b"", "controller": b""}, "\n"),
    ],
)
def test_disk_is_asked_for_its_name_in_its_namespace_and_then_in_its_controller(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    names: dict[str, bytes],
    printed: str,
) -> None:
    (tmp_path / "nvme1n2").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fcntl.ioctl", functools.partial(identified, names))
    monkeypatch.setattr("sys.argv", ["nvme.py", "nvme1n2"])
    runpy.run_path(nvme.__file__, run_name="__main__")
    assert capsys.readouterr().out == printed


def test_disk_that_refuses_to_be_identified_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvme1n2").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fcntl.ioctl", functools.partial(identified, {}))
    with pytest.raises(OSError, match="nvme1n2 refused the NVMe command Identify with status 0x4002"):
        nvme.main("nvme1n2")


def test_command_is_the_one_that_the_kernel_takes() -> None:
    # _IOWR('N', 0x41, struct nvme_admin_cmd) of linux/nvme_ioctl.h: direction, size, type and number.
    size = struct.calcsize(nvme.COMMAND_FORMAT)
    assert (3 << 30) + (size << 16) + (ord("N") << 8) + 0x41 == nvme.ADMIN_COMMAND


def test_disk_that_takes_no_such_command_is_an_error() -> None:
    with pytest.raises(OSError, match=r"Inappropriate ioctl|Invalid argument"):
        nvme.identify("/dev/null", nvme.IDENTIFY_CONTROLLER)
