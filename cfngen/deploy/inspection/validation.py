"""Validate a cluster: all instances in service and Ready Nodes, the API server ready, the system pods running.

`read_cluster_state` reads the state of the cluster once, `find_problems` finds the problems in it, and
`wait_until_valid` repeats both until there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import KubernetesError
from cfngen.deploy.access.authorities import EmptySecretError
from cfngen.deploy.access.cluster_access import FindApiUrlOverride, NoEndpointError
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ThrottledError, UnreachableError, translate_aws_errors
from cfngen.deploy.clock import Clock
from cfngen.deploy.inspection.machines import GroupView, InstanceView, find_groups
from cfngen.deploy.inspection.pod_routes import InstanceRoute, find_instance_routes
from cfngen.deploy.inspection.versions import describe_skew, target_version
from cfngen.deploy.messages import Message, Report
from cfngen.deploy.next_steps import as_hint, next_steps
from cfngen.deploy.stacks import StackView, list_resource_tree
from cfngen.deploy.status import StackHealth
from cfngen.hints import CommandText, Hint, suggest

POLL_INTERVAL_SECONDS = 10.0  # seconds between two validations
API_SERVER = "API server"
_NOUNS = {
    "stack": "the stack",
    "instance": "the instance",
    "node": "the Node",
    "version": "the Node",
    "route": "the route table",
    "pod": "the pod",
}
STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)
class Problem:
    """A problem of a cluster.

    Attributes:
        area: `stack`, `api`, `version`, `group`, `instance`, `node`, `route` or `pod`.
        subject: id or name of the object, e.g. `i-0123456789abcdef0`.
        text: the problem without its subject, e.g. `is not ready`; `sentence` adds the subject.
        detail: the object's own message; it may change while the problem remains the same, so it is not compared.
        hint: how to fix or examine the problem; may be empty.
    """

    area: str
    subject: str
    text: str
    detail: str = field(default="", compare=False)
    hint: Hint = ""

    @property
    def sentence(self) -> str:
        """The problem as a sentence without its full stop."""
        noun = "the" if self.subject == API_SERVER else _NOUNS.get(self.area, "")
        return f"{noun} {self.subject} {self.text}".strip()


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
        members: the instances.
        version: version of the API server; empty if not known.
    """

    kind: ClassVar[str] = "validation"
    cluster: str
    stack: str
    time: datetime
    valid: bool
    problems: tuple[Problem, ...] = ()
    members: tuple[Member, ...] = ()
    version: str = ""


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


@dataclass(frozen=True)
class KubernetesReading:
    """The data that was read from the Kubernetes API."""

    version: str
    readiness: Readiness
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class ClusterState:
    """The state of a cluster that `find_problems` validates.

    Attributes:
        stack: the root stack.
        groups: the Auto Scaling groups.
        kubernetes: the data from the Kubernetes API, or the problem that prevented reading it.
        routes: routes to instances, in the route table of the pods.
    """

    stack: StackView
    groups: tuple[GroupView, ...]
    kubernetes: KubernetesReading | Problem
    routes: tuple[InstanceRoute, ...] = ()


def validate(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    override: FindApiUrlOverride = cluster_access.no_api_url_override,
) -> Validation:
    """Validate a cluster once.

    Raises:
        NoStackError: there is no such stack.
        CfngenError: something cannot be read, e.g. because a permission is missing.
    """
    return find_problems(read_cluster_state(account, stack_name, cluster, override), cluster, account.clock.now())


def wait_until_valid(attempt: Callable[[], Validation], clock: Clock, timeout: timedelta, report: Report) -> Validation:
    """Validate a cluster until it is valid or the timeout has passed; return the last validation.

    Args:
        attempt: validates the cluster once.
        clock: the clock.
        timeout: how long to wait.
        report: called when problems appear or are resolved.

    Raises:
        CfngenError: as `validate`; transient errors such as throttling only after the timeout.
    """
    deadline = clock.now() + timeout
    previous_problems: tuple[Problem, ...] = ()
    while True:
        remaining = (deadline - clock.now()).total_seconds()
        try:
            validation = attempt()
        except (ThrottledError, UnreachableError):
            if remaining <= 0:
                raise
        else:
            if validation.valid or remaining <= 0:
                return validation
            if validation.problems != previous_problems:
                appeared = tuple(problem for problem in validation.problems if problem not in previous_problems)
                resolved = tuple(problem for problem in previous_problems if problem not in validation.problems)
                report(ValidationChange(validation.time, appeared, resolved, len(validation.problems), remaining))
                previous_problems = validation.problems
        clock.sleep(min(POLL_INTERVAL_SECONDS, max(remaining, 0.0)))


