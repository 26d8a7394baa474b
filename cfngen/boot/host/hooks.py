"""Installs the files and systemd units of the cluster file, and runs its commands before and after all other steps.

Their text is used unchanged: `${…}` in them is not replaced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import HOME, BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject
    from ..state import Boot

UNITS = "/etc/systemd/system/"
COMMANDS = HOME + "/commands/"


def before(machine: Machine, boot: Boot) -> str:
    """Run the pre-boot commands, before everything else."""
    return _run_commands(machine, boot, "preBootCommands", json.loads(machine.read(HOME + "/config.json"))["before"])


def files(machine: Machine, boot: Boot) -> str:
    """Write the cluster file's files and units."""
    hooks = _hooks(machine)
    for file in hooks["files"]:
        machine.write(file["path"], file["content"], int(file["mode"], 8))
        # `write` does not change the mode of an unchanged file, and the umask applies to a new one.
        machine.run("chmod", file["mode"], file["path"])
    for unit in hooks["units"]:
        machine.write(UNITS + unit["name"], unit["content"])
    return f"{len(hooks['files'])} files, {len(hooks['units'])} units"


def units(machine: Machine, boot: Boot) -> str:
    """Enable and start the cluster file's units."""
    names = [unit["name"] for unit in _hooks(machine)["units"] if unit["enable"]]
    machine.run("systemctl", "daemon-reload")
    if names:
        machine.run("systemctl", "enable", "--now", *names)
    return ", ".join(names) or "no units to start"


def after(machine: Machine, boot: Boot) -> str:
    """Run the post-boot commands, after all other steps."""
    return _run_commands(machine, boot, "postBootCommands", _hooks(machine)["after"])


def _hooks(machine: Machine) -> JsonObject:
    """Return the hooks as they are in the file: in `boot.config` the `${…}` in them have been replaced."""
    hooks: JsonObject = json.loads(machine.read(HOME + "/role.json"))["hooks"]
    return hooks


def _run_commands(machine: Machine, boot: Boot, key: str, commands: list[str]) -> str:
    """Run commands one after another, each once in the instance's life.

    Raises:
        BootError: one fails.
    """
    ran = 0
    for number, command in enumerate(commands):
        path = f"{COMMANDS}{key}-{number}"
        marker = f"{boot.facts['instanceId']} {command}"
        if machine.read(path + ".done") == marker:
            continue
        # In a file: arguments are visible to every process, and would be repeated in the error message.
        machine.write(path, command + "\n", 0o700)
        try:
            machine.run("/bin/bash", path)
        except BootError as error:
            raise BootError(f"{key}[{number}]: {error}", "correct the command in the cluster file") from error
        machine.write(path + ".done", marker, 0o600)
        ran += 1
    return f"ran {ran} of {len(commands)} commands"
