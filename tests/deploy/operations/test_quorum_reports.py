"""What the report of a failure says first of a control plane whose masters were concerned."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest
from answers import DENIED, Answers

from cfngen.cli.render.diagnosis import diagnosis_lines
from cfngen.cluster.load import parse
from cfngen.deploy.access.cluster_access import no_api_url_override
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Danger, Event
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations.deployment import quorum
from cfngen.deploy.operations.deployment.quorum import add_control_plane, describe_control_plane
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
SILENT = Problem("api", "API server", "cannot be queried: it does not answer")
NONE = "it has no instance"
GROUP = "AWS::AutoScaling::AutoScalingGroup"


def masters(*lifecycles: str) -> list[GroupView]:
    """The masters' groups; a lifecycle that is empty stands for a group without an instance."""
    return [
        GroupView("master", slot, slot, instances=(InstanceView(f"i-{slot}", "z", lifecycle),) if lifecycle else ())
        for slot, lifecycle in zip("abc", lifecycles, strict=False)
    ]


def reading(*slots: str, failing: tuple[str, ...] = ()) -> KubernetesReading:
    nodes = tuple(Node(f"i-{slot}", ready=True, version="1.36.3", master=True) for slot in slots)
    pods = tuple(Pod(f"etcd-i-{slot}", node=f"i-{slot}", phase="Running", ready=True) for slot in slots)
    return KubernetesReading("1.36.3", Readiness(ready=not failing, failing=failing), nodes, pods)


@pytest.mark.parametrize(
    ("groups", "kubernetes", "text"),
    [
        (
            masters("InService", "InService", ""),
            reading("a", "b"),
            "The API answers; etcd has 2 of 3 members and needs 2; master c: it has no instance.",
        ),
        (
            masters("InService"),
            reading("a", failing=("etcd",)),
            "The API answers, but is not ready (etcd); etcd has 1 of 1 member and needs 1.",
        ),
        (
            masters("InService", "", ""),
            SILENT,
            ("The API cannot be queried: it does not answer; 1 of 3 masters is in service, and etcd needs 2; "
            f"master b: {NONE}; master c: {NONE}."),
        ),
    ],
)  # fmt: skip
def test_what_is_left_of_a_control_plane(
    groups: list[GroupView], kubernetes: KubernetesReading | Problem, text: str
) -> None:
    assert describe_control_plane(groups, kubernetes) == text


@pytest.mark.parametrize("kind", ["unfinished", "retries"])
def test_a_master_whose_update_is_only_tried_again_counts(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(quorum, "try_read_kubernetes", lambda *arguments: reading("a", "b"))
    stack = StackView("k8s", "arn", StackStatus("UPDATE_FAILED"))
    account, groups = Answers({}).account, masters("InService", "InService", "InService")
    for slot, danger in (("B", Danger.DANGEROUS), ("C", Danger.NONE)):
        plan = Plan("k8s", "arn", "update", **{kind: (f"MasterStack/Master{slot}AutoScalingGroup",)})  # type: ignore[arg-type]
        assert quorum.judge_quorum(account, stack, groups, plan, no_api_url_override).danger is danger


def diagnosis(logical_id: str) -> Diagnosis:
    event = Event("1", NOON, "k8s", ("MasterStack",), logical_id, "asg", GROUP, "UPDATE_FAILED", "no signal")
    return Diagnosis("k8s", "arn", "UPDATE_ROLLBACK_COMPLETE", "update", Cause(event))


@pytest.mark.parametrize("logical_id", ["NodeGroupNodesAutoScalingGroup", "MasterBAutoScalingGroup"])
def test_what_may_not_be_read_hides_no_failure(logical_id: str) -> None:
    """Of node groups nothing is asked."""
    found = diagnosis(logical_id)
    account = Answers({"cloudformation:DescribeStacks": DENIED}).account
    assert add_control_plane(account, parse({"name": "k8s"}), no_api_url_override, found) is found


def test_it_is_the_first_line() -> None:
    found = Diagnosis("k8s", "arn", "UPDATE_FAILED", "update", control_plane="The API answers.")
    assert click.unstyle(diagnosis_lines(found, 120)[0]) == "The API answers."
