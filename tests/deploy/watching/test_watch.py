"""Watching an operation to its end, whatever CloudFormation and the network do meanwhile."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator

import pytest
from watched import NAME, Operator, lines, operating

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.aws.errors import ExpiredCredentialsError
from cfngen.deploy.aws.events import TreeEvents
from cfngen.deploy.aws.operation_events import all_events
from cfngen.deploy.messages.message import Event
from cfngen.deploy.watching.watch import READS_AFTER_END, PollingBudget, WatchEndedError


@pytest.fixture
def operator() -> Iterator[Operator]:
    with operating() as made:
        yield made


def test_a_creation_is_watched_to_its_end_and_every_event_told_once(operator: Operator):
    operator.faults.page_size = 4
    root_id = operator.create()
    outcome = operator.watch(root_id)
    assert (outcome.status.name, outcome.action, outcome.succeeded) == ("CREATE_COMPLETE", "create", True)
    assert not outcome.detached
    assert not outcome.cancelled
    assert outcome.seconds == operator.seconds
    ids = [event.id for event in operator.events]
    assert len(ids) == len(set(ids))
    assert set(ids) == operator.happened()
    assert outcome.events == tuple(operator.events)


def test_events_of_each_stack_come_in_their_order_and_with_their_place(operator: Operator):
    operator.faults.page_size = 3
    operator.watch(operator.create())
    for stack in operator.engine.stacks():
        told = [event.id for event in operator.events if event.stack_id == stack.id]
        assert told == [event.id for event in stack.events]
    [vpc] = [line for line in lines(operator.events) if line.endswith("/Vpc CREATE_COMPLETE")]
    assert vpc == "VpcStack/Vpc CREATE_COMPLETE"


def test_all_stacks_share_one_allowance_of_calls(operator: Operator):
    operator.faults.page_size = 5
    root_id = operator.create()
    operator.faults.calls.clear()
    operator.watch(root_id, budget=PollingBudget(calls=3, tick=60))
    moments = collections.Counter(call.time for call in operator.faults.calls if call.service == "cloudformation")
    assert max(moments.values()) <= 3
    assert len(moments) > 20


def test_finished_stacks_are_left_alone(operator: Operator):
    root_id = operator.create()
    operator.faults.calls.clear()
    operator.watch(root_id)
    vpc = operator.engine.stack(root_id).children["VpcStack"]
    asked = operator.faults.called("DescribeStackEvents", StackName=vpc.id)
    # It takes some fifteen of 105 seconds, in steps of five.
    assert 2 <= len(asked) <= 6


def test_what_is_known_is_not_read_again(operator: Operator):
    root_id = operator.create()
    operator.faults.page_size = 2
    operator.faults.calls.clear()
    operator.watch(root_id)
    looks = len(operator.faults.called("DescribeStacks"))
    pages = len(operator.faults.called("DescribeStackEvents", StackName=root_id))
    # One page for each look, and a further one where a page was full of news.
    assert pages <= looks + len(operator.root.events) / 2 + 1


def test_history_before_the_operation_is_not_read(operator: Operator):
    root_id = operator.created()
    for size in ("t3.large", "t3.small", "t3.medium"):
        operator.update(size)
        operator.engine.wait(operator.root)
    operator.faults.page_size = 2
    operator.faults.calls.clear()
    outcome = operator.watch(root_id)
    pages = len(operator.faults.called("DescribeStackEvents", StackName=root_id))
    assert pages <= sum(not event.path for event in outcome.events) / 2 + 1 + READS_AFTER_END


def test_throttling_now_and_then_loses_no_event(operator: Operator):
    operator.faults.page_size = 2
    root_id = operator.create()
    operator.faults.throttle("DescribeStackEvents", every=2)
    outcome = operator.watch(root_id)
    assert outcome.succeeded
    assert sorted(event.id for event in operator.events) == sorted(operator.happened())


def test_a_network_that_is_lost_for_minutes_does_not_end_the_watch(operator: Operator):
    root_id = operator.create()
    operator.engine.advance(30)
    operator.faults.disconnect(times=20, kind="refused")
    outcome = operator.watch(root_id)
    assert outcome.succeeded
    assert {event.id for event in operator.events} == operator.happened()
    [notice] = operator.notices
    assert "cannot be reached" in notice
    assert "continue" in notice


def test_expired_credentials_end_it_and_say_that_the_operation_goes_on(operator: Operator):
    root_id = operator.create()
    at = operator.clock.now() + datetime.timedelta(seconds=60)
    operator.faults.expire_credentials(at=at)
    with pytest.raises(WatchEndedError, match="operation on the stack k8s continues") as caught:
        operator.watch(root_id)
    assert isinstance(caught.value.cause, ExpiredCredentialsError)
    assert error_exit_code(caught.value.code) == 6
    assert "cfngen watch --stack-name k8s" in str(caught.value.hint)
    assert "sign in again" in str(caught.value.hint)
    operator.faults.renew_credentials()
    outcome = operator.watch()
    assert outcome.succeeded
    assert {event.id for event in outcome.events} == operator.happened()


def begun_by_change_set(operator: Operator) -> tuple[str, datetime.datetime]:
    made = operator.cloudformation.create_change_set(
        StackName=NAME, ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=operator.body()
    )
    operator.engine.advance(60)
    created = operator.cloudformation.describe_change_set(ChangeSetName=made["Id"])["CreationTime"]
    operator.cloudformation.execute_change_set(ChangeSetName=made["Id"])
    return made["StackId"], created


def test_stale_reads_right_after_the_execution_do_not_end_it(operator: Operator):
    root_id, created = begun_by_change_set(operator)
    operator.faults.stale(20, 12)
    outcome = operator.watch(root_id, since=created)
    assert outcome.succeeded
    assert operator.progress[0].status == "REVIEW_IN_PROGRESS"
    assert "k8s REVIEW_IN_PROGRESS" not in lines(operator.events)
    assert lines(operator.events)[0] == "k8s CREATE_IN_PROGRESS"


def test_a_stale_read_amid_the_operation_does_not_end_it(operator: Operator):
    root_id, created = begun_by_change_set(operator)
    faults = operator.faults
    faults.after("DescribeStacks", lambda: faults.stale(3600, 40, ("DescribeStacks",)), nth=4)
    outcome = operator.watch(root_id, since=created)
    assert outcome.status.name == "CREATE_COMPLETE"
    assert {event.id for event in outcome.events} >= {
        event.id for stack in operator.engine.stacks() for event in stack.events if "REVIEW" not in event.status
    }


def test_events_that_become_visible_after_the_status_are_told(operator: Operator):
    root_id = operator.create()
    operator.faults.stale(6, 3600, ("DescribeStackEvents",))
    operator.watch(root_id)
    assert {event.id for event in operator.events} == operator.happened()
    assert lines(operator.events)[-1] == "k8s CREATE_COMPLETE"


def test_the_operation_before_may_have_ended_when_the_change_set_was_created(operator: Operator):
    root_id = operator.created()
    old, size = operator.happened(), [{"ParameterKey": "Size", "ParameterValue": "t3.large"}]
    made = operator.cloudformation.create_change_set(
        StackName=NAME, ChangeSetName="second", UsePreviousTemplate=True, Parameters=size, IncludeNestedStacks=True
    )
    created = operator.cloudformation.describe_change_set(ChangeSetName=made["Id"])["CreationTime"]
    assert operator.root.events[-1].time == created
    operator.engine.advance(60)
    operator.cloudformation.execute_change_set(ChangeSetName=made["Id"])
    outcome = operator.watch(root_id, since=created)
    assert (outcome.action, outcome.succeeded) == ("update", True)
    assert {event.id for event in outcome.events} == operator.happened() - old


def test_a_watch_that_comes_later_finds_the_beginning_by_itself(operator: Operator):
    root_id = operator.created()
    operator.update("t3.large")
    operator.engine.advance(120)
    operator.faults.page_size = 3
    outcome = operator.watch()
    assert (outcome.stack, outcome.stack_id) == (NAME, root_id)
    assert (outcome.action, outcome.status.name) == ("update", "UPDATE_COMPLETE")
    assert lines(outcome.events)[0] == "k8s UPDATE_IN_PROGRESS"


def test_a_deletion_is_watched_by_the_arn(operator: Operator):
    root_id = operator.created()
    operator.cloudformation.delete_stack(StackName=NAME)
    outcome = operator.watch(root_id)
    assert (outcome.status.name, outcome.action, outcome.succeeded) == ("DELETE_COMPLETE", "delete", True)
    assert "VpcStack/Vpc DELETE_COMPLETE" in lines(outcome.events)


def test_what_one_stack_did_waits_until_all_were_looked_at(operator: Operator):
    """Where the calls of one look do not suffice for all nested stacks, none is told before the others."""
    root_id = operator.create()
    operator.engine.advance(60)
    tree = TreeEvents(operator.account, root_id, all_events)
    told: list[list[Event]] = []
    while not any(told):
        tree.advance(2)
        told.append(tree.take())
    assert len(told) > 2
    times = [event.time for event in told[-1]]
    assert times == sorted(times)
    stacks = {stack.id for stack in operator.engine.stacks() if stack.events and stack.status != "REVIEW_IN_PROGRESS"}
    assert {event.stack_id for event in told[-1]} == stacks
