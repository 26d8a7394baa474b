"""Steps of the boot program without effect on the rest of the sandbox: their durations and log lines.

The durations are estimates. Each function returns the text that a step logs, from the configuration in the user data
and the instance.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

from cfngen.sandbox.cloudformation.handlers.handler import client
from cfngen.sandbox.instance import Instance
from cfngen.sandbox.user_data import JsonObject

CERTIFICATE_LIFETIME = datetime.timedelta(days=365)
MAX_PODS = 110  # of a node
PREFIX_ADDRESSES = 16  # addresses in a prefix (/28) that a network interface gets in place of one address
PRIMARY_INTERFACE = "ens5"  # the interface that an instance is launched with, as Linux names it on Nitro


def settings(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how many files were written."""
    files = instance.boot_data.files
    return f"wrote {files} of {files} files"


def proxy(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: which services of the image were restarted, to use the proxy."""
    return ", ".join(configuration["proxyServices"]) + " restarted if running"


def pod_network(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: for how many pods the instance has addresses, if pods get those of its interfaces."""
    results = ["the distribution does not manage the plug-in's routes"]
    network_settings = configuration["podNetwork"]
    if network_settings["interfaces"]:
        max_pods = configuration["kubeletPatch"].get("maxPods")
        if not max_pods:
            network_info = _describe_type(instance)["NetworkInfo"]
            # Each interface keeps one address for itself.
            slots = network_info["MaximumNetworkInterfaces"] * (network_info["Ipv4AddressesPerInterface"] - 1)
            addresses_per_slot = PREFIX_ADDRESSES if network_settings["prefixes"] else 1
            # Two pods of the node's own network need no address.
            max_pods = min(MAX_PODS, slots * addresses_per_slot + 2)
        results.append(f"nor interfaces other than {PRIMARY_INTERFACE}")
        results.append(f"room for {max_pods} pods")
    return ", ".join(results)


def draining(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how long a drain may take."""
    return f"pods get {configuration['drain']} min to move when this instance is terminated"


def rebalancing(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: what the node does when EC2 recommends to rebalance its instance."""
    return f"if EC2 recommends to rebalance this instance: {configuration['rebalance']}"


def further_volumes(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: which further volumes were formatted, and where they are mounted."""
    volumes = configuration["volumes"]
    return ", ".join(f"{volume['device']} formatted and mounted at {volume['folder']}" for volume in volumes)


def further_files(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how many files and units of the cluster file were written."""
    hooks = configuration["hooks"]
    return f"{len(hooks['files'])} files, {len(hooks['units'])} units"


def further_units(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: which units of the cluster file were started."""
    names = [unit["name"] for unit in configuration["hooks"]["units"] if unit["enable"]]
    return ", ".join(names) or "no units to start"


def commands_before(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how many commands of the cluster file were run before all other steps."""
    return _commands_run(configuration["before"])


def commands_after(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how many commands of the cluster file were run after all other steps."""
    return _commands_run(configuration["hooks"]["after"])


def instance_storage(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: which instance store disks were formatted."""
    devices = disks(instance)
    if not devices:
        return "this instance has no instance store disks"
    return f"{', '.join(devices)} formatted and mounted at {STORAGE_MOUNT_POINT}"


def names(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: the addresses of the API's host name in /etc/hosts."""
    own = instance.boot_data.references["privateAddress"]
    addresses = [own, *(address for _, address in sorted(configuration["masters"].items()) if address != own)]
    return f"{configuration['apiHost']} is {', '.join(addresses)}"


def services(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: which services run."""
    return ", ".join(configuration["services"]) + " running"


def backups(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how often a snapshot is taken."""
    bucket = instance.boot_data.references["bucket"]
    return f"a snapshot of etcd every {configuration['backups']['interval']} minutes into s3://{bucket}"


def serving_certificates(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: the serving certificate of the master's own kubelet was approved."""
    return f"approved the certificate requests of {instance.id}"


def pre_pulled_images(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: how many images the service pulls; the sandbox has no image store that they would be in."""
    count = len(configuration["images"]["references"])
    return f"{count} images are pulled in the background: `journalctl -u cfngen-images`"


def addresses_looked_up(configuration: JsonObject, instance: Instance) -> str:
    """Return the log line: the masters' addresses are kept up to date."""
    return "the masters' addresses are updated every hour"


STORAGE_MOUNT_POINT = "/mnt/instance-storage"
POD_NETWORK = "pod network"  # prepares the instance for the pods' network plug-in
DRAINING = "draining"  # starts the service that drains the node before the instance is terminated
ROUTINE: Mapping[str, tuple[float, Callable[[JsonObject, Instance], str]]] = {
    "pre-boot commands": (1.0, commands_before),
    "settings": (0.6, settings),
    "proxy": (0.3, proxy),
    POD_NETWORK: (0.5, pod_network),
    DRAINING: (0.3, draining),
    "rebalancing": (0.3, rebalancing),
    "further volumes": (1.2, further_volumes),
    "further files": (0.2, further_files),
    "instance storage": (0.4, instance_storage),
    "services": (2.3, services),
    "further units": (0.4, further_units),
    "pre-pulled images": (0.2, pre_pulled_images),
    "names": (0.1, names),
    "serving certificates": (0.8, serving_certificates),
    "backups": (0.4, backups),
    "addresses": (0.2, addresses_looked_up),
    "post-boot commands": (1.0, commands_after),
}
"""Duration in seconds and log line of each step, by the title of the step."""


def gpus(instance: Instance) -> list[str]:
    """Return the NVIDIA GPUs of an instance, equal ones with their number, as the driver names them."""
    gpu_kinds = _describe_type(instance).get("GpuInfo", {}).get("Gpus", [])
    counted = [(kind["Count"], " ".join((kind["Manufacturer"], kind["Name"]))) for kind in gpu_kinds]
    return [f"{count} x {name}" for count, name in counted if name.startswith("NVIDIA")]


def disks(instance: Instance) -> list[str]:
    """Return the devices of the instance store disks; on Nitro they follow the root volume, which is NVMe disk 0."""
    storage = _describe_type(instance).get("InstanceStorageInfo", {}).get("Disks", [])
    disk_count = sum(disk_kind["Count"] for disk_kind in storage)
    return [f"/dev/nvme{number}n1" for number in range(1, disk_count + 1)]


def certificates_end(now: datetime.datetime) -> str:
    """Return the expiry of certificates that a master issues now."""
    return f"{now + CERTIFICATE_LIFETIME:%Y-%m-%dT%H:%M:%SZ}"


def _commands_run(commands: list[str]) -> str:
    """Return the log line of a step that runs commands."""
    return f"ran {len(commands)} of {len(commands)} commands"


def _describe_type(instance: Instance) -> JsonObject:
    """Return EC2's description of an instance's type."""
    region = instance.zone.rstrip("abcdefgh")
    [description] = client("ec2", region).describe_instance_types(InstanceTypes=[instance.type])["InstanceTypes"]
    instance_type: JsonObject = description
    return instance_type
