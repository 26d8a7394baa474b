"""Reading the status of a cluster: many calls side by side, none of which may fail the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from cfngen.cluster.model import Cluster
from cfngen.deploy import protection
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import CONNECT, Endpoint
from cfngen.deploy.access.authorities import read_join_information
from cfngen.deploy.access.certificates import served
from cfngen.deploy.access.cluster_access import Override
from cfngen.deploy.access.kubernetes_objects import Node
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.inspection import drift, reports
from cfngen.deploy.inspection.cluster_status import (
    AddonState,
    ApiState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    StackState,
    Unknown,
    VolumeState,
    next_command,
    stack_state,
)
from cfngen.deploy.inspection.machines import Group, groups
from cfngen.deploy.inspection.versions import wanted_version
from cfngen.deploy.messages import Report, Step
from cfngen.deploy.public_addresses import lost_addresses
from cfngen.deploy.stacks import NESTED, ResourceView, StackView, find, resources, stack_name
from cfngen.deploy.stale_groups import StaleGroup, stale_groups
from cfngen.deploy.status import StackStatus
from cfngen.errors import CfngenError

SERVICES = ("autoscaling", "cloudformation", "ec2", "s3", "secretsmanager")
CALLS = 12  # at a time
# Nothing has been created, or everything has been deleted again.
WITHOUT_RESOURCES = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")
AUTHORITY, SERVING, TOKEN = "certificate authority", "API server's certificate", "join token"
Value = TypeVar("Value")


@dataclass(frozen=True)
class _Inside:
    """What the Kubernetes API says."""

    api: ApiState
    nodes: tuple[Node, ...]
    volumes: int | Unknown
    certificates: Mapping[str, str] | Unknown
    addons: Mapping[str, str] | Unknown


class _UnknownError(CfngenError):
    """Something else that could not be read is needed here."""


def read_status(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    override: Override = cluster_access.nowhere,
    detect_drift: bool = False,
    report: Report = lambda message: None,
) -> ClusterStatus:
    """Return all that is known about a cluster.

    Args:
        account: where it is.
        stack_name: name of its root stack.
        cluster: the cluster file.
        override: where its API really listens.
        detect_drift: whether to let CloudFormation compare the resources with the templates, which takes a while.
        report: told of what takes a while.

    Raises:
        AwsError: not even the stack can be read.
    """
    with translate_aws_errors():
        stack = find(account, stack_name)
    now, wanted = account.clock.now(), wanted_version(cluster)
    head = (cluster.name, account.region, account.id, now)
    if stack is None:
        return ClusterStatus(*head, StackState(stack_name), next_command(StackStatus("")), wanted)
    if stack.status.name in WITHOUT_RESOURCES:
        state = stack_state(stack, _tried(lambda: _since(account, stack)))
        return ClusterStatus(*head, state, next_command(stack.status), wanted)
    for service in SERVICES:
        account.client(service)  # boto3 makes clients in one thread only, and lets many use them
    with ThreadPoolExecutor(CALLS, thread_name_prefix="status") as pool:
        since = pool.submit(_tried, lambda: _since(account, stack))
        unguarded = pool.submit(_tried, lambda: _without_policy(account, stack))
        values = _tried(lambda: cluster_access.outputs(account, stack))
        where = _tried(lambda: cluster_access.endpoint(stack, _known(values), override))
        inside = pool.submit(_reach, account, stack, values, where)
        serving = pool.submit(_tried, lambda: _served(_known(where)))
        members = _tried(lambda: _members(account, stack, pool))
        seen = pool.submit(_tried, lambda: groups(account, cluster, _known(members)))
        # While a stack is at work, groups are on their way from one version to the next.
        behind = pool.submit(_tried, lambda: () if stack.status.in_progress else stale_groups(account, _known(members)))
        lost = pool.submit(
            _tried,
            lambda: () if stack.status.in_progress else lost_addresses(account, _known(members), stack.parameters),
        )
        images = pool.submit(_tried, lambda: _images(account, _known(seen.result())))
        volumes = pool.submit(_tried, lambda: _volumes(account, _known(members)))
        token = pool.submit(_tried, lambda: _token(account, _known(members)))
        backups = pool.submit(_tried, lambda: reports.backups(account, _known(values), cluster))
        authority, kubernetes = inside.result()
    missing = lost.result()
    found = None
    if detect_drift:
        report(Step("CloudFormation compares the resources with the templates"))
        found = _tried(lambda: drift.detect(account, _stacks(stack, _known(members))))
    nodes = kubernetes.nodes if isinstance(kubernetes, _Inside) else None
    masters, node_groups = _machines(seen, images, nodes)
    healthy = isinstance(kubernetes, _Inside) and kubernetes.api.ready and _complete(masters, node_groups)
    return ClusterStatus(
        *head,
        stack_state(stack, since.result(), unguarded.result()),
        next_command(
            stack.status,
            healthy=healthy,
            left_behind=_any(behind.result()),
            lost_addresses=() if isinstance(missing, Unknown) else missing,
        ),
        wanted,
        where.url if isinstance(where, Endpoint) else where,
        kubernetes.api if isinstance(kubernetes, _Inside) else kubernetes,
        Counter(node.version for node in nodes) if nodes is not None else _without(kubernetes),
        masters,
        node_groups,
        (
            Expiry(AUTHORITY, authority),
            Expiry(SERVING, serving.result()),
            Expiry(TOKEN, token.result()),
            *_of_masters(kubernetes, masters),
        ),
        volumes.result(),
        kubernetes.volumes if isinstance(kubernetes, _Inside) else kubernetes,
        backups.result(),
        _addons(kubernetes),
        found,
        behind.result() or None,
        missing or None,
    )


def _any(found: tuple[StaleGroup, ...] | Unknown) -> bool:
    return not isinstance(found, Unknown) and bool(found)


def _tried(read: Callable[[], Value]) -> Value | Unknown:
    """Return what is read, or why it cannot be."""
    try:
        with translate_aws_errors():
            return read()
    except CfngenError as error:
        return Unknown(str(error), error.hint)


def _without_policy(account: Account, stack: StackView) -> tuple[str, ...]:
    """Return which stacks have no stack policy that the next deployment sets.

    A stack from the console is its maker's, and in any other status no deployment can go on with the stack.
    """
    deployable = stack.status.change_set_kind == "UPDATE"
    return protection.missing(account, stack) if deployable and stack.cluster else ()


def _known(value: Value | Unknown) -> Value:
    """Return what was read before.

    Raises:
        _UnknownError: it could not be.
    """
    if isinstance(value, Unknown):
        raise _UnknownError(value.unknown, hint=value.hint)
    return value


def _without(kubernetes: _Inside | Unknown) -> Unknown:
    return kubernetes if isinstance(kubernetes, Unknown) else Unknown("")


def _of_masters(kubernetes: _Inside | Unknown, masters: tuple[MasterState, ...] | Unknown) -> tuple[Expiry, ...]:
    """Return when the certificates of the masters end, as far as they say so."""
    if isinstance(kubernetes, Unknown) or isinstance(kubernetes.certificates, Unknown) or isinstance(masters, Unknown):
        return ()
    return reports.certificates(kubernetes.certificates, masters)


def _addons(kubernetes: _Inside | Unknown) -> tuple[AddonState, ...] | Unknown | None:
    """Return the add-ons; None where the masters have not reported any yet."""
    if isinstance(kubernetes, Unknown):
        return None
    if isinstance(kubernetes.addons, Unknown):
        return kubernetes.addons
    return reports.addons(kubernetes.addons) or None


def _since(account: Account, stack: StackView) -> datetime:
    """Return since when a stack has its status: the time of its own newest event."""
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    for page in pages:
        for event in page["StackEvents"]:
            if event.get("PhysicalResourceId") == stack.id:
                moment: datetime = event["Timestamp"]
                return moment
    raise _UnknownError("CloudFormation has no events of it any more")


def _reach(
    account: Account, stack: StackView, values: Mapping[str, str] | Unknown, where: Endpoint | Unknown
) -> tuple[datetime | Unknown, _Inside | Unknown]:
    """Return when the certificate authority ends, and what the API says."""
    authority = _tried(lambda: cluster_access.authority(account, stack, _known(values)))

    def inside() -> _Inside:
        found = _known(authority)
        with cluster_access.connection(_known(where), found, account.caller, account.clock.now()) as api:
            readiness = api.readiness()
            state = ApiState(api.version(), readiness.ready, readiness.failing)
            return _Inside(
                state,
                api.nodes(),
                _tried(lambda: len(api.persistent_volumes())),
                _tried(lambda: api.config_map(reports.CERTIFICATES)),
                _tried(lambda: api.config_map(reports.ADDONS)),
            )

    kubernetes = _tried(inside)
    return authority if isinstance(authority, Unknown) else authority.ends, kubernetes


def _served(where: Endpoint) -> datetime:
    return served(where.host, where.port, timeout=CONNECT).ends


def _members(account: Account, stack: StackView, pool: ThreadPoolExecutor) -> tuple[ResourceView, ...]:
    """Return the resources of a stack and of those it nests, each level of them read at once."""
    found: list[ResourceView] = []
    level = [stack.id]
    while level:
        views = [each for listed in pool.map(lambda one: resources(account, one), level) for each in listed]
        found += views
        level = [
            view.physical_id
            for view in views
            if view.type == NESTED and view.physical_id and view.status != "DELETE_COMPLETE"
        ]
    return tuple(found)


def _stacks(stack: StackView, members: Iterable[ResourceView]) -> dict[str, str]:
    """Return the names of a stack and of those it nests, by ARN."""
    nested = {member.physical_id: stack_name(member.physical_id) for member in members if member.type == NESTED}
    return {stack.id: stack.name, **{key: name for key, name in nested.items() if key}}


def _images(account: Account, found: Sequence[Group]) -> dict[str, datetime]:
    """Return when the masters' images were made; those that are gone or not ours to see are left out."""
    ids = sorted(
        {instance.image for group in found if group.role == "master" for instance in group.instances if instance.image}
    )
    if not ids:
        return {}
    chosen = [{"Name": "image-id", "Values": ids}]
    answer = account.client("ec2").describe_images(Filters=chosen, IncludeDeprecated=True)
    return {
        image["ImageId"]: datetime.fromisoformat(image["CreationDate"].replace("Z", "+00:00"))
        for image in answer["Images"]
        if image.get("CreationDate")
    }


