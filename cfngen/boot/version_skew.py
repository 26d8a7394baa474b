"""In an upgrade nodes and masters are replaced at the same time: a newer node waits here until the masters are done.

The time that it waits is not taken from what it may take itself: a failure later on still reaches CloudFormation before
the update's time is up, which counts on this wait.
"""

from __future__ import annotations

from typing import Any

from . import join_secret, versions
from .machine import Machine


def wait(machine: Machine, config: dict[str, Any]) -> str:
    """Wait while a master is of an older minor version than this node's kubelet, for `config["upgradeWait"]` minutes.

    Raises:
        BootError: time is up.
    """
    start = machine.clock()

    def probe() -> str:
        versions.await_masters(config, join_secret.read(machine, config))
        waited = machine.clock() - start
        return f"new enough after {waited:.0f} s" if waited else "new enough, or not there yet"

    hint = "is the masters' update done? If it failed, its events say why; then update the stack again"
    outcome = machine.wait("masters of this version", probe, hint, config["upgradeWait"] * 60)
    config["deadline"] += machine.clock() - start
    return outcome
