"""Reads the status of a cluster with many calls in parallel; if one fails, only its part of the status is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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
from cfngen.deploy.aws import drift, protection, stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import find_lost_addresses
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, find_groups
from cfngen.deploy.aws.launched_versions import find_retyped_slots, find_stale_groups
from cfngen.deploy.aws.pause import find_pause
from cfngen.deploy.aws.private_network import read_private_network
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, find_stack, list_resources, stack_name
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status import parts
from cfngen.deploy.status.cluster_problems import Problem, target_version
from cfngen.deploy.status.cluster_status import (
    AddonState,
    ApiState,
    ClusterStatus,
    Expiry,
    MasterState,
    StackState,
    Unknown,
    VolumeState,
    next_command,
    stack_state,
)
from cfngen.deploy.status.network_problems import find_network_problems
from cfngen.deploy.status.parts import all_nodes_ready, bastion_state, masters_and_node_groups, with_pause
from cfngen.errors import CfngenError

# Services whose clients the reading threads use.
SERVICES = ("autoscaling", "cloudformation", "ec2", "s3", "secretsmanager")
MAX_PARALLEL_CALLS = 12
# Statuses of stacks without resources: nothing has been created, or everything has been deleted again.
STATUSES_WITHOUT_RESOURCES = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")
AUTHORITY_NAME, SERVING_CERTIFICATE_NAME = "certificate authority", "API server's certificate"
JOIN_TOKEN_NAME = "join token"
Value = TypeVar("Value")


@dataclass(frozen=True)
class _KubernetesState:
    """The data that was read from the Kubernetes API.

    Attributes:
        api: the API server.
        nodes: the Nodes.
        volumes: number of persistent volumes.
        certificates: data of the ConfigMap in which masters report the expiry of their certificates.
        addons: data of the ConfigMap in which masters report the add-ons that they installed.
    """

    api: ApiState
    nodes: tuple[Node, ...]
    volumes: int | Unknown
    certificates: Mapping[str, str] | Unknown
    addons: Mapping[str, str] | Unknown


class _UnknownError(CfngenError):
    """A value cannot be read, because it depends on another value that could not be read."""


def read_status(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    detect_drift: bool = False,
    report: Report = lambda message: None,
) -> ClusterStatus:
    """Return the status of a cluster.

    Args:
        account: the AWS account.
        stack_name: name of the cluster's root stack.
        cluster: the cluster file.
        find_url_override: returns the URL at which the API listens, if it is not the one in the stack's output.
        detect_drift: whether to let CloudFormation detect drift, which takes some time.
        report: called when a slow step starts.

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
    )
    if stack is None:
        return make_status(stack=StackState(name=stack_name), next_command=next_command(StackStatus("")))
    if stack.status.name in STATUSES_WITHOUT_RESOURCES:
        state = stack_state(stack, _read_or_unknown(lambda: _read_status_time(account, stack)))
        return make_status(stack=state, next_command=next_command(stack.status))
    # boto3 clients are thread-safe, but their creation is not: `account` creates and caches them before threads start.
    for service in SERVICES:
        account.client(service)
    with ThreadPoolExecutor(MAX_PARALLEL_CALLS, thread_name_prefix="status") as pool:

        def submit(read: Callable[[], Value]) -> Future[Value | Unknown]:
            """Call a function in a thread of the pool; its result is `Unknown` if the function fails."""
            return pool.submit(_read_or_unknown, read)

        since_read = submit(lambda: _read_status_time(account, stack))
        without_policy_read = submit(lambda: _find_stacks_without_policy(account, stack))
        outputs = _read_or_unknown(lambda: stacks.read_outputs(account, stack))
        endpoint = _read_or_unknown(
            lambda: cluster_access.find_api_endpoint(stack, _require(outputs), find_url_override)
        )
        kubernetes_read = pool.submit(_read_kubernetes, account, stack, outputs, endpoint)
        serving_expiry_read = submit(lambda: _read_serving_certificate_expiry(_require(endpoint)))
        stack_resources = _read_or_unknown(lambda: _read_all_resources(account, stack, pool))
        groups_read = submit(lambda: find_groups(account, cluster, _require(stack_resources)))
        # During an update, groups, addresses and routes are being changed, so a difference is no problem.
        is_updating = stack.status.in_progress
        stale_groups_read = submit(lambda: () if is_updating else find_stale_groups(account, _require(stack_resources)))
        retyped_slots_read = submit(
            lambda: () if is_updating else find_retyped_slots(account, _require(stack_resources))
        )
        lost_addresses_read = submit(
            lambda: () if is_updating else find_lost_addresses(account, _require(stack_resources), stack.parameters)
        )
        is_network_read = is_private(cluster) and not is_updating
        network_problems_read = submit(
            lambda: (
                _read_network_problems(account, cluster, stack, _require(stack_resources)) if is_network_read else ()
            )
        )
        image_dates_read = submit(lambda: _read_image_dates(account, _require(groups_read.result())))
        volumes_read = submit(lambda: _read_volume_states(account, _require(stack_resources)))
        token_expiry_read = submit(lambda: _read_join_token_expiry(account, _require(stack_resources)))
        backups_read = submit(lambda: parts.read_backups(account, _require(outputs), cluster))
        authority_expiry, kubernetes = kubernetes_read.result()
    stale_groups, lost_addresses = stale_groups_read.result(), lost_addresses_read.result()
    network_problems = network_problems_read.result()
    drift_state = None
    if detect_drift:
        report(Step("CloudFormation is comparing the resources with the templates"))
        drift_state = _read_or_unknown(
            lambda: drift.detect_drift(account, _stack_names(stack, _require(stack_resources)))
        )
    nodes = kubernetes.nodes if isinstance(kubernetes, _KubernetesState) else None
    masters, node_groups = masters_and_node_groups(groups_read.result(), image_dates_read.result(), nodes)
    bastion = bastion_state(groups_read.result())
    api_ready = isinstance(kubernetes, _KubernetesState) and kubernetes.api.ready
    status = make_status(
        stack=stack_state(stack, since_read.result(), without_policy_read.result()),
        next_command=next_command(
            stack.status,
            healthy=api_ready
            and all_nodes_ready(masters, node_groups)
            and (bastion is None or isinstance(bastion, Unknown) or bastion.in_service)
            and (not network_problems or isinstance(network_problems, Unknown)),
            stale_groups=bool(stale_groups) and not isinstance(stale_groups, Unknown),
            lost_addresses=() if isinstance(lost_addresses, Unknown) else lost_addresses,
        ),
        endpoint=endpoint.url if isinstance(endpoint, Endpoint) else endpoint,
        api=kubernetes.api if isinstance(kubernetes, _KubernetesState) else kubernetes,
        kubelets=(
            Counter(node.version for node in kubernetes.nodes)
            if isinstance(kubernetes, _KubernetesState)
            else kubernetes
        ),
        masters=masters,
        node_groups=node_groups,
        bastion=bastion,
        certificates=(
            Expiry(what=AUTHORITY_NAME, ends=authority_expiry),
            Expiry(what=SERVING_CERTIFICATE_NAME, ends=serving_expiry_read.result()),
            Expiry(what=JOIN_TOKEN_NAME, ends=token_expiry_read.result()),
            *_master_certificates(kubernetes, masters),
        ),
        volumes=volumes_read.result(),
        persistent_volumes=kubernetes.volumes if isinstance(kubernetes, _KubernetesState) else kubernetes,
        backups=backups_read.result(),
        addons=_addon_states(kubernetes),
        drift=drift_state,
        stale_groups=stale_groups or None,
        retyped_slots=retyped_slots_read.result() or None,
        lost_addresses=lost_addresses or None,
        network_problems=network_problems or None,
    )
    groups = groups_read.result()
    return with_pause(status, None if isinstance(groups, Unknown) else find_pause(groups), AUTHORITY_NAME)


