"""The master's volume: attached, found, formatted only if blank, grown, mounted."""

from __future__ import annotations

from typing import Any

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine, refusal

from cfngen.boot.machine import BootError
from cfngen.boot.master.volume import FSTAB, MOUNT, volume

SELF = IDENTITY["instanceId"]
OTHER = "i-0fedcba9876543210"
VOLUME = "vol-0123456789abcdef0"
EXT4 = "DEVNAME=/dev/nvme1n1\nUUID=aaaa-bbbb\nTYPE=ext4\n"
SERIAL = "/sys/block/nvme1n1/device/serial"


class Ec2:
    """One volume as EC2 shows it: each look moves it on to the next of `states`.

    A state is (the volume's state, who holds it or None, the attachment's state).
    """

    def __init__(self, machine: ScriptedMachine, *states: tuple[str, str | None, str]) -> None:
        self.machine = machine
        self.states = list(states)
        self.taken: list[str] = []
        self.refusals: list[dict[str, Any]] = []
        self.attached: list[dict[str, str]] = []
        self.holder: dict[str, Any] = {"Reservations": [{"Instances": [{"State": {"Name": "running"}}]}]}
        self.detached: list[dict[str, Any]] = []
        self.detached_at = 0.0
        machine.cloud = {
            "ec2.describe_volumes": self.describe,
            "ec2.attach_volume": self.attach,
            "ec2.describe_instances": lambda InstanceIds: self.holder,  # noqa: N803
            "ec2.detach_volume": self.detach,
        }

    def describe(self, VolumeIds: Any = None, Filters: Any = None) -> dict[str, Any]:  # noqa: N803
        if Filters:
            assert Filters == [{"Name": "attachment.instance-id", "Values": [SELF]}]
            return {"Volumes": [{"Attachments": [{"Device": device}]} for device in self.taken]}
        assert VolumeIds == [VOLUME]
        state, holder, attachment = self.states[0]
        if len(self.states) > 1:
            self.states.pop(0)
        held = [{"InstanceId": holder, "State": attachment, "Device": "/dev/sdf"}] if holder else []
        return {"Volumes": [{"State": state, "Attachments": held}]}

    def detach(self, **arguments: Any) -> dict[str, Any]:
        self.detached.append(arguments)
        self.detached_at = self.machine.passed
        self.states = [("available", None, "")]
        return {}

    def attach(self, **arguments: str) -> dict[str, Any]:
        if self.refusals:
            return self.refusals.pop(0)
        self.attached.append(arguments)
        self.states = [("in-use", SELF, "attaching"), ("in-use", SELF, "attached")]
        self.machine.files[SERIAL] = VOLUME.replace("-", "") + "\n"
        return {}


@pytest.fixture
def machine() -> ScriptedMachine:
    machine = ScriptedMachine()
    machine.on("blkid", (0, EXT4))
    machine.on("mount", lambda _: _mount(machine))
    return machine


def _mount(machine: ScriptedMachine) -> tuple[int, str]:
    machine.mounts.add(MOUNT)
    return 0, ""


def run(machine: ScriptedMachine) -> str:
    return volume(machine, boot_of({"facts": {"volumeId": VOLUME, "instanceId": SELF}, "deadline": 1080}))


