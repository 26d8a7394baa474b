"""What a tag keeps of a group, which groups cannot be paused, and the order in which a pause ends instances."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any, ClassVar

import pytest
from answers import Answers
from aws_descriptions import Asked, resource, scaling_group, stack, stacked
from paused_groups import CLUSTER, KEPT, NOON, NOTHING, ONE, group
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.groups import InstanceView, KeptSizes, Sizes, parse_tags, tag_value
from cfngen.deploy.aws.pause import find_pause
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.messages.message import Notice, Question, Step
from cfngen.deploy.operations.etcd.restore import RestoreInProgressError
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.pausing.pause import PauseInterruptedError, PauseTimeoutError, pause
from cfngen.deploy.operations.pausing.reports import PausePlan, PauseProgress
from cfngen.deploy.preflight.pausing import (
    CannotPauseError,
    CannotResumeError,
    GroupMissingError,
    check_groups_exist,
    check_pausable,
    check_resumable,
)
from cfngen.deploy.preflight.stack_checks import BusyError


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


class Terminating:
    """Auto Scaling groups of a running cluster, whose instances go some seconds after their group has the sizes 0.

    Attributes:
        sizes: of each group: minimum, maximum and desired capacity.
        instances: the ids of each group's instances, with their lifecycle state and the time at which they are gone.
        tags: the tag that keeps the sizes of a group.
        seconds: after how many seconds instances of a group are gone; None if never.
        delayed: the groups whose instances wait for their drain, or for etcd, until somebody ends that.
        protected: ids of instances that are protected from scale-in once their termination was asked for.
        changes: the group of each change of sizes, and after how many seconds it came.
    """

    IDS: ClassVar = {"master": "MasterA", "bastion": "Bastion", "general": "NodeGroupGeneral", "gpu": "NodeGroupGpu"}

    def __init__(self, aws: Answers, **groups: tuple[tuple[int, int, int], list[str]]) -> None:
        self.aws, self.began = aws, aws.clock.now()
        self.sizes = {name: sizes for name, (sizes, _) in groups.items()}
        self.instances: dict[str, dict[str, tuple[str, datetime | None]]] = {
            name: dict.fromkeys(ids, ("InService", None)) for name, (_, ids) in groups.items()
        }
        self.tags: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, int | None] = dict.fromkeys(groups, 30)
        self.delayed: set[str] = set()
        self.protected: set[str] = set()
        self.changes: list[tuple[str, tuple[int, int, int], float]] = []
        members = (
            resource(name, name=f"{self.IDS[name]}AutoScalingGroup", type_name=AUTO_SCALING_GROUP) for name in groups
        )
        stacked(aws, stack(), resources={"one": tuple(members)})
        aws.given |= {
            "autoscaling:DescribeAutoScalingGroups": self.describe,
            "autoscaling:CreateOrUpdateTags": self.tag,
            "autoscaling:UpdateAutoScalingGroup": self.update,
            "autoscaling:CompleteLifecycleAction": self.complete,
        }

    def describe(self, _: dict[str, Any]) -> dict[str, Any]:
        now = self.aws.clock.now()
        return {
            "AutoScalingGroups": [
                scaling_group(
                    name,
                    sizes,
                    Tags=[self.tags[name]] if name in self.tags else [],
                    Instances=[
                        {
                            "InstanceId": instance,
                            "AvailabilityZone": "us-west-2a",
                            "LifecycleState": lifecycle,
                            "HealthStatus": "Healthy",
                            "ProtectedFromScaleIn": instance in self.protected,
                        }
                        for instance, (lifecycle, gone) in self.instances[name].items()
                        if gone is None or gone > now
                    ],
                )
                for name, sizes in self.sizes.items()
            ]
        }

    def tag(self, sent: dict[str, Any]) -> dict[str, Any]:
        for tag in sent["Tags"]:
            self.tags[tag["ResourceId"]] = {"Key": tag["Key"], "Value": tag["Value"]}
        return {}

    def update(self, sent: dict[str, Any]) -> dict[str, Any]:
        name, now = sent["AutoScalingGroupName"], self.aws.clock.now()
        self.sizes[name] = (sent["MinSize"], sent["MaxSize"], sent["DesiredCapacity"])
        self.changes.append((name, self.sizes[name], (now - self.began).total_seconds()))
        seconds = self.seconds[name]
        gone = None if seconds is None or name in self.delayed else now + timedelta(seconds=seconds)
        state = "Terminating:Wait" if name in self.delayed else "Terminating"
        for instance in self.instances[name].keys() - self.protected:
            self.instances[name][instance] = (state, gone)
        return {}

    def complete(self, sent: dict[str, Any]) -> dict[str, Any]:
        name, instance = sent["AutoScalingGroupName"], sent["InstanceId"]
        # Another hook, of the user's, holds it a little longer.
        lifecycle, gone = self.instances[name][instance]
        self.instances[name][instance] = (lifecycle, gone or self.aws.clock.now() + timedelta(seconds=20))
        return {}


SMALL = {"master": ((1, 1, 1), ["i-m"]), "general": ((1, 5, 2), ["i-1", "i-2"])}
LARGE = {**SMALL, "bastion": ((1, 1, 1), ["i-b"]), "gpu": ((0, 2, 0), [])}


def test_all_sizes_are_kept_then_nodes_go_and_masters_last(aws: Answers) -> None:
    groups, asked = Terminating(aws, **LARGE), Asked()
    ended = pause(aws.account, "one", CLUSTER, asked.waiting)
    assert (ended.cluster, ended.changed, ended.seconds, ended.pause.complete) == ("one", True, 60.0, True)
    assert aws.writes == ["autoscaling:CreateOrUpdateTags"] * 4 + ["autoscaling:UpdateAutoScalingGroup"] * 4
    assert sorted(groups.changes[:2]) == [("general", NOTHING, 0.0), ("gpu", NOTHING, 0.0)]
    assert sorted(groups.changes[2:]) == [("bastion", NOTHING, 30.0), ("master", NOTHING, 30.0)]
    kept = {name: tag["Value"].partition(" since=")[0] for name, tag in groups.tags.items()}
    assert kept == {
        "master": "min=1 max=1 desired=1",
        "bastion": "min=1 max=1 desired=1",
        "general": "min=1 max=5 desired=2",
        "gpu": "min=0 max=2 desired=0",
    }
    [plan] = (message for message in asked.told if isinstance(message, PausePlan))
    assert (plan.pause, plan.snapshot, plan.consequences[0], plan.consequences[-1]) == (
        None,
        False,
        ("4 instances are terminated, the masters last; what pods have written to the disks of instances is lost"),
        "no snapshot of etcd is taken first",
    )
    assert [question.text for question in asked.questions] == ["Pause one?"]
    assert [message.text for message in asked.told if isinstance(message, Step)] == [
        "keeping the sizes of 4 Auto Scaling groups in their tags",
        "terminating 2 nodes",
        "terminating 1 master and the bastion",
    ]
    # It is told when it changes.
    progress = [message for message in asked.told if isinstance(message, PauseProgress)]
    assert [(of.seconds, [(left.role, left.count) for left in of.remaining]) for of in progress] == [
        (0.0, [("node", 2)]),
        (30.0, [("master", 1), ("bastion", 1)]),
    ]


def test_a_paused_cluster_is_left_as_it_is(aws: Answers) -> None:
    groups = Terminating(aws, **SMALL)
    pause(aws.account, "one", CLUSTER, Asked().waiting)
    before, asked = list(aws.writes), Asked()
    ended = pause(aws.account, "one", CLUSTER, asked.waiting)
    assert (ended.changed, ended.pause.since, asked.told, asked.questions) == (False, groups.began, [], [])
    assert aws.writes == before


def test_a_pause_that_was_interrupted_is_continued(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Terminating(aws, **SMALL)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(aws.clock, "sleep", interrupt)
        with pytest.raises(PauseInterruptedError) as stopped:
            pause(aws.account, "one", CLUSTER, Asked().waiting)
    assert str(stopped.value.hint) == "`cfngen pause` continues it; `cfngen resume` ends it."
    assert [name for name, _, _ in groups.changes] == ["general"]
    tags, asked = dict(groups.tags), Asked()
    assert pause(aws.account, "one", CLUSTER, asked.waiting).changed
    assert [question.text for question in asked.questions] == ["Continue to pause one?"]
    [plan] = (message for message in asked.told if isinstance(message, PausePlan))
    assert plan.pause
    assert [(of.name, of.minimum, of.maximum, of.desired, of.note) for of in plan.groups] == [
        ("a", 1, 1, 1, ""),
        ("general", 1, 5, 2, ""),
    ]
    assert "no snapshot of etcd is taken first" not in plan.consequences
    steps = [message.text for message in asked.told if isinstance(message, Step)]
    assert (steps[-1], groups.tags) == ("terminating 1 master", tags)
    assert not any("keeping" in step for step in steps)


def test_sizes_that_somebody_has_set_since_are_told(aws: Answers) -> None:
    groups = Terminating(aws, **LARGE)
    groups.tags = {"general": KEPT, "gpu": KEPT, "master": ONE}
    groups.sizes |= {"general": (2, 5, 3), "gpu": (1, 5, 1), "master": (0, 0, 0)}
    asked = Asked(agrees=False)
    with pytest.raises(DeclinedError):
        pause(aws.account, "one", CLUSTER, asked.waiting)
    [plan] = (message for message in asked.told if isinstance(message, PausePlan))
    notes = {of.name: (of.desired, of.note) for of in plan.groups if of.role == "node" or of.name}
    # The desired capacity is the autoscaler's to change.
    assert notes == {
        "a": (1, ""),
        "general": (3, "now 3 (2 to 5), set since the pause began; not kept"),
        "gpu": (3, ""),
    }
    assert aws.writes == []


def test_drains_that_do_not_end_are_ended_after_two_minutes_and_masters_wait_for_none(aws: Answers) -> None:
    groups, asked = Terminating(aws, **SMALL), Asked()
    groups.delayed = {"general", "master"}
    assert pause(aws.account, "one", CLUSTER, asked.waiting).changed
    ended = [*dict.fromkeys(sent["InstanceId"] for sent in aws.named("autoscaling:CompleteLifecycleAction"))]
    assert (sorted(ended[:2]), ended[2:]) == (["i-1", "i-2"], ["i-m"])
    assert [(name, seconds) for name, _, seconds in groups.changes] == [("general", 0.0), ("master", 140.0)]
    # It is told once.
    [notice] = (message for message in asked.told if isinstance(message, Notice))
    assert notice.text == "2 nodes could not be drained within 2 minutes"
    progress = [message for message in asked.told if isinstance(message, PauseProgress)]
    draining = [(of.seconds, of.remaining[0].role, of.remaining[0].draining) for of in progress]
    # How many masters wait is not told: none has to.
    assert draining == [(0.0, "node", 2), (140.0, "master", 0)]


def test_instances_that_do_not_go_are_named_when_time_is_up(aws: Answers) -> None:
    groups = Terminating(aws, **SMALL)
    groups.seconds["general"] = None
    with pytest.raises(PauseTimeoutError) as late:
        pause(aws.account, "one", CLUSTER, Asked().waiting, timeout=timedelta(minutes=1))
    assert str(late.value) == (
        "not all instances are terminated after 1 minute: i-1 of node group general is Terminating; "
        "i-2 of node group general is Terminating"
    )
    assert str(late.value.hint) == "`cfngen pause` continues; `cfngen resume` ends the pause."
    assert [name for name, _, _ in groups.changes] == ["general"]


def test_an_instance_that_is_protected_during_the_pause_ends_it(aws: Answers) -> None:
    groups = Terminating(aws, **SMALL)
    tag = groups.tag

    def protect(sent: dict[str, Any]) -> dict[str, Any]:
        if len(groups.tags) == 1:
            groups.protected = {"i-2"}
        return tag(sent)

    aws.given["autoscaling:CreateOrUpdateTags"] = protect
    with pytest.raises(CannotPauseError, match=r"^the pause is not complete: .* protected from scale-in.*: i-2$"):
        pause(aws.account, "one", CLUSTER, Asked().waiting)


@pytest.mark.parametrize("status", ["UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED", "CREATE_FAILED"])
def test_a_stack_in_a_failed_status_is_not_paused(aws: Answers, status: str) -> None:
    Terminating(aws, **SMALL)
    stacked(aws, stack(status=status))
    asked = Asked()
    with pytest.raises(CannotPauseError, match=f"^nothing was changed: the stack one is in {status}$"):
        pause(aws.account, "one", CLUSTER, asked.waiting)
    assert (aws.writes, asked.told) == ([], [])


def test_a_group_that_is_new_since_the_pause_began_is_paused_too(aws: Answers) -> None:
    groups, asked = Terminating(aws, master=(NOTHING, []), general=(NOTHING, []), gpu=(NOTHING, [])), Asked()
    groups.tags = {"master": ONE, "general": KEPT}
    assert pause(aws.account, "one", CLUSTER, asked.waiting).changed
    assert [question.text for question in asked.questions] == ["Continue to pause one?"]
    assert aws.writes == ["autoscaling:CreateOrUpdateTags"]
    assert groups.tags["gpu"]["Value"].startswith("min=0 max=0 desired=0 ")
    steps = [message.text for message in asked.told if isinstance(message, Step)]
    assert steps == ["keeping the sizes of 3 Auto Scaling groups in their tags"]


def test_scheduled_actions_are_told_before_the_question(aws: Answers) -> None:
    Terminating(aws, **SMALL)
    action = {"AutoScalingGroupName": "general", "ScheduledActionName": "morning"}
    aws.given["autoscaling:DescribeScheduledActions"] = {"ScheduledUpdateGroupActions": [action]}
    asked = Asked(agrees=False)
    with pytest.raises(DeclinedError):
        pause(aws.account, "one", CLUSTER, asked.waiting)
    assert [type(message) for message in asked.told] == [PausePlan, Notice]
    assert "general has scheduled actions" in str(asked.told[1])
    assert aws.writes == []


def test_an_operation_that_begins_while_the_user_is_asked_is_not_disturbed(aws: Answers) -> None:
    Terminating(aws, **SMALL)

    def agree(_: Question) -> bool:
        stacked(aws, stack(status="UPDATE_IN_PROGRESS"))
        return True

    asked = Asked()
    with pytest.raises(BusyError):
        pause(aws.account, "one", CLUSTER, replace(asked.waiting, consent=agree))
    assert aws.writes == []


WITH_BUCKET = parse({"name": "one", "etcd": {"backups": {"bucket": "mine"}}})


@pytest.mark.parametrize(
    ("cluster", "masters", "tags", "wanted", "taken"),
    [
        (WITH_BUCKET, ["i-m"], {}, True, True),
        (WITH_BUCKET, ["i-m"], {}, False, False),
        # No master could take it.
        (WITH_BUCKET, [], {}, True, False),
        # It was taken when the pause began.
        (WITH_BUCKET, ["i-m"], {"general": KEPT}, True, False),
        (CLUSTER, ["i-m"], {}, True, False),
    ],
)
def test_a_snapshot_is_taken_first_where_a_master_can_and_a_pause_begins(
    aws: Answers, cluster: Cluster, masters: list[str], tags: dict[str, dict[str, str]], wanted: bool, taken: bool
) -> None:
    Terminating(aws, master=((1, 1, 1), masters), general=((1, 5, 1), ["i-1"])).tags = tags
    aws.given["s3:GetObject"] = RefusedError("NoSuchKey", "no", 404)
    asked = Asked(agrees=False)
    with pytest.raises(DeclinedError):
        pause(aws.account, "one", cluster, asked.waiting, snapshot=wanted)
    [plan] = (message for message in asked.told if isinstance(message, PausePlan))
    assert plan.snapshot is taken
    assert ("no snapshot of etcd is taken first" in plan.consequences) == (not taken and not tags)
    assert aws.writes == []


def test_a_restore_that_is_in_progress_needs_the_masters(aws: Answers) -> None:
    Terminating(aws, **SMALL)
    aws.given["s3:GetObject"] = lambda _: {"Body": BytesIO(b'{"snapshot": "hourly/1.db"}')}
    with pytest.raises(RestoreInProgressError, match=r"^nothing was changed: one is being restored from hourly/1\.db$"):
        pause(aws.account, "one", WITH_BUCKET, Asked().waiting)
    assert aws.named("s3:GetObject") == [{"Bucket": "mine", "Key": "one/etcd/restore.json"}]
    assert aws.writes == []
