"""Interruptions of Spot Instances: EC2's notices in the instance metadata, and the termination two minutes later.

An instance whose machine fails ends in the same way, without a notice.

- A notice comes two minutes before the interruption, and On-Demand Instances get none ("Spot Instance interruption
  notices", EC2 User Guide).
- A rebalance recommendation comes before the notice, or along with it ("EC2 instance rebalance recommendations", EC2
  User Guide).
- A lifecycle hook does not prevent the interruption, and the lifecycle action still has to be completed ("Amazon EC2
  Auto Scaling lifecycle hooks", Auto Scaling User Guide). A terminated instance cannot do so: the action times out.
- Without Capacity Rebalancing, the group replaces the instance once its health check has failed ("Use Capacity
  Rebalancing to handle Amazon EC2 Spot interruptions", Auto Scaling User Guide). Until when that is, is an assumption.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.sandbox.services.launch_checks import is_spot_instance
from cfngen.sandbox.services.rules import Refused
from cfngen.sandbox.services.scaling_activities import (
    fill_later,
    is_terminating,
    state_of,
    terminate,
)
from cfngen.sandbox.services.schedule import run_after
from cfngen.sandbox.untyped import MotoModel

NOTICE_SECONDS = 120.0
HEALTH_CHECK_SECONDS = 60.0  # assumed: until the group notices that an instance does not run any more
SPOT_ACTION_PATH = "meta-data/spot/instance-action"
RECOMMENDATION_PATH = "meta-data/events/recommendations/rebalance"
LIFECYCLE_STATE_PATH = "meta-data/autoscaling/target-lifecycle-state"
RUNNING_STATES = ("pending", "running")


def running_spot_instances(region: str) -> list[str]:
    """Return the ids of the region's Spot Instances that run."""
    instances = ec2_backends[DEFAULT_ACCOUNT_ID][region].all_instances()
    return [instance.id for instance in instances if instance.state in RUNNING_STATES and is_spot_instance(instance)]


def recommend_rebalancing(region: str, instance_id: str, now: datetime.datetime) -> None:
    """Recommend to rebalance a Spot Instance.

    Raises:
        Refused: it is not a Spot Instance that runs.
    """
    _notices(_spot_instance(region, instance_id)).setdefault(
        RECOMMENDATION_PATH, json.dumps({"noticeTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"})
    )


def interrupt(region: str, instance_id: str, now: datetime.datetime, on_terminated: Callable[[], None]) -> None:
    """Announce the interruption of a Spot Instance, and terminate it two minutes later.

    Raises:
        Refused: it is not a Spot Instance that runs.
    """
    notices = _notices(_spot_instance(region, instance_id))
    if SPOT_ACTION_PATH in notices:
        return
    time = now + datetime.timedelta(seconds=NOTICE_SECONDS)
    notices[SPOT_ACTION_PATH] = json.dumps({"action": "terminate", "time": f"{time:%Y-%m-%dT%H:%M:%SZ}"})
    run_after(region, NOTICE_SECONDS, functools.partial(end, region, instance_id, on_terminated))


def metadata(region: str, instance_id: str, path: str) -> str | None:
    """Return what the metadata service of an instance says about its end; None where it answers 404.

    Args:
        path: below `/latest/`.
    """
    if path == LIFECYCLE_STATE_PATH:
        # "Retrieve the target lifecycle state through instance metadata", Auto Scaling User Guide.
        state = state_of(region, instance_id)
        if state is None:
            return None
        return "Terminated" if is_terminating(state) else "InService"
    instance = ec2_backends[DEFAULT_ACCOUNT_ID][region].get_instance(instance_id)
    return _notices(instance).get(path)


def end(region: str, instance_id: str, on_terminated: Callable[[], None]) -> None:
    """Terminate an instance, if it still runs, and let its group notice that some time later."""
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    if backend.get_instance(instance_id).state not in RUNNING_STATES:
        return
    backend.terminate_instances([instance_id])
    on_terminated()
    run_after(region, HEALTH_CHECK_SECONDS, functools.partial(_replace, region, instance_id))


def _replace(region: str, instance_id: str) -> None:
    """Replace a terminated instance of a group, unless the group is about to terminate it already."""
    state = state_of(region, instance_id)
    if state is None or is_terminating(state):
        return
    group = state.auto_scaling_group
    terminate(group, state)
    fill_later(group)


def _spot_instance(region: str, instance_id: str) -> MotoModel:
    if instance_id not in running_spot_instances(region):
        # That of the fault injection service's action is not documented; it selects Spot Instances that run.
        raise Refused("InvalidInstanceID.NotFound", f"{instance_id} is not a running Spot Instance")
    return ec2_backends[DEFAULT_ACCOUNT_ID][region].get_instance(instance_id)


def _notices(instance: MotoModel) -> dict[str, str]:
    """Return EC2's notices to an instance, by path of the instance metadata."""
    notices: dict[str, str] = instance.__dict__.setdefault("interruption_notices", {})
    return notices