def _read_or_unknown(read: Callable[[], Value]) -> Value | Unknown:
    """Call a function and return its result, or `Unknown` with the reason if it fails."""
    try:
        with translate_aws_errors():
            return read()
    except CfngenError as error:
        return Unknown(str(error), error.hint)


def _find_stacks_without_policy(account: Account, stack: StackView) -> tuple[str, ...]:
    """Return the names of the stacks without a stack policy; none if the next deployment would not set policies.

    Deployments set no policies on stacks that were created in the console, and update only stacks in certain statuses.
    """
    is_updatable = stack.status.change_set_type == "UPDATE"
    is_created_by_cfngen = bool(stack.cluster)
    if not (is_updatable and is_created_by_cfngen):
        return ()
    return protection.find_stacks_without_policy(account, stack)


def _require(value: Value | Unknown) -> Value:
    """Return a value that another value depends on.

    Raises:
        _UnknownError: `value` is `Unknown`, so the value that depends on it cannot be read either.
    """
    if isinstance(value, Unknown):
        raise _UnknownError(value.unknown, hint=value.hint)
    return value


def _master_certificates(
    kubernetes: _KubernetesState | Unknown, masters: tuple[MasterState, ...] | Unknown
) -> tuple[Expiry, ...]:
    """Return the expiry of the masters' certificates; empty if the masters' reports could not be read."""
    if isinstance(kubernetes, Unknown) or isinstance(kubernetes.certificates, Unknown) or isinstance(masters, Unknown):
        return ()
    return parts.parse_certificates(kubernetes.certificates, masters)


def _addon_states(kubernetes: _KubernetesState | Unknown) -> tuple[AddonState, ...] | Unknown | None:
    """Return the add-ons; None where the masters have not reported any yet."""
    if isinstance(kubernetes, Unknown):
        return None
    if isinstance(kubernetes.addons, Unknown):
        return kubernetes.addons
    return parts.parse_addons(kubernetes.addons) or None


