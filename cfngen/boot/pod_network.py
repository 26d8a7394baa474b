"""Keeps the distribution away from what a network plug-in makes on the instance, and counts the pods that fit."""

from __future__ import annotations

import posixpath
from typing import Any

from . import kubelet
from .machine import BootError, Machine

# systemd-networkd takes the first file that fits an interface: those of single interfaces (10 of netplan, 70 of Amazon
# Linux) come before this one, those of any interface (80 of Amazon Linux) after it.
NETWORKD_FILE = "/etc/systemd/network/75-cfngen-pods.network"
# Amazon Linux gives every address of an interface to the instance itself, so that pods' packets never leave it.
POLICY_ROUTES = "/usr/lib/udev/rules.d/99-vpc-policy-routes.rules"
POLICY_ROUTES_OVERRIDE = "/etc/udev/rules.d/99-vpc-policy-routes.rules"
POLICY_UNITS = ("policy-routes@*.service", "refresh-policy-routes@*.timer", "refresh-policy-routes@*.service")
# The kubelet's own default, and what Kubernetes is tested with.
MAX_PODS = 110


def prepare(machine: Machine, config: dict[str, Any]) -> str:
    """Make the settings of the network plug-in hold, and tell the kubelet how many pods the instance has addresses for.

    Raises:
        BootError: the instance's own network interface cannot be told from others.
    """
    done = ["the distribution leaves the plug-in's routes alone"]
    if config["podNetwork"]["interfaces"]:
        name = primary(machine)
        machine.write(NETWORKD_FILE, f"[Match]\nDriver=ena\nProperty=!INTERFACE={name}\n\n[Link]\nUnmanaged=yes\n")
        if machine.exists(POLICY_ROUTES):
            machine.write(POLICY_ROUTES_OVERRIDE, "")
            machine.run("udevadm", "control", "--reload-rules")
            machine.run("systemctl", "stop", *POLICY_UNITS, expect=(0, 1, 5))
            machine.remove("/run/systemd/network/*/ec2net_alias.conf")
        done.append(f"and all interfaces but {name}")
        done.append(f"room for {_set_max_pods(machine, config)} pods")
    if not kubelet.established(machine, config):
        machine.run("systemctl", "try-restart", "systemd-networkd")
    return ", ".join(done)


def primary(machine: Machine) -> str:
    """Return the name of the interface that the instance was launched with.

    Virtual interfaces may bear the same hardware address; they belong to no device.

    Raises:
        BootError: none has its address, or several have.
    """
    address = machine.metadata("meta-data/mac").strip().lower()
    folders = [posixpath.dirname(path) for path in machine.glob("/sys/class/net/*/address")]
    interfaces = [
        posixpath.basename(folder)
        for folder in folders
        if machine.read(folder + "/address").strip().lower() == address and machine.exists(folder + "/device")
    ]
    if len(interfaces) != 1:
        names = ", ".join(interfaces) or "no interface"
        raise BootError(f"{names} has the hardware address {address} of the primary network interface", "see `ip link`")
    return interfaces[0]


def _set_max_pods(machine: Machine, config: dict[str, Any]) -> int:
    """Write the number of pods into the kubelet's settings, unless the cluster file says one; return it.

    Each interface gives pods all its addresses but its own; two pods more (the plug-in, kube-proxy) have the host's.
    """
    settings = config["kubeletPatch"]
    if not settings.get("maxPods"):
        type_name = machine.metadata("meta-data/instance-type").strip()
        [instance_type] = machine.aws("ec2", "describe_instance_types", InstanceTypes=[type_name])["InstanceTypes"]
        network = instance_type["NetworkInfo"]
        cards = network.get("NetworkCards") or [network]
        interfaces = cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"]
        addresses = interfaces * (network["Ipv4AddressesPerInterface"] - 1)
        # A prefix of /28 in the place of each address.
        settings["maxPods"] = min(MAX_PODS, addresses * (16 if config["podNetwork"]["prefixes"] else 1) + 2)
    return int(settings["maxPods"])
