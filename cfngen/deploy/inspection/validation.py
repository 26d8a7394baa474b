"""Whether a cluster works: every instance in service and a Ready Node, the API ready, its own pods running.

One look reads what there is; `judge` says what is wrong with it; `wait_until_valid` looks again until nothing is.
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
from cfngen.deploy.access.cluster_access import NoEndpointError, Override
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ThrottledError, UnreachableError, translate_aws_errors
from cfngen.deploy.clock import Clock
from cfngen.deploy.inspection.machines import Group, Instance, groups
from cfngen.deploy.inspection.pod_routes import InstanceRoute, instance_routes
from cfngen.deploy.inspection.versions import skew, wanted_version
from cfngen.deploy.messages import Message, Report
from cfngen.deploy.next_steps import in_words, next_steps
from cfngen.deploy.stacks import StackView, tree
from cfngen.deploy.status import StackHealth

INTERVAL = 10.0  # seconds between two looks
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
    """Something that is wrong with a cluster.

    Attributes:
        area: `stack`, `api`, `version`, `group`, `instance`, `node`, `route` or `pod`.
        subject: which object, e.g. `i-0123456789abcdef0`.
        text: what is wrong with it; `sentence` is the two of them in words.
        detail: what it says about that itself, which may change from look to look.
        hint: what to do or to look at.
    """

    area: str
    subject: str
    text: str
    detail: str = field(default="", compare=False)
    hint: str = ""

    @property
    def sentence(self) -> str:
        """What is wrong, as a sentence without its full stop."""
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
        in_service: whether Auto Scaling counts it as working.
        ready: whether it is a Ready Node; None where the Kubernetes API could not be asked.
        version: of its kubelet; empty if not known.
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
    """What one look at a cluster came to.

    Attributes:
        cluster: name of the cluster.
        stack: name of its root stack.
        time: when it was looked at.
        valid: whether nothing is wrong.
        problems: what is.
        members: the instances.
        version: of the API server; empty if not known.
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
    """A look came to something else than the one before.

    Attributes:
        time: when.
        appeared: problems that were not there before.
        resolved: problems that are gone.
        open: number of problems now.
        remaining: seconds that are left to wait.
    """

    kind: ClassVar[str] = "validationChange"
    time: datetime
    appeared: tuple[Problem, ...]
    resolved: tuple[Problem, ...]
    open: int
    remaining: float


@dataclass(frozen=True)
class Kubernetes:
    """What the Kubernetes API says."""

    version: str
    readiness: Readiness
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class Seen:
    """What one look saw.

    Attributes:
        stack: the root stack.
        groups: the Auto Scaling groups.
        kubernetes: what the API says, or why it could not be asked.
        routes: routes to instances in the table of the pods' routes.
    """

    stack: StackView
    groups: tuple[Group, ...]
    kubernetes: Kubernetes | Problem
    routes: tuple[InstanceRoute, ...] = ()


def validate(
    account: Account, stack_name: str, cluster: Cluster, *, override: Override = cluster_access.nowhere
) -> Validation:
    """Look at a cluster once.

    Raises:
        NoStackError: there is no such stack.
        CfngenError: what must be known cannot be read; a permission lacks, say.
    """
    return judge(look(account, stack_name, cluster, override), cluster, account.clock.now())


def wait_until_valid(
    attempt: Callable[[], Validation], clock: Clock, patience: timedelta, report: Report
) -> Validation:
    """Look at a cluster until it is valid, or time is up; report what changes.

    Args:
        attempt: looks once.
        clock: the time.
        patience: how long to wait.
        report: told of every change.

    Raises:
        CfngenError: as `validate`; what may pass, such as throttling, only when time is up.
    """
    end = clock.now() + patience
    before: tuple[Problem, ...] = ()
    while True:
        remaining = (end - clock.now()).total_seconds()
        try:
            found = attempt()
        except (ThrottledError, UnreachableError):
            if remaining <= 0:
                raise
        else:
            if found.valid or remaining <= 0:
                return found
            if found.problems != before:
                appeared = tuple(problem for problem in found.problems if problem not in before)
                resolved = tuple(each for each in before if each not in found.problems)
                report(ValidationChange(found.time, appeared, resolved, len(found.problems), remaining))
                before = found.problems
        clock.sleep(min(INTERVAL, max(remaining, 0.0)))


