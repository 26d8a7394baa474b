"""The instance's own disks: one file system over them, the kubelet and containerd on it, nothing lost that matters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripted_machine import ScriptedMachine

from cfngen.boot import disks, kubelet
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
        self.files[disks.ARRAY] = ""
        return 0, ""

    def _mount(self, text: str) -> tuple[int, str]:
        assert self.labelled, "there is nothing to mount"
        self.mounts.add(text.split()[-1])
        return 0, ""


def run(machine: ScriptedMachine) -> str:
    config: dict[str, Any] = {"facts": {"instanceId": INSTANCE}, "deadline": 1080}
    return disks.disks(machine, config)


def test_instance_without_disks_of_its_own_is_left_as_it_is() -> None:
    machine = Disks()
    before = dict(machine.files)
    assert run(machine) == "this instance has no disks of its own"
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
    assert machine.ran("mkfs")[0].endswith(disks.ARRAY)


@pytest.mark.parametrize(("own", "wanted"), [(["nvme1n1"], False), (["nvme1n1", "nvme2n1"], True)])
def test_mdadm_is_installed_only_where_it_is_needed(own: list[str], wanted: bool) -> None:
    machine = Disks(*own)
    run(machine)
    installed = [command for command in machine.ran("apt-get") if " install " in command]
    assert any("mdadm" in command for command in installed) is wanted


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
    machine.files[kubelet.ESTABLISHED] = INSTANCE
    machine.commands.clear()
    before = dict(machine.files)
    assert run(machine) == "/dev/nvme1n1 mounted at /mnt/instance-storage"
    assert machine.commands == []
    assert machine.files == before


def test_file_system_of_an_earlier_boot_that_is_not_mounted_is_kept() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.labelled = True
    machine.files.update({f"/mnt/instance-storage/{name}": "" for name in disks.FOLDERS})
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
    machine.files[kubelet.ESTABLISHED] = INSTANCE
    machine.files[kubelet.KUBELET_CONF] = "its certificate was on the disks"
    run(machine)
    assert not kubelet.established(machine, {"facts": {"instanceId": INSTANCE}})


def test_disk_that_somebody_else_formatted_is_left_alone() -> None:
    machine = Disks("nvme1n1", "nvme2n1")
    machine.content["/dev/nvme2n1"] = "TYPE=xfs\nUUID=1\n"
    with pytest.raises(BootError, match="/dev/nvme2n1 holds xfs and is left as it is") as caught:
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
    with pytest.raises(BootError, match="does not stay mounted at /var/lib/containerd"):
        run(machine)


def xen(*names: str) -> Disks:
    machine = Disks()
    machine.files["/sys/block/xvda/size"] = "1"
    machine.told[disks.MAPPING] = "\n".join(["ami", *(f"ephemeral{each}" for each in range(len(names))), "root"])
    for index, name in enumerate(names):
        machine.told[f"{disks.MAPPING}ephemeral{index}"] = name
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
