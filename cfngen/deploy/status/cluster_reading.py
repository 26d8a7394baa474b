"""Reads everything of a cluster that has resources, with many calls in parallel; what fails is `Unknown`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import CONNECT_TIMEOUT_SECONDS, Endpoint
from cfngen.deploy.access.authorities import read_join_information
from cfngen.deploy.access.certificates import server_certificate_validity
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.access.kubernetes_objects import Node
from cfngen.deploy.aws import protection, stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import LostAddress, find_lost_addresses
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.failure_events import read_operation
from cfngen.deploy.aws.groups import GroupView, find_groups, read_image_dates
from cfngen.deploy.aws.launched_versions import RetypedSlot, StaleGroup, find_retyped_slots, find_stale_groups
from cfngen.deploy.aws.operation_events import was_cancelled
from cfngen.deploy.aws.private_network import PrivateNetwork, read_private_network
from cfngen.deploy.aws.snapshots import BUCKET_OUTPUT, REQUEST_KEY, SnapshotStore
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, list_resources, read_status_time
from cfngen.deploy.aws.volumes import read_volumes
from cfngen.deploy.status.boots import Boots, read_boots
from cfngen.deploy.status.cluster_status import ApiState, BackupState, Unknown, VolumeState
from cfngen.errors import CfngenError

# Services whose clients the reading threads use.
SERVICES = ("autoscaling", "cloudformation", "ec2", "s3", "secretsmanager")
MAX_PARALLEL_CALLS = 12
Value = TypeVar("Value")


@dataclass(frozen=True)
class KubernetesState:
    """The data that was read from the Kubernetes API.

    Attributes:
        certificates: data of the ConfigMap in which masters report the expiry of their certificates.
        addons: data of the ConfigMap in which masters report the add-ons that they installed.
    """

    api: ApiState
    nodes: tuple[Node, ...]
    volumes: int | Unknown
    certificates: Mapping[str, str] | Unknown
    addons: Mapping[str, str] | Unknown


@dataclass(frozen=True)
class Differences:
    """What shows how launch templates, addresses and a private cluster's network differ from the stacks."""

    stale_groups: tuple[StaleGroup, ...] | Unknown = ()
    retyped_slots: tuple[RetypedSlot, ...] | Unknown = ()
    lost_addresses: tuple[LostAddress, ...] | Unknown = ()
    network: PrivateNetwork | Unknown = field(default_factory=PrivateNetwork)


@dataclass(frozen=True)
class ClusterReading:
    """Everything that was read of a cluster with resources; what could not be read is `Unknown`.

    Attributes:
        without_policy: names of the stacks without the stack policy that they should have.
        cancelled: whether the last operation was cancelled by somebody.
        image_dates: when the masters' machine images were created, by image id.
        boots: what is known of the boots of masters, if the Kubernetes API could not be read.
    """

    since: datetime | Unknown
    without_policy: tuple[str, ...] | Unknown
    cancelled: bool | Unknown
    resources: tuple[ResourceView, ...] | Unknown
    groups: tuple[GroupView, ...] | Unknown
    differences: Differences
    image_dates: dict[str, datetime] | Unknown
    volumes: tuple[VolumeState, ...] | Unknown
    backups: BackupState | Unknown | None
    endpoint: Endpoint | Unknown
    kubernetes: KubernetesState | Unknown
    authority_expiry: datetime | Unknown
    serving_expiry: datetime | Unknown
    token_expiry: datetime | Unknown
    boots: Boots = field(default_factory=Boots)


class _UnknownError(CfngenError):
    """A value cannot be read, because it depends on another value that could not be read."""


def read_cluster(
    account: Account, cluster: Cluster, stack: StackView, find_url_override: FindApiUrlOverride
) -> ClusterReading:
    """Read a cluster; `find_url_override` returns the URL at which the API listens, if it is not the stack's output."""
    account.create_clients(SERVICES)
    with ThreadPoolExecutor(MAX_PARALLEL_CALLS, thread_name_prefix="status") as pool:
        return _Reader(account, cluster, stack, pool).read(find_url_override)