def look(account: Account, stack_name: str, cluster: Cluster, override: Override) -> Seen:
    """Read everything that is judged.

    Raises:
        CfngenError: as `validate`.
    """
    stack = cluster_access.root(account, stack_name)
    with translate_aws_errors():
        members = [each.view for each in tree(account, stack.id)]
        found = groups(account, cluster, members)
        routes = instance_routes(account, cluster, stack, members)
        # Nodes last: one that joins meanwhile is no stranger to the routes then.
        return Seen(stack, found, _kubernetes(account, stack, override), routes)


def judge(seen: Seen, cluster: Cluster, now: datetime) -> Validation:
    """Return what is wrong with what was seen.

    Args:
        seen: what was seen.
        cluster: what the cluster file says.
        now: the time.
    """
    api = seen.kubernetes
    answers = isinstance(api, Kubernetes)
    nodes = {node.instance_id or node.name: node for node in api.nodes} if isinstance(api, Kubernetes) else {}
    problems = (
        *_of_stack(seen.stack),
        *(_of_api(api, cluster) if isinstance(api, Kubernetes) else (api,)),
        *(problem for group in seen.groups for problem in _of_group(group, nodes if answers else None)),
        *(_of_others(api, seen.groups) if isinstance(api, Kubernetes) else ()),
        *(_of_routes(seen, nodes) if answers else ()),
    )
    members = tuple(
        Member(
            instance.id,
            group.role,
            group.name,
            instance.zone,
            instance.in_service,
            instance.id in nodes and nodes[instance.id].ready if answers else None,
            nodes[instance.id].version if instance.id in nodes else "",
        )
        for group in seen.groups
        for instance in group.instances
        if not instance.leaving
    )
    version = api.version if isinstance(api, Kubernetes) else ""
    return Validation(cluster.name, seen.stack.name, now, not problems, problems, members, version)


def _kubernetes(account: Account, stack: StackView, override: Override) -> Kubernetes | Problem:
    """Ask the Kubernetes API; that it cannot be asked is a problem of the cluster, unless it is one of permission."""
    try:
        values = cluster_access.outputs(account, stack)
        where = cluster_access.endpoint(stack, values, override)
        found = cluster_access.authority(account, stack, values)
        with cluster_access.connection(where, found, account.caller, account.clock.now()) as api:
            return Kubernetes(api.version(), api.readiness(), api.nodes(), api.system_pods())
    except (EmptySecretError, NoEndpointError, KubernetesError) as error:
        return Problem("api", API_SERVER, f"cannot be asked: {error}", hint=error.hint)


def _of_stack(stack: StackView) -> Iterator[Problem]:
    standing, cleaning = stack.status.standing, stack.status.cleaning_up
    # What is left while a stack cleans up are replaced resources: the new ones are in service.
    if standing is not StackHealth.HEALTHY and not cleaning:
        hint = in_words(next_steps(stack.status))
        yield Problem("stack", stack.name, f"is {stack.status}", stack.reason, hint)


def _of_api(api: Kubernetes, cluster: Cluster) -> Iterator[Problem]:
    if not api.readiness.ready:
        failing = f": {', '.join(api.readiness.failing)}" if api.readiness.failing else ""
        hint = "on the master: journalctl -u kubelet; ls /var/log/pods"
        yield Problem("api", API_SERVER, f"is not ready{failing}", hint=hint)
    wanted = wanted_version(cluster)
    if api.version != wanted:
        yield Problem(
            "version",
            API_SERVER,
            f"runs Kubernetes {api.version}, the cluster file says {wanted}",
            hint="`cfngen deploy` brings the masters to the version of the cluster file; or correct the file.",
        )
    for node in api.nodes:
        if reason := skew(node.version, api.version):
            hint = "replace the instance: `cfngen deploy` does where its launch template has changed."
            yield Problem("version", node.name, f"has a kubelet of version {reason}", hint=hint)
        elif node.version != wanted and api.version == wanted:
            hint = "`cfngen deploy` replaces instances of an older version; or terminate it."
            yield Problem(
                "version",
                node.name,
                f"has a kubelet of version {node.version}, the cluster file says {wanted}",
                hint=hint,
            )


