"""Reads a cluster, and makes its status from what was read; a part that could not be read is unknown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.access.kubernetes_objects import Node
from cfngen.deploy.aws import drift
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.drift import Drift
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import GroupView
from cfngen.deploy.aws.pause import PauseState, find_pause
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, find_stack, stack_name
from cfngen.deploy.aws.types import JsonObject
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.status.cluster_problems import etcd_quorum, target_version
from cfngen.deploy.status.cluster_reading import (
    ClusterReading,
    Differences,
    KubernetesState,
    read_cluster,
    read_or_unknown,
    read_status_since,
    require,
)
from cfngen.deploy.status.cluster_status import (
    AddonState,
    BackupState,
    BastionState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    StackState,
    Unknown,
    next_command,
    stack_state,
)
from cfngen.deploy.status.differing_values import find_differing_values
from cfngen.deploy.status.network_problems import find_network_problems
from cfngen.deploy.status.status_problems import find_status_problems
from cfngen.hints import SuggestedCommand, suggest

# Statuses of stacks without resources: nothing has been created, or everything has been deleted again.
STATUSES_WITHOUT_RESOURCES = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")
AUTHORITY_NAME, SERVING_CERTIFICATE_NAME = "certificate authority", "API server's certificate"
JOIN_TOKEN_NAME = "join token"


def read_status(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    file_values: Callable[[], Mapping[str, str]] = dict,
    detect_drift: bool = False,
    report: Report = lambda message: None,
) -> ClusterStatus:
    """Return the status of a cluster.

    Args:
        file_values: returns what the cluster file says about the root's parameters, nothing without a file; called
            only where there is a stack to compare it with.
        detect_drift: whether to let CloudFormation detect drift, which takes some time.

    Raises:
        AwsError: the root stack itself cannot be read.
    """
    with translate_aws_errors():
        stack = find_stack(account, stack_name)
    make_status = partial(
        ClusterStatus,
        cluster=cluster.name,
        region=account.region,
        account=account.id,
        time=account.clock.now(),
        target_version=target_version(cluster),
        differing_values=find_differing_values(stack, file_values()) or None if stack and stack.parameters else None,
    )
    if stack is None:
        return make_status(stack=StackState(name=stack_name), next_command=next_command(StackStatus("")))
    if stack.status.name in STATUSES_WITHOUT_RESOURCES:
        state = stack_state(stack, read_or_unknown(lambda: read_status_since(account, stack)))
        command = next_command(stack.status, made_elsewhere=stack.made_elsewhere)
        return make_status(stack=state, next_command=command)
    reading = read_cluster(account, cluster, stack, find_url_override)
    drift_state = _detect_drift(account, cluster.name, stack, reading, report) if detect_drift else None
    return _status_of_reading(make_status, stack, reading, drift_state)


def _detect_drift(
    account: Account, cluster: str, stack: StackView, reading: ClusterReading, report: Report
) -> Drift | Unknown:
    report(Step("CloudFormation is comparing the resources with the templates"))
    return read_or_unknown(
        lambda: drift.detect_drift(account, _stack_names(stack, require(reading.resources)), cluster)
    )


def _status_of_reading(
    make_status: partial[ClusterStatus], stack: StackView, reading: ClusterReading, drift_state: Drift | Unknown | None
) -> ClusterStatus:
    """Return the status of a cluster with resources; `make_status` knows already what all statuses have."""
    kubernetes, differences, network = reading.kubernetes, reading.differences, reading.differences.network
    network_problems = network if isinstance(network, Unknown) else tuple(find_network_problems(network))
    nodes = None if isinstance(kubernetes, Unknown) else kubernetes.nodes
    masters, node_groups = masters_and_node_groups(reading.groups, reading.image_dates, nodes)
    bastion = bastion_state(reading.groups)
    is_healthy = (
        not isinstance(kubernetes, Unknown)
        and kubernetes.api.ready
        and all_nodes_ready(masters, node_groups)
        and (bastion is None or isinstance(bastion, Unknown) or bastion.in_service)
        and (not network_problems or isinstance(network_problems, Unknown))
    )
    status = make_status(
        stack=stack_state(stack, reading.since, reading.without_policy, cancelled=reading.cancelled),
        next_command=_next_command(stack, differences, is_healthy=is_healthy),
        endpoint=reading.endpoint if isinstance(reading.endpoint, Unknown) else reading.endpoint.url,
        api=_explain(kubernetes, reading) if isinstance(kubernetes, Unknown) else kubernetes.api,
        kubelets=(
            kubernetes if isinstance(kubernetes, Unknown) else Counter(node.version for node in kubernetes.nodes)
        ),
        masters=masters,
        node_groups=node_groups,
        bastion=bastion,
        certificates=_expiries(reading, masters),
        volumes=reading.volumes,
        persistent_volumes=kubernetes if isinstance(kubernetes, Unknown) else kubernetes.volumes,
        backups=reading.backups,
        addons=_addon_states(kubernetes),
        drift=drift_state,
        stale_groups=differences.stale_groups or None,
        retyped_slots=differences.retyped_slots or None,
        lost_addresses=differences.lost_addresses or None,
        network_problems=network_problems or None,
    )
    pause = None if isinstance(reading.groups, Unknown) else find_pause(reading.groups)
    status = with_pause(status, pause)
    return replace(status, problems=tuple(find_status_problems(status)))


def _explain(api: Unknown, reading: ClusterReading) -> Unknown:
    """Return why the API could not be read, with what its masters are doing as the hint."""
    if isinstance(reading.groups, Unknown):
        return api
    quorum = etcd_quorum(sum(group.role == "master" for group in reading.groups))
    return replace(api, hint=reading.boots.explain_silence(reading.groups, quorum) or api.hint)


def _next_command(stack: StackView, differences: Differences, *, is_healthy: bool) -> str | SuggestedCommand:
    return next_command(
        stack.status,
        made_elsewhere=stack.made_elsewhere,
        healthy=is_healthy,
        stale_groups=bool(differences.stale_groups) and not isinstance(differences.stale_groups, Unknown),
        lost_addresses=() if isinstance(differences.lost_addresses, Unknown) else differences.lost_addresses,
    )


def _expiries(reading: ClusterReading, masters: tuple[MasterState, ...] | Unknown) -> tuple[Expiry, ...]:
    """Return when certificates and the join token expire; masters' certificates only if their reports were read."""
    kubernetes = reading.kubernetes
    reports = kubernetes if isinstance(kubernetes, Unknown) else kubernetes.certificates
    return (
        Expiry(what=AUTHORITY_NAME, ends=reading.authority_expiry),
        Expiry(what=SERVING_CERTIFICATE_NAME, ends=reading.serving_expiry),
        Expiry(what=JOIN_TOKEN_NAME, ends=reading.token_expiry),
        *(() if isinstance(reports, Unknown) or isinstance(masters, Unknown) else parse_certificates(reports, masters)),
    )


