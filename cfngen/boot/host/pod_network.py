"""Keeps the distribution from changing a network plug-in's interfaces and routes, and limits the number of pods."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from ..machine import BootError, Machine
from . import kubelet

if TYPE_CHECKING:
    from ..state import Boot

# systemd-networkd uses the first file that matches an interface: files for single interfaces (10 of netplan, 70 of
# Amazon Linux) precede this one, those for any interface (80 of Amazon Linux) follow it.
NETWORKD_FILE = "/etc/systemd/network/75-cfngen-pods.network"
# This udev rule of Amazon Linux assigns every address of an interface to the instance itself; pods that have one of
# these addresses are then unreachable.
POLICY_ROUTES = "/usr/lib/udev/rules.d/99-vpc-policy-routes.rules"
POLICY_ROUTES_OVERRIDE = "/etc/udev/rules.d/99-vpc-policy-routes.rules"
POLICY_UNITS = ("policy-routes@*.service", "refresh-policy-routes@*.timer", "refresh-policy-routes@*.service")
# The kubelet's default, with which Kubernetes is tested.
MAX_PODS = 110


def prepare(machine: Machine, boot: Boot) -> str:
    """Keep the distribution away from the plug-in's interfaces; set the kubelet's `maxPods` by the available addresses.

    Raises:
        BootError: the primary network interface cannot be identified.
    """
    outcomes = ["the distribution does not manage the plug-in's routes"]
    if boot.config["podNetwork"]["interfaces"]:
        name = primary_interface(machine)
        machine.write(NETWORKD_FILE, f"[Match]\nDriver=ena\nProperty=!INTERFACE={name}\n\n[Link]\nUnmanaged=yes\n")
        if machine.exists(POLICY_ROUTES):
            machine.write(POLICY_ROUTES_OVERRIDE, "")
            machine.run("udevadm", "control", "--reload-rules")
            machine.run("systemctl", "stop", *POLICY_UNITS, expect=(0, 1, 5))
            machine.remove("/run/systemd/network/*/ec2net_alias.conf")
        outcomes.append(f"nor interfaces other than {name}")
        outcomes.append(f"room for {_set_max_pods(machine, boot)} pods")
    if not kubelet.is_set_up(machine, boot):
        machine.run("systemctl", "try-restart", "systemd-networkd")
    return ", ".join(outcomes)


def primary_interface(machine: Machine) -> str:
    """Return the name of the primary network interface, found by the hardware address in the instance metadata.

    A virtual interface may have the same hardware address, but has no `device` in /sys.

    Raises:
        BootError: no interface has its address, or several have.
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


def _set_max_pods(machine: Machine, boot: Boot) -> int:
    """Set `boot.max_pods` to the number of pods that the instance has addresses for; return the limit of pods.

    If the cluster file sets `maxPods`, that is the limit.

    Pods get all addresses of each interface except its first; two more pods (the plug-in, kube-proxy) have hostNetwork.
    """
    configured = boot.config["kubeletPatch"].get("maxPods")
    if not configured:
        type_name = machine.metadata("meta-data/instance-type").strip()
        [instance_type] = machine.aws("ec2", "describe_instance_types", InstanceTypes=[type_name])["InstanceTypes"]
        network = instance_type["NetworkInfo"]
        cards = network.get("NetworkCards") or [network]
        interfaces = cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"]
        addresses = interfaces * (network["Ipv4AddressesPerInterface"] - 1)
        # With prefix delegation each address is replaced by a /28 prefix, i.e. by 16 addresses.
        boot.max_pods = min(MAX_PODS, addresses * (16 if boot.config["podNetwork"]["prefixes"] else 1) + 2)
    return int(configured or boot.max_pods)