def _read_status_time(account: Account, stack: StackView) -> datetime:
    """Return when a stack got its status: the time of the newest event of the stack itself."""
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    for event in (event for page in pages for event in page["StackEvents"]):
        if event.get("PhysicalResourceId") == stack.id:
            timestamp: datetime = event["Timestamp"]
            return timestamp
    raise _UnknownError("CloudFormation no longer has events for it")


def _read_kubernetes(
    account: Account, stack: StackView, outputs: Mapping[str, str] | Unknown, endpoint: Endpoint | Unknown
) -> tuple[datetime | Unknown, _KubernetesState | Unknown]:
    """Return when the certificate authority expires, and the data from the Kubernetes API; each may be unknown."""
    authority = _read_or_unknown(lambda: cluster_access.find_authority(account, stack, _require(outputs)))

    def read_api() -> _KubernetesState:
        ca = _require(authority)
        with cluster_access.connect_as_administrator(
            _require(endpoint), ca, account.caller, account.clock.now()
        ) as api:
            readiness = api.readiness()
            return _KubernetesState(
                api=ApiState(version=api.version(), ready=readiness.ready, failing=readiness.failing),
                nodes=api.nodes(),
                volumes=_read_or_unknown(lambda: len(api.persistent_volumes())),
                certificates=_read_or_unknown(lambda: api.config_map(parts.CERTIFICATES_CONFIG_MAP)),
                addons=_read_or_unknown(lambda: api.config_map(parts.ADDONS_CONFIG_MAP)),
            )

    kubernetes = _read_or_unknown(read_api)
    return authority if isinstance(authority, Unknown) else authority.expires, kubernetes


def _read_serving_certificate_expiry(endpoint: Endpoint) -> datetime:
    """Return when the certificate that the API server presents expires."""
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


def _stack_names(stack: StackView, stack_resources: Iterable[ResourceView]) -> dict[str, str]:
    """Return the names of a stack and its nested stacks, by ARN."""
    nested = {
        resource.physical_id: stack_name(resource.physical_id)
        for resource in stack_resources
        if resource.type == NESTED_STACK
    }
    # A nested stack that has not been created yet has no ARN.
    return {stack.id: stack.name, **{arn: name for arn, name in nested.items() if arn}}


def _read_image_dates(account: Account, groups: Sequence[GroupView]) -> dict[str, datetime]:
    """Return when the masters' machine images were created, by image id; deleted and private ones are left out."""
    masters = [group for group in groups if group.role == "master"]
    ids = sorted({instance.image for group in masters for instance in group.instances if instance.image})
    if not ids:
        return {}
    filters = [{"Name": "image-id", "Values": ids}]
    response = account.client("ec2").describe_images(Filters=filters, IncludeDeprecated=True)
    return {
        image["ImageId"]: datetime.fromisoformat(image["CreationDate"].replace("Z", "+00:00"))
        for image in response["Images"]
        if image.get("CreationDate")
    }


def _read_volume_states(account: Account, stack_resources: Iterable[ResourceView]) -> tuple[VolumeState, ...]:
    """Return the state of each master's data volume, by slot."""
    slots = {
        resource.physical_id: master.letter
        for resource in stack_resources
        if resource.type == "AWS::EC2::Volume" and resource.physical_id and resource.status != "DELETE_COMPLETE"
        if (master := MasterId.parse(resource.logical_id))
    }
    if not slots:
        return ()
    filters = [{"Name": "volume-id", "Values": list(slots)}]
    volumes = account.client("ec2").describe_volumes(Filters=filters)["Volumes"]
    descriptions: dict[str, AwsObject] = {volume["VolumeId"]: volume for volume in volumes}
    return tuple(
        _volume_state(slot, volume_id, descriptions.get(volume_id, {}))
        for volume_id, slot in sorted(slots.items(), key=lambda item: item[1])
    )


def _volume_state(slot: str, volume_id: str, description: AwsObject) -> VolumeState:
    """Return the state of a master's data volume; `description` is EC2's, empty if EC2 does not list the volume."""
    attachment: AwsObject = next(iter(description.get("Attachments") or ()), {})
    return VolumeState(
        slot=slot,
        id=volume_id,
        state=description.get("State", ""),
        size=description.get("Size", 0),
        type=description.get("VolumeType", ""),
        zone=description.get("AvailabilityZone", ""),
        instance=attachment.get("InstanceId", ""),
    )


def _read_network_problems(
    account: Account, cluster: Cluster, stack: StackView, stack_resources: Iterable[ResourceView]
) -> tuple[Problem, ...]:
    """Return what is wrong with the NAT gateways, route tables and VPC endpoints of a private cluster."""
    return tuple(find_network_problems(read_private_network(account, cluster, stack, stack_resources)))


def _read_join_token_expiry(account: Account, stack_resources: Iterable[ResourceView]) -> datetime:
    """Return the expiry of the token with which new nodes join the cluster."""
    arns = [
        resource.physical_id
        for resource in stack_resources
        if resource.logical_id == "JoinSecret" and resource.physical_id
    ]
    if not arns:
        raise _UnknownError("the stack has no join secret yet")
    return read_join_information(account, arns[0]).expires
