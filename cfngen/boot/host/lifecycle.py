"""Delays the termination of this instance: the lifecycle hook of its Auto Scaling group, which the instance completes.

Every call is best effort: without it, the hook's own timeout ends the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject
    from ..state import Boot

POLL_SECONDS = 5.0
# Path in the instance metadata: the state that Auto Scaling wants the instance to reach.
TARGET_STATE_PATH = "meta-data/autoscaling/target-lifecycle-state"


def is_terminating(machine: Machine) -> bool:
    """Return whether Auto Scaling is about to terminate this instance."""
    return machine.metadata(TARGET_STATE_PATH, default="") == "Terminated"


def read_group(machine: Machine, boot: Boot) -> JsonObject:
    """Return what CloudFormation says of the resource that is this instance's Auto Scaling group.

    Raises:
        BootError: CloudFormation does not answer, or no longer has the resource.
    """
    stack, resource = boot.facts["stack"], boot.facts["resource"]
    response = machine.aws("cloudformation", "describe_stack_resource", StackName=stack, LogicalResourceId=resource)
    detail: JsonObject = response["StackResourceDetail"]
    return detail


def send_heartbeat(machine: Machine, boot: Boot, hook: str) -> str:
    """Restart the timeout of a lifecycle hook that holds this instance; return a line for the log."""
    return _call(machine, boot, hook, "record_lifecycle_action_heartbeat")


def complete(machine: Machine, boot: Boot, hook: str) -> str:
    """Let Auto Scaling terminate this instance, which a lifecycle hook holds; return a line for the log."""
    return _call(machine, boot, hook, "complete_lifecycle_action", LifecycleActionResult="CONTINUE")


def _call(machine: Machine, boot: Boot, hook: str, lifecycle_operation: str, **arguments: str) -> str:
    """Call an operation of Auto Scaling for this instance's lifecycle action, its delayed termination.

    It is not an error if no lifecycle action is waiting, e.g. because it has timed out.

    Args:
        lifecycle_operation: boto3's method, e.g. `complete_lifecycle_action`.

    Returns:
        A line for the log that says whether the operation succeeded.
    """
    try:
        response = machine.aws(
            "autoscaling",
            lifecycle_operation,
            "ValidationError",  # the error code if no lifecycle action is waiting
            AutoScalingGroupName=read_group(machine, boot)["PhysicalResourceId"],
            LifecycleHookName=hook,
            InstanceId=boot.facts["instanceId"],
            **arguments,
        )
    except BootError as error:
        # The lifecycle hook's own time-out then ends the wait.
        return f"the lifecycle action was not completed: {error}"
    return response["Error"]["Message"] if "Error" in response else "the lifecycle action was completed"
