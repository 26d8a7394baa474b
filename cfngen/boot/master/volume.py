"""Attaches, formats (only if blank), checks, mounts and grows the master's data volume."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..host import filesystem
from ..machine import BootError, Machine, Pending
from . import instances

if TYPE_CHECKING:
    from ..contract import MasterBoot

MOUNT = "/mnt/master"
FSTAB = "/etc/fstab"
REPAIR_HINT = (
    "make a snapshot of {volume}, then run `e2fsck -f {device}` on this instance and reboot it; or restore etcd from a "
    "snapshot: `cfngen etcd restore latest` (in the folder of the cluster file)"
)
# Seconds within which EC2 usually detaches a volume from a terminated instance.
DETACH_WAIT_SECONDS = 60


def volume(machine: Machine, boot: MasterBoot) -> str:
    """Attach the slot's data volume to this instance, format it if it is blank, and mount it at `/mnt/master`."""
    volume_id = boot.facts["volumeId"]
    hint = "terminate the instance that it is attached to, or detach it in the EC2 console"
    seconds = boot.remaining(machine)
    attached_as = machine.wait(f"{volume_id} to be attached", lambda: _attach_volume(machine, boot), hint, seconds)
    device = machine.wait(
        f"the disk of {volume_id}",
        lambda: _disk_device(machine, volume_id, attached_as),
        "check whether `lsblk` shows it",
    )
    is_blank = not _disk_content(machine, device)
    if is_blank:
        machine.run("mkfs.ext4", "-q", "-m", "0", "-L", "cfngen-master", device)
        # systemd unmounts a file system while udev has not created its device unit yet (systemd/systemd#9869).
        machine.run("udevadm", "settle")
    content = _disk_content(machine, device)
    if content.get("TYPE") != "ext4":
        actual_type = content.get("TYPE") or content.get("PTTYPE")  # of a file system, or of a partition table
        raise BootError(
            f"{volume_id} contains {actual_type}, not ext4; it was not changed", "check that it is the right volume"
        )
    if not machine.mounted(MOUNT):
        filesystem.check(machine, device, REPAIR_HINT.format(volume=volume_id, device=device))
        _mount(machine, device, content["UUID"])
    machine.run("resize2fs", device)
    return f"{volume_id} is {device}{', formatted' if is_blank else ''}, mounted at {MOUNT}"


def _attach_volume(machine: Machine, boot: MasterBoot) -> str:
    """Attach the slot's data volume to this instance; return its device name in EC2 once it is attached.

    Raises:
        Pending: the volume is not attached yet; the caller has to call this again.
    """
    volume_id, this_instance = boot.facts["volumeId"], boot.facts["instanceId"]
    description = machine.aws("ec2", "describe_volumes", VolumeIds=[volume_id])["Volumes"][0]
    for attachment in description.get("Attachments", []):
        if attachment["InstanceId"] == this_instance and attachment["State"] == "attached":
            return str(attachment["Device"])
        if attachment["InstanceId"] != this_instance:
            _detach_from_stopped_instance(machine, boot, attachment["InstanceId"])
        raise Pending(f"it is {attachment['State']} to {attachment['InstanceId']}")
    if description["State"] != "available":
        raise Pending(f"it is {description['State']}")
    instance_filter = [{"Name": "attachment.instance-id", "Values": [this_instance]}]
    attached_volumes = machine.aws("ec2", "describe_volumes", Filters=instance_filter)["Volumes"]
    used_devices = {
        attachment["Device"] for attached_volume in attached_volumes for attachment in attached_volume["Attachments"]
    }
    # EC2 requires a device name for the attachment and recommends /dev/sdf to /dev/sdp for EBS volumes; the kernel
    # gives the disk another name.
    free_devices = (f"/dev/sd{letter}" for letter in "fghijklmnop" if f"/dev/sd{letter}" not in used_devices)
    device = next(free_devices)
    # The three error codes say that the volume or the device name is in use after all: the caller tries again.
    response = machine.aws(
        "ec2",
        "attach_volume",
        "VolumeInUse",
        "IncorrectState",
        "InvalidParameterValue",
        VolumeId=volume_id,
        InstanceId=this_instance,
        Device=device,
    )
    raise Pending(response.get("Error", {}).get("Message", "it is attaching"))


