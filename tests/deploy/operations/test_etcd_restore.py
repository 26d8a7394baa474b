"""Setting a cluster back: what is said before, what the masters are asked, which instances go, and what goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import arn, resource, stack, stacked
from recorded import RefusedError

from cfngen.cli.exit_codes import error_exit_code
from cfngen.cluster.load import load
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.aws.stacks import NoStackError
from cfngen.deploy.messages.message import Message, Notice, Question, Step
from cfngen.deploy.operations.etcd import restore as module
from cfngen.deploy.operations.etcd.restore import (
    NoMastersError,
    Restored,
    RestoreDetachedError,
    RestoreInProgressError,
    RestorePlan,
    restore,
)
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.preflight.stack_checks import BusyError, ForeignStackError

HOUR = timedelta(hours=1)
NEWEST, OLDER = "one/etcd/hourly/2025-12-31T235900Z.db", "one/etcd/hourly/2025-12-30T000000Z.db"


def machine(identity: str, lifecycle: str = "InService") -> InstanceView:
    return InstanceView(identity, "us-west-2a", lifecycle)


NODES = GroupView(
    "node",
    "nodes",
    "group-n",
    instances=(
        replace(machine("i-known"), launched=datetime(2025, 12, 29, tzinfo=UTC)),
        replace(machine("i-new"), launched=datetime(2025, 12, 31, 23, 59, 30, tzinfo=UTC)),
    ),
)


@dataclass
class Masters:
    """The masters of the cluster `one`, and what is in its bucket.

    Attributes:
        slots: its groups.
        nodes: its node group, with a node older than any snapshot and one that is newer.
        request: the request in the bucket; empty if there is none.
        waited: how long masters were waited for, and which instances had to go.
    """

    aws: Answers
    slots: tuple[GroupView, ...] = (GroupView("master", "a", "group-a", instances=(machine("i-a"),)),)
    nodes: GroupView = NODES
    request: dict[str, Any] = field(default_factory=dict)
    waited: list[tuple[timedelta, frozenset[str]]] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    said: list[Message] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    agrees: bool = True

    def consent(self, question: Question) -> bool:
        self.asked.append(question)
        return self.agrees

    def set_back(self, wanted: str | timedelta = "latest", *overrides: str, **more: Any) -> Restored:
        cluster = load(None, environ={}, overrides=("name=one", *overrides)).cluster
        return restore(self.aws.account, "one", cluster, wanted, consent=self.consent, report=self.said.append, **more)

    @property
    def plan(self) -> RestorePlan:
        [plan] = [each for each in self.said if isinstance(each, RestorePlan)]
        return plan

    def written(self) -> list[dict[str, Any]]:
        return [json.loads(each["Body"]) for each in self.aws.named("s3:PutObject")]

    def terminated(self) -> list[str]:
        sent = self.aws.named("autoscaling:TerminateInstanceInAutoScalingGroup")
        assert not any(each["ShouldDecrementDesiredCapacity"] for each in sent)
        return [each["InstanceId"] for each in sent]


@pytest.fixture
def masters(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> Masters:
    made = Masters(aws)
    outputs = {"ApiEndpoint": "x", "CaSecretArn": "y", "BackupBucketName": "mine"}
    scaling = resource("group-a", name="MasterAAutoScalingGroup")
    nodes = resource("group-n", name="NodeGroupNodesAutoScalingGroup")
    stacked(aws, stack(outputs=outputs), resources={"one": (scaling, nodes)})
    aws.given["s3:ListObjectsV2"] = {"Contents": [{"Key": key, "Size": 7} for key in (OLDER, NEWEST)]}
    aws.given["s3:HeadObject"] = {"Metadata": {"sha256": "digest"}}
    aws.given["s3:GetObject"] = lambda sent: {"Body": io.BytesIO(json.dumps(made.request).encode())}

    def groups(account: Any, cluster: Any, slots: Any) -> tuple[GroupView, ...]:
        [scaling_group] = [slot.logical_id for slot in slots]
        return made.slots if scaling_group == "MasterAAutoScalingGroup" else (made.nodes,)

    class Waiting:
        def __init__(self, account: Any, root: Any, look: Any, old: frozenset[str], override: Any, report: Any) -> None:
            assert (root.id, look()) == (arn("one"), made.slots)
            self.old = old

        def wait(self, patience: timedelta) -> frozenset[str]:
            made.waited.append((patience, self.old))
            made.meanwhile()
            return frozenset({"i-known"})

    monkeypatch.setattr(module, "find_groups", groups)
    monkeypatch.setattr(module, "MasterReplacement", Waiting)
    return made


def test_a_restore_is_asked_for_written_and_taken_away_again(masters: Masters) -> None:
    began = masters.aws.clock.now()
    masters.meanwhile = lambda: masters.aws.clock.sleep(90)
    done = masters.set_back()
    assert (done.cluster, done.snapshot.key, done.seconds) == ("one", NEWEST, 90)
    assert done.unknown_nodes == ("i-new",)
    [question] = masters.asked
    assert (question.text, question.dangerous, question.name) == (f"Restore one from {NEWEST}?", True, "one")
    first, second = masters.written()
    assert (first["snapshot"], first["sha256"], first["created"]) == (NEWEST, "digest", began.isoformat())
    assert "instances" not in first
    assert second == {**first, "instances": ["i-a"]}
    puts = masters.aws.named("s3:PutObject")
    assert [request.get("IfNoneMatch") for request in puts] == ["*", None]
    assert {request["Key"] for request in puts} == {"one/etcd/restore.json"}
    assert masters.terminated() == ["i-a"]
    assert [old for _, old in masters.waited] == [frozenset({"i-a"})]
    assert masters.aws.named("s3:DeleteObject") == [{"Bucket": "mine", "Key": "one/etcd/restore.json"}]
    texts = [each.text for each in masters.said if isinstance(each, Step)]
    assert texts == [
        f"requesting the masters to restore {NEWEST} when they boot",
        "terminating the instance of master a, i-a",
    ]


def test_what_it_means_is_said_before(masters: Masters) -> None:
    masters.agrees = False
    masters.slots = (
        GroupView("master", "a", "group-a", instances=(machine("i-a"), machine("i-x", "Terminating"))),
        GroupView("master", "b", "group-b", instances=(machine("i-b"),)),
        GroupView("master", "c", "group-c"),
    )
    with pytest.raises(DeclinedError):
        masters.set_back()
    plan = masters.plan
    assert (plan.cluster, plan.region, plan.account, plan.bucket) == ("one", "us-west-2", "123456789012", "mine")
    assert (plan.snapshot.key, plan.pending) == (NEWEST, False)
    assert [(master.slot, master.instances) for master in plan.masters] == [("a", ("i-a",)), ("b", ("i-b",))]
    assert plan.consequences[:2] == (
        "everything written to Kubernetes since 2025-12-31 23:59:00 UTC, 1 minute ago, is lost",
        "the instances of 2 masters are terminated and replaced: a (i-a) and b (i-b)",
    )
    assert plan.consequences[4:] == (
        "1 node launched since the snapshot is unknown afterwards, and to be replaced: i-new",
    )
    assert masters.aws.written() == []


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-5, "0 seconds ago"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (86399, "23 hours ago"),
        (86400, "1 day ago"),
        (172800, "2 days ago"),
    ],
)
def test_the_age_of_a_snapshot_is_told_in_its_greatest_unit(masters: Masters, age: int, words: str) -> None:
    taken = masters.aws.clock.now() - timedelta(seconds=age)
    key = f"one/etcd/hourly/{taken:%Y-%m-%dT%H%M%SZ}.db"
    masters.aws.given["s3:ListObjectsV2"] = {"Contents": [{"Key": key, "Size": 7}]}
    masters.agrees = False
    with pytest.raises(DeclinedError):
        masters.set_back()
    assert words in masters.plan.consequences[0]


def test_one_that_was_begun_goes_on_with_what_is_still_to_be_replaced(masters: Masters) -> None:
    masters.request = {"id": "x", "snapshot": OLDER, "created": "x", "instances": ["i-a", "i-gone"]}
    masters.slots = (
        *masters.slots,
        GroupView("master", "b", "group-b", instances=(machine("i-new"), machine("i-leaving", "Terminating"))),
    )
    assert masters.set_back().snapshot.key == OLDER
    assert masters.plan.pending
    assert [master.slot for master in masters.plan.masters] == ["a"]
    assert masters.asked[0].text == f"Continue restoring one from {OLDER}?"
    assert (masters.written(), masters.terminated()) == ([], ["i-a"])
    assert masters.waited[0][1] == {"i-a", "i-gone"}


def test_one_that_was_cut_off_before_it_noted_the_instances_notes_them(masters: Masters) -> None:
    masters.request = {"id": "x", "snapshot": OLDER, "created": "x"}
    masters.set_back()
    assert masters.written() == [{**masters.request, "instances": ["i-a"]}]
    assert masters.terminated() == ["i-a"]


def test_where_all_have_been_replaced_nothing_is_terminated(masters: Masters) -> None:
    masters.request = {"id": "x", "snapshot": OLDER, "created": "x", "instances": ["i-gone"]}
    masters.set_back()
    assert "every master's instance has been replaced already" in masters.plan.consequences
    assert (masters.plan.masters, masters.terminated()) == ((), [])


def test_a_snapshot_without_a_digest_is_asked_for_without_one(masters: Masters) -> None:
    masters.aws.given["s3:HeadObject"] = {"Metadata": {}}
    masters.set_back(OLDER)
    assert [("sha256" in each, each["snapshot"]) for each in masters.written()] == [(False, OLDER)] * 2


@pytest.mark.parametrize(
    ("wanted", "refused"), [("latest", False), (timedelta(), False), (OLDER, False), (NEWEST, True)]
)
def test_while_one_is_restored_another_must_wait(masters: Masters, wanted: Any, refused: bool) -> None:
    masters.request = {"id": "x", "snapshot": OLDER, "created": "x", "instances": []}
    if refused:
        with pytest.raises(RestoreInProgressError, match=f"one is already being restored from {OLDER}"):
            masters.set_back(wanted)
        assert masters.asked == []
    else:
        assert masters.set_back(wanted).snapshot.key == OLDER


def test_who_comes_second_is_refused(masters: Masters) -> None:
    masters.aws.given["s3:PutObject"] = RefusedError("PreconditionFailed")
    with pytest.raises(RestoreInProgressError, match="someone else has just started to restore one"):
        masters.set_back()
    assert (masters.terminated(), masters.waited) == ([], [])


@pytest.mark.parametrize("slots", [(), (GroupView("master", "a", "group-a", missing=True),)])
def test_a_stack_without_masters_is_refused(masters: Masters, slots: tuple[GroupView, ...]) -> None:
    masters.slots = slots
    with pytest.raises(NoMastersError, match=r"the stack one \(CREATE_COMPLETE\) has no masters"):
        masters.set_back()


@pytest.mark.parametrize(
    ("described", "kind"),
    [
        (stack(status="UPDATE_IN_PROGRESS"), BusyError),
        (stack(tags={"cfngen:cluster": "two"}), ForeignStackError),
        (stack(status="DELETE_COMPLETE"), NoStackError),
    ],
)
def test_only_a_quiet_stack_of_the_clusters_is_set_back(
    masters: Masters, described: dict[str, Any], kind: type[Exception]
) -> None:
    stacked(masters.aws, described)
    with pytest.raises(kind):
        masters.set_back()
    assert masters.said == []


def test_an_instance_that_has_gone_meanwhile_is_no_error(masters: Masters) -> None:
    call = "autoscaling:TerminateInstanceInAutoScalingGroup"
    masters.aws.given[call] = RefusedError("ValidationError")
    assert masters.set_back().snapshot.key == NEWEST
    masters.aws.given[call] = RefusedError("AccessDenied")
    with pytest.raises(AwsError):
        masters.set_back()


def test_who_leaves_is_told_that_it_goes_on(masters: Masters) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    masters.meanwhile = interrupt
    with pytest.raises(RestoreDetachedError, match="continue the restore of one without cfngen") as left:
        masters.set_back()
    assert error_exit_code(left.value.code) == 130
    assert masters.aws.named("s3:DeleteObject") == []


def test_a_request_that_cannot_be_taken_away_is_told(masters: Masters) -> None:
    """Else a volume that is made later would be set back by it."""
    masters.aws.given["s3:DeleteObject"] = RefusedError("AccessDenied")
    assert masters.set_back().snapshot.key == NEWEST
    [notice] = [each for each in masters.said if isinstance(each, Notice)]
    assert "s3://mine/one/etcd/restore.json could not be deleted" in notice.text
    assert notice.hint == "delete it: aws s3 rm s3://mine/one/etcd/restore.json"


def test_masters_may_take_as_long_as_they_may_to_boot_and_some(masters: Masters) -> None:
    masters.set_back("latest", "controlPlane.creationTimeout=20")
    masters.set_back("latest", "controlPlane.creationTimeout=30")
    masters.set_back("latest", timeout=timedelta(minutes=3))
    short, long, given = (patience for patience, _ in masters.waited)
    assert (long - short, given) == (timedelta(minutes=10), timedelta(minutes=3))
    assert timedelta(minutes=20) < short <= timedelta(minutes=45)