def _volumes(account: Account, members: Iterable[ResourceView]) -> tuple[VolumeState, ...]:
    slots = {
        member.physical_id: member.logical_id.removeprefix("Master").removesuffix("Volume").lower()
        for member in members
        if member.type == "AWS::EC2::Volume" and member.physical_id and member.status != "DELETE_COMPLETE"
    }
    if not slots:
        return ()
    chosen = [{"Name": "volume-id", "Values": list(slots)}]
    answer = account.client("ec2").describe_volumes(Filters=chosen)["Volumes"]
    described: dict[str, Any] = {each["VolumeId"]: each for each in answer}
    return tuple(
        _volume(slot, identifier, described.get(identifier, {}))
        for identifier, slot in sorted(slots.items(), key=lambda item: item[1])
    )


def _volume(slot: str, identifier: str, found: Any) -> VolumeState:
    attached: dict[str, Any] = next(iter(found.get("Attachments") or ()), {})
    return VolumeState(
        slot,
        identifier,
        state=found.get("State", ""),
        size=found.get("Size", 0),
        type=found.get("VolumeType", ""),
        zone=found.get("AvailabilityZone", ""),
        instance=attached.get("InstanceId", ""),
    )


def _token(account: Account, members: Iterable[ResourceView]) -> datetime:
    arns = [member.physical_id for member in members if member.logical_id == "JoinSecret" and member.physical_id]
    if not arns:
        raise _UnknownError("the stack has no join secret yet")
    return read_join_information(account, arns[0]).expires


