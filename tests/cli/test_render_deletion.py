"""What a deletion shows: columns that line up, lines as wide as the terminal, and only choices that exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from cfngen.cli.display.screen import Screen
from cfngen.cli.render import deletion
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.deletion.stack_removal import DeletionFailed, UndeletedResource
from cfngen.deploy.plan.deletion.plan import DeletedResources, DeletionPlan
from cfngen.deploy.preflight.blockers import Blocker
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import InterruptChoice

GOES = (
    DeletedResources("instances", tuple(f"i-{number:017x}" for number in range(12))),
    DeletedResources(
        "Auto Scaling groups", ("kubernetes-MasterStack-5DCD19E2DC5F-MasterAAutoScalingGroup-" + 12 * "5",)
    ),
    DeletedResources("VPCs", ("vpc-e70152ec3d1acecea",)),
)


def survey(**more: Any) -> list[str]:
    found = DeletionPlan("kubernetes", "kubernetes", "arn", "CREATE_COMPLETE", "123456789012", "us-west-2", **more)
    return [click.unstyle(line) for line in deletion.deletion_plan_lines(found, 81)]


def test_columns_line_up_beside_a_text_that_has_no_room() -> None:
    lines = survey(deleted_parts=GOES)
    rows = lines[lines.index("Deleted with the stack") + 1 :]
    heads = [line for line in rows if line[2:4].strip().isdigit()]
    assert [line[2:4] for line in heads] == ["12", " 1", " 1"]
    assert [line[6:].split("  ")[0].rstrip() for line in heads] == ["instances", "Auto Scaling group", "VPC"]
    assert len({len(line) - len(line[6:].lstrip()) for line in heads}) == 1


def test_tags_that_are_removed_from_existing_subnets_are_listed_before_and_afterwards() -> None:
    tags = (SubnetTag("subnet-1", "kubernetes.io/cluster/kubernetes", "shared"),)
    row = "  subnet-1  kubernetes.io/cluster/kubernetes = shared"
    lines = survey(subnet_tags=tags)
    assert lines[lines.index("Tags of existing subnets, and removed") + 1] == row
    deleted = Deleted("kubernetes", "us-west-2", "kubernetes", "", "", True, False, 1.0, subnet_tags=tags)
    lines = [click.unstyle(str(line)) for line in deletion.result_lines(deleted, 81)]
    assert lines[0].startswith("kubernetes is deleted")
    assert lines[lines.index("Tags removed from existing subnets") + 1] == row


def test_what_is_in_the_way_stands_under_what_was_not_deleted() -> None:
    undeleted = UndeletedResource("VpcStack/Vpc", "vpc-1", "AWS::EC2::VPC", "The vpc 'vpc-1' has dependencies")
    failure = DeletionFailed("kubernetes", 1, 3, (undeleted,), (Blocker("sg-late", "security group late"),))
    lines = [click.unstyle(line) for line in deletion.failed_attempt_lines(failure, 60)]
    assert "  sg-late  security group late" in lines
    assert max(map(len, lines)) < 60


def test_a_command_that_removes_what_is_in_the_way_can_be_copied_as_one_line() -> None:
    command = "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids vpce-0123456789abcdef0 --region us-west-2"
    late = Blocker("vpce-0123456789abcdef0", "VPC endpoint for com.amazonaws.us-west-2.ec2", command)
    failure = DeletionFailed("kubernetes", 1, 3, (), (late, Blocker("sg-late", "security group late")))
    for lines in (survey(blockers=failure.blockers), deletion.failed_attempt_lines(failure, 60)):
        plain = [click.unstyle(line) for line in lines]
        assert f"    {command}" in plain
        assert plain.index(f"    {command}") > next(i for i, line in enumerate(plain) if "sg-late" in line)


def test_what_is_gone_is_no_wider_than_the_terminal() -> None:
    gone = OrphanedResource(
        "security group", "sg-1", "k8s-elb-" + 32 * "a", "Security group for Kubernetes ELB of default/web"
    )
    lines = [click.unstyle(line) for line in deletion.removed_resource_lines(OrphanRemoved(gone), 60)]
    assert (len(lines), lines[0][:4]) == (2, "  - ")
    assert max(map(len, lines)) < 60


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        ("DELETE_IN_PROGRESS", {"w", "d"}),
        ("UPDATE_ROLLBACK_IN_PROGRESS", {"w", "d"}),
        ("UPDATE_IN_PROGRESS", {"w", "d", "c"}),
        ("CREATE_IN_PROGRESS", {"w", "d", "c"}),
    ],
)
def test_only_what_can_be_cancelled_is_offered_for_it(
    monkeypatch: pytest.MonkeyPatch, status: str, offered: set[str]
) -> None:
    asked: dict[str, Any] = {}

    def prompt(text: str, **options: Any) -> str:
        asked.update(text=text, letters=set(options["type"].choices))
        return "d"

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    target: Any = SimpleNamespace(complete_commands=lambda message: message, json=True)
    shown = Screen(target, account=SimpleNamespace())  # type: ignore[arg-type]
    shown.report(Progress("delete", "kubernetes", status, 1.0, 0.0, (), fresh=False, poll_error=""))
    assert shown.interrupted() is InterruptChoice.DETACH
    assert asked["letters"] == offered
    assert ("(c)ancel" in asked["text"]) == ("c" in offered)


@pytest.mark.parametrize(
    ("status", "further"),
    [("DELETE_FAILED", ["cfngen delete --stack-name k8s --leave-behind"]), ("CREATE_COMPLETE", [])],
    ids=["resources that cannot go", "exports in use"],
)
def test_a_deletion_that_failed_names_the_whole_command_that_gives_up_what_cannot_go(
    status: str, further: list[str]
) -> None:
    deleted = Deleted("kubernetes", "us-west-2", "k8s", "arn", status, succeeded=False, in_progress=False, seconds=1)
    lines = [str(line) for line in deletion.result_lines(deleted, 120) if str(line).startswith("Next:")]
    commands = [line.removeprefix("Next: ").partition("   ")[0] for line in lines]
    assert commands == ["cfngen delete --stack-name k8s", *further]
