"""A rehearsal that does not go as expected: it stops there, says what differed, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from deployed import Place, place
from rehearsing import Person, left, steps_of

from cfngen.cli.display.json_output import to_json_value
from cfngen.deploy.messages.message import Event, Finished, UnplannedChange
from cfngen.deploy.operations.deployment import deploy as deployment
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.rehearse import cleanup, clusters, expectations
from cfngen.rehearse.cleanup import ForeignRehearsalStackError
from cfngen.rehearse.expectations import expectation_key
from cfngen.rehearse.operation_runner import RehearsalRequest
from cfngen.rehearse.report import Rehearsal, markdown_page
from cfngen.rehearse.run import RehearsalResult, clean_up
from cfngen.rehearse.steps import STEPS

pytestmark = pytest.mark.drill

SECRETS = "the account number 123456789012, arn:aws:iam::123456789012:role/theirs, eni-0123456789abcdef0 and 192.0.2.7"
PUBLIC = re.compile(
    r"\b\d{12}\b|arn:aws|\b(?:vpc|subnet|sg|eni|eipalloc|vol|snap|lt|ami|i|igw|rtb)-[0-9a-f]{8,17}\b"
    r"|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|https?://|user/"
)


def ended_by(ended: RehearsalResult) -> tuple[str, str]:
    """The step that ended a rehearsal, and how."""
    [last] = [step for step in ended.rehearsal.steps if step.result not in ("as expected", "not reached")]
    return last.name, last.result


def fail(resource: str, during: str = "CREATE") -> Callable[[Place], None]:
    return lambda where: where.world.cloud.fail(resource, f"no such thing: {SECRETS}", during=during)


def refuse_change_sets(where: Place) -> None:
    where.served.faults.refuse("CreateChangeSet", "ValidationError", f"Template error: {SECRETS}", times=100)


@pytest.mark.parametrize(
    ("first", "name", "switch", "said"),
    [
        (
            "network-plugins",
            "network-plugins",
            fail("MasterVxlanFromNodes"),
            "SecurityGroupsStack/MasterVxlanFromNodes",
        ),
        ("change-set", "change-set", refuse_change_sets, "Template error"),
        ("program", "program", fail("MasterAAutoScalingGroup"), "MasterStack/MasterAAutoScalingGroup"),
        ("program", "roll", fail("MasterAAutoScalingGroup", "UPDATE"), "MasterStack/MasterAAutoScalingGroup"),
        ("secrets", "secrets", fail("BackupBucketPolicy"), "SecretsStack/BackupBucketPolicy"),
        (
            "cluster",
            "cluster",
            fail("NodeGroupNodesLaunchTemplate"),
            "NodeGroupNodesStack/NodeGroupNodesLaunchTemplate",
        ),
        ("cluster", "update", fail("MasterALaunchTemplate", "UPDATE"), "MasterStack/MasterALaunchTemplate"),
        ("three-masters", "three-masters", fail("ApiListener"), "MasterStack/ApiListener"),
    ],
    ids=[step.name for step in STEPS],
)
def test_a_surprise_ends_it_is_named_and_is_cleaned_up(
    first: str, name: str, switch: Callable[[Place], None], said: str
) -> None:
    names = [step.name for step in STEPS]
    chosen = names[names.index(first) :]
    with place() as where:
        switch(where)
        person = Person(where.account)
        ended = person.rehearse(*chosen)
        assert left(where) == []
    assert ended.stop is None
    assert ended_by(ended) == (name, "surprise")
    assert ended.rehearsal.result == "surprise"
    assert said in "\n".join(map(str, ended.rehearsal.surprises))
    reached = [step.result for step in ended.rehearsal.steps]
    assert reached[chosen.index(name) + 1 :] == ["not reached"] * (len(chosen) - chosen.index(name) - 1)
    assert hidden(ended.rehearsal)


def hidden(rehearsal: Rehearsal) -> bool:
    """Whether neither form of the report has anything in it that says whose account it is of."""
    for text in (json.dumps(to_json_value(rehearsal)), markdown_page(rehearsal)):
        assert PUBLIC.findall(text) == []
        assert "theirs" not in text
    return True


def test_a_report_of_everything_that_went_well_is_masked() -> None:
    with place() as where:
        ended = Person(where.account).rehearse("program", "roll", profile="trial-of-somebody")
    assert ended.rehearsal.result == "as expected"
    assert hidden(ended.rehearsal)
    assert "Received SUCCESS signal" in markdown_page(ended.rehearsal)
    assert "trial-of-somebody" not in json.dumps(to_json_value(ended.rehearsal))


def test_another_fact_is_a_surprise() -> None:
    recorded = dict(expectations.read_recorded_expectations())
    about = expectation_key("secrets", "delete at once")
    recorded[about] = dataclasses.replace(
        recorded[about], facts={**recorded[about].facts, "CaSecret after its stack": "there"}
    )
    with place() as where:
        ended = Person(where.account).rehearse("secrets", expected=recorded)
        assert left(where) == []
    assert list(map(str, ended.rehearsal.surprises)) == ["CaSecret after its stack: expected there; seen gone"]


def test_what_a_plan_does_not_name_is_a_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    deploy = deployment.deploy
    touched = UnplannedChange(("IamStack",), "MasterRole", "AWS::IAM::Role", "update")

    def deploy_by_wrong_plan(*arguments: Any) -> Finished:
        return dataclasses.replace(deploy(*arguments), unplanned=(touched,))

    monkeypatch.setattr(deployment, "deploy", deploy_by_wrong_plan)
    with place() as where:
        ended = Person(where.account).rehearse("network-plugins")
    [surprise] = map(str, ended.rehearsal.surprises)
    assert surprise == "touched without being in the plan: expected nothing; seen IamStack/MasterRole"


def test_what_the_account_forbids_is_no_surprise() -> None:
    with place() as where:
        where.served.faults.deny("cloudformation:CreateChangeSet")
        ended = Person(where.account).rehearse("secrets")
        where.served.faults.allow("cloudformation:CreateChangeSet")
    assert ended_by(ended) == ("secrets", "refused")
    assert "not allowed to call CreateChangeSet" in ended.rehearsal.steps[0].error
    assert hidden(ended.rehearsal)


def interrupted(where: Place, person: Person, name: str, status: str, *, by: BaseException) -> None:
    """Interrupt a person's rehearsal in the pause after an event."""
    tell = person.messages.append
    rest = where.clock.sleep
    due: list[BaseException] = []

    def hear(message: object) -> None:
        tell(message)
        if isinstance(message, Event) and (message.logical_id, message.status) == (name, status) and by not in due:
            due.append(by)

    def sleep(seconds: float) -> None:
        rest(seconds)
        if due == [by]:
            due.append(by)
            raise by

    person.messages = Heard(hear)  # type: ignore[assignment]
    where.clock.sleep = sleep  # type: ignore[method-assign]


