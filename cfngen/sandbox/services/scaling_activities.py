"""Launches and terminations of an Auto Scaling group, which take time on AWS; moto 5.2 does both at once.

- A lifecycle hook holds an instance during its termination (`Terminating:Wait`) until the lifecycle action is
  completed, or until the heartbeat times out. Heartbeats extend it to 48 hours or 100 times the timeout at most (Auto
  Scaling user guide, "How lifecycle hooks work"). Deleting a hook completes the actions that it holds (API,
  DeleteLifecycleHook). Hooks of launches are not modelled.
- A terminated instance is replaced unless the desired capacity is decremented. The replacement is launched while the
  old instance still shuts down: launched 14 s, terminated three to five minutes after the call
  (awslabs/amazon-eks-ami#66).
- A launch that EC2 refuses is a failed activity, "Interface: [eni-…] in use. Launching EC2 instance failed."
  (terraform-aws-modules/terraform-aws-autoscaling#226), whether it is due to the group's creation, a rolling update, a
  change of size or a replacement. The group retries, as it maintains its desired capacity (Auto Scaling user guide,
  "Auto Scaling groups"). An instance keeps its network interfaces until it is terminated.
"""

from __future__ import annotations

import datetime
import functools
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.services.rules import time_in
from cfngen.sandbox.services.schedule import duration_of, run_after
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel

MAX_HOLD_SECONDS = 48 * 3600
MAX_HEARTBEATS = 100  # a hook holds an instance for this multiple of its heartbeat timeout at most
# Names of durations, which are configured by `schedule.set_schedule`; `cfngen.sandbox.durations` has their values.
SHUTTING_DOWN = "instance shutting down"
REPLACEMENT = "launch in place of a terminated instance"
RETRY = "launch after a failed one"


@dataclass(frozen=True)
class Observer:
    """Callbacks for the activities of a region's groups.

    Attributes:
        on_launched: called with a group's name and the ids of instances that the group launched as replacements or
            retries, not within a call of CloudFormation.
        on_terminating: called with the id of an instance that a hook holds in `Terminating:Wait`.
    """

    on_launched: Callable[[str, list[str]], None]
    on_terminating: Callable[[str], None]
    time: Callable[[], datetime.datetime]


_OBSERVERS: dict[str, Observer] = {}  # by region
# Called with a group after one of its instances was launched, came into service or was terminated.
GROUP_LISTENERS: list[Callable[[MotoModel], None]] = []


@dataclass
class Hold:
    """A lifecycle action in progress: the hook holds an instance until it is completed.

    Attributes:
        deadline: simulated second at which the heartbeat times out.
        latest_deadline: simulated second beyond which heartbeats cannot extend the deadline.
    """

    hook: MotoModel
    deadline: float
    latest_deadline: float


def set_observer(region: str, observer: Observer) -> None:
    """Set the observer of a region; replaces an earlier one."""
    _OBSERVERS[region] = observer


def recorded_activities(backend: MotoBackend, group_name: str) -> list[JsonDict]:
    """Return the scaling activities of a group, newest first; the group may be deleted already.

    Args:
        group_name: empty for all groups.
    """
    recorded: dict[str, list[JsonDict]] = backend.__dict__.setdefault("recorded_activities", {})
    if group_name:
        return recorded.setdefault(group_name, [])
    return [activity for group_activities in recorded.values() for activity in group_activities]


def state_of(region: str, instance_id: str) -> MotoModel | None:
    """Return moto's `InstanceState` of an instance; None if it is in no group."""
    groups = autoscaling_backends[DEFAULT_ACCOUNT_ID][region].autoscaling_groups.values()
    states = (state for group in groups for state in group.instance_states)
    return next((state for state in states if state.instance.id == instance_id), None)


def hold_of(state: MotoModel) -> Hold | None:
    """Return the lifecycle action that holds an instance, given its moto `InstanceState`; None if no hook holds it."""
    hold: Hold | None = getattr(state, "hold", None)
    return hold


def is_terminating(state: MotoModel) -> bool:
    """Return whether an instance is about to be terminated."""
    return str(state.lifecycle_state).startswith("Terminat")


def terminate(group: MotoModel, state: MotoModel) -> None:
    """Start to terminate an instance of a group; if the group has a terminating hook, the hook holds it first."""
    if is_terminating(state):
        return
    if not _hold_by_hook(group, state):
        _begin_termination(group, state)
    elif observer := _OBSERVERS.get(group.region):
        observer.on_terminating(state.instance.id)


def complete_held_action(group: MotoModel, state: MotoModel) -> None:
    """Complete the lifecycle action of an instance that a hook holds; it is terminated, whatever the result is."""
    state.hold = None
    _begin_termination(group, state)


def record_heartbeat(state: MotoModel) -> None:
    """Record a heartbeat of an instance that a hook holds."""
    hold = hold_of(state)
    if hold is not None:
        now = time_in(state.auto_scaling_group.region)
        hold.deadline = min(now + int(hold.hook.heartbeat_timeout), hold.latest_deadline)
        _schedule_timeout(state.auto_scaling_group, state, hold)


def _hold_by_hook(group: MotoModel, state: MotoModel) -> bool:
    """Hold an instance by the group's lifecycle hook; return False if the group has none."""
    hooks = group.autoscaling_backend.lifecycle_hooks.values()
    hook = next((candidate for candidate in hooks if candidate.auto_scaling_group_name == group.name), None)
    if hook is None:
        return False
    now, heartbeat_timeout = time_in(group.region), int(hook.heartbeat_timeout)
    state.lifecycle_state = "Terminating:Wait"
    state.hold = Hold(
        hook,
        deadline=now + heartbeat_timeout,
        latest_deadline=now + min(MAX_HOLD_SECONDS, MAX_HEARTBEATS * heartbeat_timeout),
    )
    _schedule_timeout(group, state, state.hold)
    return True


