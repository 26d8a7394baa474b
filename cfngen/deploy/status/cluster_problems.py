"""Finds the problems in the state of a cluster: of its stack, API server, groups, instances, Nodes, pods and routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cfngen.cluster.model import Cluster
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.aws.groups import GroupView, InstanceView, find_resized_groups
from cfngen.deploy.aws.issuer import IssuerView
from cfngen.deploy.aws.pause import find_pause
from cfngen.deploy.aws.pod_routes import InstanceRoute
from cfngen.deploy.aws.private_network import PrivateNetwork
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.next_steps import as_hint, next_steps, replace_command
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.status.boots import Boots, advise_unready_node
from cfngen.hints import CommandText, Hint, SuggestedCommand, suggest
from cfngen.releases import exact_version

API_SERVER = "API server"
_NOUN_BY_AREA = {
    "stack": "the stack",
    "pause": "the cluster",
    "instance": "the instance",
    "node": "the Node",
    "version": "the Node",
    "route": "the route table",
    "pod": "the pod",
    "natGateway": "the NAT gateway",
    "subnet": "the subnet",
    "endpoint": "the VPC endpoint",
    "issuer": "the issuer",
}
STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)
class Problem:
    """A problem of a cluster.

    Attributes:
        area: `stack`, `pause`, `api`, `version`, `group`, `size` (of a group), `instance`, `node`, `route` or `pod`; in
            a private cluster also `natGateway`, `subnet` or `endpoint`; with an issuer of service-account tokens also
            `issuer`.
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
        noun = "the" if self.subject == API_SERVER else _NOUN_BY_AREA.get(self.area, "")
        return f"{noun} {self.subject} {self.text}".strip()


@dataclass(frozen=True)
class KubernetesReading:
    """The data that was read from the Kubernetes API.

    Attributes:
        pods: the pods in the namespace kube-system.
    """

    version: str
    readiness: Readiness
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    @property
    def nodes_by_instance_id(self) -> dict[str, Node]:
        """The Nodes by instance id; a Node without a providerID is named after its instance."""
        return {node.instance_id or node.name: node for node in self.nodes}

    @property
    def pods_without_node(self) -> tuple[Pod, ...]:
        """The pods that count as running, or as about to run, on a Node that does not exist."""
        node_names = {"", *(node.name for node in self.nodes)}
        has_ended = ("Succeeded", "Failed")
        return tuple(
            pod
            for pod in self.pods
            if pod.node not in node_names and pod.phase not in has_ended and not pod.being_deleted
        )


@dataclass(frozen=True)
class ClusterState:
    """The state of a cluster as it was read for one validation.

    Attributes:
        kubernetes: the data from the Kubernetes API, or the problem that prevented reading it.
        gone: names of Nodes whose instance no longer exists.
        routes: routes to instances, in the route table of the pods.
        issuer: the issuer of service-account tokens; None if the cluster has none yet.
        boots: what is known of instances that are not Nodes.
    """

    stack: StackView
    groups: tuple[GroupView, ...]
    kubernetes: KubernetesReading | Problem
    gone: frozenset[str] = frozenset()
    routes: tuple[InstanceRoute, ...] = ()
    network: PrivateNetwork = field(default_factory=PrivateNetwork)
    issuer: IssuerView | None = None
    boots: Boots = field(default_factory=Boots)

    @property
    def leftovers(self) -> frozenset[str]:
        """The names of Nodes without an instance and of pods without a Node, which Kubernetes still has to remove."""
        pods = self.kubernetes.pods_without_node if isinstance(self.kubernetes, KubernetesReading) else ()
        return self.gone | {pod.name for pod in pods}


def find_cluster_problems(state: ClusterState, cluster: Cluster) -> list[Problem]:
    """Return the problems in the state of a cluster; of a paused cluster, only that it is paused."""
    pause = find_pause(state.groups)
    if pause is None:
        return find_working_problems(state, cluster)
    problem = Problem("pause", cluster.name, pause.text, hint=pause.hint)
    if pause.complete:
        return [*_stack_problems(state.stack), problem]
    return [problem, *find_working_problems(state, cluster)]


def find_working_problems(state: ClusterState, cluster: Cluster) -> list[Problem]:
    """Return the problems in the state of a cluster that is not paused, or is being resumed.

    Problems of Nodes, pods and routes are only found if the Kubernetes API could be read.
    """
    problems = [*_stack_problems(state.stack), *_size_problems(state, cluster.region)]
    if isinstance(state.kubernetes, Problem):
        masters = sum(group.role == "master" for group in state.groups)
        hint = state.boots.explain_silence(state.groups, etcd_quorum(masters)) or state.kubernetes.hint
        problems.append(replace(state.kubernetes, hint=hint))
        for group in state.groups:
            problems += _group_problems(group, None, state.boots)
        return problems
    nodes = state.kubernetes.nodes_by_instance_id
    problems += _api_problems(state.kubernetes, cluster)
    for group in state.groups:
        # The bastion is not a Node.
        problems += _group_problems(group, None if group.role == "bastion" else nodes, state.boots)
    problems += _node_and_pod_problems(state.kubernetes, state)
    problems += _route_problems(state, nodes)
    return problems


