"""The states of a cluster's masters and node groups, from their Auto Scaling groups and their Nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from cfngen.cluster.model import Cluster
from cfngen.deploy.access.kubernetes_objects import Node
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.groups import GroupView
from cfngen.deploy.aws.pause import PauseState
from cfngen.deploy.aws.snapshots import BUCKET_OUTPUT, REQUEST_KEY, SnapshotStore
from cfngen.deploy.aws.types import JsonObject
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.status.cluster_status import (
    AddonState,
    BackupState,
    BastionState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    Unknown,
)
from cfngen.hints import suggest


def masters_and_node_groups(
    groups: tuple[GroupView, ...] | Unknown,
    image_dates: dict[str, datetime] | Unknown,
    nodes: tuple[Node, ...] | None,
) -> tuple[tuple[MasterState, ...] | Unknown, tuple[GroupState, ...] | Unknown]:
    """Return the states of the masters and of the node groups, each `Unknown` if their groups could not be read.

    Args:
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


CERTIFICATES_CONFIG_MAP, ADDONS_CONFIG_MAP = "cfngen-certificates", "cfngen-addons"  # names of the ConfigMaps
MAX_MISSED_INTERVALS = 3  # backups are late if the newest snapshot is older than this number of intervals


def read_backups(account: Account, outputs: Mapping[str, str], cluster: Cluster) -> BackupState | None:
    """Return the state of etcd's backups; None if the cluster has no bucket for them.

    Raises:
        CfngenError: the bucket cannot be read.
    """
    bucket = outputs.get(BUCKET_OUTPUT, "")
    if not bucket:
        return None
    store = SnapshotStore(account, bucket, cluster.name)
    interval = cluster.etcd.backups.interval  # minutes
    snapshots = store.snapshots()
    newest = snapshots[0].time if snapshots else None
    is_late = newest is None or account.clock.now() - newest > timedelta(minutes=MAX_MISSED_INTERVALS * interval)
    return BackupState(
        bucket=bucket,
        newest=newest,
        interval=interval,
        late=is_late,
        restoring=str(store.read(REQUEST_KEY).get("snapshot", "")),
    )


def parse_addons(data: Mapping[str, str]) -> tuple[AddonState, ...]:
    """Return the add-ons in the data of the masters' ConfigMap."""
    return tuple(
        AddonState(
            name=name,
            version=str(report.get("version", "")),
            status=str(report.get("status", "")),
            time=_parse_time(report.get("time")),
            message=str(report.get("message", "")),
        )
        for name, report in _parse_reports(data)
    )


def parse_certificates(data: Mapping[str, str], masters: tuple[MasterState, ...]) -> tuple[Expiry, ...]:
    """Return when the masters' certificates expire, from the data of their ConfigMap.

    Args:
        data: a report in JSON, by the instance id of the master that wrote it; reports of other instances are ignored.
    """
    slot_by_instance = {master.instance: master.slot for master in masters if master.instance}
    slots_and_reports = [
        (slot_by_instance[instance], report)
        for instance, report in _parse_reports(data)
        if instance in slot_by_instance
    ]
    slots_and_reports.sort(key=lambda slot_and_report: slot_and_report[0])
    return tuple(
        Expiry(what=f"master {slot}: {report.get('which', 'certificate')}", ends=ends)
        for slot, report in slots_and_reports
        if (ends := _parse_time(report.get("expires")))
    )


def _parse_reports(data: Mapping[str, str]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the keys and JSON objects in the data of a ConfigMap; anything else in it is ignored."""
    for name, text in sorted(data.items()):
        try:
            content = json.loads(text)
        except ValueError:
            continue
        if isinstance(content, dict):
            yield name, content


def _parse_time(text: object) -> datetime | None:
    """Return a time in ISO 8601 with its time zone; None if the text is anything else."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else None


def with_pause(status: ClusterStatus, pause: PauseState | None, authority_name: str) -> ClusterStatus:
    """Return the status of a cluster, with its pause if it is paused.

    Args:
        authority_name: what the expiry of the certificate authority is called, which also counts during a pause.
    """
    if pause is None:
        return status
    status = replace(status, pause=pause)
    if status.stack.health == StackHealth.HEALTHY.value:
        status = replace(status, next_command=suggest("resume"))
    if not pause.complete:
        return status
    backups = status.backups
    return replace(
        status,
        api=Unknown("the cluster is paused"),
        kubelets=None,
        persistent_volumes=None,
        addons=None,
        # The masters make the other certificates and the join token anew when they boot.
        certificates=tuple(expiry for expiry in status.certificates if expiry.what == authority_name),
        backups=replace(backups, late=False) if isinstance(backups, BackupState) else backups,
    )