@dataclass(frozen=True)
class _Reader:
    """Reads a cluster that has resources; calls that do not depend on each other are made in threads of the pool."""

    account: Account
    cluster: Cluster
    stack: StackView
    pool: ThreadPoolExecutor

    def read(self, find_url_override: FindApiUrlOverride) -> ClusterReading:
        """Read everything; a part that cannot be read, or that depends on such a part, is `Unknown`."""
        account, cluster, stack = self.account, self.cluster, self.stack
        since = self._submit(lambda: read_status_since(account, stack))
        without_policy = self._submit(lambda: _find_stacks_without_policy(account, stack))
        cancelled = self._submit(lambda: read_cancelled(account, stack))
        outputs = read_or_unknown(lambda: stacks.read_outputs(account, stack))
        endpoint = read_or_unknown(lambda: cluster_access.find_api_endpoint(stack, require(outputs), find_url_override))
        kubernetes = self.pool.submit(_read_kubernetes, account, stack, outputs, endpoint)
        serving_expiry = self._submit(lambda: _read_serving_certificate_expiry(require(endpoint)))
        backups = self._submit(lambda: read_backups(account, require(outputs), cluster))
        resources = read_or_unknown(lambda: _read_all_resources(account, stack, self.pool))
        groups = self._submit(lambda: find_groups(account, cluster, require(resources)))
        image_dates = self._submit(lambda: _read_masters_image_dates(account, require(groups.result())))
        volumes = self._submit(lambda: _read_volume_states(account, require(resources)))
        token_expiry = self._submit(lambda: _read_join_token_expiry(account, require(resources)))
        differences = self._compare(resources)
        authority_expiry, kubernetes_state = kubernetes.result()
        boots = Boots()
        if isinstance(kubernetes_state, Unknown) and not isinstance(all_groups := groups.result(), Unknown):
            boots = read_boots(account, all_groups, None)
        return ClusterReading(
            since=since.result(),
            without_policy=without_policy.result(),
            cancelled=cancelled.result(),
            resources=resources,
            groups=groups.result(),
            differences=differences,
            image_dates=image_dates.result(),
            volumes=volumes.result(),
            backups=backups.result(),
            endpoint=endpoint,
            kubernetes=kubernetes_state,
            authority_expiry=authority_expiry,
            serving_expiry=serving_expiry.result(),
            token_expiry=token_expiry.result(),
            boots=boots,
        )

    def _compare(self, resources: tuple[ResourceView, ...] | Unknown) -> Differences:
        account, cluster, stack = self.account, self.cluster, self.stack
        if stack.status.in_progress:
            # Groups, addresses and routes are being changed, so a difference is not a problem.
            return Differences()
        stale_groups = self._submit(lambda: find_stale_groups(account, require(resources)))
        retyped_slots = self._submit(lambda: find_retyped_slots(account, require(resources)))
        lost_addresses = self._submit(lambda: find_lost_addresses(account, require(resources), stack.parameters))
        network: PrivateNetwork | Unknown = PrivateNetwork()
        if is_private(cluster):
            network = read_or_unknown(lambda: read_private_network(account, cluster, stack, require(resources)))
        return Differences(stale_groups.result(), retyped_slots.result(), lost_addresses.result(), network)

    def _submit(self, read: Callable[[], Value]) -> Future[Value | Unknown]:
        """Call a function in a thread of the pool; its result is `Unknown` if the function fails."""
        return self.pool.submit(read_or_unknown, read)


def read_or_unknown(read: Callable[[], Value]) -> Value | Unknown:
    """Call a function and return its result, or `Unknown` with the reason if it fails."""
    try:
        with translate_aws_errors():
            return read()
    except CfngenError as error:
        return Unknown(str(error), error.hint, error.code)


def require(value: Value | Unknown) -> Value:
    """Return a value that another value depends on.

    Raises:
        _UnknownError: `value` is `Unknown`, so the value that depends on it cannot be read either.
    """
    if isinstance(value, Unknown):
        raise _UnknownError(value.unknown, hint=value.hint)
    return value


def read_status_since(account: Account, stack: StackView) -> datetime:
    """Return when a stack got its status.

    Raises:
        CfngenError: CloudFormation has no events of the stack any more.
    """
    time = read_status_time(account, stack)
    if time is None:
        raise _UnknownError("CloudFormation no longer has events for it")
    return time


def read_cancelled(account: Account, stack: StackView) -> bool:
    """Return whether somebody cancelled the last operation of a stack, which was rolled back then."""
    return stack.status.is_back and was_cancelled(read_operation(account, stack.id))


