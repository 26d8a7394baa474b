"""Why an operation failed, as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import click
import pytest

from cfngen.cli.render.diagnosis import diagnosis_lines
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.next_steps import NextStep
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis

NOON = datetime(2026, 9, 1, 12, 4, 5, tzinfo=UTC)
GROUP = "AWS::AutoScaling::AutoScalingGroup"
EVENT = Event(
    "1",
    NOON,
    "k8s-NodeGroupNodesStack-1",
    ("NodeGroupNodesStack",),
    "NodeGroupNodesAutoScalingGroup",
    "k8s-NodeGroupNodes-1",
    GROUP,
    "CREATE_FAILED",
    "Failed to receive 2 resource signal(s) within the specified duration",
)
SAID = ConsoleExcerpt(
    "i-1",
    "terminated",
    ("[1/3] identity: i-1 (0.1 s)", "[2/3] join FAILED after 120.0 s: no secret. What to do: look at the master"),
    failed=True,
    note="a session on it shows the rest:",
    fetch="aws ssm start-session --region us-west-2 --target i-1",
)
FETCH = "aws ec2 get-console-output --region us-west-2 --output text --latest --instance-id i-2"
CAUSE = Cause(
    EVENT,
    "2 of the group's instances did not report in time that they work",
    "look at the masters first.",
    instances=(
        SAID,
        ConsoleExcerpt("i-2", "running", note="its console is empty", fetch=FETCH),
        ConsoleExcerpt("i-3", "running", note="its console is empty", fetch=FETCH.replace("i-2", "i-3")),
    ),
)
STEPS = (
    NextStep("cfngen deploy --stack-name k8s", "tries again"),
    NextStep("cfngen delete --stack-name k8s", "ends it"),
)
DIAGNOSIS = Diagnosis("k8s", "arn", "ROLLBACK_COMPLETE", "create", CAUSE, next_steps=STEPS)


def plain(diagnosis: Diagnosis, width: int = 120) -> list[str]:
    return [click.unstyle(line) for line in diagnosis_lines(diagnosis, width)]


def test_the_cause_what_it_means_who_saw_it_and_what_to_type():
    assert plain(DIAGNOSIS) == [
        "Creating k8s failed (ROLLBACK_COMPLETE): node group nodes, i-1, step 2 of 3 (join): no secret",
        "",
        "  ✗ NodeGroupNodesStack/NodeGroupNodesAutoScalingGroup (node group nodes) CREATE_FAILED at 12:04:05Z",
        "      Failed to receive 2 resource signal(s) within the specified duration",
        "    means: 2 of the group's instances did not report in time that they work",
        "    i-1 (terminated), console output:",
        "      | [1/3] identity: i-1 (0.1 s)",
        "      | [2/3] join FAILED after 120.0 s: no secret. What to do: look at the master",
        "      a session on it shows the rest:",
        "      aws ssm start-session --region us-west-2 --target i-1",
        "    i-2, i-3 (running):",
        "      its console is empty",
        f"      {FETCH}",
        "    to fix: look at the masters first.",
        "",
        "Next:",
        "  cfngen deploy --stack-name k8s  tries again",
        "  cfngen delete --stack-name k8s  ends it",
    ]


def test_the_line_on_which_the_boot_failed_is_red():
    assert click.style(f"      | {SAID.lines[1]}", fg="red") in diagnosis_lines(DIAGNOSIS, 120)


def test_narrow_terminals_tear_neither_a_command_nor_a_line_of_a_console():
    told = plain(DIAGNOSIS, 60)
    assert f"      {FETCH}" in told
    assert tuple(line.removeprefix("      | ") for line in told if line.startswith("      | ")) == SAID.lines


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (CAUSE, "node group nodes, i-1, step 2 of 3 (join): no secret"),
        (replace(CAUSE, instances=()), "node group nodes: 2 of the group's instances did not report in time that"),
        (Cause(replace(EVENT, logical_id="Disk", reason="no disks today")), "disk: no disks today"),
        (Cause(replace(EVENT, physical_id="arn:root", stack_id="arn:root", reason="no role")), "stack itself: no role"),
        (
            replace(CAUSE, instances=(replace(SAID, lines=(SAID.lines[0], "waiting for a master (60 s): none")),)),
            "i-1, after step 1 of 3 (identity): waiting for a master (60 s): none",
        ),
    ],
)
def test_the_first_line_names_the_cause(cause: Cause, told: str):
    assert told in " ".join(" ".join(plain(replace(DIAGNOSIS, cause=cause))[:2]).split())


def test_further_failures_and_those_of_the_way_back():
    other = replace(EVENT, path=("DiskStack",), logical_id="Disk", type="AWS::EC2::Volume", reason="no disks today")
    stuck = replace(other, status="DELETE_FAILED", reason="DependencyViolation")
    told = plain(
        replace(
            DIAGNOSIS,
            others=(Cause(other, hint="wait"),),
            rollback_failures=(Cause(stuck, occupants=("eni-1 (ELB x)",), notes=("nobody knows",)),),
        )
    )
    assert "Other failures, independent of it:" in told
    assert "  ✗ DiskStack/Disk (disk) CREATE_FAILED at 12:04:05Z" in told
    assert "Failed during the rollback:" in told
    assert "    still in use by:" in told
    assert "      eni-1 (ELB x)" in told
    assert "    not determined: nobody knows" in told


def test_a_launch_that_failed_is_told_in_auto_scalings_words():
    told = plain(
        replace(DIAGNOSIS, cause=replace(CAUSE, launches=("We do not have sufficient capacity",), instances=()))
    )
    assert "      Auto Scaling: We do not have sufficient capacity" in told


def test_a_cancelled_operation_and_one_that_did_not_fail():
    cancelled = Diagnosis("k8s", "arn", "UPDATE_ROLLBACK_COMPLETE", "update", cancelled=True)
    assert plain(cancelled) == [
        "Updating k8s was cancelled (UPDATE_ROLLBACK_COMPLETE); no resource failed",
    ]
    assert plain(Diagnosis("k8s", "arn", "CREATE_COMPLETE", "create")) == [
        "There is no known failure of creating k8s (CREATE_COMPLETE)",
    ]


def test_every_text_wraps_but_commands_stay_on_their_line():
    long = replace(
        DIAGNOSIS,
        stack="a-stack-with-a-name-that-is-as-long-as-names-of-stacks-may-be",
        cause=replace(CAUSE, occupants=("eni-0123456789abcdef0 of the load balancer web, which Kubernetes has made",)),
        next_steps=(NextStep("cfngen deploy --stack-name k8s", "tries again what could not be finished " * 3),),
    )
    for width in (40, 61, 100):
        shown = plain(long, width)
        assert "  cfngen deploy --stack-name k8s" in {line[:32] for line in shown}
        # A word that is longer than the screen stands alone in its line; commands of the AWS CLI are left whole.
        wide = [line for line in shown if len(line) > width and "aws " not in line]
        assert [line for line in wide if len(line.split()) > 1 and line.split()[0] not in "✗|"] == []
