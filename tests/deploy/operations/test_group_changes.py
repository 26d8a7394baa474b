"""What pause and resume change in Auto Scaling groups."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from botocore.exceptions import ClientError
from botocore.session import get_session
from paused_groups import NOON, group
from recorded import RefusedError

from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.groups import HELD, GroupView, InstanceView, Sizes, parse_tags
from cfngen.deploy.operations.pausing.group_changes import (
    describe_instances,
    end_delays,
    find_scheduled_actions,
    forget_sizes,
    keep_sizes,
    set_sizes,
)

KEPT = parse_tags({PAUSED: "min=1 max=5 desired=3 since=2026-11-20T12:00:00Z"})


def instances(*lifecycles: str) -> tuple[InstanceView, ...]:
    return tuple(InstanceView(f"i-{place}", "us-west-2a", lifecycle) for place, lifecycle in enumerate(lifecycles))


@pytest.mark.parametrize(
    ("paused", "sizes"),
    [
        (group(minimum=2, maximum=6, desired=4), "min=2 max=6 desired=4"),
        (group(), "min=0 max=0 desired=0"),
        (group("master", "a", minimum=1, maximum=1, desired=1), "min=1 max=1 desired=1"),
        (group("master", "a"), "min=1 max=1 desired=1"),
        (group("bastion", "bastion"), "min=1 max=1 desired=1"),
        (group(kept=KEPT), ""),
    ],
)
def test_a_group_keeps_its_sizes_in_a_tag_of_its_own_until_it_is_resumed(paused: GroupView, sizes: str) -> None:
    aws = Answers({"autoscaling:CreateOrUpdateTags": {}})
    keep_sizes(aws.account, paused, NOON)
    tag = {"ResourceId": paused.id, "ResourceType": "auto-scaling-group", "Key": PAUSED}
    value = {"Value": f"{sizes} since=2026-11-21T12:00:00Z", "PropagateAtLaunch": False}
    assert aws.named("autoscaling:CreateOrUpdateTags") == [{"Tags": [{**tag, **value}]}] * bool(sizes)


@pytest.mark.parametrize("kept", [KEPT, None])
def test_a_group_forgets_sizes_that_it_keeps(kept: Any) -> None:
    aws = Answers({"autoscaling:DeleteTags": {}})
    forget_sizes(aws.account, group(kept=kept))
    tag = {"ResourceId": "group-general", "ResourceType": "auto-scaling-group", "Key": PAUSED}
    assert aws.named("autoscaling:DeleteTags") == [{"Tags": [tag]}] * bool(kept)


@pytest.mark.parametrize(
    ("lifecycles", "maximum", "is_set"),
    [
        ((), 1, True),
        ((), 0, False),
        # It could not terminate this one, e.g. because it was protected.
        (("InService",), 0, True),
        (("Terminating:Wait", "Terminating"), 0, False),
    ],
)
def test_sizes_are_set_where_they_differ_or_too_many_instances_stay(
    lifecycles: tuple[str, ...], maximum: int, is_set: bool
) -> None:
    aws = Answers({"autoscaling:UpdateAutoScalingGroup": {}})
    set_sizes(aws.account, group(instances=instances(*lifecycles)), Sizes(minimum=0, maximum=maximum, desired=0))
    sent = {"AutoScalingGroupName": "group-general", "MinSize": 0, "MaxSize": maximum, "DesiredCapacity": 0}
    assert aws.named("autoscaling:UpdateAutoScalingGroup") == [sent] * is_set


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


def test_a_change_that_does_not_end_is_waited_for_two_minutes() -> None:
    aws = Answers({"autoscaling:UpdateAutoScalingGroup": RefusedError("ScalingActivityInProgress")})
    begin = aws.clock.now()
    with pytest.raises(ClientError, match="ScalingActivityInProgress"):
        set_sizes(aws.account, group(), Sizes(minimum=1, maximum=2, desired=1))
    assert len(aws.writes) == 12
    assert (aws.clock.now() - begin).total_seconds() == 110


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([("node", 2), ("node", 1), ("master", 3), ("bastion", 1)], "3 nodes, 3 masters and the bastion"),
        ([("node", 1), ("master", 1)], "1 node and 1 master"),
        ([("bastion", 1), ("master", 0)], "the bastion"),
        ([("node", 0)], ""),
        ([], ""),
    ],
)
def test_instances_of_groups_are_described_by_their_roles(counts: list[tuple[str, int]], words: str) -> None:
    assert describe_instances((group(role), count) for role, count in counts) == words


def test_instances_that_a_hook_of_the_cluster_holds_may_terminate() -> None:
    aws = Answers({"autoscaling:CompleteLifecycleAction": {}})
    held = instances("InService", HELD)
    groups = [group(instances=held), group("master", "a", instances=held), group("bastion", "b", instances=held)]
    assert end_delays(aws.account, groups) == 2
    common = {"InstanceId": "i-1", "LifecycleActionResult": "CONTINUE"}
    assert aws.named("autoscaling:CompleteLifecycleAction") == [
        {"AutoScalingGroupName": "group-general", "LifecycleHookName": "cfngen-drain", **common},
        {"AutoScalingGroupName": "group-a", "LifecycleHookName": "cfngen-quorum", **common},
    ]


@pytest.mark.parametrize(("code", "is_raised"), [("ValidationError", False), ("ResourceContention", True)])
def test_a_hold_that_has_ended_meanwhile_does_not_count(code: str, is_raised: bool) -> None:
    aws = Answers({"autoscaling:CompleteLifecycleAction": RefusedError(code)})
    groups = [group(instances=instances(HELD))]
    if is_raised:
        with pytest.raises(ClientError, match=code):
            end_delays(aws.account, groups)
    else:
        assert end_delays(aws.account, groups) == 0


def test_scheduled_actions_that_would_end_a_pause_are_named_by_group() -> None:
    names = [("group-b", "up"), ("group-a", "night"), ("group-a", "day"), ("group-of-others", "x")]
    actions = [{"AutoScalingGroupName": name, "ScheduledActionName": action} for name, action in names]
    answers = {"autoscaling:DescribeScheduledActions": {"ScheduledUpdateGroupActions": actions}}
    groups = [group(name="b"), group(name="a"), group(name="c")]
    said = "has scheduled actions, which change its sizes also during the pause"
    notices = list(find_scheduled_actions(Answers(answers).account, groups))
    assert [notice.text for notice in notices] == [
        f"node group a {said}: day and night",
        f"node group b {said}: up",
    ]
    assert {str(notice.hint) for notice in notices} == {"delete them, or let them do nothing while it is paused."}
