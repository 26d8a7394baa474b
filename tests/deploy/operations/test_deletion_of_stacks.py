"""Deleting stacks in rounds: what CloudFormation is asked, when is swept meanwhile, and what is left behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from aws_descriptions import NOW, Asked, Deletions, arn, resource

from cfngen.deploy.aws.stacks import StackResource, StackView, find_stack
from cfngen.deploy.messages.message import Event, Step
from cfngen.deploy.operations.deletion.stack_removal import DeletionFailed, UndeletedResource, delete_stack
from cfngen.deploy.preflight.blockers import Blocker

FAILED = resource("vpc-1", "DELETE_FAILED", reason="has dependencies", name="Vpc")
NESTED = resource(arn("network"), "DELETE_FAILED", type_name="AWS::CloudFormation::Stack", name="NetworkStack")
INSIDE = resource("subnet-1", "DELETE_FAILED", reason="in use", name="Subnet")


def event(type_name: str = "AWS::EC2::VPC", status: str = "DELETE_IN_PROGRESS", physical_id: str = "vpc-1") -> Event:
    return Event("e", NOW, "one", (), "Vpc", physical_id, type_name, status)


def group_gone(name: str) -> Event:
    return event("AWS::AutoScaling::AutoScalingGroup", "DELETE_COMPLETE", name)


def removed(deletions: Deletions, asked: Asked, **more: Any) -> StackView | None:
    deletions.describe(deletions.begins)
    root = find_stack(deletions.aws.account, "one")
    assert root is not None
    deletions.aws.calls.clear()
    return delete_stack(deletions.aws.account, root, asked.waiting, **more)


def test_a_stack_is_deleted_by_its_arn_and_watched_from_then_on(deletions: Deletions) -> None:
    asked, begun = Asked(), []
    assert removed(deletions, asked, on_started=lambda: begun.append(len(deletions.aws.written()))) is None
    [sent] = deletions.aws.named("cloudformation:DeleteStack")
    assert (sent["StackName"], sent["ClientRequestToken"].startswith("cfngen-delete-")) == (arn("one"), True)
    assert (begun, asked.told, asked.questions) == ([1], [Step("deleting the stack one")], [])
    assert [each.id for each in deletions.since] == ["before"]


def test_each_attempt_has_a_token_of_its_own(deletions: Deletions) -> None:
    deletions.ends, deletions.members = ["DELETE_FAILED", "DELETE_COMPLETE"], (FAILED,)
    assert removed(deletions, Asked()) is None
    tokens = [each["ClientRequestToken"] for each in deletions.aws.named("cloudformation:DeleteStack")]
    assert len(set(tokens)) == 2


def test_termination_protection_is_lifted_before(deletions: Deletions) -> None:
    asked, deletions.protected = Asked(), True
    removed(deletions, asked)
    assert [name for name, _ in deletions.aws.written()] == [
        "cloudformation:UpdateTerminationProtection",
        "cloudformation:DeleteStack",
    ]
    assert asked.told[0] == Step("disabling the termination protection of one")


def test_a_deletion_under_way_is_not_begun_again(deletions: Deletions) -> None:
    deletions.begins, begun, asked = "DELETE_IN_PROGRESS", [], Asked()
    assert removed(deletions, asked, on_started=lambda: begun.append(1)) is None
    assert (deletions.aws.written(), deletions.since, begun, asked.told) == ([], [None], [1], [])


def test_a_deletion_that_goes_on_without_us_is_no_failure(deletions: Deletions) -> None:
    deletions.ends, asked = ["DELETE_IN_PROGRESS"], Asked()
    after = removed(deletions, asked)
    assert after is not None
    assert (after.status.name, len(deletions.since)) == ("DELETE_IN_PROGRESS", 1)
    assert not [each for each in asked.told if isinstance(each, DeletionFailed)]


def test_it_is_tried_three_times_and_swept_with_patience_between(deletions: Deletions) -> None:
    deletions.ends, deletions.members, asked = ["DELETE_FAILED"], (FAILED, resource("sg-1")), Asked(agrees=False)
    swept: list[bool] = []
    after = removed(deletions, asked, remove_orphans=swept.append)
    assert after is not None
    assert after.status.name == "DELETE_FAILED"
    failures = [each for each in asked.told if isinstance(each, DeletionFailed)]
    undeleted = UndeletedResource("Vpc", "vpc-1", "AWS::EC2::VPC", "has dependencies")
    assert failures == [DeletionFailed("one", number, 3, (undeleted,)) for number in (1, 2, 3)]
    assert swept == [True, True, True]
    [question] = asked.questions
    assert question.dangerous
    assert question.consequences == ("Vpc (vpc-1) remains: has dependencies",)


def test_what_others_have_in_the_way_is_named_and_not_run_into_again(deletions: Deletions) -> None:
    deletions.ends, deletions.members, asked = ["DELETE_FAILED"], (FAILED,), Asked(agrees=False)
    obstacles = (Blocker("eni-9", "a database"), Blocker("sg-9", "its group"))
    assert removed(deletions, asked, find_blockers=lambda: obstacles) is not None
    [failure] = [each for each in asked.told if isinstance(each, DeletionFailed)]
    assert failure.blockers == obstacles
    assert asked.told[-1] == Step("no further attempt is made, as eni-9 and sg-9 would block it as well")
    assert len(deletions.aws.named("cloudformation:DeleteStack")) == 1
    [question] = asked.questions
    assert question.consequences == (
        "Vpc (vpc-1) remains: has dependencies",
        "eni-9 blocks the deletion: a database",
        "sg-9 blocks the deletion: its group",
    )


def test_what_others_have_taken_away_meanwhile_is_no_reason_to_stop(deletions: Deletions) -> None:
    deletions.ends, deletions.members, asked = ["DELETE_FAILED", "DELETE_COMPLETE"], (FAILED,), Asked()
    obstacles = [(Blocker("eni-9", "a function"),), ()]
    assert removed(deletions, asked, find_blockers=lambda: obstacles.pop(0)) is None
    assert len(deletions.aws.named("cloudformation:DeleteStack")) == 2
    assert asked.questions == []


@pytest.mark.parametrize(
    ("members", "inside", "arguments"),
    [
        ((FAILED,), (), {"RetainResources": ["Vpc"]}),
        ((NESTED,), (INSIDE,), {"DeletionMode": "FORCE_DELETE_STACK"}),
        ((FAILED, NESTED), (INSIDE,), {"DeletionMode": "FORCE_DELETE_STACK"}),
        ((), (), {"DeletionMode": "FORCE_DELETE_STACK"}),
    ],
    ids=["of the root", "of a nested stack", "of both", "of nobody knows what"],
)
@pytest.mark.parametrize("agreed", [True, False])
def test_what_cannot_be_deleted_is_left_behind_with_consent(
    deletions: Deletions,
    agreed: bool,
    members: tuple[StackResource, ...],
    inside: tuple[StackResource, ...],
    arguments: dict[str, Any],
) -> None:
    deletions.ends = ["DELETE_FAILED"] * 3 + ["DELETE_COMPLETE"]
    deletions.members, deletions.inside = members, inside
    asked = Asked()
    assert removed(deletions, asked, leave_behind=agreed) is None
    assert len(asked.questions) == (0 if agreed else 1)
    last = deletions.aws.named("cloudformation:DeleteStack")[-1]
    assert {key: value for key, value in last.items() if key not in ("StackName", "ClientRequestToken")} == arguments
    assert [each.id for each in deletions.since] == ["before"] * 4


def test_nested_resources_are_named_behind_their_stack(deletions: Deletions) -> None:
    deletions.ends, deletions.members, asked = ["DELETE_FAILED"], (NESTED,), Asked(agrees=False)
    deletions.inside = (INSIDE, resource("", "DELETE_FAILED", type_name="AWS::EC2::Route", name="Route", reason="no"))
    removed(deletions, asked)
    assert asked.questions[0].consequences == (
        "NetworkStack/Subnet (subnet-1) remains: in use",
        "NetworkStack/Route (AWS::EC2::Route) remains: no",
    )


@pytest.mark.parametrize(
    ("events", "swept_after"),
    [
        # Only once all groups are gone nothing of Kubernetes runs any more.
        ([(1, event()), (1, group_gone("a")), (60, event())], []),
        ([(1, group_gone("a")), (1, group_gone("b")), (1, event())], [2]),
        ([(1, group_gone("b")), (1, group_gone("a")), (29, event()), (1, event()), (1, event())], [2, 32]),
        ([(1, group_gone("a")), (1, group_gone("b")), (90, event()), (10, event()), (20, event())], [2, 92, 122]),
        ([(1, group_gone("a")), (1, group_gone("a")), (60, event())], []),
        ([(1, event("AWS::AutoScaling::AutoScalingGroup", "DELETE_IN_PROGRESS", each)) for each in "ab"], []),
        ([(1, event("AWS::EC2::Volume", "DELETE_COMPLETE", each)) for each in "ab"], []),
        ([(1, group_gone("a")), (1, group_gone("b")), (5, group_gone("b")), (1, event())], [2]),
    ],
)
def test_what_kubernetes_made_meanwhile_goes_when_the_last_group_has_gone(
    deletions: Deletions, events: list[tuple[float, Event]], swept_after: list[float]
) -> None:
    """Then at most each half a minute."""
    began, asked, swept = deletions.aws.clock.now(), Asked(), []

    def sweep(patiently: bool) -> None:
        swept.append(((deletions.aws.clock.now() - began) / timedelta(seconds=1), patiently))

    deletions.events = events
    removed(deletions, asked, groups=("a", "b"), remove_orphans=sweep)
    assert swept == [(after, False) for after in swept_after]
    assert [each for each in asked.told if isinstance(each, Event)] == [each for _, each in events]