def _of_group(group: Group, nodes: dict[str, Node] | None) -> Iterator[Problem]:
    """Yield what is wrong with a group, its instances and their Nodes; the latter only where they are known."""
    if group.missing:
        hint = "`cfngen status` shows what there is."
        yield Problem("group", group.title, f"has no Auto Scaling group: {group.id} does not exist", hint=hint)
        return
    if group.in_service < group.desired:
        yield Problem(
            "group",
            group.title,
            f"has {group.in_service} of {group.desired} instances in service",
            hint=f"the group's activity says why: aws autoscaling describe-scaling-activities "
            f"--auto-scaling-group-name {group.id}",
        )
    for instance in group.instances:
        if instance.leaving:
            continue
        if not instance.in_service:
            state = instance.lifecycle if instance.healthy else f"{instance.lifecycle}, unhealthy"
            hint = "Auto Scaling replaces an unhealthy instance by itself; a new one boots for some minutes."
            yield Problem("instance", instance.id, f"of {group.title} is {state}", instance.state, hint)
        elif nodes is not None:
            yield from _of_node(group, instance, nodes.get(instance.id))


def _of_node(group: Group, instance: Instance, node: Node | None) -> Iterator[Problem]:
    if node is None:
        hint = f"its boot log: aws ec2 get-console-output --latest --output text --instance-id {instance.id}"
        text = f"of {group.title} is in service, but has no Node in the cluster"
        yield Problem("instance", instance.id, text, hint=hint)
    elif not node.ready:
        hint = "on it: journalctl -u kubelet -u containerd"
        yield Problem("node", node.name, f"of {group.title} is not Ready", node.reason, hint)
    elif not node.initialised:
        hint = "kubectl -n kube-system logs daemonset/cloud-controller-manager"
        yield Problem("node", node.name, "takes no pods: the cloud controller manager has not seen it", hint=hint)
    elif not node.routed:
        hint = "does the route table have room? kubectl -n kube-system logs daemonset/cloud-controller-manager"
        yield Problem("node", node.name, "has no route to its pods (NetworkUnavailable)", hint=hint)


def _of_others(api: Kubernetes, present: tuple[Group, ...]) -> Iterator[Problem]:
    """Yield what is wrong with Nodes that are no instance of a group, and with the cluster's own pods."""
    instances = {instance.id for group in present for instance in group.instances}
    for node in api.nodes:
        if (node.instance_id or node.name) not in instances and not node.ready:
            hint = f"the cloud controller manager removes it soon; by hand: kubectl delete node {node.name}"
            yield Problem("node", node.name, "is not Ready, and is no instance of a group", node.reason, hint)
    # Of pods on a Node that is not Ready nothing is known; and its own problem says enough.
    silent = {each.name for each in api.nodes if not each.ready}
    for pod in api.pods:
        if not pod.ready and not pod.leaving and pod.node not in silent:
            said = f" ({pod.reason})" if pod.reason else ""
            hint = f"kubectl -n kube-system describe pod {pod.name}"
            yield Problem("pod", pod.name, f"is {pod.phase or 'unknown'} and not ready{said}", pod.message, hint)
    names = {each.name for each in api.pods}
    for node in api.nodes:
        for name in STATIC_PODS:
            if node.master and node.ready and f"{name}-{node.name}" not in names:
                hint = f"on it: ls /etc/kubernetes/manifests; journalctl -u kubelet | grep {name}"
                yield Problem("pod", f"{name}-{node.name}", f"does not run on the master {node.name}", hint=hint)


def _of_routes(seen: Seen, nodes: dict[str, Node]) -> Iterator[Problem]:
    """Yield the routes that keep the cloud controller manager from writing any other."""
    members = {instance.id: instance for group in seen.groups for instance in group.instances}
    for route in seen.routes:
        member = members.get(route.instance)
        if route.instance in nodes or (member and member.leaving):
            continue
        remove = f"aws ec2 delete-route --route-table-id {route.table} --destination-cidr-block {route.destination}"
        if member:
            # A master that is being replaced is in this state until its Node is there.
            hint = (
                f"it passes once the Node is there; if somebody has deleted it, on {route.instance}: sudo systemctl "
                f"restart kubelet; or replace the instance: aws ec2 terminate-instances --instance-ids {route.instance}"
            )
        else:
            hint = f"it is no instance of the cluster: let that range lead elsewhere (a NAT gateway, say), or {remove}"
        yield Problem(
            "route",
            route.table,
            f"has a route for {route.destination} to {route.instance}, which is no Node: while it does, no Node "
            "gets a route to its pods",
            hint=hint,
        )
