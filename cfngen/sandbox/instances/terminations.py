"""What instances do while a lifecycle hook holds them in `Terminating:Wait`: nodes drain, masters wait for etcd."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster

if TYPE_CHECKING:
    from cfngen.sandbox.instances.machines import Machines

# The lifecycle hooks that the boot program completes, by the role of the instance.
HOOK_BY_ROLE: Mapping[str, str] = {"node": "cfngen-drain", "master": "cfngen-quorum"}
HEARTBEAT_SECONDS = 30.0  # between two heartbeats of a node that drains
QUORUM_CHECK_SECONDS = 10.0  # between two looks of a master at etcd's members, each with a heartbeat: an estimate


def delay_termination(machines: Machines, instance: Instance) -> None:
    """Do what an instance does once it has noticed that it is to be terminated, and then let it go."""
    if not machines.is_running(instance):
        return
    if instance.boot_data.configuration["role"] == "node":
        machines.cordon(instance)
        _continue_drain(machines, instance, machines.drain_seconds)
    else:
        minutes: int = instance.boot_data.configuration["quorumWait"]
        _await_quorum(machines, instance, machines.cloud.clock.now + minutes * 60)


def _continue_drain(machines: Machines, instance: Instance, seconds: float) -> None:
    """Complete the drain of an instance after some seconds, with a heartbeat every half minute until then."""
    if not machines.is_running(instance):
        return
    if seconds <= HEARTBEAT_SECONDS:
        machines.cloud.clock.schedule(seconds, functools.partial(_complete, machines, instance))
        return
    _call(machines, instance, "record_lifecycle_action_heartbeat")
    remaining = functools.partial(_continue_drain, machines, instance, seconds - HEARTBEAT_SECONDS)
    machines.cloud.clock.schedule(HEARTBEAT_SECONDS, remaining)


def _await_quorum(machines: Machines, instance: Instance, deadline: float) -> None:
    """Wait until etcd has a quorum without this master; at the deadline, remove what has no place in it."""
    if not machines.is_running(instance):
        return
    clock = machines.cloud.clock
    references = instance.boot_data.references
    group = machines.cloud.stack(references["stack"]).resources[references["resource"]]
    cluster = machines.clusters_by_volume.get(references["volumeId"])
    if (
        cluster is None
        or not _is_needed(machines, cluster, instance)
        or group.status.startswith("DELETE_")
        or cluster.backups.pending_restore(references.get("bucket", ""), references["volumeId"])
    ):
        _complete(machines, instance)
    elif clock.now >= deadline:
        _leave(machines, cluster, instance)
        _complete(machines, instance)
    else:
        _call(machines, instance, "record_lifecycle_action_heartbeat")
        clock.schedule(QUORUM_CHECK_SECONDS, functools.partial(_await_quorum, machines, instance, deadline))


def _is_needed(machines: Machines, cluster: KubernetesCluster, instance: Instance) -> bool:
    """Return whether etcd has no quorum without the member of this master."""
    working = set(machines.running_members(cluster))
    return instance.id in working and 2 * len(working - {instance.id}) <= len(cluster.members)


def _leave(machines: Machines, cluster: KubernetesCluster, instance: Instance) -> None:
    """Remove the members of etcd that do not work, and this one too if only one other works."""
    working = set(machines.running_members(cluster))
    if not machines.has_quorum(cluster) or working == {instance.id}:
        return
    for instance_id in set(cluster.members.values()) - working:
        machines.remove_member(cluster, instance_id)
    if len(working) == 2:
        machines.remove_member(cluster, instance.id)


def _complete(machines: Machines, instance: Instance) -> None:
    if machines.is_running(instance):
        _call(machines, instance, "complete_lifecycle_action", LifecycleActionResult="CONTINUE")


def _call(
    machines: Machines,
    instance: Instance,
    operation: Literal["record_lifecycle_action_heartbeat", "complete_lifecycle_action"],
    **arguments: str,
) -> None:
    hook = HOOK_BY_ROLE[instance.boot_data.configuration["role"]]
    with contextlib.suppress(ClientError):  # the hook may be deleted, or timed out
        getattr(client("autoscaling", machines.region), operation)(
            LifecycleHookName=hook, AutoScalingGroupName=instance.group, InstanceId=instance.id, **arguments
        )
