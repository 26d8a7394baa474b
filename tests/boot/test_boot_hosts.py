"""The API's name in /etc/hosts: on masters their own address first, on nodes each address first for some."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from boots import boot_of
from masters import ADDRESSES, configuration
from scripted_machine import ScriptedMachine

from cfngen.boot.host import hosts
from cfngen.boot.host.kubectl import ADMIN_KUBECONFIG, kubectl
from cfngen.boot.host.kubelet import KUBELET_CONF
from cfngen.boot.master import helm
from cfngen.boot.node import drain
from cfngen.boot.state import Boot

NAME = "api.kubernetes.internal"
ENDPOINT = f"{NAME}:443"
NODES = ("get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o", "json")
GIVEN = "127.0.0.1 localhost\n::1 ip6-localhost\n"


def of_slot(slot: str) -> Boot:
    config = configuration()
    config["masters"] = dict(reversed(ADDRESSES.items()))
    config["facts"]["privateAddress"] = ADDRESSES[slot]
    return boot_of(config)


def resolved(machine: ScriptedMachine, name: str = NAME) -> list[str]:
    """Return the addresses of a name, in order, as a resolver reads the file."""
    lines = [line.partition("#")[0].split() for line in machine.files[hosts.HOSTS_FILE].splitlines()]
    return [line[0] for line in lines if name in line[1:]]


def test_master_asks_itself_first() -> None:
    machine = ScriptedMachine()
    machine.files[hosts.HOSTS_FILE] = GIVEN
    assert hosts.of_master(machine, of_slot("b")) == f"{NAME} is 172.20.1.9, 172.20.0.9, 172.20.2.9"
    assert resolved(machine) == [ADDRESSES["b"], ADDRESSES["a"], ADDRESSES["c"]]
    assert machine.files[hosts.HOSTS_FILE].startswith(GIVEN)
    assert machine.modes[hosts.HOSTS_FILE] == 0o644


def test_names_are_written_once_and_follow_the_masters() -> None:
    machine = ScriptedMachine()
    machine.files[hosts.HOSTS_FILE] = GIVEN
    boot = of_slot("a")
    boot.config["masters"] = {"a": ADDRESSES["a"]}
    hosts.of_master(machine, boot)
    machine.files[hosts.HOSTS_FILE] += "10.0.0.1 added.later\n"
    hosts.of_master(machine, of_slot("a"))
    hosts.of_master(machine, of_slot("a"))
    assert resolved(machine) == list(ADDRESSES.values())
    assert resolved(machine, "localhost") == ["127.0.0.1"]
    assert resolved(machine, "added.later") == ["10.0.0.1"]


def test_file_that_is_not_there_is_made() -> None:
    machine = ScriptedMachine()
    hosts.of_master(machine, of_slot("a"))
    assert resolved(machine)[0] == ADDRESSES["a"]


def test_nodes_spread_over_the_masters_and_know_them_all() -> None:
    firsts = []
    for number in range(60):
        machine, config = ScriptedMachine(), configuration()
        config["facts"]["instanceId"] = f"i-{number:017x}"
        hosts.of_node(machine, boot_of(config), ENDPOINT, list(ADDRESSES.values()))
        assert sorted(resolved(machine)) == sorted(ADDRESSES.values())
        firsts.append(resolved(machine)[0])
    assert {firsts.count(each) > 9 for each in ADDRESSES.values()} == {True}


def test_node_keeps_its_order() -> None:
    machine, config = ScriptedMachine(), configuration()
    hosts.of_node(machine, boot_of(config), ENDPOINT, list(ADDRESSES.values()))
    before = resolved(machine)
    hosts.of_node(machine, boot_of(config), ENDPOINT, list(ADDRESSES.values()))
    assert resolved(machine) == before


def ordered(machine: ScriptedMachine, boot: Boot | None = None) -> list[str]:
    hosts.of_node(machine, boot or boot_of(configuration()), ENDPOINT, list(ADDRESSES.values()))
    return resolved(machine)


def test_master_whose_packets_are_lost_stands_last_and_nobody_after_one_that_answers_is_asked() -> None:
    before = ordered(ScriptedMachine())
    machine = ScriptedMachine()
    machine.silent = {before[0]}
    assert ordered(machine) == [*before[1:], before[0]]
    assert machine.connected == before[:2]
    assert machine.passed < 3


def test_master_that_refuses_a_connection_costs_no_time_and_keeps_its_place() -> None:
    before = ordered(ScriptedMachine())
    machine = ScriptedMachine()
    machine.refusing, machine.silent = {before[0]}, {before[1]}
    assert ordered(machine) == [before[0], before[2], before[1]]


KUBECONFIG = f"""\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0E=
    server: https://{ENDPOINT}
  name: kubernetes
