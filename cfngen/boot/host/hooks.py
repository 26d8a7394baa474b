"""Installs the user's files and systemd units from the cluster file, and runs the user's pre- and post-boot commands.

The text of the files, units and commands is used unchanged: `${…}` in it is not replaced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import HOME, BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject
    from ..state import Boot

UNITS_FOLDER = "/etc/systemd/system/"
COMMANDS_FOLDER = HOME + "/commands/"


def before(machine: Machine, boot: Boot) -> str:
    """Run the cluster file's `preBootCommands`; this is the first step of a boot."""
    # `boot.config` is not used: in it `${…}` has been replaced.
    config = json.loads(machine.read(HOME + "/config.json"))
    return _run_commands(machine, boot, "preBootCommands", config["before"])


def files(machine: Machine, boot: Boot) -> str:
    """Write the user's files and systemd units; the step `further units` starts the units later."""
    hooks = _files_units_and_commands(machine)
    for file in hooks["files"]:
        machine.write(file["path"], file["content"], int(file["mode"], 8))
        # `write` does not change the mode of an unchanged file, and the umask applies to a new one.
        machine.run("chmod", file["mode"], file["path"])
    for unit in hooks["units"]:
        machine.write(UNITS_FOLDER + unit["name"], unit["content"])
    return f"{len(hooks['files'])} files, {len(hooks['units'])} units"


def units(machine: Machine, boot: Boot) -> str:
    """Enable and start the user's systemd units, except those with `enable: false`."""
    unit_names = [unit["name"] for unit in _files_units_and_commands(machine)["units"] if unit["enable"]]
    machine.run("systemctl", "daemon-reload")
    if unit_names:
        machine.run("systemctl", "enable", "--now", *unit_names)
    return ", ".join(unit_names) or "no units to start"


def after(machine: Machine, boot: Boot) -> str:
    """Run the cluster file's `postBootCommands`, after all other steps except the signal to CloudFormation."""
    return _run_commands(machine, boot, "postBootCommands", _files_units_and_commands(machine)["after"])


def _files_units_and_commands(machine: Machine) -> JsonObject:
    """Return the user's files, units and post-boot commands, read from `role.json` (see `contract.Hooks`).

    `boot.config["hooks"]` is not used: in it `${…}` has been replaced.
    """
    hooks: JsonObject = json.loads(machine.read(HOME + "/role.json"))["hooks"]
    return hooks


def _run_commands(machine: Machine, boot: Boot, key: str, commands: list[str]) -> str:
    """Run shell commands one after another, each only once in the instance's life.

    A file `<key>-<number>.done` with the instance id and the command records that the command has run.

    Args:
        key: the commands' key in the cluster file.

    Raises:
        BootError: a command fails; the commands after it are not run.
    """
    run_count = 0
    for number, command in enumerate(commands):
        path = f"{COMMANDS_FOLDER}{key}-{number}"
        done_text = f"{boot.facts['instanceId']} {command}"
        if machine.read(path + ".done") == done_text:
            continue
        # The command is run from a file, as the arguments of a process are visible to every other process and would be
        # repeated in the error message.
        machine.write(path, command + "\n", 0o700)
        try:
            machine.run("/bin/bash", path)
        except BootError as error:
            raise BootError(f"{key}[{number}]: {error}", "correct the command in the cluster file") from error
        machine.write(path + ".done", done_text, 0o600)
        run_count += 1
    return f"ran {run_count} of {len(commands)} commands"