def test_free_volume_is_attached_and_mounted(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    assert run(machine) == f"{VOLUME} is /dev/nvme1n1, mounted at {MOUNT}"
    assert ec2.attached == [{"VolumeId": VOLUME, "InstanceId": SELF, "Device": "/dev/sdf"}]
    assert machine.files[FSTAB] == (
        "LABEL=root / ext4 defaults 0 1\nUUID=aaaa-bbbb /mnt/master ext4 noatime,nofail 0 2\n"
    )
    assert machine.ran("mkfs") == []
    assert machine.commands[-3:] == [
        "systemctl daemon-reload",
        "mount -o noatime /dev/nvme1n1 /mnt/master",
        "resize2fs /dev/nvme1n1",
    ]


def test_blank_volume_takes_these_commands_in_this_order(machine: ScriptedMachine) -> None:
    Ec2(machine, ("available", None, ""))
    machine.on("blkid", lambda _: (0, EXT4) if machine.ran("udevadm settle") else (2, ""))
    run(machine)
    looked = ["dd if=/dev/nvme1n1 of=/dev/null bs=1M count=1", "blkid -p -o export /dev/nvme1n1"]
    assert machine.commands == [
        *looked,
        "mkfs.ext4 -q -m 0 -L cfngen-master /dev/nvme1n1",
        "udevadm settle",
        *looked,
        "e2fsck -p /dev/nvme1n1",
        "mkdir -p /mnt/master",
        "systemctl daemon-reload",
        "mount -o noatime /dev/nvme1n1 /mnt/master",
        "resize2fs /dev/nvme1n1",
    ]


def test_last_of_ec2s_names_for_volumes_may_be_taken(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    ec2.taken = [f"/dev/sd{letter}" for letter in "fghijklmno"]
    run(machine)
    assert ec2.attached[0]["Device"] == "/dev/sdp"


@pytest.mark.parametrize("code", ["VolumeInUse", "IncorrectState", "InvalidParameterValue"])
def test_attachment_that_ec2_refuses_for_the_moment_is_tried_again(machine: ScriptedMachine, code: str) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    ec2.refusals = [refusal(code)] * 3
    run(machine)
    assert len(ec2.attached) == 1
    assert 2 < machine.passed < 60


def test_reason_why_ec2_does_not_attach_it_is_told(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    ec2.refusals = [refusal("IncorrectState", "The instance is not running")] * 12
    run(machine)
    assert machine.said == [f"waiting for {VOLUME} to be attached (61 s): The instance is not running"]
    slow = ScriptedMachine()
    Ec2(slow, ("available", None, ""))
    slow.cloud["ec2.attach_volume"] = lambda **_: {}
    with pytest.raises(BootError, match="to be attached: it is attaching"):
        run(slow)


@pytest.mark.parametrize("between", ["creating", "deleting"])
def test_volume_that_is_neither_free_nor_attached_is_waited_for(machine: ScriptedMachine, between: str) -> None:
    Ec2(machine, (between, None, ""))
    with pytest.raises(BootError, match=f"to be attached: it is {between}"):
        run(machine)


def test_time_of_a_master_that_begins_late_is_counted_from_then(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "attached"))
    ec2.holder = state("terminated")
    machine.passed = 500
    run(machine)
    assert len(ec2.detached) == 1
    assert 560 <= ec2.detached_at < 565


def test_minute_of_an_ended_holder_is_over_after_sixty_seconds(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "attached"))
    looks = iter((0.0, 59.9, 60.0, 99.0))

    def look(InstanceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        machine.passed = next(looks)
        return state("terminated")

    machine.cloud["ec2.describe_instances"] = look
    run(machine)
    assert ec2.detached_at == 60


def test_holder_that_runs_again_has_its_minute_anew(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "attached"))

    def look(InstanceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        return state("running" if 30 < machine.passed < 50 else "stopped")

    machine.cloud["ec2.describe_instances"] = look
    run(machine)
    assert len(ec2.detached) == 1
    assert ec2.detached_at >= 110


def test_device_names_in_use_are_passed_over(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    ec2.taken = ["/dev/sda1", "/dev/sdf", "/dev/sdg"]
    run(machine)
    assert ec2.attached[0]["Device"] == "/dev/sdh"


def test_volume_still_leaving_the_old_instance_is_waited_for(machine: ScriptedMachine) -> None:
    leaving = [("in-use", OTHER, "attached")] * 8 + [("in-use", OTHER, "detaching")] * 8
    ec2 = Ec2(machine, *leaving, ("available", None, ""))
    run(machine)
    assert len(ec2.attached) == 1
    assert machine.said[0] == f"waiting for {VOLUME} to be attached (61 s): it is detaching to {OTHER}"


def state(name: str) -> dict[str, Any]:
    """Return what EC2 says of an instance in a state."""
    return {"Reservations": [{"Instances": [{"State": {"Name": name}}]}]}


@pytest.mark.parametrize(
    ("holder", "arguments", "ended"),
    [
        (state("terminated"), {"InstanceId": OTHER, "Force": True}, "is terminated"),
        (state("stopped"), {"InstanceId": OTHER, "Force": False}, "is stopped"),
        (refusal("InvalidInstanceID.NotFound"), {"Force": True}, "no longer exists"),
        (refusal("InvalidInstanceID.Malformed"), {"Force": True}, "no longer exists"),
    ],
    ids=["terminated", "stopped", "unknown", "no id"],
)
def test_volume_is_taken_off_an_instance_that_has_ended(
    machine: ScriptedMachine, holder: dict[str, Any], arguments: dict[str, Any], ended: str
) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "attached"))
    ec2.holder = holder
    run(machine)
    assert ec2.detached == [{"VolumeId": VOLUME, **arguments}]
    assert len(ec2.attached) == 1
    assert 60 <= ec2.detached_at < 61, "EC2 gets a minute to do it by itself"
    assert machine.said[0] == f"{VOLUME} is being detached from {OTHER}, which {ended}"


def test_volume_that_leaves_an_ended_instance_by_itself_is_not_forced(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, *[("in-use", OTHER, "detaching")] * 6, ("available", None, ""))
    ec2.holder = state("terminated")
    run(machine)
    assert ec2.detached == []


def test_volume_that_is_stuck_while_it_leaves_an_ended_instance_is_forced(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "detaching"))
    ec2.holder = state("terminated")
    run(machine)
    assert len(ec2.detached) == 1


