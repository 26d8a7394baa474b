"""What is said of instances that still boot, or failed to, and of an API that waits for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.access.kubernetes_objects import Node, Readiness
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.boots import Boots
from cfngen.deploy.status.cluster_problems import ClusterState, KubernetesReading, Problem
from cfngen.deploy.status.validation import validate_state

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
STACK = StackView("k8s", "arn", StackStatus("CREATE_COMPLETE"))
CLUSTER = parse({"name": "k8s"})
SILENT = Problem("api", "API server", "cannot be queried: no connection", hint="check ApiAllowedCidr")
NEEDS = "; a boot usually takes 5 minutes, and etcd needs 2 of 3 members before the API answers: "
BOOTING = ("[1/14] identity: i-1 (0.1 s)", "[2/14] downloads: fetched 7 of 7 files (9.0 s)")
BROKEN = (BOOTING[0], "[2/14] downloads FAILED after 5.0 s: no route. What to do: see /var/log/cfngen.log")


def group(name: str, minutes: int | None, role: str = "master") -> GroupView:
    """A group of one instance, launched so many minutes ago; of none without a number."""
    launched = NOW - timedelta(minutes=minutes or 0)
    instance = InstanceView(f"i-{name}", "us-west-2a", "InService", state="running", launched=launched)
    return GroupView(role, name, f"asg-{name}", desired=1, instances=() if minutes is None else (instance,))


def boots(**lines: tuple[str, ...]) -> Boots:
    return Boots(
        NOW,
        {
            f"i-{name}": ConsoleExcerpt(
                f"i-{name}", "running", said, failed=said is BROKEN, finished=said[-1].startswith("done")
            )
            for name, said in lines.items()
        },
    )


@pytest.mark.parametrize(
    ("masters", "known", "hint"),
    [
        (
            (group("a", 60), group("b", 3), group("c", None)),
            boots(),
            (
                f"master b was launched 3 minutes ago and master c has no instance{NEEDS}"
                "`cfngen validate cluster --wait 15m` waits for that."
            ),
        ),
        (
            (group("a", 60), group("b", 3), group("c", 7)),
            boots(b=BROKEN),
            (
                "master b (i-b) failed to boot: step 2 of 14 (downloads): no route and master c was launched 7 minutes "
                f"ago{NEEDS}`cfngen replace i-b` launches another one."
            ),
        ),
        ((group("a", 60), group("b", 3)), boots(b=("done in 60.0 s",)), "check ApiAllowedCidr"),
        ((group("a", 60),), boots(), "check ApiAllowedCidr"),
        ((), Boots(), "check ApiAllowedCidr"),
    ],
)
def test_a_silent_api_is_explained_by_what_its_masters_do(masters: tuple[GroupView, ...], known: Boots, hint: str):
    problems = validate_state(ClusterState(STACK, masters, SILENT, boots=known), CLUSTER, NOW).problems
    assert [str(problem.hint) for problem in problems if problem.area == "api"] == [hint]


@pytest.mark.parametrize(
    ("minutes", "known", "detail", "hint"),
    [
        (
            3,
            boots(a=BOOTING),
            "launched 3 minutes ago, and a boot usually takes 5 minutes; after step 2 of 14 (downloads)",
            "`cfngen validate cluster --wait 15m` waits for it.",
        ),
        (
            3,
            boots(a=BROKEN),
            "launched 3 minutes ago, and a boot usually takes 5 minutes; step 2 of 14 (downloads): no route",
            "`cfngen replace i-a` launches another one; the boot program itself tries again every minute.",
        ),
        (
            30,
            boots(),
            "launched 30 minutes ago, and a boot usually takes 5 minutes",
            "its boot log: aws ec2 get-console",
        ),
    ],
)
@pytest.mark.parametrize("lifecycle", ["InService", "Pending:Wait"])
def test_an_instance_that_is_no_node_yet(minutes: int, known: Boots, detail: str, hint: str, lifecycle: str):
    found = group("a", minutes, "node")
    found = replace(found, instances=(replace(found.instances[0], lifecycle=lifecycle),))
    node = Node("other", ready=True, version=CLUSTER.kubernetes_version)
    api = KubernetesReading("1.36.3", Readiness(ready=True, failing=()), (node,), ())
    problems = validate_state(ClusterState(STACK, (found,), api, boots=known), CLUSTER, NOW).problems
    [problem] = [problem for problem in problems if problem.area == "instance"]
    assert detail in problem.detail
    if lifecycle == "InService" or minutes == 3:
        assert str(problem.hint).startswith(hint)
