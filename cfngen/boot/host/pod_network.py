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
# The kubelet's default of `maxPods`, with which Kubernetes is tested.
MAX_PODS = 110
ADDRESSES_PER_PREFIX = 16
# Pods on every node that use the host's network and need no address: the network plug-in's and kube-proxy's.
HOST_NETWORK_PODS = 2


def prepare(machine: Machine, boot: Boot) -> str:
    """Keep the distribution from changing the network plug-in's interfaces and routes.

    If pods have addresses of network interfaces, this also sets the kubelet's `maxPods` by the number of addresses.
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
    """Return the name of the primary network interface, whose hardware address is in the instance metadata.

    A virtual interface may have the same hardware address, but only a physical one has `device` in /sys.
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
    """Return the maximum number of pods on this instance.

    It is `maxPods` of the cluster file or, without that, the number of pods for which the instance has addresses, but
    at most MAX_PODS; in the latter case it is also stored in `boot.max_pods`. Pods get all addresses of each network
    interface except the first one; two more pods (the network plug-in's and kube-proxy's) use the host's network.
    """
    configured_max_pods = boot.config["kubeletPatch"].get("maxPods")
    if not configured_max_pods:
        type_name = machine.metadata("meta-data/instance-type").strip()
        [instance_type] = machine.aws("ec2", "describe_instance_types", InstanceTypes=[type_name])["InstanceTypes"]
        network = instance_type["NetworkInfo"]
        # Network interfaces are attached to the default network card. Without a list of cards the limit is that of the
        # whole instance.
        cards = network.get("NetworkCards") or [network]
        max_interfaces = cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"]
        pod_addresses = max_interfaces * (network["Ipv4AddressesPerInterface"] - 1)
        if boot.config["podNetwork"]["prefixes"]:
            # With prefix delegation each address is replaced by a /28 prefix.
            pod_addresses *= ADDRESSES_PER_PREFIX
        boot.max_pods = min(MAX_PODS, pod_addresses + HOST_NETWORK_PODS)
    return int(configured_max_pods or boot.max_pods)
