"""EC2's notices to the Spot Instances of a group, and what cfngen's services on these instances do then."""

from __future__ import annotations

import enum
import functools

from cfngen.sandbox.groups import designates_group
from cfngen.sandbox.instance import Instance
from cfngen.sandbox.machines import NOTICE_SECONDS, Machines
from cfngen.sandbox.services import interruptions


class Notice(enum.Enum):
    """What EC2 says to a Spot Instance."""

    REBALANCE = "rebalance"
    INTERRUPTION = "interruption"
    BOTH = "both"


def send_notice(machines: Machines, group: str, notice: Notice, count: int = 0) -> list[str]:
    """Send a notice to running Spot Instances of a group; EC2 terminates interrupted ones two minutes later.

    Args:
        count: how many instances get it, those launched first; 0 means all.

    Returns:
        The ids of these instances; empty if the group has no running Spot Instances.
    """
    spot_ids = set(interruptions.running_spot_instances(machines.region))
    instances = [
        instance
        for instance in machines.instances.values()
        if instance.id in spot_ids
        and designates_group(group, name=instance.name, logical_id=instance.boot_data.references["resource"])
    ]
    chosen_instances = instances[: count or None]
    for instance in chosen_instances:
        if notice is not Notice.INTERRUPTION:
            _recommend_rebalancing(machines, instance)
        if notice is not Notice.REBALANCE:
            _interrupt(machines, instance)
    return [instance.id for instance in chosen_instances]


def _recommend_rebalancing(machines: Machines, instance: Instance) -> None:
    """Recommend to rebalance an instance; its node is cordoned if the node group says so."""
    clock = machines.cloud.clock
    interruptions.recommend_rebalancing(machines.region, instance.id, clock.time)
    if instance.boot_data.configuration.get("rebalance"):
        clock.schedule(NOTICE_SECONDS, functools.partial(_cordon, machines, instance))


def _interrupt(machines: Machines, instance: Instance) -> None:
    """Announce the interruption of an instance; its drain service cordons the node."""
    clock = machines.cloud.clock
    interruptions.interrupt(machines.region, instance.id, clock.time, on_terminated=machines.refresh)
    if instance.runs_drain_service:
        clock.schedule(NOTICE_SECONDS, functools.partial(_cordon, machines, instance))


def _cordon(machines: Machines, instance: Instance) -> None:
    if machines.is_running(instance):
        machines.cordon(instance)