@pytest.mark.parametrize(
    "holder",
    [state("running"), state("shutting-down"), state("stopping"), {"Reservations": []}],
    ids=["running", "shutting-down", "stopping", "no answer"],
)
def test_volume_that_another_instance_keeps_is_never_forced_away(
    machine: ScriptedMachine, holder: dict[str, Any]
) -> None:
    ec2 = Ec2(machine, ("in-use", OTHER, "attached"))
    ec2.holder = holder
    with pytest.raises(BootError, match=f"for {VOLUME} to be attached: it is attached to {OTHER}") as caught:
        run(machine)
    assert caught.value.hint == "terminate the instance that it is attached to, or detach it in the EC2 console"
    assert ec2.attached == ec2.detached == []
    assert machine.passed >= 1080


def test_volume_that_somebody_else_takes_meanwhile_is_waited_for(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("available", None, ""))
    ec2.refusals = [refusal("VolumeInUse", f"{VOLUME} is already attached to an instance")]
    run(machine)
    assert len(ec2.attached) == 1


def test_missing_volume_ends_the_step_at_once(machine: ScriptedMachine) -> None:
    machine.cloud["ec2.describe_volumes"] = lambda **_: refusal("InvalidVolume.NotFound", f"{VOLUME} does not exist")
    with pytest.raises(BootError, match="does not exist"):
        run(machine)
    assert machine.passed == 0


def test_reboot_changes_nothing(machine: ScriptedMachine) -> None:
    ec2 = Ec2(machine, ("in-use", SELF, "attached"))
    machine.files[SERIAL] = VOLUME.replace("-", "")
    machine.mounts.add(MOUNT)
    before = dict(machine.files)
    run(machine)
    assert machine.files == before
    assert ec2.attached == []
    assert machine.ran("mkfs|mount") == []


def test_blank_volume_is_formatted(machine: ScriptedMachine) -> None:
    Ec2(machine, ("available", None, ""))
    machine.on("blkid", lambda _: (0, EXT4) if machine.ran("mkfs") else (2, ""))
    assert run(machine) == f"{VOLUME} is /dev/nvme1n1, formatted, mounted at {MOUNT}"
    assert machine.ran("mkfs") == ["mkfs.ext4 -q -m 0 -L cfngen-master /dev/nvme1n1"]


