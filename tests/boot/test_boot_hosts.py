"""The API's name in /etc/hosts: on masters their own address first, on nodes each address first for some."""

from __future__ import annotations

from typing import Any

from masters import ADDRESSES, configuration
from scripted_machine import ScriptedMachine

from cfngen.boot import hosts

NAME = "api.kubernetes.internal"
GIVEN = "127.0.0.1 localhost\n::1 ip6-localhost\n"


def of_slot(slot: str) -> dict[str, Any]:
    config = configuration()
    config["masters"] = dict(ADDRESSES)
    config["facts"]["privateAddress"] = ADDRESSES[slot]
    return config


def resolved(machine: ScriptedMachine, name: str = NAME) -> list[str]:
    """Return the addresses of a name, in order, as a resolver reads the file."""
    lines = [line.partition("#")[0].split() for line in machine.files[hosts.HOSTS].splitlines()]
    return [line[0] for line in lines if name in line[1:]]


def test_master_asks_itself_first() -> None:
    machine = ScriptedMachine()
    machine.files[hosts.HOSTS] = GIVEN
    assert hosts.of_master(machine, of_slot("b")) == f"{NAME} is 172.20.1.9, 172.20.0.9, 172.20.2.9"
    assert resolved(machine) == [ADDRESSES["b"], ADDRESSES["a"], ADDRESSES["c"]]
    assert machine.files[hosts.HOSTS].startswith(GIVEN)
    assert machine.modes[hosts.HOSTS] == 0o644


def test_names_are_written_once_and_follow_the_masters() -> None:
    machine = ScriptedMachine()
    machine.files[hosts.HOSTS] = GIVEN
    config = of_slot("a")
    config["masters"] = {"a": ADDRESSES["a"]}
    hosts.of_master(machine, config)
    machine.files[hosts.HOSTS] += "10.0.0.1 added.later\n"
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
        hosts.of_node(machine, config, NAME, list(ADDRESSES.values()))
        assert sorted(resolved(machine)) == sorted(ADDRESSES.values())
        firsts.append(resolved(machine)[0])
    assert {firsts.count(each) > 9 for each in ADDRESSES.values()} == {True}


def test_node_keeps_its_order() -> None:
    machine, config = ScriptedMachine(), configuration()
    hosts.of_node(machine, config, NAME, list(ADDRESSES.values()))
    before = resolved(machine)
    hosts.of_node(machine, config, NAME, list(ADDRESSES.values()))
    assert resolved(machine) == before
