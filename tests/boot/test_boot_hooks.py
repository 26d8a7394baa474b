"""What the cluster file adds to instances: taken as it is, in its place, once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot.host import hooks
from cfngen.boot.machine import BootError

CONFIG: dict[str, Any] = {"facts": {"instanceId": "i-1", "zone": "us-west-2a"}}
FILE = {"path": "/etc/agent/run.sh", "content": "#!/bin/sh\necho ${zone} $HOME\n", "mode": "0755"}
UNIT = {"name": "agent.service", "content": "[Service]\nExecStart=/etc/agent/run.sh ${zone}\n", "enable": True}


@pytest.fixture
def machine() -> ScriptedMachine:
    found = ScriptedMachine()
    role = {
        "hooks": {
            "files": [FILE],
            "units": [UNIT, {**UNIT, "name": "spare.service", "enable": False}],
            "after": ["a", "b"],
        }
    }
    found.files["/opt/cfngen/role.json"] = json.dumps(role)
    found.files["/opt/cfngen/config.json"] = json.dumps({"before": ["echo ${zone}"]})
    return found


def test_files_come_with_their_content_and_mode(machine: ScriptedMachine) -> None:
    assert hooks.files(machine, boot_of(CONFIG)) == "1 files, 2 units"
    assert machine.files["/etc/agent/run.sh"] == FILE["content"], "nothing is filled in"
    assert "chmod 0755 /etc/agent/run.sh" in machine.commands
    assert machine.files["/etc/systemd/system/agent.service"] == UNIT["content"]


def test_only_enabled_units_are_started(machine: ScriptedMachine) -> None:
    assert hooks.units(machine, boot_of(CONFIG)) == "agent.service"
    assert machine.commands == ["systemctl daemon-reload", "systemctl enable --now agent.service"]


def test_commands_run_in_order_and_once(machine: ScriptedMachine) -> None:
    assert hooks.after(machine, boot_of(CONFIG)) == "ran 2 of 2 commands"
    ran = machine.ran("/bin/bash")
    assert [machine.files[command.split()[1]] for command in ran] == ["a\n", "b\n"]
    assert hooks.after(machine, boot_of(CONFIG)) == "ran 0 of 2 commands"
    assert machine.ran("/bin/bash") == ran


def test_commands_of_an_images_own_instance_do_not_count(machine: ScriptedMachine) -> None:
    hooks.after(machine, boot_of(CONFIG))
    assert hooks.after(machine, boot_of({"facts": {"instanceId": "i-2"}})) == "ran 2 of 2 commands"


def test_command_that_was_changed_runs_again(machine: ScriptedMachine) -> None:
    hooks.before(machine, boot_of(CONFIG))
    machine.files["/opt/cfngen/config.json"] = json.dumps({"before": ["echo other"]})
    assert hooks.before(machine, boot_of(CONFIG)) == "ran 1 of 1 commands"


def test_shells_variables_stay_the_shells(machine: ScriptedMachine) -> None:
    hooks.before(machine, boot_of(CONFIG))
    [command] = machine.ran("/bin/bash")
    assert machine.files[command.split()[1]] == "echo ${zone}\n"


def test_command_that_fails_ends_the_step_and_is_tried_again(machine: ScriptedMachine) -> None:
    machine.on("/bin/bash .*-1", (3, "no such agent"))
    with pytest.raises(BootError, match=r"postBootCommands\[1\]: .* exited with 3") as caught:
        hooks.after(machine, boot_of(CONFIG))
    assert caught.value.hint == "correct the command in the cluster file"
    machine.on("/bin/bash", (0, ""))
    assert hooks.after(machine, boot_of(CONFIG)) == "ran 1 of 2 commands"
