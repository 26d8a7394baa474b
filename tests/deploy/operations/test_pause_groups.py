"""What a tag keeps of a group, and which groups cannot be paused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from answers import Answers
from aws_descriptions import Asked, resource, scaling_group, stack, stacked
from botocore.exceptions import ClientError
from botocore.session import get_session
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.groups import GroupView, InstanceView, KeptSizes, Sizes, parse_tags, tag_value
from cfngen.deploy.aws.pause import find_pause
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.messages.message import Step
from cfngen.deploy.operations.pausing.group_changes import set_sizes
from cfngen.deploy.operations.pausing.resume import resume
from cfngen.deploy.preflight.pausing import (
    CannotPauseError,
    CannotResumeError,
    GroupMissingError,
    check_groups_exist,
    check_pausable,
    check_resumable,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def group(role: str = "node", name: str = "general", **attributes: object) -> GroupView:
    return GroupView(role, name, f"group-{name}", **attributes)  # type: ignore[arg-type]


def test_a_tag_keeps_the_sizes_and_the_time() -> None:
    sizes = Sizes(minimum=1, maximum=5, desired=3)
    value = tag_value(sizes, NOON)
    assert value == "min=1 max=5 desired=3 since=2026-11-21T12:00:00Z"
    assert parse_tags({PAUSED: value, "Name": "x"}) == KeptSizes(value, sizes, NOON)
    assert parse_tags({"Name": "x"}) is None
    assert len(tag_value(Sizes(minimum=5000, maximum=5000, desired=5000), NOON)) <= 256


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yes",
        "min=1 max=2",
        "min=3 max=1 desired=2 since=2026-11-21T12:00:00Z",
        "min=1 max=5 desired=9 since=2026-11-21T12:00:00Z",
        "min=1 max=5 desired=3 since=yesterday",
    ],
)
def test_a_damaged_tag_is_refused_and_never_replaced(aws: Answers, value: str) -> None:
    kept = parse_tags({PAUSED: value})
    assert kept == KeptSizes(value)
    with pytest.raises(CannotPauseError, match="does not say its sizes before the pause") as refused:
        check_pausable(aws.account, [group(kept=kept)])
    assert "create-or-update-tags" in str(refused.value.hint)
    with pytest.raises(CannotResumeError, match="node group general"):
        check_resumable(aws.account, [group(kept=kept)])
    pause = find_pause([group(kept=kept)])
    assert pause
    assert (pause.since, pause.groups) == (None, ())


def test_a_group_without_room_for_a_tag_is_refused(aws: Answers) -> None:
    with pytest.raises(CannotPauseError, match="has 50 tags"):
        check_pausable(aws.account, [group(tag_count=50)])
    check_pausable(aws.account, [group(tag_count=49)])
    check_pausable(aws.account, [group(tag_count=50, kept=parse_tags({PAUSED: tag_value(Sizes(1, 1, 1), NOON)}))])


def test_an_instance_on_standby_is_refused(aws: Answers) -> None:
    instance = InstanceView("i-1", "us-west-2a", "Standby")
    with pytest.raises(CannotPauseError, match="on standby, and would go on running: i-1"):
        check_pausable(aws.account, [group(instances=(instance,))])


@pytest.mark.parametrize("code", ["ResourceContention", "ScalingActivityInProgress", "ResourceInUse"])
def test_sizes_are_set_once_another_change_of_the_group_is_over(code: str) -> None:
    errors = get_session().get_service_model("autoscaling").error_shapes
    assert code in {shape.metadata["error"]["code"] for shape in errors}
    refusals = [RefusedError(code), RefusedError(code)]
    aws = Answers({"autoscaling:UpdateAutoScalingGroup": lambda _: refusals.pop() if refusals else {}})
    set_sizes(aws.account, group(), Sizes(minimum=1, maximum=2, desired=1))
    sent = {"AutoScalingGroupName": "group-general", "MinSize": 1, "MaxSize": 2, "DesiredCapacity": 1}
    assert aws.named("autoscaling:UpdateAutoScalingGroup") == [sent] * 3


def test_a_refusal_that_does_not_pass_ends_the_pause_of_a_group() -> None:
    aws = Answers({"autoscaling:UpdateAutoScalingGroup": RefusedError("ValidationError")})
    with pytest.raises(ClientError, match="ValidationError"):
        set_sizes(aws.account, group(), Sizes(minimum=1, maximum=2, desired=1))
    assert len(aws.writes) == 1


def test_a_stack_needs_all_its_groups() -> None:
    with pytest.raises(GroupMissingError, match="no Auto Scaling group for the masters"):
        check_groups_exist([group()], "one")
    with pytest.raises(GroupMissingError, match="no Auto Scaling group for node group general"):
        check_groups_exist([group("master", "a"), group(missing=True)], "one")
    check_groups_exist([group("master", "a"), group()], "one")


def test_a_pause_is_complete_once_no_group_has_or_may_launch_an_instance() -> None:
    kept = parse_tags({PAUSED: tag_value(Sizes(1, 1, 1), NOON)})
    terminating = InstanceView("i-1", "us-west-2a", "Terminating")
    for groups, complete in (
        ([group("master", "a", kept=kept), group(kept=kept)], True),
        ([group("master", "a", kept=kept), group(kept=kept, maximum=1)], False),
        ([group("master", "a", kept=kept, instances=(terminating,)), group(kept=kept)], False),
    ):
        pause = find_pause(groups)
        assert pause
        assert (pause.complete, pause.since) == (complete, NOON)
    assert find_pause([group("master", "a"), group()]) is None


KEPT, NOTHING = {"Key": PAUSED, "Value": "min=1 max=5 desired=3 since=2026-11-21T12:00:00Z"}, (0, 0, 0)


@pytest.mark.parametrize(("sizes", "tag", "restored"), [
    (NOTHING, KEPT, [("master", 1, 1, 1), ("nodes", 1, 5, 3)]),
    # Somebody has set sizes since, or no tag says which.
    ((0, 1, 1), KEPT, [("master", 1, 1, 1)]),
    (NOTHING, None, [("master", 1, 1, 1)]),
])  # fmt: skip
def test_the_end_of_a_pause_restores_the_sizes_that_are_known(
    aws: Answers, sizes: tuple[int, int, int], tag: dict[str, str] | None, restored: list[tuple[str, int, int, int]]
) -> None:
    groups = {"master": (NOTHING, None, "MasterA"), "nodes": (sizes, tag, "NodeGroupGeneral")}
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
