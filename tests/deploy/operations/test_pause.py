"""Pausing a cluster and resuming it: sizes, order, what is refused meanwhile, and what stays of both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pausing import NAME, SMALL, Pauser, protected_instance, remove_tag, running

from cfngen.cluster.naming.names import DRAIN_HOOK
from cfngen.deploy.aws.snapshots import REQUEST_KEY, find_store
from cfngen.deploy.messages.message import Notice, Step
from cfngen.deploy.operations.etcd.backup import NoAnswerError
from cfngen.deploy.operations.etcd.restore import RestoreInProgressError, restore
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.pausing.pause import PauseTimeoutError
from cfngen.deploy.operations.pausing.reports import PausePlan, PauseProgress, ResumePlan, ResumeProgress
from cfngen.deploy.operations.pausing.resume import ResumeTimeoutError
from cfngen.deploy.preflight.pausing import CannotPauseError, CannotResumeError, PausedError, ensure_stack_not_paused
from cfngen.deploy.preflight.stack_checks import BusyError
from cfngen.deploy.status.cluster_status import Unknown
from cfngen.deploy.status.derived_status import read_status

pytestmark = pytest.mark.drill

NOTHING = (0, 0, 0)


@pytest.fixture(scope="module")
def small() -> Iterator[Pauser]:
    """A cluster of one master and one node group, which runs before and after each test."""
    with running(SMALL) as made:
        yield made


@pytest.fixture
def pauser(small: Pauser) -> Iterator[Pauser]:
    small.where.served.faults.clear()
    assert small.sizes == {"master a": (1, 1, 1), "node group general": (1, 3, 1)}
    yield small
    small.where.served.faults.clear()
    small.resume()
    small.change("node group general", 1, 3, 1)
    small.where.clock.sleep(900)
    assert not small.kept
    assert small.works()


def steps(pauser: Pauser) -> list[str]:
    return [message.text for message in pauser.operator.reported(Step)]


def test_what_was_before_comes_back_also_where_an_autoscaler_had_changed_it(pauser: Pauser) -> None:
    pauser.change("node group general", 1, 3, 2)
    pauser.where.clock.sleep(300)
    pauser.where.kubernetes.state.put("configmaps", {"metadata": {"name": "mine"}})
    pauser.pause()
    assert pauser.sizes == {"master a": NOTHING, "node group general": NOTHING}
    [plan] = pauser.operator.reported(PausePlan)
    assert [(group.desired, group.minimum, group.maximum, group.instances) for group in plan.groups] == [
        (1, 1, 1, 1),
        (2, 1, 3, 2),
    ]
    assert pauser.kept["node group general"].startswith("min=1 max=3 desired=2 since=2026-")
    pauser.resume()
    assert pauser.sizes == {"master a": (1, 1, 1), "node group general": (1, 3, 2)}
    assert pauser.where.kubernetes.state.get("configmaps", "mine", "default")
    progress = pauser.operator.reported(ResumeProgress)
    assert [message.phase for message in progress] == sorted(message.phase for message in progress)
    assert pauser.operator.plan(SMALL).is_empty


def test_a_pause_while_a_deployment_waits_for_consent_ends_the_deployment(pauser: Pauser) -> None:
    pauser.operator.answer = lambda question: question.text.startswith("Pause") or pauser.pause().pause.complete
    wanted = {**SMALL, "nodeGroups": [{"name": "general", "minSize": 1, "maxSize": 4}]}
    try:
        with pytest.raises(PausedError):
            pauser.operator.deploy(wanted)
    finally:
        pauser.operator.answer = lambda question: True
    assert set(pauser.sizes.values()) == {NOTHING}


def test_both_may_be_repeated_and_change_nothing_then(pauser: Pauser) -> None:
    assert not pauser.resume().changed
    assert not pauser.operator.questions
    first = pauser.pause()
    kept = pauser.kept
    pauser.where.clock.sleep(600)
    pauser.where.served.faults.clear()
    second = pauser.pause()
    assert (second.changed, second.pause, pauser.kept) == (False, first.pause, kept)
    assert not pauser.operator.questions
    assert pauser.changes() == []


def test_who_declines_changes_nothing(pauser: Pauser) -> None:
    pauser.operator.answer = lambda question: False
    try:
        with pytest.raises(DeclinedError):
            pauser.pause()
        assert not pauser.kept
    finally:
        pauser.operator.answer = lambda question: True


def test_status_and_validation_say_that_it_is_paused_and_alarm_nobody(pauser: Pauser) -> None:
    pauser.pause()
    pauser.where.clock.sleep(26 * 3600)
    status = read_status(pauser.where.account, NAME, pauser.cluster, find_url_override=pauser.where.override)
    assert status.pause
    assert status.pause.complete
    assert status.pause.since
    assert str(status.next_command) == "cfngen resume"
    assert isinstance(status.api, Unknown)
    assert status.api.unknown == "the cluster is paused"
    assert [expiry.what for expiry in status.certificates] == ["certificate authority"]
    assert status.backups
    assert not isinstance(status.backups, Unknown)
    assert not status.backups.late
    validation = pauser.validate()
    assert not validation.valid
    [problem] = validation.problems
    assert (
        problem.sentence
        == f"the cluster one has been paused since {status.pause.since:%Y-%m-%d %H:%M} UTC (sizes kept)"
    )


def test_what_needs_instances_is_refused_meanwhile(pauser: Pauser) -> None:
    pauser.pause()
    pauser.where.served.faults.clear()
    with pytest.raises(PausedError, match="nothing was changed: the cluster one has been paused since") as refused:
        pauser.operator.deploy({**SMALL, "etcd": {"backups": {"interval": 30}}})
    assert "cfngen resume" in str(refused.value.hint)
    assert not pauser.where.served.faults.called("CreateChangeSet")
    with pytest.raises(PausedError):
        restore(pauser.where.account, NAME, pauser.cluster, consent=lambda question: True, report=lambda message: None)
    with pytest.raises(PausedError):
        ensure_stack_not_paused(pauser.where.account, NAME, pauser.cluster)
    pauser.operator.messages.clear()
    assert pauser.operator.plan(SMALL).is_empty
    [notice] = pauser.operator.reported(Notice)
    assert "a deployment is refused until it is resumed" in notice.text


def test_drains_that_do_not_end_are_ended(pauser: Pauser, monkeypatch: pytest.MonkeyPatch) -> None:
    # E.g. because the API server does not answer: the service goes on, and sends heartbeats, for its drainTimeout.
    monkeypatch.setattr(pauser.where.world.machines, "drain_seconds", 3600.0)
    hook = {
        "LifecycleHookName": DRAIN_HOOK,
        "AutoScalingGroupName": pauser.groups["node group general"].id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "DefaultResult": "CONTINUE",
    }
    autoscaling = pauser.where.account.client("autoscaling")
    autoscaling.put_lifecycle_hook(**hook, HeartbeatTimeout=3600)
    result = pauser.pause()
    autoscaling.put_lifecycle_hook(**hook, HeartbeatTimeout=120)
    assert result.pause.complete
    assert result.seconds < 300
    [notice] = pauser.operator.reported(Notice)
    assert notice.text == "1 node could not be drained within 2 minutes"


def test_protected_instances_keep_a_cluster_from_being_paused(pauser: Pauser) -> None:
    instance = protected_instance(pauser, "node group general")
    with pytest.raises(
        CannotPauseError, match=f"nothing was changed: .*protected from scale-in.*{instance}"
    ) as refused:
        pauser.pause()
    assert f"--no-protected-from-scale-in --instance-ids {instance}" in str(refused.value.hint)
    assert not pauser.kept
    protected_instance(pauser, "node group general", protected=False)


def test_an_instance_that_is_protected_meanwhile_is_named(pauser: Pauser) -> None:
    pauser.where.served.faults.before(
        "UpdateAutoScalingGroup", lambda: protected_instance(pauser, "node group general")
    )
    with pytest.raises(CannotPauseError, match=r"the pause is not complete: .*protected"):
        pauser.pause()
    protected_instance(pauser, "node group general", protected=False)
    pauser.where.clock.sleep(60)
    assert pauser.pause().pause.complete


def test_suspended_processes_are_named(pauser: Pauser) -> None:
    autoscaling = pauser.where.account.client("autoscaling")
    name = pauser.groups["node group general"].id
    autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Terminate"])
    with pytest.raises(CannotPauseError, match="Terminate of node group general is suspended"):
        pauser.pause()
    autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Terminate"])
    pauser.pause()
    autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    with pytest.raises(CannotResumeError, match="nothing was changed: the process Launch of node group general"):
        pauser.resume()
    assert pauser.sizes["master a"] == NOTHING
    autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])


def test_a_busy_stack_is_refused(pauser: Pauser) -> None:
    cloud = pauser.where.world.cloud
    stack = cloud.stack(NAME)
    previous = stack.status
    stack.status = "UPDATE_IN_PROGRESS"
    try:
        with pytest.raises(BusyError):
            pauser.pause()
        with pytest.raises(BusyError):
            pauser.resume()
    finally:
        stack.status = previous
    assert not pauser.kept


def test_without_a_snapshot_nothing_is_paused_unless_that_is_wanted(pauser: Pauser) -> None:
    pauser.where.world.machines.clusters.clear()
    clusters = dict(pauser.where.world.machines.clusters_by_volume)
    try:
        with pytest.raises(NoAnswerError, match="nothing was changed") as refused:
            pauser.pause()
    finally:
        for cluster in clusters.values():
            arn = next(iter(pauser.where.world.machines.instances.values())).boot_data.references["joinSecretArn"]
            pauser.where.world.machines.clusters[arn] = cluster
    assert "cfngen pause --no-snapshot" in str(refused.value.hint)
    assert not pauser.kept


def test_a_restore_is_finished_first(pauser: Pauser) -> None:
    store = find_store(pauser.where.account, NAME, pauser.cluster)
    store.write(REQUEST_KEY, {"id": "1", "snapshot": "some.db", "instances": []})
    with pytest.raises(RestoreInProgressError, match=r"nothing was changed: one is being restored from some.db"):
        pauser.pause()
    store.remove(REQUEST_KEY)


def test_sizes_that_somebody_has_set_meanwhile_are_left(pauser: Pauser) -> None:
    pauser.pause()
    pauser.change("node group general", 0, 2, 0)
    [problem, *others] = pauser.validate().problems
    assert "has been partly paused since" in problem.text
    assert others
    pauser.resume()
    [plan] = pauser.operator.reported(ResumePlan)
    assert plan.groups[1].note == "set since the pause began, and left as they are; before it: 1 (1 to 3)"
    assert pauser.sizes == {"master a": (1, 1, 1), "node group general": (0, 2, 0)}
    assert not pauser.kept


def test_without_their_tags_masters_come_back_and_nodes_wait_for_sizes(pauser: Pauser) -> None:
    pauser.pause()
    remove_tag(pauser, "master a")
    remove_tag(pauser, "node group general")
    assert pauser.resume().changed
    assert pauser.sizes == {"master a": (1, 1, 1), "node group general": NOTHING}
    [notice] = pauser.operator.reported(Notice)
    assert "no tag keeps its sizes" in notice.text
    assert "--min-size 1 --max-size 3" in str(notice.hint)


def test_without_its_tag_a_master_is_kept_as_one(pauser: Pauser) -> None:
    pauser.pause()
    remove_tag(pauser, "master a")
    assert pauser.pause().changed
    assert pauser.kept["master a"].startswith("min=1 max=1 desired=1 ")


def test_masters_that_do_not_come_are_told_and_waited_for_again(pauser: Pauser) -> None:
    pauser.pause()
    pauser.where.world.machines.inject_hang("master", "volume", times=1)
    with pytest.raises(ResumeTimeoutError, match=r"not all masters are ready after 3[0-9] minutes"):
        pauser.resume()
    assert pauser.sizes["node group general"] == NOTHING
    master = pauser.groups["master a"].instances[0].id
    pauser.where.account.client("ec2").terminate_instances(InstanceIds=[master])
    pauser.where.clock.sleep(60)
    assert pauser.resume().waited


def test_what_is_left_of_former_nodes_is_waited_for(pauser: Pauser) -> None:
    """A Node counts as Ready, and its pods as running, until the new masters' controllers remove them."""
    state, clock = pauser.where.kubernetes.state, pauser.where.clock
    former = pauser.groups["node group general"].instances[0].id
    pauser.pause()
    spec = {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}
    node = {**state.get("nodes", former), "metadata": {"name": "i-former"}, "spec": spec}  # type: ignore[dict-item]
    state.put("nodes", node)
    state.add_pod("coredns-1", "i-former")
    begin = clock.now()

    def remove_late() -> None:
        late = (clock.now() - begin).total_seconds()
        if late > 900:
            state.remove("nodes", "i-former")
        if late > 1200:
            state.remove("pods", "coredns-1", "kube-system")
        else:
            clock.meanwhile[clock.sleeps + 1] = remove_late

    clock.meanwhile[clock.sleeps + 1] = remove_late
    pauser.resume()
    clock.meanwhile.clear()
    waited_for = [text for message in pauser.operator.reported(ResumeProgress) for text in message.waiting_for]
    assert "the Node i-former counts as Ready, but its instance no longer exists" in waited_for
    assert "the pod coredns-1 counts as Running, but its Node i-former is gone" in waited_for
    assert pauser.validate().valid


def test_nothing_is_waited_for_on_request(pauser: Pauser) -> None:
    pauser.pause()
    result = pauser.resume(timeout=timedelta(0))
    assert (result.changed, result.waited, pauser.kept) == (True, False, {})
    pauser.where.clock.sleep(900)


def test_instances_that_do_not_go_are_told(pauser: Pauser) -> None:
    hook = {
        "LifecycleHookName": "mine",
        "AutoScalingGroupName": pauser.groups["master a"].id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "HeartbeatTimeout": 3600,
        "DefaultResult": "CONTINUE",
    }
    autoscaling = pauser.where.account.client("autoscaling")
    autoscaling.put_lifecycle_hook(**hook)
    with pytest.raises(PauseTimeoutError, match=r"i-[0-9a-f]+ of master a is Terminating:Wait"):
        pauser.pause(timeout=timedelta(minutes=5))
    autoscaling.delete_lifecycle_hook(LifecycleHookName="mine", AutoScalingGroupName=hook["AutoScalingGroupName"])
    pauser.where.clock.sleep(60)
    assert pauser.pause().pause.complete
    assert pauser.operator.reported(PauseProgress) == []
