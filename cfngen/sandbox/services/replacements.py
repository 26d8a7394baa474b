"""Instances that Auto Scaling replaces by itself: too old, unhealthy, or surplus in their market.

- Maximum instance lifetime (the page of this name): one instance at a time, or up to 10 percent of the capacity. That
  an instance is replaced exactly when it reaches that age, and always up to 10 percent, is assumed.
- Health checks and the maximum lifetime terminate first ("Instance maintenance policies", for a group without one).
- A changed distribution replaces instances gradually ("existing instances may be replaced to match the new purchasing
  options", UpdateAutoScalingGroup): the group launches a new instance, waits until it passes its health check, and then
  terminates the old one through its hooks. Meanwhile it may exceed its maximum size; that this is by the margin of
  other rebalancing, 10 percent or one instance, and that the oldest ones are replaced, is assumed.
- Suspended processes (user guide, "Suspend and resume processes"): nothing is launched while Launch is suspended, and
  nothing terminated while Terminate is; HealthCheck marks unhealthy instances, and ReplaceUnhealthy replaces them. None
  of the others stops these replacements or the maximum lifetime, so both go on during a rolling update.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from cfngen.sandbox.services import group_lifetime_and_reservation
from cfngen.sandbox.services.mixed_instances_launches import active_count, is_spot, on_demand_count
from cfngen.sandbox.services.rules import time_in
from cfngen.sandbox.services.scaling_activities import (
    discard,
    fill_later,
    fill_to_desired_capacity,
    is_replaced,
    is_suspended,
    is_terminating,
    terminate,
)
from cfngen.sandbox.services.schedule import duration_of, run_after
from cfngen.sandbox.untyped import MotoModel

MARGIN = 0.1  # of the maximum size, or of the capacity
PASSED_HEALTH_CHECK = "health check of a new instance"


@dataclass
class Replacement:
    """The replacement of an instance by one that is launched first.

    Attributes:
        limit: instances that the group may have at most while it is in progress.
        is_started: whether the new instance may be launched; the old one then no longer counts to the capacity.
    """

    limit: int
    is_started: bool = False


def check_health(group: MotoModel) -> None:
    """Mark the instances that EC2 has terminated or stopped as unhealthy, and replace the unhealthy ones."""
    for state in list(group.instance_states):
        if is_terminating(state):
            continue
        is_gone = state.instance.state in ("terminated", "stopped")
        if is_gone and not is_suspended(group, "HealthCheck"):
            state.health_status = "Unhealthy"
        if state.health_status != "Unhealthy" or is_suspended(group, "ReplaceUnhealthy", "Terminate"):
            continue
        if is_gone:
            discard(group, state)
            fill_later(group)
        else:
            _replace_before_launch(group, state)


def watch_lifetime(group: MotoModel, state: MotoModel) -> None:
    """Let a group replace an instance once it has reached the group's maximum instance lifetime."""
    lifetime = group_lifetime_and_reservation.max_instance_lifetime(group)
    if lifetime:
        run_after(
            group.region, max(_launched_at(state) + lifetime - time_in(group.region), 1.0), lambda: advance(group)
        )


def match_purchase_options(group: MotoModel) -> None:
    """Replace instances of the market that has more than its share, after the distribution has changed."""
    policy = group.mixed_instances_policy
    desired = int(group.desired_capacity or 0)
    on_demand_target = on_demand_count(policy, desired)
    for spot, target in ((False, on_demand_target), (True, desired - on_demand_target)):
        of_market = [state for state in group.active_instances() if is_spot(state) is spot]
        for state in of_market[: max(len(of_market) - target, 0)]:
            _replace_after_launch(group, state)


def advance(group: MotoModel) -> None:
    """Take the next steps of all replacements of a group that are possible now."""
    if group.autoscaling_backend.autoscaling_groups.get(group.name) is not group:
        return
    _start_replacements(group)
    _terminate_replaced(group)
    _replace_expired(group)


def _replace_after_launch(group: MotoModel, state: MotoModel) -> None:
    if getattr(state, "replacement", None) is None and not is_terminating(state):
        state.replacement = Replacement(_limit_of_rebalancing(group))
        advance(group)


def _replace_before_launch(group: MotoModel, state: MotoModel) -> None:
    """Terminate an instance, through its hook, and launch another one meanwhile."""
    terminate(group, state)
    fill_later(group)


def _start_replacements(group: MotoModel) -> None:
    if is_suspended(group, "Launch"):
        return
    is_any_new = False
    for state in group.instance_states:
        replacement = getattr(state, "replacement", None)
        if replacement is None or replacement.is_started or is_terminating(state):
            continue
        started = sum(map(is_replaced, group.instance_states))
        if max(active_count(group), int(group.desired_capacity or 0)) + started < replacement.limit:
            replacement.is_started = is_any_new = True
    if is_any_new:
        fill_to_desired_capacity(group)


def _terminate_replaced(group: MotoModel) -> None:
    """Terminate instances whose replacements are in service, as many as the desired capacity allows."""
    if is_suspended(group, "Terminate"):
        return
    while True:
        replaced = [state for state in group.instance_states if is_replaced(state) and not is_terminating(state)]
        capacity = _count_in_service(group) + len(replaced)
        if not replaced or capacity <= int(group.desired_capacity or 0):
            return
        terminate(group, replaced[0])


def _count_in_service(group: MotoModel) -> int:
    """Return how many instances are in service and have passed a health check."""
    seconds = duration_of(group.region, PASSED_HEALTH_CHECK)
    now, in_service = time_in(group.region), 0
    for state in group.active_instances():
        wait = _launched_at(state) + seconds - now
        if wait <= 0:
            in_service += 1
        elif not getattr(state, "is_watched", False):
            state.is_watched = True
            run_after(group.region, wait, functools.partial(advance, group))
    return in_service


def _replace_expired(group: MotoModel) -> None:
    """Replace instances that are older than the group allows, once all those that it has replaced are in service."""
    lifetime = group_lifetime_and_reservation.max_instance_lifetime(group)
    desired = int(group.desired_capacity or 0)
    active = group.active_instances()
    if not lifetime or len(active) < desired or is_suspended(group, "Launch", "Terminate"):
        return
    expired = [
        state
        for state in active
        if time_in(group.region) - _launched_at(state) >= lifetime
        and not state.protected_from_scale_in
        and getattr(state, "replacement", None) is None
    ]
    batch = expired[: max(1, math.floor(MARGIN * len(group.instance_states)))]
    for state in batch:
        terminate(group, state)
    if batch:
        fill_later(group)


def _limit_of_rebalancing(group: MotoModel) -> int:
    return int(group.max_size) + max(1, math.floor(MARGIN * int(group.max_size)))


def _launched_at(state: MotoModel) -> float:
    return float(getattr(state, "launched_at", 0.0))