def _stack_problems(stack: StackView) -> Iterator[Problem]:
    is_healthy = stack.status.health is StackHealth.HEALTHY
    # During cleanup only replaced resources are deleted; the new resources are in service already.
    if not is_healthy and not stack.status.cleaning_up:
        hint = as_hint(next_steps(stack.status, made_elsewhere=stack.made_elsewhere))
        yield Problem("stack", stack.name, f"is {stack.status}", detail=stack.reason, hint=hint)


def _size_problems(state: ClusterState, region: str) -> Iterator[Problem]:
    if state.stack.status.in_progress:
        return  # the update changes sizes itself
    for resized in find_resized_groups(region, state.groups, state.stack.values):
        yield Problem("size", resized.group.title, resized.text, hint=resized.hint)


def _api_problems(api: KubernetesReading, cluster: Cluster) -> Iterator[Problem]:
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
                hint=CommandText(
                    suggest("deploy"),
                    " replaces instances of an older version; ",
                    SuggestedCommand(f"replace {node.instance_id or node.name}"),
                    " replaces this one.",
                ),
            )


def _group_problems(group: GroupView, nodes: dict[str, Node] | None, boots: Boots) -> Iterator[Problem]:
    if group.missing:
        yield Problem(
            "group",
            group.title,
            f"has no Auto Scaling group: {group.id} does not exist",
            hint=CommandText(suggest("status"), " shows which resources exist."),
        )
        return
    if group.in_service < group.desired:
        hint: Hint = (
            "the group's scaling activities show why: aws autoscaling describe-scaling-activities "
            f"--region {boots.region} --auto-scaling-group-name {group.id}"
        )
        if group.role == "master" and not group.instances:
            hint = CommandText(
                f"{hint}; if its type is sold out in the zone, ", replace_command(group.name), " launches another one."
            )
        yield Problem(
            "group", group.title, f"has {group.in_service} of {group.desired} instances in service", hint=hint
        )
    for instance in group.instances:
        if instance.leaving:
            continue
        if not instance.in_service:
            state = instance.lifecycle_and_health
            hint = boots.advise(instance, "Auto Scaling replaces an unhealthy instance by itself.")
            detail = "; ".join(filter(None, (instance.state, boots.describe(instance))))
            yield Problem("instance", instance.id, f"of {group.title} is {state}", detail=detail, hint=hint)
        elif nodes is not None:
            yield from _node_problems(group, instance, nodes.get(instance.id), boots)


def _node_problems(group: GroupView, instance: InstanceView, node: Node | None, boots: Boots) -> Iterator[Problem]:
    new_instance = CommandText("; ", SuggestedCommand(f"replace {instance.id}"), " launches another one.")
    if node is None:
        hint: Hint = boots.advise(instance, CommandText(boots.console_hint(instance), new_instance))
        text = f"of {group.title} is in service, but has no Node in the cluster"
        yield Problem("instance", instance.id, text, detail=boots.describe(instance), hint=hint)
    elif not node.ready:
        hint = advise_unready_node(node.reason, CommandText("on it: journalctl -u kubelet -u containerd", new_instance))
        yield Problem("node", node.name, f"of {group.title} is not Ready", detail=node.reason, hint=hint)
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


def _node_and_pod_problems(api: KubernetesReading, state: ClusterState) -> Iterator[Problem]:
    """Yield the problems of Nodes that are not instances of a group, and of system pods."""
    instance_ids = {instance.id for group in state.groups for instance in group.instances}
    for node in api.nodes:
        # A Node counts as Ready until its kubelet has been silent for a while, however long the API server was away.
        is_gone = node.ready and node.name in state.gone
        if is_gone or ((node.instance_id or node.name) not in instance_ids and not node.ready):
            text = "is not Ready, and is not an instance of any group"
            if is_gone:
                text = "counts as Ready, but its instance no longer exists"
            hint = f"the cloud controller manager removes it soon; by hand: kubectl delete node {node.name}"
            yield Problem("node", node.name, text, detail=node.reason, hint=hint)
    for pod in api.pods_without_node:
        hint = (
            "Kubernetes removes it within minutes; by hand: kubectl -n kube-system delete pod --force --grace-period=0 "
            f"{pod.name}"
        )
        yield Problem("pod", pod.name, f"counts as {pod.phase}, but its Node {pod.node} is gone", hint=hint)
    # The state of pods on a Node that is not Ready is unknown, and the Node is reported as a problem itself.
    reported = {node.name for node in api.nodes if not node.ready} | {pod.node for pod in api.pods_without_node}
    for pod in api.pods:
        if not pod.ready and not pod.being_deleted and pod.node not in reported:
            reason = f" ({pod.reason})" if pod.reason else ""
            hint = f"kubectl -n kube-system describe pod {pod.name}"
            yield Problem(
                "pod", pod.name, f"is {pod.phase or 'unknown'} and not ready{reason}", detail=pod.message, hint=hint
            )
    pod_names = {pod.name for pod in api.pods}
    for node in api.nodes:
        for name in STATIC_PODS:
            if node.master and node.ready and f"{name}-{node.name}" not in pod_names:
                hint = f"on it: ls /etc/kubernetes/manifests; journalctl -u kubelet | grep {name}"
                yield Problem("pod", f"{name}-{node.name}", f"does not run on the master {node.name}", hint=hint)