"""


@pytest.mark.parametrize("kubeconfig", [ADMIN_KUBECONFIG, KUBELET_CONF])
def test_every_call_of_kubectl_goes_to_a_master_that_answers(kubeconfig: str) -> None:
    machine = ScriptedMachine()
    machine.files[kubeconfig] = KUBECONFIG
    first, second, third = ordered(machine)
    machine.silent = {first}
    machine.on("kubectl", lambda _: (0, " ".join(resolved(machine))))
    assert kubectl(machine, *NODES, kubeconfig=kubeconfig)[1].split() == [second, third, first]
    machine.connected.clear()
    kubectl(machine, *NODES, kubeconfig=kubeconfig)
    assert machine.connected == [second], "a master that does not answer is asked once"


def test_helm_goes_to_a_master_that_answers() -> None:
    machine = ScriptedMachine()
    machine.files[ADMIN_KUBECONFIG] = KUBECONFIG
    first, second, third = ordered(machine)
    machine.silent = {first}
    machine.on("helm", lambda _: (0, " ".join(resolved(machine))))
    helm.uninstall(machine, "cilium", "kube-system")
    assert resolved(machine) == [second, third, first]


def test_draining_goes_to_a_master_that_answers_before_anything_is_asked() -> None:
    machine = ScriptedMachine()
    machine.files[KUBELET_CONF] = KUBECONFIG
    first, second, _ = ordered(machine)
    machine.silent = {first}
    asked = []

    def answer(command: str) -> tuple[int, str]:
        asked.append(resolved(machine)[0])
        return 0, '{"items": []}'

    machine.on("kubectl", answer)
    drain.drain(machine, boot_of({**configuration(), "drain": 5}), 300)
    assert set(asked) == {second}


def test_file_of_an_instance_without_the_name_is_left_alone() -> None:
    machine = ScriptedMachine()
    machine.files.update({ADMIN_KUBECONFIG: KUBECONFIG, hosts.HOSTS_FILE: GIVEN})
    machine.silent = set(ADDRESSES.values())
    machine.on("kubectl .* get nodes -l", (0, ""))
    kubectl(machine, *NODES)
    assert machine.files[hosts.HOSTS_FILE] == GIVEN


def calls(module: Path) -> Iterator[list[str]]:
    """Yield the words of each command that a module runs, as far as they stand in the source."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, (ast.Call, ast.Tuple)):
            parts = node.args if isinstance(node, ast.Call) else node.elts
            yield [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


@pytest.mark.parametrize("module", sorted(Path(hosts.__file__).parents[1].rglob("*.py")), ids=lambda path: path.stem)
def test_kubectl_and_helm_are_run_in_one_place_each_which_looks_for_a_master_that_answers(module: Path) -> None:
    programs = {words[0] for words in calls(module) if words[:1] in (["kubectl"], ["helm"])}
    text = module.read_text()
    assert ("kubectl" in programs) == (module.stem == "kubectl")
    assert ("--request-timeout" in text) == (module.stem == "kubectl")
    assert "helm" not in programs or module.stem == "helm"
