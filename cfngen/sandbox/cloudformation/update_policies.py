"""The UpdatePolicy of an Auto Scaling group: what it says, and what CloudFormation refuses in it.

Template reference, "UpdatePolicy attribute". It is read when a group is created and when it is updated: one that is
wrong fails the resource in either case (seen when a stack was created: aws/aws-cdk#1113).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation import signals
from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.services.scaling_groups import PROCESSES

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

KEYS = {
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
NOT_MODELLED = {
    "AutoScalingInstanceRefresh",
    "AutoScalingRollingUpdate.MinActiveInstancesPercent",
}
LONGEST_PAUSE = 3600  # seconds
LARGEST_BATCH = 100
WRONG = "Invalid Autoscaling rolling update policy: "
WRONG_PAUSE = (
    f"{WRONG}PauseTime must be in the ISO8601 time period format and must be no greater than PT{LONGEST_PAUSE}S "
    'seconds, e.g. "PT5M30S" specifies a pause time of 5 minutes and 30 seconds.'
)
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class RollingPolicy:
    """How instances are replaced in batches.

    Attributes:
        batch: at most so many at once.
        in_service: so many instances stay.
        percent: of the new ones must succeed.
        pause: seconds to wait after each batch, or for its signals.
        suspended: processes of the group that rest meanwhile.
        signals: whether signals are waited for.
    """

    batch: int
    in_service: int
    percent: int
    pause: int
    suspended: tuple[str, ...]
    signals: bool

    @property
    def timeout(self) -> str:
        """The pause as CloudFormation writes it."""
        minutes, seconds = divmod(self.pause, 60)
        return "PT" + (f"{minutes}M" if minutes else "") + (f"{seconds}S" if seconds or not minutes else "")


def rolling(service: Region, stack: Stack, resource: Resource) -> RollingPolicy | None:
    """Return how a group's instances are replaced; None if they are not.

    Raises:
        ResourceError: the policy is wrong
        NotModelledError: it is right, and nothing here knows what it does
    """
    declared = _declared(service, stack, resource)
    if "AutoScalingRollingUpdate" not in declared:
        return None
    policy = declared["AutoScalingRollingUpdate"]
    express = stack.root.express
    waits = _boolean(policy, "WaitOnResourceSignals") and not express
    pause = _pause(policy.get("PauseTime", "PT5M" if waits else "PT0S"))
    batch = _number(policy, "MaxBatchSize", 1, range(1, LARGEST_BATCH + 1))
    in_service = _number(policy, "MinInstancesInService", 0, range(10**6))
    percent = _number(policy, "MinSuccessfulInstancesPercent", 100, range(101))
    suspended = policy.get("SuspendProcesses", ())
    if unknown := sorted({str(each) for each in suspended} - PROCESSES):
        raise ResourceError(f"{WRONG}SuspendProcesses has no process named {', '.join(unknown)}")
    for needed in ("Launch", "Terminate"):
        if needed in suspended:
            # Seen to hang and fail: aws-samples/ecs-refarch-cloudformation#25; re:Post, "I updated my Auto Scaling
            # group, but I didn't get the results that I expected".
            raise NotModelledError(f"a rolling update with {needed} suspended, which never ends well")
    return RollingPolicy(batch, in_service, percent, 0 if express else pause, tuple(suspended), waits)


def _declared(service: Region, stack: Stack, resource: Resource) -> Mapping[str, Any]:
    found = service.scope(stack).resolve(resource.definition.body.get("UpdatePolicy", {}))
    for name, policy in found.items():
        if name in NOT_MODELLED:
            raise NotModelledError(f"UpdatePolicy {name}")
        if name not in KEYS:
            raise ResourceError(f"Encountered unsupported property {name} in UpdatePolicy")
        for key in sorted(set(policy) - KEYS[name]):
            if f"{name}.{key}" in NOT_MODELLED:
                raise NotModelledError(f"UpdatePolicy {name} {key}")
            raise ResourceError(f"Encountered unsupported property {key} in UpdatePolicy {name}")
    for name, key in (
        ("AutoScalingReplacingUpdate", "WillReplace"),
        ("AutoScalingScheduledAction", "IgnoreUnmodifiedGroupSizeProperties"),
    ):
        _boolean(found.get(name, {}), key)
    policies: Mapping[str, Any] = found
    return policies


def _pause(text: Any) -> int:
    try:
        seconds = signals.seconds_of(str(text), "PauseTime")
    except ResourceError:
        raise ResourceError(WRONG_PAUSE) from None
    if seconds > LONGEST_PAUSE:
        raise ResourceError(WRONG_PAUSE)
    return seconds


def _number(policy: Mapping[str, Any], key: str, usual: int, allowed: range) -> int:
    try:
        value = int(policy.get(key, usual))
    except (TypeError, ValueError):
        raise ResourceError(f"{WRONG}{key} must be a number, and is {policy[key]!r}") from None
    if value not in allowed:
        raise ResourceError(f"{WRONG}{key} must be between {allowed[0]} and {allowed[-1]}, and is {value}")
    return value


def _boolean(policy: Mapping[str, Any], key: str) -> bool:
    text = str(policy.get(key, False)).lower()
    if text not in BOOLEANS:
        raise ResourceError(f"UpdatePolicy {key} must be true or false, and is {policy[key]!r}")
    return BOOLEANS[text]