def _addon_states(kubernetes: KubernetesState | Unknown) -> tuple[AddonState, ...] | Unknown | None:
    """Return the add-ons; None where the masters have not reported any yet."""
    if isinstance(kubernetes, Unknown):
        return None
    if isinstance(kubernetes.addons, Unknown):
        return kubernetes.addons
    return parse_addons(kubernetes.addons) or None


def _stack_names(stack: StackView, stack_resources: Iterable[ResourceView]) -> dict[str, str]:
    nested = {
        resource.physical_id: stack_name(resource.physical_id)
        for resource in stack_resources
        if resource.type == NESTED_STACK
    }
    # A nested stack that has not been created yet has no ARN.
    return {stack.id: stack.name, **{arn: name for arn, name in nested.items() if arn}}


def masters_and_node_groups(
    groups: tuple[GroupView, ...] | Unknown, image_dates: dict[str, datetime] | Unknown, nodes: tuple[Node, ...] | None
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
        types=tuple(sorted({instance.type for instance in group.instances if instance.type})) or group.mixed_types,
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


def with_pause(status: ClusterStatus, pause: PauseState | None) -> ClusterStatus:
    """Return the status of a cluster, with its pause if it is paused."""
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
        certificates=tuple(expiry for expiry in status.certificates if expiry.what == AUTHORITY_NAME),
        backups=replace(backups, late=False) if isinstance(backups, BackupState) else backups,
    )
