"""Ctrl-C while an operation is watched: going on, leaving it alone, cancelling it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from watched import Operator, ctrl_c, lines, operating

from cfngen.deploy.watching.watch import InterruptChoice, WatchEndedError


@pytest.fixture
def operator() -> Iterator[Operator]:
    with operating() as made:
        yield made


@pytest.mark.parametrize("call", ["DescribeStacks", "DescribeStackEvents"])
def test_going_on_loses_no_event(operator: Operator, call: str):
    root_id = operator.create()
    operator.choices = [InterruptChoice.WAIT]
    for nth in (1, 4, 9):
        operator.faults.after(call, ctrl_c, nth=nth)
    outcome = operator.watch(root_id)
    assert operator.asked == 3
    assert outcome.succeeded
    assert sorted(event.id for event in operator.events) == sorted(operator.happened())


def test_going_on_after_ctrl_c_during_a_pause(operator: Operator):
    root_id = operator.create()
    operator.choices = [InterruptChoice.WAIT]
    operator.engine.clock.schedule(20, ctrl_c)
    assert operator.watch(root_id).succeeded
    assert operator.asked == 1


def test_leaving_it_alone(operator: Operator):
    root_id = operator.create()
    operator.faults.after("DescribeStackEvents", ctrl_c, nth=5)
    outcome = operator.watch(root_id)
    assert (outcome.detached, outcome.succeeded, outcome.cancelled) == (True, False, False)
    assert outcome.status.name == "CREATE_IN_PROGRESS"
    operator.engine.wait(operator.root)
    assert operator.root.status == "CREATE_COMPLETE"


def test_leaving_what_has_ended_while_the_question_waited_says_how_it_ended(operator: Operator):
    root_id = operator.create()
    operator.faults.after("DescribeStackEvents", ctrl_c, nth=5)

    def answer_late() -> InterruptChoice:
        operator.engine.wait(operator.root)
        return InterruptChoice.DETACH

    outcome = operator.watch(root_id, on_interrupt=answer_late)
    assert (outcome.detached, outcome.succeeded, outcome.status.name) == (False, True, "CREATE_COMPLETE")


def test_another_ctrl_c_at_the_question_leaves_it_alone(operator: Operator):
    root_id = operator.create()
    operator.faults.after("DescribeStacks", ctrl_c, nth=3)
    outcome = operator.watch(root_id, on_interrupt=ctrl_c)
    assert outcome.detached


def test_leaving_before_anything_is_known(operator: Operator):
    root_id = operator.create()
    operator.faults.before("DescribeStacks", ctrl_c)
    outcome = operator.watch(root_id)
    assert (outcome.detached, outcome.stack, outcome.stack_id) == (True, "k8s", root_id)


def test_a_cancelled_update_is_watched_while_it_is_taken_back(operator: Operator):
    root_id = operator.created()
    before = operator.update("t3.large")
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=4)
    outcome = operator.watch(root_id, since=before)
    assert (outcome.status.name, outcome.action) == ("UPDATE_ROLLBACK_COMPLETE", "update")
    assert (outcome.cancelled, outcome.succeeded, outcome.detached) == (True, False, False)
    assert "k8s UPDATE_ROLLBACK_IN_PROGRESS" in lines(outcome.events)
    assert "rolled back" in operator.notices[0]


def test_of_a_creation_only_the_wish_to_cancel_is_returned(operator: Operator):
    root_id = operator.create()
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=4)
    outcome = operator.watch(root_id)
    assert (outcome.cancelled, outcome.detached, outcome.succeeded) == (True, False, False)
    assert outcome.status.name == "CREATE_IN_PROGRESS"
    assert operator.faults.called("DeleteStack") == []


def test_what_is_being_taken_back_already_is_not_cancelled(operator: Operator):
    root_id = operator.created()
    before = operator.update("t3.large")
    operator.engine.advance(100)
    operator.cloudformation.cancel_update_stack(StackName=root_id)
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=1)
    outcome = operator.watch(root_id, since=before)
    assert not outcome.cancelled
    assert operator.notices == ["not cancelled: the operation is already being rolled back"]
    assert outcome.status.name == "UPDATE_ROLLBACK_COMPLETE"


def test_a_deletion_is_not_cancelled(operator: Operator):
    root_id = operator.created()
    operator.cloudformation.delete_stack(StackName=root_id)
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=2)
    outcome = operator.watch(root_id)
    assert outcome.succeeded
    assert operator.notices == ["not cancelled: a deletion cannot be cancelled"]


def test_a_refused_cancellation_is_told_and_the_watch_goes_on(operator: Operator):
    root_id = operator.created()
    before = operator.update("t3.large")
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=2)
    operator.faults.refuse("CancelUpdateStack", "ValidationError", "CancelUpdateStack cannot be called now")
    outcome = operator.watch(root_id, since=before)
    assert (outcome.succeeded, outcome.cancelled) == (True, False)
    assert operator.notices == ["not cancelled: CancelUpdateStack cannot be called now"]


def test_a_cancellation_that_does_not_reach_aws_is_told_and_the_watch_goes_on(operator: Operator):
    root_id = operator.created()
    before = operator.update("t3.large")
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=2)
    operator.faults.disconnect("CancelUpdateStack", times=8, kind="refused")
    outcome = operator.watch(root_id, since=before)
    assert outcome.succeeded
    assert "not cancelled: Could not connect" in operator.notices[0]


def test_a_cancellation_that_is_not_allowed_ends_the_watch(operator: Operator):
    root_id = operator.created()
    before = operator.update("t3.large")
    operator.choices = [InterruptChoice.CANCEL]
    operator.faults.after("DescribeStacks", ctrl_c, nth=2)
    operator.faults.deny("cloudformation:CancelUpdateStack")
    with pytest.raises(WatchEndedError, match="CancelUpdateStack"):
        operator.watch(root_id, since=before)
