"""How the end of a pause launches instances again, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import Asked, resource, scaling_group, stack, stacked
from paused_groups import CLUSTER, KEPT, NOON, NOTHING, ONE, group

from cfngen.cluster.load import parse
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.access.cluster_access import no_api_url_override
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.aws.errors import AwsError, DeniedError, ThrottledError, UnreachableError
from cfngen.deploy.aws.groups import InstanceView
from cfngen.deploy.aws.pod_routes import InstanceRoute
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, find_stack
from cfngen.deploy.messages.message import Message, Notice, Step
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.pausing import resume as resuming
from cfngen.deploy.operations.pausing.reports import Resumed, ResumePlan, ResumeProgress
from cfngen.deploy.operations.pausing.resume import (
    ReadinessWait,
    ResumeInterruptedError,
    ResumeTimeoutError,
    resume,
)
from cfngen.deploy.preflight.pausing import (
    CannotResumeError,
    GroupMissingError,
)
from cfngen.deploy.status.cluster_problems import STATIC_PODS, ClusterState, KubernetesReading, target_version


def paused(aws: Answers, **groups: tuple[tuple[int, int, int], dict[str, str] | None, str]) -> None:
    """A stack with Auto Scaling groups, each of some sizes, with a tag, and by its logical id."""
    members = (
        resource(name, name=f"{logical_id}AutoScalingGroup", type_name=AUTO_SCALING_GROUP)
        for name, (_, _, logical_id) in groups.items()
    )
    stacked(aws, stack(), resources={"one": tuple(members)})
    aws.given["autoscaling:DescribeAutoScalingGroups"] = {
        "AutoScalingGroups": [
            scaling_group(name, sizes, Tags=[tag] if tag else []) for name, (sizes, tag, _) in groups.items()
        ]
    }


@pytest.mark.parametrize(("sizes", "tag", "restored"), [
    (NOTHING, KEPT, [("master", 1, 1, 1), ("nodes", 1, 5, 3)]),
    # Somebody has set sizes since, or no tag says which.
    ((0, 1, 1), KEPT, [("master", 1, 1, 1)]),
    (NOTHING, None, [("master", 1, 1, 1)]),
])  # fmt: skip
def test_the_end_of_a_pause_restores_the_sizes_that_are_known(
    aws: Answers, sizes: tuple[int, int, int], tag: dict[str, str] | None, restored: list[tuple[str, int, int, int]]
) -> None:
    paused(aws, master=(NOTHING, None, "MasterA"), nodes=(sizes, tag, "NodeGroupGeneral"))
    asked = Asked()
    cluster = parse({"name": "one", "nodeGroups": [{"name": "general"}]})
    assert resume(aws.account, "one", cluster, asked.waiting, timeout=timedelta(0)).changed
    assert [
        tuple(sent[key] for key in ("AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity"))
        for sent in aws.named("autoscaling:UpdateAutoScalingGroup")
    ] == restored
    steps = [message.text for message in asked.told if isinstance(message, Step)]
    assert steps == ["launching 1 master", "launching 3 nodes"][: len(restored)]
    forgotten = [sent["Tags"][0]["ResourceId"] for sent in aws.named("autoscaling:DeleteTags")]
    assert forgotten == ["nodes"] * bool(tag)


VERSION = target_version(CLUSTER)
IN_SERVICE = {role: InstanceView(f"i-{role}", "us-west-2a", "InService") for role in ("master", "node", "bastion")}
NODES = tuple(
    Node(f"i-{role}", f"i-{role}", ready=True, version=VERSION, master=role == "master") for role in ("master", "node")
)
PODS = tuple(Pod(f"{name}-i-master", "i-master", "Running", ready=True) for name in STATIC_PODS)


def state(
    aws: Answers,
    *missing: str,
    nodes: tuple[Node, ...] = NODES,
    pods: tuple[Pod, ...] = PODS,
    api: Readiness = Readiness(ready=True),  # noqa: B008 - it is frozen
    **more: Any,
) -> ClusterState:
    """A cluster of a master, a node and a bastion, of which some have no instance."""
    stacked(aws, stack())
    root = find_stack(aws.account, "one")
    assert root
    groups = tuple(
        group(role, name, minimum=1, maximum=1, desired=1, instances=() if role in missing else (IN_SERVICE[role],))
        for role, name in (("master", "a"), ("node", "general"), ("bastion", ""))
    )
    return ClusterState(root, groups, KubernetesReading(VERSION, api, nodes, pods), **more)


def waits(
    aws: Answers, monkeypatch: pytest.MonkeyPatch, *states: ClusterState | Exception
) -> tuple[ReadinessWait, list[Message]]:
    """What waits while a cluster goes through some states, in the last of which it stays; and what it reports."""
    left = list(states)

    def read(*_: object) -> ClusterState:
        now = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(now, Exception):
            raise now
        return now

    monkeypatch.setattr(resuming, "read_cluster_state", read)
    messages: list[Message] = []
    return ReadinessWait(aws.account, "one", CLUSTER, no_api_url_override, messages.append), messages


def stay_in(aws: Answers, monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """Let a cluster stay in the state in which some roles have no instance."""
    answers = dict(aws.given)
    waits(aws, monkeypatch, state(aws, *missing))
    aws.given.update(answers)


def changed(role: str, **attributes: Any) -> tuple[Node, ...]:
    return tuple(replace(node, **attributes) if node.name == f"i-{role}" else node for node in NODES)


FORMER = Node("i-former", "i-former", ready=True, version=VERSION)


@pytest.mark.parametrize(
    ("parts", "masters", "nodes"),
    [
        (((), {}), [], []),
        ((("master",), {"nodes": NODES[1:], "pods": ()}), ["master a has 0 of 1 instances in service"], []),
        ((("bastion",), {}), ["the bastion has 0 of 1 instances in service"], []),
        ((("node",), {"nodes": NODES[:1]}), [], ["node group general has 0 of 1 instances in service"]),
        (((), {"api": Readiness(False, ("etcd",))}), *[["the API server is not ready: etcd"]] * 2),
        (((), {"nodes": changed("master", ready=False)}), ["the Node i-master of master a is not Ready"], []),
        (((), {"nodes": changed("node", ready=False)}), [], ["the Node i-node of node group general is not Ready"]),
        (((), {"nodes": NODES[:1]}), [],
         ["the instance i-node of node group general is in service, but has no Node in the cluster"]),
        (((), {"pods": PODS[1:]}), ["the pod etcd-i-master does not run on the master i-master"], []),
        # What runs on the cluster is not waited for, nor is what a deployment would change.
        (((), {"pods": (*PODS, Pod("coredns-1", "i-node", "Pending"))}), [], []),
        (((), {"nodes": (*NODES, Node("i-other"))}), [], []),
        (((), {"routes": (InstanceRoute("rtb-1", "10.1.0.0/24", "i-other"),)}), [], []),
        # What is left of the time before the pause is removed by the masters.
        (((), {"nodes": (*NODES, FORMER), "gone": frozenset({"i-former"})}), [],
         ["the Node i-former counts as Ready, but its instance no longer exists"]),
        (((), {"pods": (*PODS, Pod("coredns-1", "i-gone", "Running", ready=True))}), [],
         ["the pod coredns-1 counts as Running, but its Node i-gone is gone"]),
    ],
)  # fmt: skip
def test_what_masters_and_nodes_are_waited_for(
    aws: Answers,
    monkeypatch: pytest.MonkeyPatch,
    parts: tuple[tuple[str, ...], dict[str, Any]],
    masters: list[str],
    nodes: list[str],
) -> None:
    missing, more = parts
    for role, sentences in (("master", masters), ("node", nodes)):
        wait, messages = waits(aws, monkeypatch, state(aws, *missing, **more), state(aws))
        wait.wait(role, timedelta(minutes=1))  # type: ignore[arg-type]
        expected = [ResumeProgress(f"{role}s", tuple(sentences), 0.0)] if sentences else []
        assert messages == expected


def test_what_is_waited_for_is_said_when_it_changes(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    absent, silent = state(aws, "master", nodes=NODES[1:]), state(aws, nodes=changed("master", ready=False))
    wait, messages = waits(
        aws, monkeypatch, absent, absent, silent, silent, ThrottledError("later"), silent, state(aws)
    )
    wait.wait("master", timedelta(minutes=1))
    assert [
        (message.seconds, len(message.waiting_for)) for message in messages if isinstance(message, ResumeProgress)
    ] == [
        (0.0, 1),
        (20.0, 1),
    ]
    assert aws.clock.slept == [10.0] * 6


@pytest.mark.parametrize("error", [ThrottledError("later"), UnreachableError("no network")])
def test_what_aws_does_not_answer_is_asked_again_until_time_is_up(
    aws: Answers, monkeypatch: pytest.MonkeyPatch, error: AwsError
) -> None:
    wait, messages = waits(aws, monkeypatch, error)
    with pytest.raises(type(error)):
        wait.wait("node", timedelta(minutes=1))
    assert (messages, aws.clock.slept) == ([], [10.0] * 6)


def test_what_is_refused_is_not_asked_again(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    wait, _ = waits(aws, monkeypatch, DeniedError("no"))
    with pytest.raises(DeniedError):
        wait.wait("node", timedelta(minutes=1))
    assert aws.clock.slept == []


def test_when_time_is_up_it_is_said_why_auto_scaling_launches_nothing(
    aws: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def activities(sent: dict[str, Any]) -> dict[str, Any]:
        failed = {"ActivityId": "1", "Cause": "?", "StartTime": NOON, "StatusCode": "Failed"}
        name = sent["AutoScalingGroupName"]
        reasons = (f"no capacity for {name}", "an older reason")
        return {"Activities": [{**failed, "AutoScalingGroupName": name, "StatusMessage": text} for text in reasons]}

    aws.given["autoscaling:DescribeScalingActivities"] = activities
    wait, _ = waits(aws, monkeypatch, state(aws, "master", "node", nodes=(), pods=()))
    with pytest.raises(ResumeTimeoutError) as late:
        wait.wait("node", timedelta(minutes=1))
    assert str(late.value) == (
        "not all nodes are ready after 1 minute: node group general has 0 of 1 instances in service; "
        "no capacity for group-general"
    )
    assert str(late.value.hint).startswith("`cfngen resume` continues waiting; with --wait 0s it ends the pause")
    wait, _ = waits(aws, monkeypatch, state(aws, nodes=changed("node", ready=False)))
    with pytest.raises(ResumeTimeoutError, match=r"is not Ready$"):
        wait.wait("node", timedelta(minutes=1))


LAUNCHES = ["launching 1 master and the bastion", "launching 4 nodes"]
MASTERS_FIRST = [("master", 1, 1, 1), ("bastion", 1, 1, 1)]
THEN_NODES = [("general", 1, 5, 3), ("gpu", 1, 1, 1)]


@pytest.mark.parametrize(
    ("timeout", "absent", "minutes", "launched"),
    [
        (None, "master", 55, MASTERS_FIRST),
        (timedelta(minutes=5), "master", 5, MASTERS_FIRST),
        # Of the node groups, the one that takes the longest counts.
        (None, "node", 40, [*MASTERS_FIRST, *THEN_NODES]),
        (timedelta(minutes=5), "node", 5, [*MASTERS_FIRST, *THEN_NODES]),
        (None, "", 0, [*MASTERS_FIRST, *THEN_NODES]),
        (timedelta(seconds=1), "", 0, [*MASTERS_FIRST, *THEN_NODES]),
    ],
)
def test_nodes_come_once_masters_work_and_tags_go_once_all_do(
    aws: Answers,
    monkeypatch: pytest.MonkeyPatch,
    timeout: timedelta | None,
    absent: str,
    minutes: int,
    launched: list[tuple[str, int, int, int]],
) -> None:
    paused(aws, master=(NOTHING, ONE, "MasterA"), bastion=(NOTHING, ONE, "Bastion"),
           general=(NOTHING, KEPT, "NodeGroupGeneral"), gpu=(NOTHING, ONE, "NodeGroupGpu"))  # fmt: skip
    stay_in(aws, monkeypatch, *filter(None, [absent]))
    asked = Asked()
    if absent:
        with pytest.raises(ResumeTimeoutError, match=f"not all {absent}s are ready after {minutes} minutes"):
            resume(aws.account, "one", CLUSTER, asked.waiting, timeout=timeout)
    else:
        ended = resume(aws.account, "one", CLUSTER, asked.waiting, timeout=timeout)
        assert ended == Resumed("one", changed=True, waited=True, seconds=0.0)
    assert [
        tuple(sent[key] for key in ("AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity"))
        for sent in aws.named("autoscaling:UpdateAutoScalingGroup")
    ] == launched
    assert [message.text for message in asked.told if isinstance(message, Step)] == LAUNCHES[: len(launched) // 2]
    # The masters' tags go last: as long as one has its tag, the same command continues.
    forgotten = [sent["Tags"][0]["ResourceId"] for sent in aws.named("autoscaling:DeleteTags")]
    assert forgotten == ([] if absent else ["bastion", "gpu", "general", "master"])


def test_without_node_groups_what_is_left_of_nodes_is_waited_for(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    paused(aws, master=(NOTHING, ONE, "MasterA"))
    cluster = CLUSTER.model_copy(update={"node_groups": ()})
    answers = dict(aws.given)
    left = state(aws, pods=(*PODS, Pod("coredns-1", "i-gone", "Running", ready=True)))
    waits(aws, monkeypatch, left)
    aws.given.update(answers)
    with pytest.raises(ResumeTimeoutError, match=r"not all nodes are ready after 15 minutes: the pod coredns-1 "):
        resume(aws.account, "one", cluster, Asked().waiting)


def test_the_plan_of_a_resumption_says_what_stays_as_it_is(aws: Answers) -> None:
    paused(aws, master=(NOTHING, ONE, "MasterA"), same=((1, 5, 2), KEPT, "NodeGroupGeneral"),
           other=((0, 5, 2), KEPT, "NodeGroupGpu"), third=((1, 4, 2), KEPT, "NodeGroupThird"),
           empty=(NOTHING, None, "NodeGroupEmpty"), untagged=(NOTHING, None, "MasterB"),
           asleep=(NOTHING, KEPT, "NodeGroupAsleep"), awake=((1, 2, 1), None, "NodeGroupAwake"),
           unknown=(NOTHING, None, "NodeGroupUnknown"))  # fmt: skip
    file = {"name": "one", "nodeGroups": [{"name": "general"}, {"name": "gpu"}, {"name": "third"},
            {"name": "empty", "minSize": 2, "maxSize": 7}]}  # fmt: skip
    asked = Asked(agrees=False)
    with pytest.raises(DeclinedError):
        resume(aws.account, "one", parse(file), asked.waiting)
    [plan] = (message for message in asked.told if isinstance(message, ResumePlan))
    since = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert (plan.cluster, plan.region, plan.account) == ("one", aws.account.region, aws.account.id)
    assert plan.pause
    assert (plan.pause.since, plan.pause.complete) == (since, False)
    left = "set since the pause began, and left as they are; before it: 3 (1 to 5)"
    assert [(of.role, of.name, of.minimum, of.maximum, of.desired, of.note) for of in plan.groups] == [
        ("master", "a", 1, 1, 1, ""),
        ("master", "b", 1, 1, 1, ""),
        ("node", "Asleep", 1, 5, 3, ""),
        ("node", "Awake", 1, 2, 1, ""),
        ("node", "Unknown", 0, 0, 0, ""),
        ("node", "empty", 0, 0, 0, ""),
        ("node", "general", 1, 5, 2, ""),
        ("node", "gpu", 0, 5, 2, left),
        ("node", "third", 1, 4, 2, left),
    ]
    notices = {message.text.partition(" has")[0]: str(message.hint) for message in asked.told
               if isinstance(message, Notice)}  # fmt: skip
    command = f"give it sizes: aws autoscaling update-auto-scaling-group --region {aws.account.region}"
    assert notices == {
        "node group empty": f"{command} --auto-scaling-group-name empty --min-size 2 --max-size 7",
        "node group Unknown": f"{command} --auto-scaling-group-name unknown --min-size MIN --max-size MAX",
    }
    assert (aws.writes, [question.text for question in asked.questions]) == ([], ["Resume one?"])


@pytest.mark.parametrize(
    ("groups", "refused"),
    [
        ({"master": ((1, 1, 1), None, "MasterA"), "nodes": (NOTHING, None, "NodeGroupGeneral")}, None),
        ({"nodes": (NOTHING, KEPT, "NodeGroupGeneral")}, GroupMissingError),
        ({"master": (NOTHING, {"Key": PAUSED, "Value": "damaged"}, "MasterA")}, CannotResumeError),
    ],
    ids=["not paused", "without masters", "damaged"],
)
def test_what_is_not_paused_or_damaged_is_left_alone(
    aws: Answers, groups: dict[str, Any], refused: type[Exception] | None
) -> None:
    paused(aws, **groups)
    asked = Asked()
    if refused:
        with pytest.raises(refused):
            resume(aws.account, "one", CLUSTER, asked.waiting)
    else:
        ended = resume(aws.account, "one", CLUSTER, asked.waiting)
        assert ended == Resumed("one", changed=False, waited=False, seconds=0.0)
    assert (aws.writes, asked.told, asked.questions) == ([], [], [])


def test_an_interrupted_resumption_says_how_it_goes_on(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    paused(aws, master=(NOTHING, ONE, "MasterA"))

    def interrupt(*_: object) -> ClusterState:
        raise KeyboardInterrupt

    monkeypatch.setattr(resuming, "read_cluster_state", interrupt)
    with pytest.raises(ResumeInterruptedError) as stopped:
        resume(aws.account, "one", CLUSTER, Asked().waiting)
    assert str(stopped.value.hint) == "`cfngen resume` continues; `cfngen pause` pauses the cluster again."