def _schedule_timeout(group: MotoModel, state: MotoModel, hold: Hold) -> None:
    """Complete the lifecycle action once its deadline is over.

    A heartbeat moves the deadline and calls this function again; the check at the old deadline then does nothing.
    """
    deadline = hold.deadline

    def check_deadline() -> None:
        # The clock may show a moment less than the deadline: it adds up fractions.
        if hold_of(state) is hold and hold.deadline == deadline:
            complete_held_action(group, state)

    run_after(group.region, deadline - time_in(group.region), check_deadline)


def _begin_termination(group: MotoModel, state: MotoModel) -> None:
    from moto.ec2.models.instances import InstanceState

    state.lifecycle_state = "Terminating"
    is_terminated = state.instance.state == "terminated"  # by EC2, while a hook held it
    seconds = 0.0 if is_terminated else duration_of(group.region, SHUTTING_DOWN)
    if seconds:
        # 32 is EC2's code of this state.
        state.instance._state = InstanceState("shutting-down", 32)  # noqa: SLF001 - moto has no other way
    run_after(group.region, seconds, functools.partial(_finish_termination, group, state))


def _finish_termination(group: MotoModel, state: MotoModel) -> None:
    group.autoscaling_backend.ec2_backend.terminate_instances([state.instance.id])
    discard(group, state)
    if getattr(group, "awaits_termination", False):
        group.awaits_termination = False
        fill_to_desired_capacity(group)


def discard(group: MotoModel, state: MotoModel) -> None:
    """Remove an instance that is terminated from its group."""
    group.instance_states = [instance_state for instance_state in group.instance_states if instance_state is not state]
    _tell_listeners(group)


def _tell_listeners(group: MotoModel) -> None:
    for listener in GROUP_LISTENERS:
        listener(group)


def is_replaced(state: MotoModel) -> bool:
    """Return whether another instance was launched in place of this one, which then does not count to the capacity."""
    replacement = getattr(state, "replacement", None)
    return bool(replacement is not None and replacement.is_started)


def is_suspended(group: MotoModel, *processes: str) -> bool:
    """Return whether one of these scaling processes of a group is suspended; none is while the group is created."""
    return not set(processes).isdisjoint(getattr(group, "_suspended_processes", ()))


def fill_to_desired_capacity(group: MotoModel) -> None:
    """Launch instances up to the desired capacity, if the group still exists."""
    if group.autoscaling_backend.autoscaling_groups.get(group.name) is not group:
        return
    previous_ids = {instance_state.instance.id for instance_state in group.instance_states}
    group.set_desired_capacity(group.desired_capacity)
    new_ids = [
        instance_state.instance.id
        for instance_state in group.instance_states
        if instance_state.instance.id not in previous_ids
    ]
    if new_ids and group.region in _OBSERVERS:
        _OBSERVERS[group.region].on_launched(group.name, new_ids)
    if new_ids:
        _tell_listeners(group)


def fill_later(group: MotoModel) -> None:
    """Launch instances in place of terminated ones, once the group has noticed that."""
    run_after(group.region, duration_of(group.region, REPLACEMENT), functools.partial(fill_to_desired_capacity, group))


def schedule_retry(group: MotoModel) -> None:
    """Schedule one retry after failed launches of a group; without durations, once an instance has been terminated."""
    seconds = duration_of(group.region, RETRY)
    if not seconds:
        group.awaits_termination = True
    if not seconds or getattr(group, "has_scheduled_retry", False):
        return

    def retry() -> None:
        group.has_scheduled_retry = False
        fill_to_desired_capacity(group)

    group.has_scheduled_retry = True
    run_after(group.region, seconds, retry)


def record_activity(group: MotoModel, *, instance_id: str = "", launch_error: str = "") -> None:
    """Record a scaling activity of a group.

    Args:
        instance_id: empty if the launch failed.
        launch_error: EC2's error message if the launch failed.
    """
    observer = _OBSERVERS.get(group.region)
    recorded = recorded_activities(group.autoscaling_backend, group.name)
    now = observer.time() if observer else datetime.datetime.now(datetime.UTC)
    activity: JsonDict = {
        "ActivityId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{group.arn} {len(recorded)}")),
        "AutoScalingGroupName": group.name,
        "AutoScalingGroupARN": group.arn,
        "Description": f"Launching a new EC2 instance: {instance_id}",
        "Cause": f"At {now:%Y-%m-%dT%H:%M:%SZ} an instance was started in response to a difference between desired "
        "and actual capacity.",
        "StartTime": now,
        "EndTime": now,
        "StatusCode": "Successful",
        "Progress": 100,
    }
    if launch_error:
        message = f"{launch_error.rstrip('.')}. Launching EC2 instance failed."
        activity["Description"] = f"Launching a new EC2 instance.  Status Reason: {message}"
        activity["StatusCode"] = "Failed"
        activity["StatusMessage"] = message
    recorded.insert(0, activity)


def held_state(backend: MotoBackend, group_name: str, instance_id: str) -> MotoModel:
    """Return moto's `InstanceState` of an instance that a hook holds; None if no hook holds it."""
    group = backend.autoscaling_groups.get(group_name)
    states = group.instance_states if group else ()
    return next((state for state in states if state.instance.id == instance_id and hold_of(state)), None)
