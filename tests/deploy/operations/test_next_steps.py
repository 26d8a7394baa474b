"""The way on that every message names: one table for all of them, and what `watch`, `rollback` and `delete` do where
there is nothing to watch, to roll back or to delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import boto3
import pytest
from clusters import in_memory
from served_api import serving
from small_stacks import GATEWAY, REGION, tagged, text

from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Message, Question
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.deployment.attaching import EmptyStackError, attach
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.recovery import NothingToRollBackError, rollback
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.preflight.stack_checks import ForeignStackError
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.sandbox.cloudformation import CloudFormation

STACK = "one"
TWO = text({"First": GATEWAY, "Second": {**GATEWAY, "DependsOn": "First"}})
CHANGED = text({"First": GATEWAY, "Second": {**tagged(new="yes"), "DependsOn": "First"}})


@dataclass
class Clock:
    """The time of the engine; at the first sleep somebody may press Ctrl-C."""

    engine: CloudFormation
    interrupting: bool = False

    def now(self):
        return self.engine.clock.time

    def sleep(self, seconds: float) -> None:
        self.engine.advance(seconds)
        if self.interrupting:
            self.interrupting = False
            raise KeyboardInterrupt


@dataclass
class Operator:
    """Somebody at work in an account, who chooses to cancel after Ctrl-C."""

    engine: CloudFormation
    account: Account
    clock: Clock
    agrees: bool = True
    questions: list[Question] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def waiting(self) -> Interaction:
        return Interaction(self.messages.append, self._asked, lambda: InterruptChoice.CANCEL)

    def _asked(self, question: Question) -> bool:
        self.questions.append(question)
        return self.agrees

    def status(self) -> str:
        stack = find_stack(self.account, STACK)
        return stack.status.name if stack else ""

    def empty_stack(self) -> None:
        """A stack of which only an open plan has been made, and then deleted."""
        made = self.engine.create_change_set(STACK, "somebody-looked", kind="CREATE", body=TWO)
        self.engine.advance(60)
        self.engine.delete_change_set(made.id)

    def creating(self, cluster: str = STACK) -> None:
        self.engine.durations["*"] = 60
        self.engine.create_stack(STACK, body=TWO, tags={"cfngen:cluster": cluster})
        self.clock.interrupting = True


@pytest.fixture
def operator() -> Iterator[Operator]:
    with in_memory():
        engine = CloudFormation(REGION)
        with serving(engine):
            clock = Clock(engine)
            yield Operator(engine, connect(boto3.Session("AKIAOPERATOROPERATOR", "secret"), REGION, clock=clock), clock)


@pytest.mark.parametrize(
    ("status", "commands"),
    [
        ("", ["deploy"]),
        ("REVIEW_IN_PROGRESS", ["deploy"]),
        ("CREATE_IN_PROGRESS", ["watch"]),
        ("CREATE_COMPLETE", []),
        ("CREATE_FAILED", ["deploy", "rollback"]),
        ("UPDATE_FAILED", ["deploy", "rollback"]),
        ("ROLLBACK_COMPLETE", ["deploy", "delete"]),
        ("ROLLBACK_FAILED", ["deploy", "delete"]),
        ("UPDATE_ROLLBACK_COMPLETE", []),
        ("UPDATE_ROLLBACK_FAILED", ["rollback", "rollback --force"]),
        ("IMPORT_ROLLBACK_FAILED", ["events --failures", "delete"]),
        ("DELETE_FAILED", ["delete", "delete --leave-behind"]),
        ("A_STATUS_OF_NEXT_YEAR", ["watch"]),
    ],
)
def test_the_ways_on_from_a_status(status: str, commands: list[str]):
    steps = next_steps(StackStatus(status))
    assert [str(step.command) for step in steps] == [f"cfngen {command}" for command in commands]
    named = str(as_hint(next_steps(StackStatus(status), "k8s")))
    assert [command for command in commands if f"`cfngen {command} --stack-name k8s` " not in named] == []


@pytest.mark.parametrize("succeeded", [False, True])
def test_a_failed_update_of_what_was_never_complete_is_rolled_back_by_deleting_it(operator: Operator, succeeded: bool):
    engine = operator.engine
    if not succeeded:
        engine.fail("Second", "no")
    made = engine.create_stack(STACK, body=TWO, tags={"cfngen:cluster": STACK}, on_failure="DO_NOTHING", protected=True)
    engine.wait(made)
    engine.advance(60)
    engine.fail("Second", "no", during="UPDATE" if succeeded else "CREATE")
    engine.wait(engine.update_stack(STACK, body=CHANGED, disable_rollback=True))
    assert operator.status() == "UPDATE_FAILED"
    outcome = rollback(operator.account, STACK, STACK, operator.waiting)
    [question] = operator.questions
    assert question.dangerous == ("never succeeded" in question.consequences[0]) == (not succeeded)
    assert outcome.status.rolled_back
    assert operator.status() == ("UPDATE_ROLLBACK_COMPLETE" if succeeded else "")


def test_an_empty_stack_is_not_called_somebody_elses_by_rollback(operator: Operator):
    operator.empty_stack()
    with pytest.raises(NothingToRollBackError, match="REVIEW_IN_PROGRESS") as raised:
        rollback(operator.account, STACK, STACK, operator.waiting)
    assert "`cfngen deploy --stack-name one`" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("status", "command"), [("DELETE_FAILED", "delete"), ("ROLLBACK_COMPLETE", "deploy"), ("CREATE_COMPLETE", "deploy")]
)
def test_where_nothing_is_rolled_back_the_named_command_is_one_that_works(
    operator: Operator, status: str, command: str
):
    operator.engine.wait(operator.engine.create_stack(STACK, body=TWO, tags={"cfngen:cluster": STACK})).status = status
    with pytest.raises(NothingToRollBackError) as raised:
        rollback(operator.account, STACK, STACK, operator.waiting)
    assert f"`cfngen {command}" in str(raised.value.hint)
    assert ("earlier cluster file" in str(raised.value.hint)) == (status == "CREATE_COMPLETE")


def test_there_is_nothing_to_watch_in_an_empty_stack(operator: Operator):
    operator.empty_stack()
    with pytest.raises(EmptyStackError, match="no operation is in progress in it") as raised:
        attach(operator.account, STACK, STACK, operator.waiting)
    assert "`cfngen deploy --stack-name one`" in str(raised.value.hint)
    assert operator.messages == []


def test_who_attaches_to_a_creation_can_end_it(operator: Operator):
    operator.creating()
    finished = attach(operator.account, STACK, STACK, operator.waiting)
    assert [question.text for question in operator.questions] == ["Delete one, which is being created?"]
    assert (finished.succeeded, finished.in_progress, operator.status()) == (False, False, "")


def test_a_creation_that_is_not_to_be_ended_after_all_is_watched_on(operator: Operator):
    operator.creating()
    operator.agrees = False
    finished = attach(operator.account, STACK, STACK, operator.waiting)
    assert (finished.succeeded, operator.status()) == (True, "CREATE_COMPLETE")


def test_the_creation_of_another_cluster_is_not_ended(operator: Operator):
    operator.creating("another")
    with pytest.raises(ForeignStackError, match="belongs to the cluster another"):
        attach(operator.account, STACK, STACK, operator.waiting)
    assert (operator.questions, operator.status()) == ([], "CREATE_IN_PROGRESS")


def test_an_empty_stack_of_nobody_is_not_deleted_and_the_ways_to_use_or_remove_it_are_named(operator: Operator):
    operator.empty_stack()
    with pytest.raises(ForeignStackError, match="none of its change sets") as raised:
        delete(operator.account, DeletionRequest(STACK, STACK), operator.waiting)
    assert "`cfngen deploy --stack-name one`" in str(raised.value.hint)
    assert "`aws cloudformation delete-stack --region us-west-2 --stack-name one`" in str(raised.value.hint)
    assert operator.status() == "REVIEW_IN_PROGRESS"
