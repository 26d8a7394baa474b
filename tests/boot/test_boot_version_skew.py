"""A node of a new version waits for the masters, and has all of its own time afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from masters import JOIN_SECRET, configuration
from scripted_machine import ScriptedMachine, SecretsManager

from cfngen.boot.machine import BootError
from cfngen.boot.node import version_skew
from cfngen.cluster.instances.rolling_updates import master_upgrade_wait
from cfngen.cluster.model import Cluster


def node(oldest: str | None) -> tuple[ScriptedMachine, dict[str, Any], SecretsManager]:
    machine = ScriptedMachine()
    found = {} if oldest is None else {JOIN_SECRET: json.dumps({"kubernetesVersion": oldest})}
    boot = boot_of({**configuration(), "kubernetesVersion": "v1.37.0", "upgradeWait": 30})
    return machine, boot, SecretsManager(**found).install(machine)


@pytest.mark.parametrize("oldest", [None, "v1.37.0", "v1.37.1", "v1.38.0"])
def test_it_does_not_wait_for_masters_as_new_or_for_those_that_are_not_there_yet(oldest: str | None) -> None:
    machine, boot, _ = node(oldest)
    assert version_skew.wait(machine, boot) == "the masters are new enough, or not running yet"
    assert boot.deadline == 1080


def test_it_waits_for_older_ones_and_keeps_its_own_time() -> None:
    machine, boot, secrets = node("v1.36.3")
    read = secrets.get

    def later(SecretId: str) -> dict[str, Any]:  # noqa: N803
        if machine.passed > 1000:
            secrets.put(JOIN_SECRET, json.dumps({"kubernetesVersion": "v1.37.0"}))
        return read(SecretId)

    machine.cloud["secretsmanager.get_secret_value"] = later
    assert version_skew.wait(machine, boot).startswith("the masters are new enough after 100")
    assert boot.deadline == 1080 + machine.passed
    assert "a master is still v1.36.3: masters are updated first" in machine.said[0]


def test_time_before_the_wait_is_not_counted() -> None:
    machine, boot, secrets = node("v1.36.3")
    machine.passed = 500
    read = secrets.get

    def later(SecretId: str) -> dict[str, Any]:  # noqa: N803
        if machine.passed > 510:
            secrets.put(JOIN_SECRET, json.dumps({"kubernetesVersion": "v1.37.0"}))
        return read(SecretId)

    machine.cloud["secretsmanager.get_secret_value"] = later
    assert version_skew.wait(machine, boot) == "the masters are new enough after 13 s"
    assert boot.deadline == 1080 + machine.passed - 500


def test_it_gives_up_before_the_update_does() -> None:
    machine, boot, _ = node("v1.36.3")
    with pytest.raises(BootError, match=r"for masters of this version: .* a master is still v1.36.3") as caught:
        version_skew.wait(machine, boot)
    assert 1800 <= machine.passed < 1820
    assert "check the stack events for a failed update of the masters" in caught.value.hint


@pytest.mark.parametrize(("count", "creation", "minutes"), [(1, 20, 10), (3, 20, 25), (3, 15, 30), (5, 50, 0)])
def test_more_masters_take_longer_within_what_cloudformation_allows(count: int, creation: int, minutes: int) -> None:
    addresses = [f"172.20.0.{9 + each}" for each in range(count)]
    cluster = Cluster.model_validate(
        {
            "controlPlane": {"count": count, "addresses": addresses},
            "nodeGroups": [{"creationTimeout": creation, "drainTimeout": 5}],
        }
    )
    assert master_upgrade_wait(cluster, cluster.node_groups[0]) == minutes