def read_cluster_state(
    account: Account, stack_name: str, cluster: Cluster, override: FindApiUrlOverride
) -> ClusterState:
    """Read the state of a cluster.

    Raises:
        CfngenError: as `validate`.
    """
    stack = cluster_access.require_root_stack(account, stack_name)
    with translate_aws_errors():
        stack_resources = [resource.view for resource in list_resource_tree(account, stack.id)]
        cluster_groups = find_groups(account, cluster, stack_resources)
        routes = find_instance_routes(account, cluster, stack, stack_resources)
        # Nodes are read after the routes: a Node that joins in between would otherwise be missing for its route.
        return ClusterState(stack, cluster_groups, _read_kubernetes(account, stack, override), routes)


def find_problems(observed: ClusterState, cluster: Cluster, now: datetime) -> Validation:
    """Return the problems in the state of a cluster.

    Args:
        observed: the state of the cluster.
        cluster: the cluster file.
        now: the current time.
    """
    api = observed.kubernetes if isinstance(observed.kubernetes, KubernetesReading) else None
    nodes = {node.instance_id or node.name: node for node in api.nodes} if api else {}
    problems = list(_stack_problems(observed.stack))
    if isinstance(observed.kubernetes, Problem):
        problems.append(observed.kubernetes)
    else:
        problems += _api_problems(observed.kubernetes, cluster)
    for group in observed.groups:
        problems += _group_problems(group, nodes if api else None)
    if api:
        problems += (*_other_problems(api, observed.groups), *_route_problems(observed, nodes))
    members = tuple(
        Member(
            instance=instance.id,
            role=group.role,
            group=group.name,
            zone=instance.zone,
            in_service=instance.in_service,
            ready=instance.id in nodes and nodes[instance.id].ready if api else None,
            version=nodes[instance.id].version if instance.id in nodes else "",
        )
        for group in observed.groups
        for instance in group.instances
        if not instance.leaving
    )
    return Validation(
        cluster=cluster.name,
        stack=observed.stack.name,
        time=now,
        valid=not problems,
        problems=tuple(problems),
        members=members,
        version=api.version if api else "",
    )


def _read_kubernetes(account: Account, stack: StackView, override: FindApiUrlOverride) -> KubernetesReading | Problem:
    """Read the Kubernetes API; if it cannot be reached, return a `Problem` that says why."""
    try:
        outputs = cluster_access.read_outputs(account, stack)
        endpoint = cluster_access.find_api_endpoint(stack, outputs, override)
        authority = cluster_access.find_authority(account, stack, outputs)
        with cluster_access.connect_as_administrator(endpoint, authority, account.caller, account.clock.now()) as api:
            return KubernetesReading(api.version(), api.readiness(), api.nodes(), api.system_pods())
    except (EmptySecretError, NoEndpointError, KubernetesError) as error:
        return Problem("api", API_SERVER, f"cannot be queried: {error}", hint=error.hint)


def _stack_problems(stack: StackView) -> Iterator[Problem]:
    """Yield a problem if the stack's status is not a healthy one."""
    is_healthy = stack.status.health is StackHealth.HEALTHY
    # During cleanup only replaced resources are deleted; the new resources are in service already.
    if not is_healthy and not stack.status.cleaning_up:
        hint = as_hint(next_steps(stack.status))
        yield Problem("stack", stack.name, f"is {stack.status}", stack.reason, hint)


def _api_problems(api: KubernetesReading, cluster: Cluster) -> Iterator[Problem]:
    """Yield the problems of the API server, and of kubelets with another version than expected."""
    if not api.readiness.ready:
        failing = f": {', '.join(api.readiness.failing)}" if api.readiness.failing else ""
        hint = "on the master: journalctl -u kubelet; ls /var/log/pods"
        yield Problem("api", API_SERVER, f"is not ready{failing}", hint=hint)
    file_version = target_version(cluster)
    if api.version != file_version:
        yield Problem(
            "version",
            API_SERVER,
            f"runs Kubernetes {api.version}, but the cluster file says {file_version}",
            hint=CommandText(
                suggest("deploy"), " updates the masters to the version in the cluster file; or correct the file."
            ),
        )
    for node in api.nodes:
        if reason := describe_skew(node.version, api.version):
            yield Problem(
                "version",
                node.name,
                f"has a kubelet of version {reason}",
                hint=CommandText(
                    "replace the instance: ", suggest("deploy"), " does that if its launch template has changed."
                ),
            )
        elif node.version != file_version and api.version == file_version:
            yield Problem(
                "version",
                node.name,
                f"has a kubelet of version {node.version}, but the cluster file says {file_version}",
                hint=CommandText(suggest("deploy"), " replaces instances of an older version; or terminate this one."),
            )


