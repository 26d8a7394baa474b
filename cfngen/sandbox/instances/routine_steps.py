"""Steps of the boot program without effect on the rest of the sandbox: their durations and log lines.

The durations are estimates. What a step logs follows from the configuration in the user data and the instance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.untyped import JsonObject

STORAGE_MOUNT_POINT = "/mnt/instance-storage"
POD_NETWORK = "pod network"  # prepares the instance for the pods' network plug-in
DRAINING = "draining"  # starts the service that drains the node before the instance is terminated
TERMINATION = "termination"  # starts the service that keeps a master while etcd would lose its quorum with it
SECONDS: Mapping[str, float] = {
    "pre-boot commands": 1.0,
    "settings": 0.6,
    "proxy": 0.3,
    POD_NETWORK: 0.5,
    DRAINING: 0.3,
    TERMINATION: 0.3,
    "rebalancing": 0.3,
    "further volumes": 1.2,
    "further files": 0.2,
    "instance storage": 0.4,
    "services": 2.3,
    "further units": 0.4,
    "pre-pulled images": 0.2,
    "names": 0.1,
    "approval": 0.2,
    "backups": 0.4,
    "addresses": 0.2,
    "post-boot commands": 1.0,
}
"""How long each step takes, by the title of the step."""
LINES: Mapping[str, Callable[[JsonObject, Instance], str]] = {
    "settings": lambda configuration, instance: f"wrote {instance.boot_data.files} of {instance.boot_data.files} files",
    "proxy": lambda configuration, instance: ", ".join(configuration["proxyServices"]) + " restarted if running",
    DRAINING: lambda configuration, instance: (
        f"pods get {configuration['drain']} min to move when this instance is terminated"
    ),
    TERMINATION: lambda configuration, instance: (
        f"etcd gets {configuration['quorumWait']} min to do without this master when the instance is terminated"
    ),
    "further volumes": lambda configuration, instance: ", ".join(
        f"{volume['device']} formatted and mounted at {volume['folder']}" for volume in configuration["volumes"]
    ),
    "instance storage": lambda configuration, instance: (
        f"{', '.join(disks(instance))} formatted and mounted at {STORAGE_MOUNT_POINT}"
        if disks(instance)
        else "this instance has no instance store disks"
    ),
    # The sandbox has no image store that they would be in.
    "pre-pulled images": lambda configuration, instance: (
        f"{len(configuration['images']['references'])} images are pulled in the background: "
        "`journalctl -u cfngen-images`"
    ),
}
"""What a step logs; of the others the sandbox says only that they are done."""


def gpus(instance: Instance) -> list[str]:
    """Return the NVIDIA GPUs of an instance, equal ones with their number, as the driver names them."""
    gpu_kinds = _describe_type(instance.zone, instance.type).get("GpuInfo", {}).get("Gpus", [])
    counted = [(kind["Count"], " ".join((kind["Manufacturer"], kind["Name"]))) for kind in gpu_kinds]
    return [f"{count} x {name}" for count, name in counted if name.startswith("NVIDIA")]


def disks(instance: Instance) -> list[str]:
    """Return the devices of the instance store disks; on Nitro they follow the root volume, which is NVMe disk 0."""
    storage = _describe_type(instance.zone, instance.type).get("InstanceStorageInfo", {}).get("Disks", [])
    disk_count = sum(disk_kind["Count"] for disk_kind in storage)
    return [f"/dev/nvme{number}n1" for number in range(1, disk_count + 1)]


@functools.cache
def _describe_type(zone: str, instance_type: str) -> JsonObject:
    ec2 = client("ec2", zone.rstrip("abcdefgh"))
    description: JsonObject
    [description] = ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
    return description
