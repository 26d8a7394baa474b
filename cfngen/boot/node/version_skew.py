"""Makes a new node wait until no master has an older Kubernetes version.

In an upgrade nodes and masters are replaced at the same time, and a kubelet must not be newer than an API server.

The wait extends the deadline of the node's boot. That is safe because the time-out of the stack update includes the
wait: a later failure is still signalled in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host import versions
from ..machine import Machine
from . import join_secret

if TYPE_CHECKING:
    from ..contract import NodeBoot


def wait(machine: Machine, boot: NodeBoot) -> str:
    """Wait for at most `upgradeWait` minutes while a master's minor version is older than this node's kubelet."""
    started_at = machine.clock()

    def probe() -> str:
        versions.check_masters_version(boot, join_secret.read(machine, boot))
        waited = machine.clock() - started_at
        return (
            f"the masters are new enough after {waited:.0f} s"
            if waited
            else "the masters are new enough, or not running yet"
        )

    hint = "check the stack events for a failed update of the masters; then update the stack again"
    outcome = machine.wait("masters of this version", probe, hint, boot.config["upgradeWait"] * 60)
    # Later steps get as much time as without this wait.
    boot.deadline += machine.clock() - started_at
    return outcome
