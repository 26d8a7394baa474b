"""A node that is to be terminated: its pods move, budgets count, Auto Scaling hears of it, nothing waits forever."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine, refusal, stack_resource

from cfngen.boot.host import lifecycle
from cfngen.boot.host.kubelet import KUBELET_CONF
from cfngen.boot.machine import BootError
from cfngen.boot.node import drain
from cfngen.boot.state import Boot

INSTANCE = "i-0123456789abcdef0"
GROUP = "k8s-NodeGroupNodesStack-NodeGroupNodesAutoScalingGroup-ABC"


def pod(name: str, **more: Any) -> dict[str, Any]:
    status = {"phase": more.pop("phase", "Running")}
    return {"metadata": {"namespace": "default", "name": name, **more}, "status": status}


def other(name: str, ready: bool = True, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


def master(name: str, *taints: str) -> dict[str, Any]:
    return other(name, taints=[{"key": key, "effect": "NoSchedule"} for key in taints])


class Node(ScriptedMachine):
    """A node with pods, an API server that evicts them, and an Auto Scaling group that waits.

    Attributes:
        pods: what runs on it.
        kept: names of pods whose eviction is refused.
        away: whether the API server does not answer.
        others: the other Nodes; of None the API server says that this node may not list them.
        evicted: names of pods whose eviction was asked for.
        cordoned: whether the node takes no new pods.
        beats: when the group heard a sign of life.
        completed: what it heard in the end.
    """

    def __init__(self, *pods: dict[str, Any]) -> None:
        super().__init__()
        self.files[KUBELET_CONF] = "credentials"
        self.pods = list(pods)
        self.kept: set[str] = set()
        self.away = False
        self.others: list[dict[str, Any]] | None = [other("i-1")]
        self.evicted: list[str] = []
        self.cordoned = False
        self.beats: list[float] = []
        self.completed: list[dict[str, Any]] = []
        self.on("kubectl", self._kubectl)
        self.cloud["cloudformation.describe_stack_resource"] = self._group
        self.cloud["autoscaling.record_lifecycle_action_heartbeat"] = self._beat
        self.cloud["autoscaling.complete_lifecycle_action"] = self._complete

    def _kubectl(self, text: str) -> tuple[int, str]:
        assert f"--kubeconfig {KUBELET_CONF}" in text
        if self.away:
            return 1, "connection refused"
        if " patch node " in text:
            change = json.loads(text.partition(" -p ")[2])
            # NodeRestriction lets a node change neither its taints nor labels of other names.
            assert set(change["spec"]) == {"unschedulable"}
            assert all(key.startswith("node.kubernetes.io/") for key in change["metadata"]["labels"])
            self.cordoned = change["spec"]["unschedulable"]
        elif " get --raw /api/v1/nodes?" in text:
            if self.others is None:
                return (
                    1,
                    'Error from server (Forbidden): nodes is forbidden: User "system:node:i-0" cannot list resource',
                )
            query = parse_qs(text.partition("?")[2])
            assert query["fieldSelector"] == ["spec.unschedulable=false"]
            limit = int(query["limit"][0])
            chosen = [node for node in self.others if not node["spec"].get("unschedulable")]
            more = {"continue": "token"} if len(chosen) > limit else {}
            return 0, json.dumps({"metadata": more, "items": chosen[:limit]})
        elif " get pods " in text:
            # What else a node may list is nobody's pods (AuthorizeNodeWithSelectors).
            assert f"--field-selector=spec.nodeName={INSTANCE}" in text
            return 0, json.dumps({"items": self.pods})
        elif found := re.search(r"/namespaces/default/pods/(\S+)/eviction", text):
            body = json.loads(self.stdin[text])
            assert (body["kind"], body["apiVersion"], body["metadata"]["name"]) == ("Eviction", "policy/v1", found[1])
            assert self.cordoned
            self.evicted.append(found[1])
            if found[1] in self.kept:
                return 1, "Cannot evict pod as it would violate the pod's disruption budget."
            self.pods = [each for each in self.pods if each["metadata"]["name"] != found[1]]
        return 0, ""

    def _group(self, StackName: str, LogicalResourceId: str) -> dict[str, Any]:  # noqa: N803
        assert (StackName, LogicalResourceId) == ("k8s", "NodeGroupNodesAutoScalingGroup")
        return stack_resource(GROUP, LogicalResourceId)

    def _beat(self, AutoScalingGroupName: str, LifecycleHookName: str, InstanceId: str) -> dict[str, Any]:  # noqa: N803
        assert (AutoScalingGroupName, LifecycleHookName, InstanceId) == (GROUP, "cfngen-drain", INSTANCE)
        self.beats.append(self.passed)
        return {}

    def _complete(self, **arguments: Any) -> dict[str, Any]:
        self.completed.append(arguments)
        return {}


def config(minutes: int = 5) -> Boot:
    facts = {"instanceId": INSTANCE, "stack": "k8s", "resource": "NodeGroupNodesAutoScalingGroup"}
    return boot_of({"facts": facts, "drain": minutes})


def ended(node: Node, minutes: int = 5) -> str:
    node.told[lifecycle.TARGET_STATE_PATH] = "Terminated"
    return drain.watch(node, config(minutes))


def test_pods_are_evicted_and_auto_scaling_goes_on() -> None:
    node = Node(pod("a"), pod("b"))
    assert (
        ended(node)
        == "this instance is being terminated: all its pods are gone after 5 s; the lifecycle action was completed"
    )
    assert sorted(node.evicted) == ["a", "b"]
    assert node.completed == [
        {
            "AutoScalingGroupName": GROUP,
            "LifecycleHookName": "cfngen-drain",
            "InstanceId": INSTANCE,
            "LifecycleActionResult": "CONTINUE",
        }
    ]


def test_nothing_happens_as_long_as_the_instance_is_wanted() -> None:
    node = Node(pod("a"))
    node.told[lifecycle.TARGET_STATE_PATH] = "InService"
    asked = 0
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        nonlocal asked
        asked += 1
        assert node.evicted == [] or node.told[lifecycle.TARGET_STATE_PATH] == "Terminated"
        if asked == 10:
            node.told[lifecycle.TARGET_STATE_PATH] = "Terminated"
        sleep(seconds)

    node.sleep = pass_time  # type: ignore[method-assign]
    drain.watch(node, config())
    assert asked >= 10
    assert node.evicted == ["a"]


def test_what_belongs_to_the_node_and_what_has_ended_stays() -> None:
    node = Node(
        pod("proxy", ownerReferences=[{"kind": "DaemonSet", "name": "kube-proxy"}]),
        pod("static", annotations={"kubernetes.io/config.mirror": "1"}),
        pod("done", phase="Succeeded"),
        pod("web", ownerReferences=[{"kind": "ReplicaSet", "name": "web"}]),
    )
    ended(node)
    assert node.evicted == ["web"]


def test_node_is_cordoned_and_taken_out_of_load_balancers_with_each_look() -> None:
    node = Node(pod("web"))
    ended(node)
    label = '"node.kubernetes.io/exclude-from-external-load-balancers": "true"'
    assert [label in command for command in node.ran("kubectl .* patch node ")] == [True, True]


@pytest.mark.parametrize(
    ("change", "evicted"),
    [
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"phase": "Running"}, True),
        ({"phase": "Pending"}, True),
        ({"ownerReferences": [{"kind": "DaemonSet", "name": "x"}]}, False),
        ({"ownerReferences": [{"kind": "Other", "name": "x"}, {"kind": "DaemonSet", "name": "x"}]}, False),
        ({"ownerReferences": [{"kind": "Job", "name": "x"}]}, True),
        ({"annotations": {"kubernetes.io/config.mirror": "1"}}, False),
        ({"annotations": {"other": "1"}}, True),
    ],
)
def test_each_kind_of_pod_goes_or_stays_by_itself(change: dict[str, Any], evicted: bool) -> None:
    node = Node(pod("one", **change))
    ended(node)
    assert node.evicted == (["one"] if evicted else [])


def test_pod_that_is_ending_already_is_waited_for_and_not_evicted_again() -> None:
    node = Node(pod("slow", deletionTimestamp="2026-09-01T12:00:00Z"))
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        if node.passed >= 40:
            node.pods = []

    node.sleep = pass_time  # type: ignore[method-assign]
    assert "all its pods are gone after 40 s" in ended(node)
    assert node.evicted == []


def test_disruption_budget_is_honoured_until_it_allows_the_eviction() -> None:
    node = Node(pod("only"))
    node.kept = {"only"}
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        if node.passed >= 60:
            node.kept = set()

    node.sleep = pass_time  # type: ignore[method-assign]
    assert "its pods are gone" in ended(node)
    assert len(node.evicted) > 5


def test_pods_that_cannot_go_do_not_keep_the_instance_longer_than_asked_for() -> None:
    node = Node(pod("only"))
    node.kept = {"only"}
    outcome = ended(node, 2)
    assert outcome == (
        "this instance is being terminated: 1 pods remain after 120 s: default/only; the lifecycle action was completed"
    )
    assert 120 <= node.passed <= 130
    assert len(node.completed) == 1


def test_time_is_counted_from_when_the_end_is_known() -> None:
    node = Node(pod("only"))
    node.kept, node.passed = {"only"}, 1000
    assert "1 pods remain after 120 s: default/only" in ended(node, 2)
    assert node.passed == 1120
    assert node.beats == [1030, 1060, 1090, 1120]
    away = Node(pod("only"))
    away.away, away.passed = True, 1000
    assert "its pods were not evicted" in ended(away, 2)
    assert (away.passed, away.beats) == (1120, [1030, 1060, 1090])
    gone = Node(pod("only"))
    gone.passed = 1000
    assert "all its pods are gone after 5 s" in ended(gone, 2)


def test_auto_scaling_hears_that_it_takes_longer() -> None:
    node = Node(pod("only"))
    node.kept = {"only"}
    ended(node, 5)
    pauses = [later - earlier for earlier, later in zip([0.0, *node.beats], node.beats, strict=False)]
    assert len(pauses) >= 9
    assert max(pauses) < 60, "the hook waits two minutes for a sign of life"


def test_api_server_that_is_away_for_a_moment_is_waited_for() -> None:
    node = Node(pod("a"))
    node.away = True
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        node.away = node.passed < 30

    node.sleep = pass_time  # type: ignore[method-assign]
    assert "its pods are gone" in ended(node)


def test_masters_that_are_replaced_are_waited_for_as_long_as_pods_may_take() -> None:
    node = Node(pod("a"))
    node.away = True
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        node.away = node.passed < 280

    node.sleep = pass_time  # type: ignore[method-assign]
    assert "its pods are gone" in ended(node, 5)
    assert node.evicted == ["a"]


def test_cluster_that_is_gone_keeps_its_nodes_no_longer_than_pods_may_take() -> None:
    node = Node(pod("a"))
    node.away = True
    assert "its pods were not evicted, the API server does not answer" in ended(node, 2)
    assert 120 <= node.passed < 135
    assert len(node.completed) == 1


@pytest.mark.parametrize(
    "others",
    [
        [],
        [master("i-1", "node-role.kubernetes.io/control-plane")],
        [other("i-1", unschedulable=True), other("i-2", unschedulable=True)],
        [other("i-1", ready=False)],
        [other(INSTANCE)],
    ],
    ids=["none", "masters", "leaving too", "not ready", "itself"],
)
def test_draining_ends_at_once_when_no_other_node_takes_pods(others: list[dict[str, Any]]) -> None:
    node = Node(pod("budgeted"))
    node.kept, node.others = {"budgeted"}, others
    assert "1 pods remain after 0 s, as no other node can run them: default/budgeted" in ended(node, 60)
    assert node.passed == 0
    assert len(node.completed) == 1


@pytest.mark.parametrize(
    "others",
    [
        [other("i-1", ready=False), other("i-2")],
        [other("i-1", taints=[{"key": "dedicated", "effect": "NoSchedule"}])],
        [master("i-1")],
        [*(other(f"i-{number:03}", ready=False) for number in range(30))],
        None,
    ],
    ids=["another", "one for some pods", "master for all pods", "too many to look at", "nobody knows"],
)
def test_pods_are_moved_as_long_as_a_node_may_take_them(others: list[dict[str, Any]] | None) -> None:
    node = Node(pod("a"))
    node.others = others
    assert "its pods are gone" in ended(node)


def test_last_nodes_that_leave_together_do_not_wait_for_each_other() -> None:
    node = Node(pod("budgeted"))
    node.kept = {"budgeted"}
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        if node.passed >= 10:
            node.others = [other("i-1", unschedulable=True)]

    node.sleep = pass_time  # type: ignore[method-assign]
    assert "1 pods remain after 10 s, as no other node can run them" in ended(node, 60)


def test_questions_are_asked_with_time_for_a_master_whose_packets_are_lost() -> None:
    node = Node(pod("a"))
    ended(node)
    asked = node.ran("kubectl ")
    assert all("--request-timeout=30s" in command for command in asked)
    assert any("/eviction" in command for command in asked)


def test_sign_of_life_comes_in_time_while_many_evictions_take_long() -> None:
    node = Node(*(pod(f"p{number}") for number in range(100)))
    node.kept = {f"p{number}" for number in range(100)}
    answer = node._kubectl

    def slow(text: str) -> tuple[int, str]:
        if "/eviction" in text:
            node.passed += 10
        return answer(text)

    node.on("kubectl", slow)
    beat, evicted = node._beat, [0]

    def noted(**arguments: Any) -> dict[str, Any]:
        evicted.append(len(node.evicted))
        return beat(**arguments)

    node.cloud["autoscaling.record_lifecycle_action_heartbeat"] = noted
    ended(node, 10)
    assert max(later - earlier for earlier, later in pairwise(evicted)) == 8
    pauses = [later - earlier for earlier, later in zip([0.0, *node.beats], node.beats, strict=False)]
    assert max(pauses) < 120


def test_instance_that_never_joined_is_let_go_at_once() -> None:
    node = Node()
    del node.files[KUBELET_CONF]
    assert "it never joined the cluster" in ended(node)
    assert node.passed == 0
    assert len(node.completed) == 1


def test_spot_instance_is_drained_before_ec2_takes_it() -> None:
    node = Node(pod("only"))
    node.kept = {"only"}
    node.told[lifecycle.TARGET_STATE_PATH] = "InService"
    node.told[drain.SPOT_ACTION_PATH] = json.dumps({"action": "terminate", "time": "2026-09-01T12:02:00Z"})
    sleep = node.sleep

    def pass_time(seconds: float) -> None:
        sleep(seconds)
        if node.passed > 200:
            node.told[lifecycle.TARGET_STATE_PATH] = "Terminated"

    node.sleep = pass_time  # type: ignore[method-assign]
    drain.watch(node, config())
    [said] = node.said
    assert said.startswith("EC2 is about to interrupt this Spot Instance: 1 pods remain after 100 s")


@pytest.mark.parametrize(
    "answer",
    [
        refusal("ValidationError", "No active Lifecycle Action found with instance ID"),
        refusal("ResourceContention", "You already have a pending update to an Auto Scaling resource"),
    ],
)
def test_group_that_does_not_wait_is_no_failure(answer: dict[str, Any]) -> None:
    node = Node()
    node.cloud["autoscaling.complete_lifecycle_action"] = lambda **_: answer
    assert answer["Error"]["Message"] in ended(node)


def test_stack_that_is_gone_is_no_failure() -> None:
    node = Node()

    def gone(**_: Any) -> dict[str, Any]:
        raise BootError("Stack with id k8s does not exist")

    node.cloud["cloudformation.describe_stack_resource"] = gone
    assert ended(node).endswith("the lifecycle action was not completed: Stack with id k8s does not exist")


def test_service_runs_from_the_first_boot_on() -> None:
    node = Node()
    assert drain.start(node, config(7)) == "pods get 7 min to move when this instance is terminated"
    assert node.commands == ["systemctl daemon-reload", "systemctl enable --now cfngen-drain.service"]
