"""Prepares a node with NVIDIA GPUs, and checks that the image has what pods need to use these.

AWS's Deep Learning Base AMIs have NVIDIA's driver and container toolkit, and also two services that would disturb a
node: Docker's, and one that claims the instance store disks (dlami-nvme.service). Both are turned off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..machine import BootError, Machine, Pending

if TYPE_CHECKING:
    from ..contract import NodeBoot

# The program that containerd runs in place of runc, see `cfngen.userdata.containerd`.
CONTAINER_RUNTIME = "nvidia-container-runtime"
# Seconds for which the driver may need to become ready after the start of the instance.
DRIVER_TIMEOUT = 120
# The service with which the image puts all instance store disks into one LVM volume group, and where it mounts this
# (docs.aws.amazon.com/dlami: "nvme_location" of the release notes; the names are those of the image's own script,
# /opt/aws/dlami/bin/nvme_ephemeral_drives.sh).
DISK_SERVICE = "dlami-nvme.service"
DISK_MOUNT = "/opt/dlami/nvme"
DISK_VOLUME_GROUP = "vg.01"
DOCKER_UNITS = ("docker.service", "docker.socket")
IMAGE_HINT = (
    "remove the group's image.id and image.ssmParameter for AWS's Deep Learning Base AMI, or use an image with "
    "NVIDIA's driver and the NVIDIA Container Toolkit"
)
DRIVER_HINT = "`nvidia-smi`; `journalctl -k | grep -i nvrm`; `modinfo nvidia`: is the driver built for this kernel?"


def prepare(machine: Machine, boot: NodeBoot) -> str:
    """Check driver and container runtime, stop Docker, and release the disks that the image has claimed."""
    if not machine.which("nvidia-smi"):
        raise BootError("the image has no nvidia-smi: NVIDIA's driver is not installed", IMAGE_HINT)
    if not machine.which(CONTAINER_RUNTIME):
        raise BootError(f"the image has no {CONTAINER_RUNTIME}: NVIDIA's toolkit is not installed", IMAGE_HINT)
    gpus, driver = machine.wait(
        "NVIDIA's driver", lambda: _gpus(machine), DRIVER_HINT, DRIVER_TIMEOUT, retry_on=(BootError, Pending)
    )
    _stop_docker(machine)
    if boot.config["releaseDisks"]:
        _release_disks(machine)
    return f"{', '.join(gpus)} with driver {driver}"


def _gpus(machine: Machine) -> tuple[list[str], str]:
    """Return the names of the GPUs, equal ones with their number, e.g. `4 x NVIDIA L4`, and the driver's version.

    Raises:
        Pending: it finds no GPU.
    """
    _, text = machine.run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    rows = [line.rpartition(", ") for line in text.splitlines() if ", " in line]
    if not rows:
        raise Pending("nvidia-smi lists no GPU")
    names = [name for name, _, _ in rows]
    counted = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    return counted, rows[0][2]


def _stop_docker(machine: Machine) -> None:
    """Stop the image's Docker, and accept forwarded packets again: Docker drops them by default, so those of pods too.

    Docker sets the policy of the chain FORWARD ("Packet filtering and firewalls", docs.docker.com).
    """
    # systemctl(1): 3, the unit is not active; 4, there is no such unit.
    code, _ = machine.run("systemctl", "is-active", *DOCKER_UNITS, expect=(0, 3, 4))
    if code == 0:
        machine.run("systemctl", "disable", "--now", *DOCKER_UNITS)
        machine.run("iptables", "-w", "-P", "FORWARD", "ACCEPT")


def _release_disks(machine: Machine) -> None:
    """Undo what the image's service has done to the instance store disks, so that the next step finds them blank.

    The service runs before the boot program, on blank disks. It is disabled, so a later boot finds nothing to undo.
    """
    # systemctl exits with 1 if there is no such unit, as in images of your own.
    machine.run("systemctl", "disable", "--now", DISK_SERVICE, expect=(0, 1))
    if machine.mounted(DISK_MOUNT):
        machine.run("umount", DISK_MOUNT)
    if not machine.which("pvs"):
        return
    _, text = machine.run("pvs", "--noheadings", "-o", "pv_name,vg_name", expect=(0, 5))
    devices = re.findall(rf"(?m)^\s*(/\S+)\s+{re.escape(DISK_VOLUME_GROUP)}\s*$", text)
    if devices:
        machine.run("vgremove", "-f", "-y", DISK_VOLUME_GROUP)
        machine.run("pvremove", "-y", *devices)
