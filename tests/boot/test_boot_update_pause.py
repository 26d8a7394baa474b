"""A node holds back its success in a rolling update, for a while in which it must keep working; and in nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from masters import configuration
from scripted_machine import ScriptedMachine, stack_resource

from cfngen.boot.machine import BootError
from cfngen.boot.node import update_pause
from cfngen.boot.state import Boot
from cfngen.cluster.load import parse
from cfngen.userdata import roles
from cfngen.userdata.steps import steps

READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False", "message": "PLEG is not healthy"}]


def node(*statuses: tuple[float, str], conditions: list[dict[str, str]] = READY) -> tuple[ScriptedMachine, Boot]:
    """A node whose group has each of these statuses from that second on."""
    machine = ScriptedMachine()

    def described(StackName: str, LogicalResourceId: str) -> dict[str, Any]:  # noqa: N803
        assert (StackName, LogicalResourceId) == ("green-nodes", "NodeGroupNodesAutoScalingGroup")
        status = [status for second, status in statuses if machine.passed >= second][-1]
        described = stack_resource("asg", LogicalResourceId)
        described["StackResourceDetail"]["ResourceStatus"] = status
        return described

    machine.cloud["cloudformation.describe_stack_resource"] = described
    machine.on("kubectl .* get node", (0, json.dumps({"status": {"conditions": conditions}})))
    boot = boot_of({**configuration(), "updatePause": 15})
    boot.facts |= {"stack": "green-nodes", "resource": "NodeGroupNodesAutoScalingGroup", "instanceId": "i-1"}
    return machine, boot


def test_in_an_update_it_waits_and_is_still_ready() -> None:
    machine, boot = node((0, "UPDATE_IN_PROGRESS"))
    deadline = boot.deadline
    assert update_pause.wait(machine, boot) == "node i-1 is Ready after a pause of 15 min"
    assert (machine.passed, boot.deadline) == (900, deadline + 900)


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_COMPLETE"])
def test_at_creation_and_for_an_autoscaler_it_does_not_wait(status: str) -> None:
    machine, boot = node((0, status))
    assert update_pause.wait(machine, boot) == "no pause: the group is not being updated"
    assert machine.passed == 0


@pytest.mark.parametrize(("end", "minutes"), [(1, 1), (200, 4)])
def test_the_end_of_the_update_ends_the_pause(end: int, minutes: int) -> None:
    machine, boot = node((0, "UPDATE_IN_PROGRESS"), (end, "UPDATE_FAILED"))
    assert update_pause.wait(machine, boot) == f"node i-1 is Ready after a pause of {minutes} min"
    assert machine.passed == 60 * minutes


def test_a_node_that_fails_during_the_pause_fails_its_boot() -> None:
    machine, boot = node((0, "UPDATE_IN_PROGRESS"), conditions=NOT_READY)
    with pytest.raises(BootError, match="PLEG is not healthy"):
        update_pause.wait(machine, boot)


def test_a_reboot_in_a_later_update_does_not_pause_again() -> None:
    machine, boot = node((0, "UPDATE_IN_PROGRESS"))
    update_pause.wait(machine, boot)
    assert update_pause.wait(machine, boot) == "paused before"
    assert machine.passed == 900


def test_only_groups_with_a_pause_have_the_step_and_its_module() -> None:
    cluster = parse({"nodeGroups": [{"name": "quick"}, {"name": "slow", "update": {"pause": 5}}]})
    quick, slow = cluster.node_groups
    assert "pause" not in steps(cluster, quick)
    assert list(steps(cluster, slow))[-1] == "pause"
    files = {role.role: set(role.files) for role in roles(cluster)}
    assert files["nodes-slow"] - files["nodes-quick"] == {"boot/node/update_pause.py"}
