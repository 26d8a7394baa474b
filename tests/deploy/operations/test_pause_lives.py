"""Whole lives of clusters that are paused: three masters, an end in the middle of it, and power cuts at every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from documented_policies import operator_policy, pause_policy
from pausing import LARGE, NAME, SMALL, Pauser, running

from cfngen.deploy.messages.message import Step
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.etcd.backup import BackupTaken
from cfngen.deploy.operations.pausing.pause import PauseInterruptedError
from cfngen.deploy.operations.pausing.resume import ResumeInterruptedError
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.permissions.scope import Scope

pytestmark = pytest.mark.drill

NOTHING = (0, 0, 0)
PAUSE_CHANGES = [("PutObject", 1)] + [
    (name, nth) for name in ("CreateOrUpdateTags", "UpdateAutoScalingGroup") for nth in (1, 2)
]
RESUME_CHANGES = [(name, nth) for name in ("UpdateAutoScalingGroup", "DeleteTags") for nth in (1, 2)]


def steps(pauser: Pauser) -> list[str]:
    return [message.text for message in pauser.operator.reported(Step)]


def test_three_masters_and_two_groups_are_paused_and_resumed() -> None:
    with running(LARGE) as pauser:
        before = pauser.sizes
        result = pauser.pause()
        assert [question.text for question in pauser.operator.questions] == ["Pause one?"]
        assert steps(pauser)[1:] == [
            "keeping the sizes of 5 Auto Scaling groups in their tags",
            "terminating 4 nodes",
            "terminating 3 masters",
        ]
        assert len(pauser.operator.reported(BackupTaken)) == 1
        assert set(pauser.sizes.values()) == {NOTHING}
        assert not pauser.instances
        assert result.pause.complete
        # Nobody has masters that outlive the nodes for longer than these take to go.
        updates = pauser.where.served.faults.called("UpdateAutoScalingGroup")
        names = [call.parameters["AutoScalingGroupName"].lower() for call in updates if call.parameters["MaxSize"] == 0]
        assert ["master" in name for name in names] == [False, False, True, True, True]

        costs = {cost.what: cost.quantity for cost in result.costs or ()}
        assert costs == {
            "gp3 volumes": 60,
            "public IPv4": 6,
            "Elastic Load Balancing": 1,
            "Secrets Manager": 2,
            "KMS": 1,
            "S3": 1,
        }
        pauser.where.clock.sleep(40 * 3600)  # the join token is valid for a day
        assert not pauser.instances
        resumed = pauser.resume()
        assert steps(pauser) == ["launching 3 masters", "launching 4 nodes"]
        assert resumed.changed
        assert resumed.waited
        assert pauser.sizes == before
        assert not pauser.kept
        assert pauser.works()
        assert pauser.operator.plan(LARGE).is_empty
        assert pauser.operator.deploy(LARGE).action == "none"


def test_a_paused_cluster_is_deleted() -> None:
    with running(SMALL) as pauser:
        pauser.pause()
        deleted = delete(
            pauser.where.account,
            DeletionRequest(NAME, NAME),
            pauser.operator.waiting,
            delete_services=lambda report: pytest.fail("there is no API server"),
        )
        assert deleted.succeeded
        assert any("Kubernetes cannot delete its load balancers" in text for text in steps(pauser))


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_power_cuts_at_every_change_of_a_pause_and_of_its_end(every: int) -> None:
    """Each change is cut off before and after it is made; then the same command, or the other one, goes on."""
    with running(SMALL) as pauser:
        before = pauser.sizes
        faults = pauser.where.served.faults
        faults.clear()
        pauser.pause()
        assert pauser.changes() == PAUSE_CHANGES
        kept = {title: text.partition(" since")[0] for title, text in pauser.kept.items()}
        faults.clear()
        pauser.resume()
        assert pauser.changes() == RESUME_CHANGES
        for number, (operation, nth) in list(enumerate(PAUSE_CHANGES * 2))[::every]:
            faults.clear()
            pauser.cut(operation, nth, before=number < len(PAUSE_CHANGES))
            with pytest.raises(PauseInterruptedError):
                pauser.pause()
            faults.clear()
            if number % 2:  # the pause is completed, and ended
                assert pauser.pause().pause.complete, (operation, nth)
                assert {title: text.partition(" since")[0] for title, text in pauser.kept.items()} == kept
                assert set(pauser.sizes.values()) == {NOTHING}
                assert not pauser.instances
            pauser.resume()
            assert (pauser.sizes, pauser.kept) == (before, {}), (operation, nth)
            assert pauser.works(), (operation, nth)
        for number, (operation, nth) in list(enumerate(RESUME_CHANGES * 2))[::every]:
            faults.clear()
            pauser.pause()
            pauser.cut(operation, nth, before=number < len(RESUME_CHANGES))
            with pytest.raises(ResumeInterruptedError):
                pauser.resume()
            faults.clear()
            if number % 2:  # what has begun again is paused again
                assert pauser.pause().pause.complete, (operation, nth)
                assert {title: text.partition(" since")[0] for title, text in pauser.kept.items()} == kept
            pauser.resume()
            assert (pauser.sizes, pauser.kept) == (before, {}), (operation, nth)
            assert pauser.works(), (operation, nth)
        assert pauser.operator.plan(SMALL).is_empty


def test_the_policies_suffice_and_so_does_who_may_only_pause() -> None:
    with running(SMALL) as pauser:
        scope = Scope("123456789012", "us-west-2", NAME)
        policies = operator_policy(scope, only_command_groups=["read", "kubeconfig"]), pause_policy(scope)
        with pauser.where.served.permissions.enforcing(*policies) as credentials:
            who = replace(pauser.where, _made=[pauser.where.connected(pauser.where.session_of(credentials))])
            limited = Pauser(who, pauser.operator, SMALL)
            assert limited.pause().costs
            assert limited.operator.reported(BackupTaken)
            assert limited.resume().waited
        assert pauser.works()


@pytest.fixture(scope="module")
def large() -> Iterator[Pauser]:
    with running(LARGE) as made:
        yield made


@pytest.mark.parametrize("wait", [1, 3, 5])
def test_power_cuts_while_three_masters_are_awaited(large: Pauser, wait: int) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    before = large.sizes
    clock = large.where.clock
    clock.meanwhile[clock.sleeps + wait + 12] = interrupt
    try:
        large.pause()
    except PauseInterruptedError:
        assert large.pause().pause.complete
    clock.meanwhile.clear()
    clock.meanwhile[clock.sleeps + wait * 4] = interrupt
    with pytest.raises(ResumeInterruptedError):
        large.resume()
    assert large.resume().waited
    assert (large.sizes, large.kept) == (before, {})
    assert large.works()
