"""Holds back a new node's success signal in a rolling update, so that its batch stands for a while before the next one.

CloudFormation has no such pause: with signals, its PauseTime is a time-out. It replaces the next batch once all nodes
of this one have signalled. A node that is launched otherwise, at the group's creation or by an autoscaler, does not
pause, as then the group is not being updated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine import HOME
from . import membership

if TYPE_CHECKING:
    from ..contract import NodeBoot
    from ..machine import Machine

PAUSED_FILE = HOME + "/update-pause"
# Status of an Auto Scaling group whose instances CloudFormation replaces, in an update or its rollback.
UPDATING = "UPDATE_IN_PROGRESS"
# Seconds between two looks at the group's status: a cancelled update ends the pause.
INTERVAL = 60


def wait(machine: Machine, boot: NodeBoot) -> str:
    """Wait while the group is being updated, for `updatePause` minutes at most; then check that the node is Ready.

    This is done only once in the instance's life: an instance that reboots during a later update has signalled.
    """
    instance, start = boot.facts["instanceId"], machine.clock()
    if machine.read(PAUSED_FILE) == instance:
        return "paused before"
    while machine.clock() - start < boot.config["updatePause"] * 60 and _is_updating(machine, boot):
        machine.sleep(INTERVAL)
    seconds = machine.clock() - start
    # Later steps get as much time as without the pause, which the time-out of the stack update includes.
    boot.deadline += seconds
    machine.write(PAUSED_FILE, instance)
    if seconds < INTERVAL:
        return "no pause: the group is not being updated"
    return f"{membership.ready(machine, boot)} after a pause of {seconds / 60:.0f} min"


def _is_updating(machine: Machine, boot: NodeBoot) -> bool:
    """Return whether CloudFormation is updating the instance's Auto Scaling group."""
    facts = boot.facts
    response = machine.aws(
        "cloudformation",
        "describe_stack_resource",
        StackName=facts["stack"],
        LogicalResourceId=facts["resource"],
    )
    return bool(response["StackResourceDetail"]["ResourceStatus"] == UPDATING)
