"""The instance's own disks: one file system over them, the kubelet and containerd on it, nothing lost that matters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot.host import disks, kubelet
from cfngen.boot.machine import BootError

INSTANCE = "i-0123456789abcdef0"
MODEL = "Amazon EC2 NVMe Instance Storage         \n"
EBS = "Amazon Elastic Block Store              \n"


class Disks(ScriptedMachine):
    """A machine whose mounts, arrays and file systems come and go by its commands.

    Attributes:
        labelled: whether a file system of ours is there.
        formatted: whether it was made a moment ago, and udev has not seen its label yet.
        content: what `blkid -p` finds on a disk.
    """

    def __init__(self, *own: str) -> None:
        super().__init__()
        self.labelled = False
        self.formatted = False
        self.content: dict[str, str] = {}
        self.files["/sys/block/nvme0n1/device/model"] = EBS
        for name in own:
            self.files[f"/sys/block/{name}/device/model"] = MODEL
        self.on("blkid -c /dev/null -L", lambda _: (0, "/dev/md127\n") if self.labelled else (2, ""))
        self.on(
            "blkid -p",
            lambda text: (0, self.content[text.split()[-1]]) if text.split()[-1] in self.content else (2, ""),
        )
        self.on("mkfs.ext4", lambda _: self._format())
        self.on("udevadm settle$", lambda _: self._settle())
        self.on("mdadm --create", lambda _: self._assemble())
        self.on("mount", self._mount)

    def _format(self) -> tuple[int, str]:
        self.formatted = True
        return 0, ""

    def _settle(self) -> tuple[int, str]:
        self.labelled, self.formatted = self.labelled or self.formatted, False
        return 0, ""

    def _assemble(self) -> tuple[int, str]:
        self.files[disks.ARRAY_DEVICE] = ""
        return 0, ""

    def _mount(self, text: str) -> tuple[int, str]:
        assert self.labelled, "there is nothing to mount"
        self.mounts.add(text.split()[-1])
        return 0, ""


def run(machine: ScriptedMachine) -> str:
    config: dict[str, Any] = {"facts": {"instanceId": INSTANCE}, "deadline": 1080}
    return disks.disks(machine, boot_of(config))


def test_instance_without_disks_of_its_own_is_left_as_it_is() -> None:
    machine = Disks()
    before = dict(machine.files)
    assert run(machine) == "this instance has no instance store disks"
    assert machine.commands == []
    assert machine.files == before


def test_one_disk_is_formatted_and_bears_what_fills_disks() -> None:
    machine = Disks("nvme1n1")
    assert run(machine) == "/dev/nvme1n1 formatted and mounted at /mnt/instance-storage"
    assert machine.ran("mkfs") == ["mkfs.ext4 -q -F -m 0 -E nodiscard -L cfngen-storage /dev/nvme1n1"]
    assert machine.ran("mdadm") == []
    assert machine.mounts == {"/mnt/instance-storage", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"}
    assert "mount --bind /mnt/instance-storage/kubelet /var/lib/kubelet" in machine.commands


def test_several_disks_become_one() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.programs.add("mdadm")
    assert run(machine).startswith("/dev/nvme1n1, /dev/nvme2n1 formatted")
    [create] = machine.ran("mdadm --create")
    assert "--level=0" in create
    assert create.endswith("--raid-devices=2 /dev/nvme1n1 /dev/nvme2n1")
    assert machine.ran("mkfs")[0].endswith(disks.ARRAY_DEVICE)


FOLDERS = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "pods": "/var/log/pods"}
STORAGE = "/mnt/instance-storage"
ANSWERED = "blkid -c /dev/null -L cfngen-storage"
MOUNTED = [f"mkdir -p {STORAGE}", "systemctl daemon-reload", f"mount -o noatime LABEL=cfngen-storage {STORAGE}"]
FILLED = [
    command.format(source=f"{STORAGE}/{name}", folder=folder)
    for name, folder in FOLDERS.items()
    for command in (
        "mkdir -p {folder}",
        "cp -a {folder} {source}.partial",
        "mv {source}.partial {source}",
        "mount --bind {source} {folder}",
    )
]
MADE = "mkfs.ext4 -q -F -m 0 -E nodiscard -L cfngen-storage"


def test_one_disk_takes_these_commands_in_this_order() -> None:
    machine = Disks("nvme1n1")
    run(machine)
    assert machine.commands == [
        "systemctl stop kubelet containerd",
        ANSWERED,
        "blkid -p -o export /dev/nvme1n1",
        f"{MADE} /dev/nvme1n1",
        "udevadm settle",
        *MOUNTED,
        *FILLED,
    ]


def test_several_disks_take_these_commands_in_this_order() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.programs.add("mdadm")
    run(machine)
    assert machine.commands == [
        "systemctl stop kubelet containerd",
        "mdadm --assemble --scan",
        "udevadm settle",
        ANSWERED,
        "blkid -p -o export /dev/nvme1n1",
        "blkid -p -o export /dev/nvme2n1",
        "mdadm --stop /dev/md/cfngen",
        "wipefs -a -q /dev/nvme1n1 /dev/nvme2n1",
        (
            "mdadm --create /dev/md/cfngen --run --level=0 --name=cfngen --homehost=any --raid-devices=2"
            " /dev/nvme1n1 /dev/nvme2n1"
        ),
        "udevadm settle",
        f"{MADE} /dev/md/cfngen",
        "udevadm settle",
        *MOUNTED,
        *FILLED,
    ]


def test_disks_of_an_earlier_boot_take_these_commands_in_this_order() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.programs.add("mdadm")
    machine.labelled = True
    machine.files.update({f"{STORAGE}/{name}": "" for name in FOLDERS})
    assert run(machine) == "/dev/nvme1n1, /dev/nvme2n1 mounted at /mnt/instance-storage"
    assert machine.commands == [
        "systemctl stop kubelet containerd",
        "mdadm --assemble --scan",
        "udevadm settle",
        *[ANSWERED] * 2,
        "e2fsck -p /dev/md127",
        *MOUNTED,
        *(command for command in FILLED if not command.startswith(("cp", "mv"))),
    ]


@pytest.mark.parametrize("code", [0, 1, 2])
def test_array_that_there_is_not_is_made_whatever_mdadm_says_of_it(code: int) -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.on("mdadm --(assemble|stop)", (code, ""))
    assert run(machine).startswith("/dev/nvme1n1, /dev/nvme2n1 formatted")


def test_array_is_waited_for_until_udev_shows_it() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.on("mdadm --create", (0, ""))

    def appear() -> None:
        if machine.passed > 5:
            machine.files[disks.ARRAY_DEVICE] = ""

    machine.between = appear
    assert run(machine).startswith("/dev/nvme1n1, /dev/nvme2n1 formatted")
    never = Disks("nvme1n1", "nvme2n1")
    never.on("mdadm --create", (0, ""))
    with pytest.raises(BootError, match=r"waited 12\d s for the array: there is no /dev/md/cfngen") as caught:
        run(never)
    assert caught.value.hint == "`cat /proc/mdstat`"
    assert never.ran("mkfs") == []


def test_instance_whose_image_has_no_containerd_has_nothing_to_stop() -> None:
    machine = Disks("nvme1n1")
    machine.on("systemctl stop kubelet containerd", (5, "Unit kubelet.service not loaded."))
    assert run(machine).startswith("/dev/nvme1n1 formatted")


def test_line_of_each_mount_is_what_the_next_boot_needs() -> None:
    machine = Disks("nvme1n1")
    machine.files["/etc/fstab"] += "LABEL=cfngen-storage /mnt/instance-storage ext4 defaults 0 0\n"
    run(machine)
    bind = "none bind,nofail,x-systemd.requires-mounts-for=/mnt/instance-storage 0 0"
    assert machine.files["/etc/fstab"].splitlines() == [
        "LABEL=root / ext4 defaults 0 1",
        "LABEL=cfngen-storage /mnt/instance-storage ext4 noatime,nofail,x-systemd.device-timeout=30s 0 2",
        *(f"{STORAGE}/{name} {folder} {bind}" for name, folder in FOLDERS.items()),
    ]


@pytest.mark.parametrize(
    ("own", "programs", "packages"),
    [
        (["nvme1n1"], {"apt-get", "mkfs.ext4"}, []),
        (["nvme1n1"], {"apt-get"}, ["e2fsprogs"]),
        (["nvme1n1", "nvme2n1"], {"apt-get", "mkfs.ext4"}, ["mdadm"]),
        (["nvme1n1", "nvme2n1"], {"apt-get", "mkfs.ext4", "mdadm"}, []),
        (["nvme1n1", "nvme2n1"], {"dnf"}, ["e2fsprogs", "mdadm"]),
    ],
)
def test_only_the_programs_that_are_needed_and_missing_are_installed(
    own: list[str], programs: set[str], packages: list[str]
) -> None:
    machine = Disks(*own)
    machine.programs = programs
    run(machine)
    installed = [command.partition(" install ")[2].split() for command in machine.ran("(apt-get|dnf) .*install ")]
    assert installed == ([packages] if packages else [])


def test_what_an_image_holds_is_taken_along_whole_or_not_at_all() -> None:
    machine = Disks("nvme1n1")
    run(machine)
    assert machine.ran("cp|mv|mount --bind")[:3] == [
        "cp -a /var/lib/containerd /mnt/instance-storage/containerd.partial",
        "mv /mnt/instance-storage/containerd.partial /mnt/instance-storage/containerd",
        "mount --bind /mnt/instance-storage/containerd /var/lib/containerd",
    ]


def test_copy_that_was_cut_off_is_begun_anew() -> None:
    machine = Disks("nvme1n1")
    machine.labelled = True
    machine.files["/mnt/instance-storage/containerd.partial"] = "half"
    run(machine)
    assert "/mnt/instance-storage/containerd.partial" not in machine.files
    assert "cp -a /var/lib/containerd /mnt/instance-storage/containerd.partial" in machine.commands


def test_nothing_writes_below_the_mounts_while_they_are_made() -> None:
    machine = Disks("nvme1n1")
    run(machine)
    assert machine.commands[0] == "systemctl stop kubelet containerd"


def test_services_wait_for_the_mounts_at_the_next_boot_and_the_boot_does_not() -> None:
    machine = Disks("nvme1n1")
    run(machine)
    for unit in ("containerd", "kubelet"):
        text = machine.files[f"/etc/systemd/system/{unit}.service.d/cfngen-storage.conf"]
        assert text == "[Unit]\nRequiresMountsFor=/var/lib/containerd /var/lib/kubelet /var/log/pods\n"
    ours = [line for line in machine.files["/etc/fstab"].splitlines() if "instance-storage" in line]
    assert len(ours) == 4
    assert all("nofail" in line.split()[3].split(",") for line in ours)
    assert machine.files["/etc/fstab"].startswith("LABEL=root / ext4 defaults 0 1\n")


def test_reboot_changes_nothing() -> None:
    machine = Disks("nvme1n1")
    run(machine)
    machine.files[kubelet.SET_UP_FILE] = INSTANCE
    machine.commands.clear()
    before = dict(machine.files)
    assert run(machine) == "/dev/nvme1n1 mounted at /mnt/instance-storage"
    assert machine.commands == []
    assert machine.files == before


def test_file_system_of_an_earlier_boot_that_is_not_mounted_is_kept() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.labelled = True
    machine.files.update({f"/mnt/instance-storage/{name}": "" for name in disks.BIND_MOUNTS})
    run(machine)
    assert machine.ran("mkfs|wipefs|mdadm --create|cp") == []
    assert "mdadm --assemble --scan" in machine.commands
    assert "/var/lib/kubelet" in machine.mounts


def test_file_system_that_is_kept_is_repaired_before_it_is_mounted() -> None:
    machine = Disks("nvme1n1")
    machine.labelled = True
    machine.on("e2fsck -p /dev/md127", (4, "cfngen-storage: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.\n"))
    with pytest.raises(BootError, match="UNEXPECTED INCONSISTENCY") as caught:
        run(machine)
    assert "terminate this instance" in caught.value.hint
    assert machine.ran("mount") == []


def test_instance_whose_disks_were_lost_joins_anew() -> None:
    machine = Disks("nvme1n1")
    machine.files[kubelet.SET_UP_FILE] = INSTANCE
    machine.files[kubelet.KUBELET_CONF] = "its certificate was on the disks"
    run(machine)
    assert not kubelet.is_set_up(machine, boot_of({"facts": {"instanceId": INSTANCE}}))


@pytest.mark.parametrize(("content", "kind"), [("TYPE=xfs\nUUID=1\n", "xfs"), ("PTTYPE=gpt\n", "gpt")])
def test_disk_that_somebody_else_formatted_is_left_alone(content: str, kind: str) -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.content["/dev/nvme2n1"] = content
    with pytest.raises(BootError, match=f"/dev/nvme2n1 contains {kind}; it was not formatted") as caught:
        run(machine)
    assert "instanceStorage: none" in caught.value.hint
    assert machine.ran("mkfs|wipefs|mdadm --create") == []


def test_attempt_that_was_cut_off_before_the_file_system_is_repeated() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.content = dict.fromkeys(["/dev/nvme1n1", "/dev/nvme2n1"], "TYPE=linux_raid_member\nLABEL=any:cfngen\n")
    run(machine)
    order = [command.split()[0] + command.split()[1] for command in machine.ran("mdadm|wipefs|mkfs")]
    assert order == ["mdadm--assemble", "mdadm--stop", "wipefs-a", "mdadm--create", "mkfs.ext4-q"]


def test_mount_that_does_not_take_is_noticed() -> None:
    machine = Disks("nvme1n1")
    machine.on("mount --bind", (0, ""))
    with pytest.raises(BootError, match="does not stay mounted at /var/lib/containerd") as caught:
        run(machine)
    assert "journalctl -b" in caught.value.hint
    machine = Disks("nvme1n1")
    machine.on("mount -o noatime", (0, ""))
    with pytest.raises(BootError, match="own disks do not stay mounted at /mnt/instance-storage") as caught:
        run(machine)
    assert "journalctl -b" in caught.value.hint


def xen(*names: str) -> Disks:
    machine = Disks()
    machine.files["/sys/block/xvda/size"] = "1"
    machine.told[disks.BLOCK_DEVICES_PATH] = "\n".join(
        ["ami", *(f"ephemeral{each}" for each in range(len(names))), "root"]
    )
    for index, name in enumerate(names):
        machine.told[f"{disks.BLOCK_DEVICES_PATH}ephemeral{index}"] = name
        machine.files["/dev/" + name.replace("sd", "xvd")] = ""
    return machine


def test_disks_of_xen_instances_are_known_from_the_metadata() -> None:
    machine = xen("sdb")
    assert run(machine).startswith("/dev/xvdb formatted")


def test_disk_that_the_metadata_name_and_the_kernel_lacks_is_passed_over() -> None:
    machine = xen("sdb", "sdc")
    del machine.files["/dev/xvdc"]
    assert run(machine).startswith("/dev/xvdb formatted")


def test_cloud_inits_mount_of_the_first_disk_makes_way() -> None:
    machine = xen("sdb")
    machine.files["/proc/mounts"] = "/dev/xvda1 / ext4 rw 0 0\n/dev/xvdb /mnt ext3 rw 0 0\n"
    machine.files["/etc/fstab"] += "/dev/xvdb\t/mnt\tauto\tdefaults,nofail,comment=cloudconfig\t0\t2\n"
    machine.content["/dev/xvdb"] = "TYPE=ext3\nUUID=1\n"
    run(machine)
    assert machine.ran("umount") == ["umount /dev/xvdb"]
    assert not re.search("(?m)^/dev/xvdb", machine.files["/etc/fstab"])
    assert machine.files["/etc/fstab"].startswith("LABEL=root / ext4 defaults 0 1\nLABEL=cfngen-storage ")