def _group_problems(group: GroupView, nodes: dict[str, Node] | None) -> Iterator[Problem]:
    """Yield the problems of a group, its instances and their Nodes; `nodes` is None if they could not be read."""
    if group.missing:
        yield Problem(
            "group",
            group.title,
            f"has no Auto Scaling group: {group.id} does not exist",
            hint=CommandText(suggest("status"), " shows which resources exist."),
        )
        return
    if group.in_service < group.desired:
        yield Problem(
            "group",
            group.title,
            f"has {group.in_service} of {group.desired} instances in service",
            hint=f"the group's scaling activities show why: aws autoscaling describe-scaling-activities "
            f"--auto-scaling-group-name {group.id}",
        )
    for instance in group.instances:
        if instance.leaving:
            continue
        if not instance.in_service:
            state = instance.lifecycle if instance.healthy else f"{instance.lifecycle}, unhealthy"
            hint = "Auto Scaling replaces an unhealthy instance by itself; a new one takes some minutes to boot."
            yield Problem("instance", instance.id, f"of {group.title} is {state}", instance.state, hint)
        elif nodes is not None:
            yield from _node_problems(group, instance, nodes.get(instance.id))


def _node_problems(group: GroupView, instance: InstanceView, node: Node | None) -> Iterator[Problem]:
    """Yield the problem of an instance that is in service, if its Node is missing or not usable."""
    if node is None:
        hint = f"its boot log: aws ec2 get-console-output --latest --output text --instance-id {instance.id}"
        text = f"of {group.title} is in service, but has no Node in the cluster"
        yield Problem("instance", instance.id, text, hint=hint)
    elif not node.ready:
        hint = "on it: journalctl -u kubelet -u containerd"
        yield Problem("node", node.name, f"of {group.title} is not Ready", node.reason, hint)
    elif not node.initialised:
        hint = "kubectl -n kube-system logs daemonset/cloud-controller-manager"
        yield Problem(
            "node", node.name, "accepts no pods: the cloud controller manager has not initialised it", hint=hint
        )
    elif not node.routed:
        hint = (
            "check that the route table is not full; then kubectl -n kube-system logs "
            "daemonset/cloud-controller-manager"
        )
        yield Problem("node", node.name, "has no route to its pods (NetworkUnavailable)", hint=hint)


def _other_problems(api: KubernetesReading, groups: tuple[GroupView, ...]) -> Iterator[Problem]:
    """Yield the problems of Nodes that are not instances of a group, and of system pods."""
    instance_ids = {instance.id for group in groups for instance in group.instances}
    for node in api.nodes:
        if (node.instance_id or node.name) not in instance_ids and not node.ready:
            hint = f"the cloud controller manager removes it soon; by hand: kubectl delete node {node.name}"
            yield Problem("node", node.name, "is not Ready, and is not an instance of any group", node.reason, hint)
    # The state of pods on a Node that is not Ready is unknown, and the Node is reported as a problem itself.
    unready_nodes = {node.name for node in api.nodes if not node.ready}
    for pod in api.pods:
        if not pod.ready and not pod.being_deleted and pod.node not in unready_nodes:
            reason = f" ({pod.reason})" if pod.reason else ""
            hint = f"kubectl -n kube-system describe pod {pod.name}"
            yield Problem("pod", pod.name, f"is {pod.phase or 'unknown'} and not ready{reason}", pod.message, hint)
    pod_names = {pod.name for pod in api.pods}
    for node in api.nodes:
        for name in STATIC_PODS:
            if node.master and node.ready and f"{name}-{node.name}" not in pod_names:
                hint = f"on it: ls /etc/kubernetes/manifests; journalctl -u kubelet | grep {name}"
                yield Problem("pod", f"{name}-{node.name}", f"does not run on the master {node.name}", hint=hint)


def _route_problems(observed: ClusterState, nodes: dict[str, Node]) -> Iterator[Problem]:
    """Yield the routes that make the cloud controller manager fail: routes to instances without a Node."""
    instances = {instance.id: instance for group in observed.groups for instance in group.instances}
    for route in observed.routes:
        member = instances.get(route.instance)
        if route.instance in nodes or (member and member.leaving):
            continue
        delete_command = (
            f"aws ec2 delete-route --route-table-id {route.table} --destination-cidr-block {route.destination}"
        )
        if member:
            # While a master is being replaced, the route exists before its new Node.
            hint = (
                f"the problem ends once the Node exists; if someone deleted the Node, on {route.instance}: sudo "
                "systemctl restart kubelet; or replace the instance: aws ec2 terminate-instances --instance-ids "
                f"{route.instance}"
            )
        else:
            hint = (
                "it is not an instance of the cluster: change the target of the route (e.g. to a NAT "
                f"gateway), or {delete_command}"
            )
        yield Problem(
            "route",
            route.table,
            f"has a route for {route.destination} to {route.instance}, which is not a Node: as long as this route "
            "exists, no Node gets a route to its pods",
            hint=hint,
        )
