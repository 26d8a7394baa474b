"""A node on its way into the cluster: it finds the masters, waits for them to be new enough, and follows them later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine, SecretsManager

from cfngen.boot.host import kubelet
from cfngen.boot.host.hosts import HOSTS_FILE
from cfngen.boot.machine import BootError
from cfngen.boot.node import membership
from cfngen.boot.state import Boot

INSTANCE = IDENTITY["instanceId"]
SECRET = "arn:join"
INFORMATION: dict[str, Any] = {
    "endpoint": "api.kubernetes.internal:443",
    "addresses": ["172.20.0.9", "172.20.1.9", "172.20.2.9"],
    "caHash": "sha256:00",
    "token": "abcdef.0123456789abcdef",
    "expires": "2026-09-02T12:00:00Z",
    "kubernetesVersion": "v1.36.3",
}


def config(**more: Any) -> Boot:
    facts = {"instanceId": INSTANCE, "providerId": f"aws:///us-west-2a/{INSTANCE}", "joinSecretArn": SECRET}
    usual = {
        "join": {"kind": "JoinConfiguration"},
        "kubeletPatch": {},
        "kubernetesVersion": "v1.36.3",
        "deadline": 1080,
    }
    return boot_of({"facts": facts, **usual, **more})


def joining(**information: Any) -> tuple[ScriptedMachine, SecretsManager]:
    machine = ScriptedMachine()
    secrets = SecretsManager(**{SECRET: json.dumps({**INFORMATION, **information})}).install(machine)

    def join(_: str) -> tuple[int, str]:
        machine.files["hosts when it joined"] = machine.files.get(HOSTS_FILE, "")
        machine.files[kubelet.KUBELET_CONF] = "joined"
        return 0, ""

    machine.on("kubeadm join", join)
    return machine, secrets


def masters(machine: ScriptedMachine, path: str = HOSTS_FILE) -> set[str]:
    lines = machine.files[path].splitlines()
    return {line.split()[0] for line in lines if line.endswith(" api.kubernetes.internal")}


def test_node_knows_the_masters_by_the_endpoints_name_before_it_joins() -> None:
    machine, _ = joining()
    machine.files[HOSTS_FILE] = "127.0.0.1 localhost\n"
    assert membership.join(machine, config()) == "joined api.kubernetes.internal:443"
    assert masters(machine, "hosts when it joined") == set(INFORMATION["addresses"])
    assert machine.files[HOSTS_FILE].startswith("127.0.0.1 localhost\n")


def test_node_waits_for_masters_as_new_as_itself() -> None:
    machine, secrets = joining(kubernetesVersion="v1.35.7")
    sleep = machine.sleep

    def pass_time(seconds: float) -> None:
        assert machine.ran("kubeadm join") == []
        sleep(seconds)
        if machine.passed > 100:
            secrets.put(SECRET, json.dumps(INFORMATION))

    machine.sleep = pass_time  # type: ignore[method-assign]
    assert membership.join(machine, config()) == "joined api.kubernetes.internal:443"
    assert "a master is still v1.35.7" in machine.said[0]


def test_first_join_goes_to_a_master_that_answers() -> None:
    machine, _ = joining()
    membership.join(machine, config())
    first, *others = [line.split()[0] for line in machine.files[HOSTS_FILE].splitlines() if line.endswith(".internal")]
    machine, _ = joining()
    machine.silent = {first}
    firsts = []
    machine.on(
        "kubeadm join",
        lambda _: (
            firsts.extend(
                line.split()[0] for line in machine.files[HOSTS_FILE].splitlines() if line.endswith(".internal")
            ),
            (0, ""),
        )[1],
    )
    membership.join(machine, config())
    assert firsts == [*others, first]


def test_kubelet_of_a_node_finds_the_folder_of_its_static_pods() -> None:
    machine, _ = joining()
    membership.join(machine, config())
    made = machine.commands.index("mkdir -p /etc/kubernetes/manifests")
    assert made < [command.startswith("kubeadm join") for command in machine.commands].index(True)


def test_masters_that_are_newer_are_no_obstacle() -> None:
    machine, _ = joining(kubernetesVersion="v1.37.0")
    assert membership.join(machine, config()) == "joined api.kubernetes.internal:443"


def test_masters_that_stay_older_end_the_boot_with_the_reason() -> None:
    machine, _ = joining(kubernetesVersion="v1.35.7")
    with pytest.raises(BootError, match=r"waited 10[89]\d s for joining: this node's kubelet is v1\.36\.3"):
        membership.join(machine, config())


def test_masters_that_were_added_are_found_later_without_a_reboot() -> None:
    machine, secrets = joining(addresses=["172.20.0.9"])
    membership.join(machine, config())
    assert masters(machine) == {"172.20.0.9"}
    secrets.put(SECRET, json.dumps(INFORMATION))
    assert membership.addresses(machine, config()) == ""
    assert masters(machine) == set(INFORMATION["addresses"])


def test_masters_are_found_again_when_cloud_init_has_written_the_hosts_file_anew() -> None:
    machine, _ = joining()
    membership.join(machine, config())
    machine.files[HOSTS_FILE] = "127.0.0.1 localhost\n"
    assert membership.join(machine, config()) == "joined before"
    assert masters(machine) == set(INFORMATION["addresses"])


def test_timer_follows_the_masters() -> None:
    machine, _ = joining()
    membership.follow(machine, config())
    assert machine.commands == ["systemctl enable --now cfngen-addresses.timer"]


def patched(**more: Any) -> dict[str, Any]:
    machine = ScriptedMachine()
    machine.files["/proc/meminfo"] = "MemTotal:        4026531 kB\nMemFree:          1000 kB\n"
    machine.files["/proc/cpuinfo"] = "processor\t: 0\nmodel\t: x\n\nprocessor\t: 1\n"
    kubelet.write_patch(machine, config(**more))
    found: dict[str, Any] = json.loads(machine.files["/opt/cfngen/patches/kubeletconfiguration+merge.json"])
    return found


def test_share_of_the_system_follows_from_the_instance() -> None:
    assert patched()["kubeReserved"] == {"cpu": "100m", "memory": "526Mi", "ephemeral-storage": "1Gi"}


@pytest.mark.parametrize("given", ["kubeReserved", "systemReserved"])
def test_share_that_the_cluster_file_gives_stands_alone(given: str) -> None:
    found = patched(kubeletPatch={given: {"memory": "1Gi"}})
    assert found[given] == {"memory": "1Gi"}
    assert {"kubeReserved", "systemReserved"} & set(found) == {given}


def test_settings_of_the_group_reach_the_kubelet_and_its_identity_is_its_own() -> None:
    found = patched(kubeletPatch={"maxPods": 58, "resolvConf": "/etc/own", "providerID": "someone else's"})
    assert (found["maxPods"], found["resolvConf"]) == (58, "/etc/own")
    assert found["providerID"] == f"aws:///us-west-2a/{INSTANCE}"