class Heard(list):  # type: ignore[type-arg]
    """Messages of which somebody is told each."""

    def __init__(self, hear: Callable[[object], None]) -> None:
        super().__init__()
        self._hear = hear

    def append(self, message: object) -> None:
        super().append(message)
        self._hear(message)


@pytest.mark.parametrize(
    ("chosen", "name", "resource", "status"),
    [
        (["program", "roll"], "program", "Vpc", "CREATE_IN_PROGRESS"),
        (["program", "roll"], "program", "MasterAWaitCondition", "CREATE_IN_PROGRESS"),
        (["program", "roll"], "roll", "MasterAAutoScalingGroup", "UPDATE_IN_PROGRESS"),
        (["secrets", "cluster"], "secrets", "SecretsKey", "DELETE_COMPLETE"),
    ],
)
def test_an_interruption_is_cleaned_up(chosen: list[str], name: str, resource: str, status: str) -> None:
    with place() as where:
        where.world.cloud.durations.update({"*": 20.0})
        person = Person(where.account)
        interrupted(where, person, resource, status, by=KeyboardInterrupt())
        ended = person.rehearse(*chosen)
        assert left(where) == []
    assert ended_by(ended) == (name, "interrupted")
    assert isinstance(ended.stop, KeyboardInterrupt)
    assert ended.left == ()
    assert hidden(ended.rehearsal)


@pytest.fixture
def abandoned() -> Iterator[Place]:
    """An account with what rehearsals have left that were killed: a stack at work, its templates, and kept buckets."""
    with place() as where, pytest.MonkeyPatch.context() as patch:
        where.world.cloud.durations.update({"*": 20.0})
        with patch.context() as killed:
            killed.setattr("cfngen.rehearse.run._remove_everything", lambda *arguments, **options: ())
            killed.setattr(cleanup, "remove_retained_resources", lambda *arguments, **options: ())
            Person(where.account).rehearse("secrets")
            person = Person(where.account)
            interrupted(where, person, "Vpc", "CREATE_IN_PROGRESS", by=RuntimeError("killed"))
            person.rehearse("program")
        found = left(where)
        assert f"stack {clusters.REHEARSAL_NAME} CREATE_IN_PROGRESS" in found
        assert {each.split(" ")[0] for each in found} >= {"stack", "bucket", "object"}
        yield where


def test_what_a_killed_rehearsal_has_left_is_removed_by_the_next(abandoned: Place) -> None:
    person = Person(abandoned.account)
    ended = person.rehearse("secrets")
    assert left(abandoned) == []
    assert ended.rehearsal.result == "as expected"
    assert "the leftovers of an earlier rehearsal" in person.questions[0].consequences[0]


def test_what_a_killed_rehearsal_has_left_is_removed_when_asked_for(abandoned: Place) -> None:
    person = Person(abandoned.account)
    request = request_of("secrets")
    assert clean_up(person.account, person.waiting, request) == ()
    assert left(abandoned) == []
    assert len(person.questions) == 1
    assert clean_up(person.account, person.waiting, request) == ()
    assert len(person.questions) == 1


def request_of(*names: str) -> RehearsalRequest:
    return RehearsalRequest(steps_of(*names), (), clusters.DEFAULT_ZONES)


def test_a_stack_that_no_rehearsal_made_is_left_alone() -> None:
    body = json.dumps({"Resources": {"Own": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    with place() as where:
        where.world.cloud.wait(where.world.cloud.create_stack(clusters.REHEARSAL_NAME, body=body))
        person = Person(where.account)
        with pytest.raises(ForeignRehearsalStackError, match="was not created by a rehearsal"):
            person.rehearse("secrets")
        with pytest.raises(ForeignRehearsalStackError):
            clean_up(person.account, person.waiting, request_of("secrets"))
        assert person.questions == []
        assert left(where) == [f"stack {clusters.REHEARSAL_NAME} CREATE_COMPLETE"]


def test_nothing_is_made_without_consent() -> None:
    with place() as where:
        person = Person(where.account, answer=lambda question: False)
        with pytest.raises(DeclinedError):
            person.rehearse("secrets")
        assert left(where) == []
        writes = [call for call in where.served.faults.calls if re.match("Create|Put|Delete|Execute", call.operation)]
        assert writes == []
    [question] = person.questions
    assert question.text == "Rehearse 1 step as arn:aws:sts::123456789012:user/moto?"
    assert question.consequences[0].endswith("2 secrets (Secrets Manager), 1 key (KMS)")