def _route_problems(state: ClusterState, nodes: dict[str, Node]) -> Iterator[Problem]:
    """Yield the routes that make the cloud controller manager fail: routes to instances without a Node."""
    instances = {instance.id: instance for group in state.groups for instance in group.instances}
    for route in state.routes:
        member = instances.get(route.instance)
        if route.instance in nodes or (member and member.leaving):
            continue
        delete_command = (
            f"aws ec2 delete-route --region {state.boots.region} --route-table-id {route.table} "
            f"--destination-cidr-block {route.destination}"
        )
        if member:
            # While a master is being replaced, the route exists before its new Node.
            hint: Hint = CommandText(
                f"the problem ends once the Node exists; if someone deleted the Node, on {route.instance}: sudo "
                "systemctl restart kubelet; or ",
                SuggestedCommand(f"replace {route.instance}"),
                " launches another one.",
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


def why_not_working(instance: InstanceView, reading: KubernetesReading) -> str:
    """Return why a master's instance does not work; empty if its Node and its etcd member are ready."""
    if not instance.in_service:
        return f"its instance is {instance.lifecycle_and_health}"
    node = reading.nodes_by_instance_id.get(instance.id)
    if node is None:
        return "it has not registered its Node yet"
    if not node.ready:
        return f"its Node is not Ready ({node.reason})"
    etcd_pod = next((pod for pod in reading.pods if pod.name == f"etcd-{node.name}"), None)
    if etcd_pod is None:
        return "its etcd has no pod yet"
    # The readiness probe of kubeadm's static pod asks the member itself.
    return "" if etcd_pod.ready else f"its etcd is not ready ({etcd_pod.reason or etcd_pod.phase})"


def find_failing_masters(masters: Iterable[GroupView], reading: KubernetesReading | Problem) -> dict[str, str]:
    """Return why masters do not work, by slot; masters that work are left out.

    Args:
        reading: what the Kubernetes API says; if it could not be read, only Auto Scaling is asked.
    """
    reasons: dict[str, str] = {}
    for group in masters:
        instance = next((instance for instance in group.instances if not instance.leaving), None)
        if instance is None:
            reasons[group.name] = "it has no instance"
        elif isinstance(reading, Problem):
            reasons[group.name] = "" if instance.in_service else f"its instance is {instance.lifecycle_and_health}"
        else:
            reasons[group.name] = why_not_working(instance, reading)
    return {slot: reason for slot, reason in reasons.items() if reason}


def etcd_quorum(member_count: int) -> int:
    """Return how many members have to work so that etcd, and with it the API, does."""
    return member_count // 2 + 1


MAX_MINOR_SKEW = 3  # https://kubernetes.io/releases/version-skew-policy/#kubelet


def target_version(cluster: Cluster) -> str:
    """Return the version that the cluster's templates install, e.g. `1.36.3`."""
    return exact_version(cluster.kubernetes_version)


def describe_skew(kubelet: str, server: str) -> str:
    """Return in words why the API server does not support a kubelet's version; an empty text if it does.

    A kubelet may be up to three minor versions older than the API server, and must not be newer.
    """
    kubelet_version, server_version = _numbers(kubelet), _numbers(server)
    if not kubelet_version or not server_version:
        return ""
    if kubelet_version[:2] > server_version[:2]:
        return f"{kubelet}, newer than the API server ({server})"
    if (kubelet_version[0], kubelet_version[1] + MAX_MINOR_SKEW) < server_version[:2]:
        return f"{kubelet}, more than {MAX_MINOR_SKEW} minor versions older than the API server ({server})"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, e.g. (1, 36, 3), without a suffix; empty if it has another form."""
    numbers = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdigit() for number in numbers) else ()
