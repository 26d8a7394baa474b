"""What a network plug-in needs of the distribution, and how many pods an instance has addresses for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine

from cfngen.boot.host import kubelet, pod_network
from cfngen.boot.machine import BootError
from cfngen.boot.node import membership
from cfngen.boot.state import Boot

MAC = "02:aa:bb:cc:dd:01"
T3_MEDIUM = {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 6}
UNCONNECTED = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


def interface(machine: ScriptedMachine, name: str, address: str, *, device: bool = True) -> None:
    machine.files[f"/sys/class/net/{name}/address"] = address + "\n"
    if device:
        machine.files[f"/sys/class/net/{name}/device"] = ""


@pytest.fixture
def machine() -> ScriptedMachine:
    found = ScriptedMachine()
    found.told.update({"meta-data/mac": MAC, "meta-data/instance-type": "t3.medium"})
    interface(found, "ens5", MAC.upper())
    found.cloud["ec2.describe_instance_types"] = lambda InstanceTypes: {  # noqa: N803
        "InstanceTypes": [{"NetworkInfo": T3_MEDIUM}] if InstanceTypes == ["t3.medium"] else []
    }
    return found


def configured(*, interfaces: bool = True, **settings: Any) -> Boot:
    config = {
        "facts": {"instanceId": IDENTITY["instanceId"]},
        "deadline": 1080,
        "podNetwork": {"interfaces": interfaces, "prefixes": False, "awaited": True},
        "kubeletPatch": settings,
    }
    return boot_of(config)


def test_only_the_primary_interface_is_managed_by_the_distribution(machine: ScriptedMachine) -> None:
    interface(machine, "ens6", "02:aa:bb:cc:dd:02")
    interface(machine, "veth0", MAC, device=False)
    assert pod_network.prepare(machine, configured()) == (
        "the distribution does not manage the plug-in's routes, nor interfaces other than ens5, room for 17 pods"
    )
    lines = machine.files["/etc/systemd/network/75-cfngen-pods.network"].splitlines()
    assert lines == ["[Match]", "Driver=ena", "Property=!INTERFACE=ens5", "", "[Link]", "Unmanaged=yes"]
    assert machine.ran("systemctl try-restart systemd-networkd")


def test_an_instance_without_a_known_primary_interface_stops(machine: ScriptedMachine) -> None:
    machine.told["meta-data/mac"] = "02:00:00:00:00:99"
    with pytest.raises(BootError, match="no interface has the hardware address 02:00:00:00:00:99"):
        pod_network.prepare(machine, configured())
    assert "/etc/systemd/network/75-cfngen-pods.network" not in machine.files


def test_amazon_linux_does_not_take_pods_addresses_for_its_own(machine: ScriptedMachine) -> None:
    rules, alias = "/usr/lib/udev/rules.d/99-vpc-policy-routes.rules", "/run/systemd/network/a.d/ec2net_alias.conf"
    machine.files.update({rules: "…", alias: "[Network]"})
    pod_network.prepare(machine, configured())
    assert machine.files["/etc/udev/rules.d/99-vpc-policy-routes.rules"] == ""
    assert alias not in machine.files
    # The primary interface is configured by files that the restart reads anew.
    assert machine.commands == [
        "udevadm control --reload-rules",
        "systemctl stop policy-routes@*.service refresh-policy-routes@*.timer refresh-policy-routes@*.service",
        "systemctl try-restart systemd-networkd",
    ]


def test_other_distributions_have_no_such_rules_to_mask(machine: ScriptedMachine) -> None:
    pod_network.prepare(machine, configured())
    assert not machine.ran("udevadm")
    assert "/etc/udev/rules.d/99-vpc-policy-routes.rules" not in machine.files


@pytest.mark.parametrize(
    ("network", "prefixes", "pods"),
    [
        (T3_MEDIUM, False, 17),
        (T3_MEDIUM, True, 110),
        ({"MaximumNetworkInterfaces": 2, "Ipv4AddressesPerInterface": 2}, True, 34),
        ({"MaximumNetworkInterfaces": 4, "Ipv4AddressesPerInterface": 28}, False, 110),
        ({"MaximumNetworkInterfaces": 15, "Ipv4AddressesPerInterface": 50}, False, 110),
        # Several network cards: the plug-in uses the default one.
        (
            {
                "MaximumNetworkInterfaces": 60,
                "Ipv4AddressesPerInterface": 4,
                "DefaultNetworkCardIndex": 1,
                "NetworkCards": [{"MaximumNetworkInterfaces": 7}, {"MaximumNetworkInterfaces": 4}],
            },
            False,
            14,
        ),
    ],
)
def test_the_kubelet_takes_as_many_pods_as_there_are_addresses(
    machine: ScriptedMachine, network: dict[str, Any], prefixes: bool, pods: int
) -> None:
    machine.cloud["ec2.describe_instance_types"] = lambda **_: {"InstanceTypes": [{"NetworkInfo": network}]}
    boot = configured()
    boot.config["podNetwork"]["prefixes"] = prefixes
    assert f"room for {pods} pods" in pod_network.prepare(machine, boot)
    kubelet_settings(machine, boot, pods)


def kubelet_settings(machine: ScriptedMachine, boot: Boot, pods: int) -> None:
    boot.facts["providerId"] = "aws:///us-west-2a/i-0"
    kubelet.write_patch(machine, boot)
    assert json.loads(machine.files["/opt/cfngen/patches/kubeletconfiguration+merge.json"])["maxPods"] == pods


def test_the_cluster_files_own_number_of_pods_stays(machine: ScriptedMachine) -> None:
    boot = configured(maxPods=30)
    assert "room for 30 pods" in pod_network.prepare(machine, boot)
    assert (boot.config["kubeletPatch"]["maxPods"], boot.max_pods) == (30, 0)
    assert machine.calls == []


def test_an_overlay_asks_nothing_of_ec2(machine: ScriptedMachine) -> None:
    boot = configured(interfaces=False)
    pod_network.prepare(machine, boot)
    assert (machine.calls, boot.max_pods) == ([], 0)
    assert machine.commands == ["systemctl try-restart systemd-networkd"]
    assert machine.ran("systemctl try-restart systemd-networkd")


def test_a_reboot_does_not_interrupt_the_network(machine: ScriptedMachine) -> None:
    machine.files[kubelet.SET_UP_FILE] = IDENTITY["instanceId"]
    machine.files[kubelet.KUBELET_CONF] = "…"
    pod_network.prepare(machine, configured())
    assert not machine.ran("systemctl try-restart")


def unready(message: str) -> tuple[int, str]:
    condition = {"type": "Ready", "status": "False", "message": message}
    return 0, json.dumps({"status": {"conditions": [condition]}})


def test_a_node_whose_network_is_left_to_its_owner_is_done_when_it_has_joined(machine: ScriptedMachine) -> None:
    machine.on("kubectl .* get node ", unready(UNCONNECTED))
    boot = configured()
    boot.config["podNetwork"]["awaited"] = False
    assert "install a network plug-in" in membership.ready(machine, boot)


def test_a_node_is_not_done_while_its_plugin_is_missing(machine: ScriptedMachine) -> None:
    machine.on("kubectl .* get node ", unready(UNCONNECTED))
    with pytest.raises(BootError, match="NetworkPluginNotReady"):
        membership.ready(machine, configured())


def test_without_a_plugin_other_faults_still_count(machine: ScriptedMachine) -> None:
    machine.on("kubectl .* get node ", unready("PLEG is not healthy"))
    boot = configured()
    boot.config["podNetwork"]["awaited"] = False
    with pytest.raises(BootError, match="PLEG"):
        membership.ready(machine, boot)