@pytest.mark.parametrize(
    ("content", "holds"),
    [("TYPE=xfs\nUUID=1\n", "xfs"), ("PTUUID=1\nPTTYPE=gpt\n", "gpt"), ("TYPE=crypto_LUKS\n", "crypto_LUKS")],
)
def test_volume_with_other_content_is_left_alone(machine: ScriptedMachine, content: str, holds: str) -> None:
    Ec2(machine, ("available", None, ""))
    machine.on("blkid", (0, content))
    with pytest.raises(BootError, match=f"contains {holds}, not ext4; it was not changed") as caught:
        run(machine)
    assert caught.value.hint == "check that it is the right volume"
    assert machine.ran("mkfs|mount") == []


def test_unreadable_disk_is_not_taken_for_a_blank_one(machine: ScriptedMachine) -> None:
    Ec2(machine, ("available", None, ""))
    machine.on("blkid", (2, ""))
    machine.on("dd", (1, "dd: error reading '/dev/nvme1n1': Input/output error"))
    with pytest.raises(BootError, match="Input/output error"):
        run(machine)
    assert machine.ran("mkfs") == []


@pytest.mark.parametrize("device", ["/dev/xvdf", "/dev/sdf"])
def test_disks_of_xen_instances_are_found_by_name(machine: ScriptedMachine, device: str) -> None:
    Ec2(machine, ("in-use", SELF, "attached"))
    machine.files["/sys/block/nvme0n1/device/serial"] = "vol0aaaaaaaaaaaaaaaa"
    machine.files[device] = ""
    assert f"{VOLUME} is {device}," in run(machine)


def test_disk_that_never_appears_ends_the_step(machine: ScriptedMachine) -> None:
    Ec2(machine, ("in-use", SELF, "attached"))
    with pytest.raises(BootError, match=f"for the disk of {VOLUME}: the disk has not appeared yet") as caught:
        run(machine)
    assert caught.value.hint == "check whether `lsblk` shows it"


def test_old_fstab_line_of_the_mount_point_is_replaced(machine: ScriptedMachine) -> None:
    Ec2(machine, ("available", None, ""))
    machine.files[FSTAB] += f"UUID=old {MOUNT} ext4 noatime,nofail 0 2\n"
    run(machine)
    assert [line for line in machine.files[FSTAB].splitlines() if MOUNT in line] == [
        "UUID=aaaa-bbbb /mnt/master ext4 noatime,nofail 0 2"
    ]


def test_mount_that_does_not_take_is_noticed_before_etcd_writes_to_the_root_disk(machine: ScriptedMachine) -> None:
    Ec2(machine, ("available", None, ""))
    machine.on("mount", (0, ""))
    with pytest.raises(BootError, match="/dev/nvme1n1 does not stay mounted at /mnt/master") as caught:
        run(machine)
    assert "journalctl -b" in caught.value.hint
    assert machine.ran("resize2fs") == []


def test_file_system_is_repaired_before_it_is_mounted(machine: ScriptedMachine) -> None:
    Ec2(machine, ("in-use", SELF, "attached"))
    machine.files[SERIAL] = VOLUME.replace("-", "") + "\n"
    machine.on("e2fsck -p /dev/nvme1n1", (1, "cfngen-master: recovering journal\n"))
    volume(machine, boot_of({"deadline": 1080, "facts": {"volumeId": VOLUME, "instanceId": SELF}}))
    assert machine.said == ["the file system of /dev/nvme1n1 was repaired"]
    checked = machine.commands.index("e2fsck -p /dev/nvme1n1")
    assert checked < machine.commands.index(f"mount -o noatime /dev/nvme1n1 {MOUNT}")


def test_file_system_that_needs_a_person_is_not_mounted(machine: ScriptedMachine) -> None:
    Ec2(machine, ("in-use", SELF, "attached"))
    machine.files[SERIAL] = VOLUME.replace("-", "") + "\n"
    machine.on("e2fsck -p", (4, "cfngen-master: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.\n"))
    with pytest.raises(BootError, match="UNEXPECTED INCONSISTENCY") as caught:
        volume(machine, boot_of({"deadline": 1080, "facts": {"volumeId": VOLUME, "instanceId": SELF}}))
    assert f"snapshot of {VOLUME}" in caught.value.hint
    assert machine.ran("mount") == []
