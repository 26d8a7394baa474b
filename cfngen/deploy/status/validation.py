"""Validate a cluster: all instances in service and Ready Nodes, the API server ready, the system pods running.

Of a private cluster, NAT gateways, route tables and VPC endpoints are validated too; of a cluster with an issuer of
service-account tokens, its OIDC provider and documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import KubernetesError
from cfngen.deploy.access.authorities import EmptySecretError
from cfngen.deploy.access.cluster_access import FindApiUrlOverride, NoEndpointError
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ThrottledError, UnreachableError, translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, describe_instances, find_groups
from cfngen.deploy.aws.pod_routes import find_instance_routes
from cfngen.deploy.aws.private_network import read_private_network
from cfngen.deploy.aws.stacks import StackView, list_resource_tree
from cfngen.deploy.aws.types import Clock
from cfngen.deploy.messages.message import Message, Report
from cfngen.deploy.status.boots import read_boots
from cfngen.deploy.status.cluster_problems import (
    API_SERVER,
    ClusterState,
    KubernetesReading,
    Problem,
    find_cluster_problems,
)
from cfngen.deploy.status.differing_values import DifferingValue, find_differing_values
from cfngen.deploy.status.network_problems import find_issuer_problems, find_network_problems, read_cluster_issuer
from cfngen.errors import CfngenError

POLL_INTERVAL_SECONDS = 10.0  # seconds between two validations


@dataclass(frozen=True)
class Member:
    """An instance of the cluster and its Node.

    Attributes:
        instance: id of the instance.
        role: `master` or `node`.
        group: letter of the slot, or name of the node group.
        zone: its Availability Zone.
        in_service: whether it is in service and healthy in its Auto Scaling group.
        ready: whether its Node is Ready; None if the Kubernetes API could not be read.
        version: version of its kubelet; empty if not known.
    """

    instance: str
    role: str
    group: str
    zone: str
    in_service: bool
    ready: bool | None = None
    version: str = ""


@dataclass(frozen=True)
class Validation(Message):
    """The result of one validation of a cluster.

    Attributes:
        cluster: name of the cluster.
        stack: name of its root stack.
        time: when it was validated.
        valid: whether there are no problems.
        problems: the problems.
        members: the masters and nodes.
        version: version of the API server; empty if not known.
        differing_values: parameters whose value in the stack is not that of the cluster file.
    """

    kind: ClassVar[str] = "validation"
    cluster: str
    stack: str
    time: datetime
    valid: bool
    problems: tuple[Problem, ...] = ()
    members: tuple[Member, ...] = ()
    version: str = ""
    differing_values: tuple[DifferingValue, ...] = ()


@dataclass(frozen=True)
class ValidationChange(Message):
    """What changed between two validations.

    Attributes:
        time: when the second validation was made.
        appeared: new problems.
        resolved: problems that are gone.
        open: number of problems now.
        remaining: seconds until the timeout.
    """

    kind: ClassVar[str] = "validationChange"
    time: datetime
    appeared: tuple[Problem, ...]
    resolved: tuple[Problem, ...]
    open: int
    remaining: float


def validate(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    file_values: Callable[[], Mapping[str, str]] = dict,
) -> Validation:
    """Validate a cluster once.

    Args:
        file_values: returns what the cluster file says about the root's parameters, nothing without a file; called
            only where there is a stack to compare it with.

    Raises:
        NoStackError: there is no such stack.
        CfngenError: something cannot be read, e.g. because a permission is missing.
    """
    state = read_cluster_state(account, stack_name, cluster, find_url_override)
    validation = validate_state(state, cluster, account.clock.now())
    return replace(validation, differing_values=find_differing_values(state.stack, file_values()))


def wait_until_valid(
    validate_once: Callable[[], Validation], clock: Clock, timeout: timedelta, report: Report
) -> Validation:
    """Validate a cluster until it is valid or the timeout has passed; return the last validation.

    Raises:
        CfngenError: as `validate`; transient errors such as throttling only after the timeout.
    """
    deadline = clock.now() + timeout
    previous_problems: tuple[Problem, ...] = ()
    while True:
        remaining = (deadline - clock.now()).total_seconds()
        try:
            validation = validate_once()
        except (ThrottledError, UnreachableError):
            if remaining <= 0:
                raise
        else:
            if validation.valid or remaining <= 0:
                return validation
            if validation.problems != previous_problems:
                appeared = tuple(problem for problem in validation.problems if problem not in previous_problems)
                resolved = tuple(problem for problem in previous_problems if problem not in validation.problems)
                report(
                    ValidationChange(
                        time=validation.time,
                        appeared=appeared,
                        resolved=resolved,
                        open=len(validation.problems),
                        remaining=remaining,
                    )
                )
                previous_problems = validation.problems
        clock.sleep(min(POLL_INTERVAL_SECONDS, max(remaining, 0.0)))


def read_cluster_state(
    account: Account, stack_name: str, cluster: Cluster, find_url_override: FindApiUrlOverride
) -> ClusterState:
    """Read the state of a cluster."""
    stack = stacks.require_root_stack(account, stack_name)
    with translate_aws_errors():
        stack_resources = [resource.view for resource in list_resource_tree(account, stack.id)]
        cluster_groups = find_groups(account, cluster, stack_resources)
        routes = find_instance_routes(account, cluster, stack, stack_resources)
        network = read_private_network(account, cluster, stack, stack_resources)
        # Nodes are read after the routes: a Node that joins in between would otherwise be missing for its route.
        kubernetes = read_kubernetes(account, stack, find_url_override)
        node_ids = None if isinstance(kubernetes, Problem) else kubernetes.nodes_by_instance_id
        return ClusterState(
            stack=stack,
            groups=cluster_groups,
            kubernetes=kubernetes,
            gone=frozenset() if isinstance(kubernetes, Problem) else _find_gone(account, cluster_groups, kubernetes),
            routes=routes,
            network=network,
            issuer=read_cluster_issuer(account, cluster, stack),
            boots=read_boots(account, cluster_groups, node_ids),
        )


def _find_gone(account: Account, groups: tuple[GroupView, ...], kubernetes: KubernetesReading) -> frozenset[str]:
    """Return the names of Nodes whose instance no longer exists; those of instances outside of AWS are left out."""
    members = {instance.id for group in groups for instance in group.instances}
    nodes = kubernetes.nodes_by_instance_id
    others = {instance_id for instance_id in nodes.keys() - members if instance_id.startswith("i-")}
    existing = {
        instance["InstanceId"]
        for instance in describe_instances(account, {"instance-id": sorted(others)})
        if instance.get("State", {}).get("Name") not in ("shutting-down", "terminated")
    }
    return frozenset(nodes[instance_id].name for instance_id in others - existing)


def validate_state(state: ClusterState, cluster: Cluster, now: datetime) -> Validation:
    """Return the validation of a cluster that is in this state."""
    problems = [
        *find_network_problems(state.network),
        *(find_issuer_problems(state.issuer) if state.issuer else ()),
        *find_cluster_problems(state, cluster),
    ]
    kubernetes = state.kubernetes if isinstance(state.kubernetes, KubernetesReading) else None
    nodes = kubernetes.nodes_by_instance_id if kubernetes else {}
    members = tuple(
        Member(
            instance=instance.id,
            role=group.role,
            group=group.name,
            zone=instance.zone,
            in_service=instance.in_service,
            ready=instance.id in nodes and nodes[instance.id].ready if kubernetes else None,
            version=nodes[instance.id].version if instance.id in nodes else "",
        )
        for group in state.groups
        for instance in group.instances
        if not instance.leaving and group.role != "bastion"
    )
    return Validation(
        cluster=cluster.name,
        stack=state.stack.name,
        time=now,
        valid=not problems,
        problems=tuple(problems),
        members=members,
        version=kubernetes.version if kubernetes else "",
    )


def read_kubernetes(
    account: Account, stack: StackView, find_url_override: FindApiUrlOverride
) -> KubernetesReading | Problem:
    """Return the data from the Kubernetes API; if the API cannot be read, the `Problem` that says why."""
    try:
        outputs = stacks.read_outputs(account, stack)
        endpoint = cluster_access.find_api_endpoint(stack, outputs, find_url_override)
        authority = cluster_access.find_authority(account, stack, outputs)
        with cluster_access.connect_as_administrator(endpoint, authority, account.caller, account.clock.now()) as api:
            return KubernetesReading(
                version=api.version(), readiness=api.readiness(), nodes=api.nodes(), pods=api.system_pods()
            )
    except (EmptySecretError, NoEndpointError, KubernetesError) as error:
        return _silent_api(error)


def try_read_kubernetes(
    account: Account, stack: StackView, find_url_override: FindApiUrlOverride
) -> KubernetesReading | Problem:
    """Return what `read_kubernetes` returns; a `Problem` also where it raises, e.g. for want of a permission."""
    try:
        with translate_aws_errors():
            return read_kubernetes(account, stack, find_url_override)
    except CfngenError as error:
        return _silent_api(error)


def _silent_api(error: CfngenError) -> Problem:
    return Problem(area="api", subject=API_SERVER, text=f"cannot be queried: {error}", hint=error.hint)