def _find_stacks_without_policy(account: Account, stack: StackView) -> tuple[str, ...]:
    """Return the names of the stacks without a stack policy; none if the next deployment would not set policies.

    Deployments set no policies on stacks that were created in the console, and update only stacks in certain statuses.
    """
    is_updatable = stack.status.change_set_type == "UPDATE"
    is_created_by_cfngen = bool(stack.cluster)
    if not (is_updatable and is_created_by_cfngen):
        return ()
    return protection.find_stacks_without_policy(account, stack)


def _read_kubernetes(
    account: Account, stack: StackView, outputs: Mapping[str, str] | Unknown, endpoint: Endpoint | Unknown
) -> tuple[datetime | Unknown, KubernetesState | Unknown]:
    """Return when the certificate authority expires, and the data from the Kubernetes API; each may be unknown."""
    authority = read_or_unknown(lambda: cluster_access.find_authority(account, stack, require(outputs)))

    def read_api() -> KubernetesState:
        ca = require(authority)
        with cluster_access.connect_as_administrator(require(endpoint), ca, account.caller, account.clock.now()) as api:
            readiness = api.readiness()
            return KubernetesState(
                api=ApiState(version=api.version(), ready=readiness.ready, failing=readiness.failing),
                nodes=api.nodes(),
                volumes=read_or_unknown(lambda: len(api.persistent_volumes())),
                certificates=read_or_unknown(lambda: api.config_map(CERTIFICATES_CONFIG_MAP)),
                addons=read_or_unknown(lambda: api.config_map(ADDONS_CONFIG_MAP)),
            )

    kubernetes = read_or_unknown(read_api)
    return authority if isinstance(authority, Unknown) else authority.expires, kubernetes


def _read_serving_certificate_expiry(endpoint: Endpoint) -> datetime:
    return server_certificate_validity(endpoint.host, endpoint.port, timeout=CONNECT_TIMEOUT_SECONDS).ends


def _read_all_resources(account: Account, stack: StackView, pool: ThreadPoolExecutor) -> tuple[ResourceView, ...]:
    """Return the resources of a stack and its nested stacks; stacks of one level of nesting are read in parallel."""
    all_resources: list[ResourceView] = []
    stack_ids = [stack.id]
    while stack_ids:
        resources_per_stack = pool.map(lambda stack_id: list_resources(account, stack_id), stack_ids)
        level = [resource for stack_resources in resources_per_stack for resource in stack_resources]
        all_resources += level
        stack_ids = [
            resource.physical_id
            for resource in level
            if resource.type == NESTED_STACK and resource.physical_id and resource.status != "DELETE_COMPLETE"
        ]
    return tuple(all_resources)


def _read_masters_image_dates(account: Account, groups: Iterable[GroupView]) -> dict[str, datetime]:
    masters = (group for group in groups if group.role == "master")
    return read_image_dates(account, {instance.image for group in masters for instance in group.instances})


def _read_volume_states(account: Account, stack_resources: Iterable[ResourceView]) -> tuple[VolumeState, ...]:
    slots = {
        resource.physical_id: master.letter
        for resource in stack_resources
        if resource.type == "AWS::EC2::Volume" and resource.physical_id and resource.status != "DELETE_COMPLETE"
        if (master := MasterId.parse(resource.logical_id))
    }
    volumes = read_volumes(account, slots)
    return tuple(
        VolumeState(slot=slot, **asdict(volumes[volume_id]))
        if volume_id in volumes
        else VolumeState(slot=slot, id=volume_id)
        for volume_id, slot in sorted(slots.items(), key=lambda item: item[1])
    )


def _read_join_token_expiry(account: Account, stack_resources: Iterable[ResourceView]) -> datetime:
    arns = [
        resource.physical_id
        for resource in stack_resources
        if resource.logical_id == "JoinSecret" and resource.physical_id
    ]
    if not arns:
        raise _UnknownError("the stack has no join secret yet")
    return read_join_information(account, arns[0]).expires


CERTIFICATES_CONFIG_MAP, ADDONS_CONFIG_MAP = "cfngen-certificates", "cfngen-addons"  # names of the ConfigMaps
MAX_MISSED_INTERVALS = 3  # backups are late if the newest snapshot is older than this number of intervals


def read_backups(account: Account, outputs: Mapping[str, str], cluster: Cluster) -> BackupState | None:
    """Return the state of etcd's backups; None if the cluster has no bucket for them."""
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
