"""The states of a cluster's masters and node groups, from their Auto Scaling groups and their Nodes."""

from __future__ import annotations

from datetime import datetime
from itertools import chain

from cfngen.deploy.access.kubernetes_objects import Node
from cfngen.deploy.inspection.cluster_status import BastionState, GroupState, MasterState, Unknown
from cfngen.deploy.inspection.machines import GroupView


def masters_and_node_groups(
    groups: tuple[GroupView, ...] | Unknown,
    image_dates: dict[str, datetime] | Unknown,
    nodes: tuple[Node, ...] | None,
) -> tuple[tuple[MasterState, ...] | Unknown, tuple[GroupState, ...] | Unknown]:
    """Return the states of the masters and of the node groups, each `Unknown` if their groups could not be read.

    Args:
        groups: the Auto Scaling groups of the masters and the node groups.
        image_dates: when the masters' machine images were created, by image id.
        nodes: the Nodes; None if the Kubernetes API could not be read.
    """
    if isinstance(groups, Unknown):
        return groups, groups
    if isinstance(image_dates, Unknown):
        image_dates = {}
    ready_instance_ids = None if nodes is None else {node.instance_id or node.name for node in nodes if node.ready}
    masters = chain.from_iterable(
        _master_states(group, image_dates, ready_instance_ids) for group in groups if group.role == "master"
    )
    node_groups = (_group_state(group, ready_instance_ids) for group in groups if group.role == "node")
    return tuple(masters), tuple(node_groups)


def _master_states(
    group: GroupView, image_dates: dict[str, datetime], ready_instance_ids: set[str] | None
) -> list[MasterState]:
    """Return the state of each instance of a master's group; if it has none, one state without an instance."""
    if not group.instances:
        return [MasterState(slot=group.name)]
    return [
        MasterState(
            slot=group.name,
            instance=instance.id,
            lifecycle=instance.lifecycle_and_health,
            state=instance.state,
            zone=instance.zone,
            address=instance.address,
            type=instance.type,
            image=instance.image,
            image_created=image_dates.get(instance.image),
            launched=instance.launched,
            current=instance.current,
            ready=None if ready_instance_ids is None else instance.id in ready_instance_ids,
        )
        for instance in group.instances
    ]


def _group_state(group: GroupView, ready_instance_ids: set[str] | None) -> GroupState:
    """Return the state of a node group; `ready_instance_ids` is None if the Kubernetes API could not be read."""
    return GroupState(
        name=group.name,
        desired=group.desired,
        in_service=group.in_service,
        ready=None
        if ready_instance_ids is None
        else sum(instance.id in ready_instance_ids for instance in group.instances),
        minimum=group.minimum,
        maximum=group.maximum,
        types=tuple(sorted({instance.type for instance in group.instances if instance.type})),
        outdated=sum(not instance.current for instance in group.instances if not instance.leaving),
    )


def bastion_state(groups: tuple[GroupView, ...] | Unknown) -> BastionState | Unknown | None:
    """Return the state of the bastion: of its newest instance; None if the cluster has no bastion."""
    if isinstance(groups, Unknown):
        return None
    group = next((group for group in groups if group.role == "bastion"), None)
    if group is None:
        return None
    # While the bastion is replaced, its group has an instance that is terminating beside the new one.
    instances = sorted(group.instances, key=lambda instance: instance.leaving)
    if not instances:
        return BastionState()
    instance = instances[0]
    return BastionState(
        instance=instance.id,
        in_service=instance.in_service,
        lifecycle=instance.lifecycle_and_health,
        state=instance.state,
        zone=instance.zone,
        address=instance.public_address,
        type=instance.type,
        launched=instance.launched,
        current=instance.current,
    )


def all_nodes_ready(masters: tuple[MasterState, ...] | Unknown, node_groups: tuple[GroupState, ...] | Unknown) -> bool:
    """Return whether every master and every desired instance of the node groups is a Ready Node."""
    if isinstance(masters, Unknown) or isinstance(node_groups, Unknown):
        return False
    return all(master.ready for master in masters) and all(group.ready == group.desired for group in node_groups)