def _machines(
    seen: Future[tuple[Group, ...] | Unknown],
    images: Future[dict[str, datetime] | Unknown],
    nodes: tuple[Node, ...] | None,
) -> tuple[tuple[MasterState, ...] | Unknown, tuple[GroupState, ...] | Unknown]:
    found, made = seen.result(), images.result()
    if isinstance(found, Unknown):
        return found, found
    ready = None if nodes is None else {node.instance_id or node.name for node in nodes if node.ready}
    created = {} if isinstance(made, Unknown) else made
    return (
        tuple(master for group in found if group.role == "master" for master in _masters(group, created, ready)),
        tuple(_group(group, ready) for group in found if group.role == "node"),
    )


def _masters(group: Group, created: dict[str, datetime], ready: set[str] | None) -> list[MasterState]:
    if not group.instances:
        return [MasterState(group.name)]
    return [
        MasterState(
            group.name,
            instance.id,
            instance.lifecycle if instance.healthy else f"{instance.lifecycle}, unhealthy",
            instance.state,
            instance.zone,
            instance.address,
            instance.type,
            instance.image,
            created.get(instance.image),
            instance.launched,
            instance.current,
            None if ready is None else instance.id in ready,
        )
        for instance in group.instances
    ]


def _group(group: Group, ready: set[str] | None) -> GroupState:
    return GroupState(
        group.name,
        group.desired,
        group.in_service,
        None if ready is None else sum(instance.id in ready for instance in group.instances),
        group.minimum,
        group.maximum,
        tuple(sorted({instance.type for instance in group.instances if instance.type})),
        sum(not instance.current for instance in group.instances if not instance.leaving),
    )


def _complete(masters: tuple[MasterState, ...] | Unknown, found: tuple[GroupState, ...] | Unknown) -> bool:
    """Return whether every instance there should be is a Ready Node."""
    if isinstance(masters, Unknown) or isinstance(found, Unknown):
        return False
    return all(master.ready for master in masters) and all(each.ready == each.desired for each in found)
