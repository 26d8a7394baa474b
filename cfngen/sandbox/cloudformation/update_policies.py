"""Reads and checks the UpdatePolicy of an Auto Scaling group.

Template reference, "UpdatePolicy attribute". CloudFormation checks it both when a group is created and when it is
updated: an invalid policy makes the resource fail in either case (seen on creation: aws/aws-cdk#1113).
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.sandbox.cloudformation import signals
from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_stack
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.services.scaling_groups import SCALING_PROCESSES
from cfngen.sandbox.untyped import JsonDict, JsonObject

POLICY_KEYS = {
    "AutoScalingReplacingUpdate": {"WillReplace"},
    "AutoScalingRollingUpdate": {
        "MaxBatchSize",
        "MinInstancesInService",
        "MinSuccessfulInstancesPercent",
        "PauseTime",
        "SuspendProcesses",
        "WaitOnResourceSignals",
    },
    "AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties"},
}
# The parts of an UpdatePolicy that the emulator does not support, though CloudFormation does.
NOT_EMULATED = {"AutoScalingInstanceRefresh", "AutoScalingRollingUpdate.MinActiveInstancesPercent"}
MAX_PAUSE_SECONDS = 3600  # template reference, "UpdatePolicy attribute", PauseTime
MAX_BATCH_SIZE = 100
MAX_MIN_INSTANCES_IN_SERVICE = 10**6 - 1  # practically no limit: the group's MaxSize is checked by the update
INVALID_POLICY = "Invalid Autoscaling rolling update policy: "
INVALID_PAUSE_TIME = (
    f"{INVALID_POLICY}PauseTime must be in the ISO8601 time period format and must be no greater than "
    f"PT{MAX_PAUSE_SECONDS}S "
    'seconds, e.g. "PT5M30S" specifies a pause time of 5 minutes and 30 seconds.'
)
BOOLEANS_BY_TEXT = {"true": True, "false": False}


@dataclass(frozen=True)
class RollingPolicy:
    """The settings of an AutoScalingRollingUpdate.

    Attributes:
        max_batch_size: how many instances are replaced at once, at most (MaxBatchSize).
        min_in_service: how many instances stay in service meanwhile, at least (MinInstancesInService).
        min_successful_percent: the percentage of the new instances that must signal success.
        pause_seconds: how long to wait after each batch, or for its signals (PauseTime).
    """

    max_batch_size: int
    min_in_service: int
    min_successful_percent: int
    pause_seconds: int
    suspended_processes: tuple[str, ...]
    waits_for_signals: bool

    @property
    def timeout(self) -> str:
        """PauseTime as an ISO 8601 duration of minutes and seconds, as CloudFormation prints it."""
        minutes, seconds = divmod(self.pause_seconds, 60)
        if not minutes:
            return f"PT{seconds}S"
        return f"PT{minutes}M{seconds}S" if seconds else f"PT{minutes}M"


def rolling_policy(cloud: Region, stack: Stack, resource: Resource) -> RollingPolicy | None:
    """Return the rolling update policy of a group; None if it has none.

    Raises:
        ResourceError: the policy is invalid
        NotModelledError: the policy is valid, but the emulator does not support it
    """
    update_policy = _resolve_update_policy(cloud, stack, resource)
    if "AutoScalingRollingUpdate" not in update_policy:
        return None
    policy = update_policy["AutoScalingRollingUpdate"]
    is_express = stack.leader.express  # express mode waits for nothing
    waits_for_signals = _boolean(policy, "WaitOnResourceSignals") and not is_express
    pause_seconds = _pause_seconds(policy.get("PauseTime", "PT5M" if waits_for_signals else "PT0S"))
    max_batch_size = _number(policy, "MaxBatchSize", default=1, allowed=range(1, MAX_BATCH_SIZE + 1))
    min_in_service = _number(
        policy, "MinInstancesInService", default=0, allowed=range(MAX_MIN_INSTANCES_IN_SERVICE + 1)
    )
    min_successful_percent = _number(policy, "MinSuccessfulInstancesPercent", default=100, allowed=range(101))
    suspended_processes = policy.get("SuspendProcesses", ())
    if unknown := sorted({str(process) for process in suspended_processes} - SCALING_PROCESSES):
        raise ResourceError(f"{INVALID_POLICY}SuspendProcesses has no process named {', '.join(unknown)}")
    for required_process in ("Launch", "Terminate"):
        if required_process in suspended_processes:
            # Seen to hang and fail: aws-samples/ecs-refarch-cloudformation#25; re:Post, "I updated my Auto Scaling
            # group, but I didn't get the results that I expected".
            raise NotModelledError(f"a rolling update with {required_process} suspended, which hangs until it fails")
    return RollingPolicy(
        max_batch_size=max_batch_size,
        min_in_service=min_in_service,
        min_successful_percent=min_successful_percent,
        pause_seconds=0 if is_express else pause_seconds,
        suspended_processes=tuple(suspended_processes),
        waits_for_signals=waits_for_signals,
    )


def _resolve_update_policy(cloud: Region, stack: Stack, resource: Resource) -> JsonObject:
    """Resolve a group's UpdatePolicy, and refuse keys that CloudFormation or the emulator does not know."""
    update_policy: JsonDict = scope_of_stack(cloud, stack).resolve(resource.definition.body.get("UpdatePolicy", {}))
    for name, policy in update_policy.items():
        if name in NOT_EMULATED:
            raise NotModelledError(f"UpdatePolicy {name}")
        if name not in POLICY_KEYS:
            raise ResourceError(f"Encountered unsupported property {name} in UpdatePolicy")
        for key in sorted(set(policy) - POLICY_KEYS[name]):
            if f"{name}.{key}" in NOT_EMULATED:
                raise NotModelledError(f"UpdatePolicy {name} {key}")
            raise ResourceError(f"Encountered unsupported property {key} in UpdatePolicy {name}")
    # Refuse values of the other two policies that are not booleans.
    _boolean(update_policy.get("AutoScalingReplacingUpdate", {}), "WillReplace")
    _boolean(update_policy.get("AutoScalingScheduledAction", {}), "IgnoreUnmodifiedGroupSizeProperties")
    return update_policy


def _pause_seconds(pause_time: object) -> int:
    try:
        seconds = signals.parse_duration(str(pause_time), "PauseTime")
    except ResourceError:
        raise ResourceError(INVALID_PAUSE_TIME) from None
    if seconds > MAX_PAUSE_SECONDS:
        raise ResourceError(INVALID_PAUSE_TIME)
    return seconds


def _number(policy: JsonObject, key: str, default: int, allowed: range) -> int:
    try:
        value = int(policy.get(key, default))
    except (TypeError, ValueError):
        raise ResourceError(f"{INVALID_POLICY}{key} must be a number, and is {policy[key]!r}") from None
    if value not in allowed:
        raise ResourceError(f"{INVALID_POLICY}{key} must be between {allowed[0]} and {allowed[-1]}, and is {value}")
    return value


def _boolean(policy: JsonObject, key: str) -> bool:
    """A boolean in a policy, where it may be a text; False if it is missing."""
    text = str(policy.get(key, False)).lower()
    if text not in BOOLEANS_BY_TEXT:
        raise ResourceError(f"UpdatePolicy {key} must be true or false, and is {policy[key]!r}")
    return BOOLEANS_BY_TEXT[text]
