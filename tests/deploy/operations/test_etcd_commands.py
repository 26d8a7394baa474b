"""Snapshots of etcd seen from the operator's side: which there are, one more, and the drill of going back to one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from deployed import STACK, Place, place
from documented_policies import etcd_policy, operator_policy

from cfngen.cli.exit_codes import error_exit_code
from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.snapshots import (
    BackupsOffError,
    NoBackupBucketError,
    NoSnapshotError,
    Snapshot,
    SnapshotStore,
    find_snapshot,
    find_store,
)
from cfngen.deploy.messages.message import Message, Notice, Question, Step
from cfngen.deploy.operations.etcd.backup import NoAnswerError, take_snapshot
from cfngen.deploy.operations.etcd.restore import (
    NoMastersError,
    Restored,
    RestoreDetachedError,
    RestoreInProgressError,
    RestorePlan,
    restore,
)
from cfngen.deploy.operations.etcd.watch import RestoreFailedError, RestoreProgress
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.preflight.stack_checks import BusyError
from cfngen.permissions.scope import Scope
from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill

ZONES = 'network.subnets=[{"zone": "us-west-2a"}, {"zone": "us-west-2b"}, {"zone": "us-west-2c"}]'
MARKER = {"metadata": {"name": "written-later"}, "data": {"a": "b"}}


def of(count: int) -> Cluster:
    overrides = (f"controlPlane.count={count}", *([ZONES] if count > 1 else []))
    return load(None, environ={}, overrides=overrides).cluster


@pytest.fixture
def where() -> Iterator[Place]:
    """A cluster of one master, with its first snapshot."""
    with place() as made:
        assert made.create().status == "CREATE_COMPLETE"
        made.clock.sleep(60)
        yield made


@pytest.fixture
def said() -> list[Message]:
    return []


def backups(where: Place) -> SnapshotStore:
    return find_store(where.account, STACK, where.cluster)


def write_later(where: Place) -> None:
    where.kubernetes.state.put("configmaps", MARKER)


def marked(where: Place) -> bool:
    return where.kubernetes.state.get("configmaps", "written-later", "default") is not None


def agree(question: Question) -> bool:
    assert question.dangerous
    assert question.name == "kubernetes"
    return True


def set_back(where: Place, said: list[Message], wanted: str = "latest", **changes: Any) -> Restored:
    arguments = {"consent": agree, "report": said.append, "find_url_override": where.override, **changes}
    return restore(where.account, STACK, where.cluster, wanted, **arguments)


def masters(where: Place, letters: str = "A") -> list[str]:
    """The newest instance of each slot."""
    return [where.instances(f"Master{letter}AutoScalingGroup")[-1] for letter in letters]


def test_masters_take_snapshots_that_are_listed_newest_first(where: Place) -> None:
    where.clock.sleep(16 * 60)
    found = backups(where).snapshots()
    assert [each.period for each in found] == ["hourly", "hourly", "daily"]
    assert [each.time for each in found] == sorted((each.time for each in found), reverse=True)
    assert all(each.size > 0 for each in found)
    assert found[0].age < 16 * 60


def test_what_else_lies_there_is_no_snapshot(where: Place) -> None:
    place = backups(where)
    for name in ("hourly/notes.txt", "backup-request.json", "hourly/2026-01-01T000000Z.db.part"):
        client("s3", "us-west-2").put_object(Bucket=place.bucket, Key=place.prefix + name, Body=b"x")
    assert all(snapshot.key.endswith("Z.db") for snapshot in place.snapshots())


@pytest.mark.parametrize("end", [lambda each: each.key, lambda each: each.key.rpartition("/")[2]])
def test_a_snapshot_is_chosen_by_its_key_or_the_end_of_it(where: Place, end: Callable[[Snapshot], str]) -> None:
    where.clock.sleep(16 * 60)
    newest = backups(where).snapshots()[0]
    assert find_snapshot(backups(where), end(newest)) == newest


def test_a_name_that_a_snapshot_shares_with_its_daily_copy_means_the_snapshot(where: Place) -> None:
    daily = next(snapshot for snapshot in backups(where).snapshots() if snapshot.period == "daily")
    name = daily.key.rpartition("/")[2]
    assert find_snapshot(backups(where), name).key == f"kubernetes/etcd/hourly/{name}"
    assert find_snapshot(backups(where), daily.key) == daily


def test_an_age_means_the_newest_snapshot_that_is_at_least_so_old(where: Place) -> None:
    for _ in range(4):
        where.clock.sleep(15 * 60)
    hourly = [each for each in backups(where).snapshots() if each.period == "hourly"]
    for snapshot in hourly[:3]:
        assert find_snapshot(backups(where), timedelta(seconds=snapshot.age)) == snapshot
    assert find_snapshot(backups(where), timedelta(seconds=hourly[1].age + 60)).key == hourly[2].key
    with pytest.raises(NoSnapshotError, match=r"there is no snapshot from 2025-12-\d\d \d\d:\d\d UTC or before"):
        find_snapshot(backups(where), timedelta(days=2))


def test_an_unknown_name_is_refused(where: Place) -> None:
    with pytest.raises(NoSnapshotError, match="there is no snapshot yesterday"):
        find_snapshot(backups(where), "yesterday")


def test_a_snapshot_is_taken_on_request(where: Place, said: list[Message]) -> None:
    before = backups(where).snapshots()
    taken = take_snapshot(backups(where), said.append)
    assert taken.snapshot not in before
    assert taken.snapshot in [snapshot for snapshot in backups(where).snapshots() if snapshot.key == taken.snapshot.key]
    assert taken.seconds <= 120
    assert isinstance(said[0], Step)


def test_each_request_is_answered_by_a_snapshot_of_its_own(where: Place, said: list[Message]) -> None:
    one, other = take_snapshot(backups(where), said.append), take_snapshot(backups(where), said.append)
    assert one.snapshot.key != other.snapshot.key


def test_without_a_master_nobody_answers(where: Place, said: list[Message]) -> None:
    where.world.machines.inject_hang("MasterAAutoScalingGroup", "volume")
    client("ec2", "us-west-2").terminate_instances(InstanceIds=masters(where))
    where.world.machines.refresh()
    with pytest.raises(NoAnswerError, match="within 180 seconds") as caught:
        take_snapshot(backups(where), said.append, timedelta(minutes=3))
    assert "journalctl -u cfngen-backup" in str(caught.value.hint)


def test_no_bucket_is_told(where: Place) -> None:
    other = where.cluster.model_copy(update={"name": "other"})
    with pytest.raises(BackupsOffError, match="no stack nothing that would name the bucket") as caught:
        find_store(where.account, "nothing", other)
    assert "--set etcd.backups.bucket=NAME" in str(caught.value.hint)
    assert "cfngen deploy" not in str(caught.value.hint)
    with pytest.raises(NoBackupBucketError, match="the bucket of the cluster's snapshots, gone, does not exist"):
        SnapshotStore(where.account, "gone", "kubernetes").snapshots()


def test_what_a_deleted_cluster_left_is_found_by_the_cluster_file(where: Place) -> None:
    bucket = backups(where).bucket
    given = where.cluster.etcd.backups.model_copy(update={"bucket": bucket})
    cluster = where.cluster.model_copy(update={"etcd": where.cluster.etcd.model_copy(update={"backups": given})})
    assert find_store(where.account, "nothing", cluster).snapshots() == backups(where).snapshots()


@pytest.mark.parametrize(("count", "letters"), [(1, "A"), (3, "ABC")])
def test_drill_every_master_is_replaced_and_begins_with_the_snapshot(
    count: int, letters: str, said: list[Message]
) -> None:
    with place(of(count)) as where:
        assert where.create().status == "CREATE_COMPLETE"
        where.clock.sleep(60)
        snapshot = take_snapshot(backups(where), said.append).snapshot
        write_later(where)
        old = masters(where, letters)
        assert marked(where)
        done = set_back(where, said)
        new = masters(where, letters)
        assert done.snapshot.key == snapshot.key
        assert not set(old) & set(new)
        assert not marked(where), "what was written after the snapshot is gone"
        nodes = {each["metadata"]["name"] for each in where.kubernetes.state.list("nodes")}
        assert set(new) <= nodes
        assert backups(where).read("restore.json") == {}, "no later volume may be set back by this request"
        progress = [each for each in said if isinstance(each, RestoreProgress)]
        assert [master.state for master in progress[-1].masters] == ["ready"] * count
        assert progress[-1].api == "ready"


def test_it_is_said_before_what_will_happen(where: Place, said: list[Message]) -> None:
    snapshot = backups(where).snapshots()[0]
    with pytest.raises(DeclinedError):
        set_back(where, said, consent=lambda question: False)
    [plan] = said
    assert isinstance(plan, RestorePlan)
    assert (plan.snapshot.key, plan.pending) == (snapshot.key, False)
    assert [(master.slot, master.instances) for master in plan.masters] == [("a", tuple(masters(where)))]
    assert any("is lost" in consequence for consequence in plan.consequences)
    assert backups(where).read("restore.json") == {}
    assert where.world.machines.has_quorum(where.kubernetes)


def test_an_earlier_snapshot_can_be_chosen(where: Place, said: list[Message]) -> None:
    first = backups(where).snapshots()[0]
    write_later(where)
    take_snapshot(backups(where), said.append)
    set_back(where, said, first.key)
    assert not marked(where)


@pytest.mark.parametrize("sleeps", [1, 3, 8])
def test_an_interrupted_restore_goes_on_when_asked_for_again(where: Place, said: list[Message], sleeps: int) -> None:
    take_snapshot(backups(where), said.append)
    write_later(where)
    old = masters(where)

    def interrupt() -> None:
        raise KeyboardInterrupt

    where.clock.meanwhile[where.clock.sleeps + sleeps] = interrupt
    with pytest.raises(RestoreDetachedError) as caught:
        set_back(where, said)
    assert error_exit_code(caught.value.code) == 130
    assert "`cfngen etcd restore` continues it" in str(caught.value.hint)
    request = backups(where).read("restore.json")
    said.clear()
    done = set_back(where, said)
    assert done.snapshot.key == request["snapshot"]
    plan = next(each for each in said if isinstance(each, RestorePlan))
    assert plan.pending
    assert not marked(where)
    launched = where.instances("MasterAAutoScalingGroup")
    assert len(launched) == 1 + len(old), "nothing is replaced twice"


def test_a_restore_cut_off_before_anything_was_replaced_goes_on(where: Place, said: list[Message]) -> None:
    snapshot = take_snapshot(backups(where), said.append).snapshot
    write_later(where)
    old = masters(where)
    # What is in the bucket when the process is killed between its first two calls.
    backups(where).write("restore.json", {"id": "one", "snapshot": snapshot.key, "created": "2026-01-01T00:00:00Z"})
    set_back(where, said)
    assert masters(where) != old
    assert not marked(where)


def test_another_snapshot_must_wait_for_the_restore_under_way(where: Place, said: list[Message]) -> None:
    first = backups(where).snapshots()[0]
    second = take_snapshot(backups(where), said.append).snapshot
    backups(where).write("restore.json", {"id": "one", "snapshot": second.key, "created": "2026-01-01T00:00:00Z"})
    with pytest.raises(RestoreInProgressError, match=second.key):
        set_back(where, said, first.key)


def test_of_two_who_begin_at_the_same_moment_one_is_refused(where: Place, said: list[Message]) -> None:
    snapshot = take_snapshot(backups(where), said.append).snapshot
    request = {"id": "theirs", "snapshot": snapshot.key, "created": "2026-01-01T00:00:00Z"}

    def meanwhile(question: Question) -> bool:
        backups(where).write("restore.json", request)
        return True

    old = masters(where)
    with pytest.raises(RestoreInProgressError, match="someone else has just started to restore"):
        set_back(where, said, consent=meanwhile)
    assert backups(where).read("restore.json") == request
    assert masters(where) == old


def test_a_master_that_does_not_boot_is_heard_and_named(where: Place, said: list[Message]) -> None:
    where.world.machines.inject_failure("MasterAAutoScalingGroup", "volume", "not attached after 900 s")
    with pytest.raises(RestoreFailedError, match="not every master is ready after 10 minutes") as caught:
        set_back(where, said, timeout=timedelta(minutes=10))
    assert "master a is " in str(caught.value)
    notices = [each.text for each in said if isinstance(each, Notice)]
    assert len(notices) == 1
    assert "not attached after 900 s" in notices[0]
    assert backups(where).read("restore.json"), "the request stays for the next attempt"


def test_not_while_cloudformation_works(said: list[Message]) -> None:
    with place() as where:
        where.begin()
        where.clock.sleep(60)
        with pytest.raises(BusyError):
            set_back(where, said)


def test_a_stack_without_masters_is_refused(where: Place, said: list[Message], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cfngen.deploy.operations.etcd.restore.find_groups", lambda account, cluster, members: ())
    with pytest.raises(NoMastersError):
        set_back(where, said)


def test_a_request_is_what_the_masters_expect(where: Place, said: list[Message]) -> None:
    take_snapshot(backups(where), said.append)
    seen: list[Any] = []
    where.clock.meanwhile[where.clock.sleeps + 1] = lambda: seen.append(backups(where).read("restore.json"))
    set_back(where, said)
    [request] = seen
    assert set(request) == {"id", "snapshot", "sha256", "created", "instances"}
    assert json.dumps(request)
    assert backups(where).metadata(request["snapshot"])["sha256"] == request["sha256"]


def test_the_operators_policies_suffice(where: Place, said: list[Message]) -> None:
    scope = Scope("123456789012", "us-west-2", "kubernetes", stack=STACK)
    policies = (operator_policy(scope), etcd_policy(scope))
    with where.served.permissions.enforcing(*policies) as credentials:
        account = where.connected(where.session_of(credentials))
        taken = take_snapshot(find_store(account, STACK, where.cluster), said.append)
        done = restore(
            account, STACK, where.cluster, consent=agree, report=said.append, find_url_override=where.override
        )
    assert done.snapshot.key == taken.snapshot.key
    assert not [each for each in said if isinstance(each, Notice)]