def _detach_from_stopped_instance(machine: Machine, boot: MasterBoot, holder: str) -> None:
    """Detach the volume from another instance, if that has been stopped or terminated for a minute.

    Usually EC2 itself detaches the volume within that time. The volume is never detached from an instance that is
    running or shutting down, since that instance may still write.

    Args:
        boot: this run of the program. `boot.holder_ended` is the time at which the holder was first found to be stopped
            or terminated; None if it was not.
        holder: id of the other instance, which the volume is attached to.
    """
    state = instances.state(machine, holder)
    if state not in ("stopped", *instances.TERMINATED_STATES):
        boot.holder_ended = None
        return
    if boot.holder_ended is None:
        boot.holder_ended = machine.clock()
    if machine.clock() - boot.holder_ended < DETACH_WAIT_SECONDS:
        return
    reason = f"is {state}" if state else "no longer exists"
    machine.say(f"{boot.facts['volumeId']} is being detached from {holder}, which {reason}")
    boot.holder_ended = None
    machine.aws(
        "ec2",
        "detach_volume",
        "IncorrectState",
        VolumeId=boot.facts["volumeId"],
        Force=state != "stopped",
        # With the instance id EC2 checks that the volume is still attached to that instance. It is omitted if the
        # instance no longer exists.
        **({"InstanceId": holder} if state else {}),
    )


def _disk_device(machine: Machine, volume_id: str, attached_as: str) -> str:
    """Return the device file of a volume's disk.

    On Nitro instances the disk's serial number is the volume id. On Xen instances the disk's name derives from the
    device name in EC2.

    Args:
        attached_as: the volume's device name in EC2, e.g. `/dev/sdf`.

    Raises:
        Pending: the disk has not appeared yet.
    """
    for path in machine.glob("/sys/block/nvme*/device/serial"):
        if machine.read(path).strip() == volume_id.replace("-", ""):
            return "/dev/" + path.split("/")[3]
    for path in (attached_as.replace("/dev/sd", "/dev/xvd"), attached_as):
        if machine.exists(path):
            return path
    raise Pending("the disk has not appeared yet")


def _disk_content(machine: Machine, device: str) -> dict[str, str]:
    """Return the fields that `blkid` prints for a disk, e.g. TYPE and UUID; an empty mapping if the disk is blank."""
    # blkid's exit code 2 means that the disk is blank or cannot be read. If it cannot be read, dd fails.
    machine.run("dd", f"if={device}", "of=/dev/null", "bs=1M", "count=1")
    _, text = machine.run("blkid", "-p", "-o", "export", device, expect=(0, 2))
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", text))


def _mount(machine: Machine, device: str, uuid: str) -> None:
    """Mount the disk at `/mnt/master` and add it to /etc/fstab for later boots."""
    # The entry has the UUID, as the name of an NVMe disk may change with a reboot. It has `nofail`, as operators must
    # be able to log in to a master without its volume; the kubelet does not start then, as its unit requires the mount.
    entry = f"UUID={uuid} {MOUNT} ext4 noatime,nofail 0 2"
    other_lines = [line for line in machine.read(FSTAB).splitlines() if f" {MOUNT} " not in line]
    machine.write(FSTAB, "\n".join([*other_lines, entry, ""]))
    machine.run("mkdir", "-p", MOUNT)
    machine.run("systemctl", "daemon-reload")
    # The command names the device instead of using the fstab entry. With that entry's `nofail`, mount would not fail if
    # udev does not know the UUID yet, and etcd would start an empty cluster on the root volume.
    machine.run("mount", "-o", "noatime", device, MOUNT)
    if not machine.mounted(MOUNT):
        raise BootError(f"{device} does not stay mounted at {MOUNT}", "`journalctl -b | grep -i mount`")
