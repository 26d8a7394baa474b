"""Phases are planned and carried out one after another, and what is left is told wherever that ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from recorded import CHANGE_SET, STACK_ID, Recorded, change, description, detail, request
from test_phase_documents import DEPLOYED, WANTED
from test_phase_parts import GROWS, MASTERS, ROLE, group, hurting, stack

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.messages.message import Danger, Finished, Impact, Notice, Question, Step, UnplannedChange
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations.deployment.execution import execute
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.operations.deployment.update_series import (
    Deployment,
    UnfinishedError,
    carry_out_phases,
    carry_out_series,
)
from cfngen.deploy.operations.interaction import DeclinedError, Interaction
from cfngen.deploy.plan.phases.phases import PartPlanner, PhasedUpdate, UpdatePart, plan_phases
from cfngen.deploy.plan.plan import Plan, PlannedUpdate, StackPlan
from cfngen.deploy.plan.publishing.publish import PublishedTemplates
from cfngen.deploy.watching.watch import WatchResult
from cfngen.errors import CfngenError
from cfngen.templates.document import Document
from cfngen.userdata import user_data_diff

KEPT, NEW = "NodeGroupKeptStack", "NodeGroupNewStack"


def plan(*stacks: StackPlan, change_set: str = "first", **more: Any) -> Plan:
    return Plan("one", STACK_ID, "update", change_set, stacks=stacks, **more)


class Operator:
    """Plans, carries out, asks and is told.

    Attributes:
        plans: what planning a part gives, by its number; an empty plan where there is none.
        outcomes: what becomes of the phases, in order; success where there is none.
        answer: what the user says.
        done: what happened, in order.
    """

    def __init__(self) -> None:
        self.plans: dict[int, Any] = {}
        self.outcomes: list[WatchResult] = []
        self.answer = True
        self.done: list[Any] = []
        self.documents: list[list[str]] = []
        self.api = Recorded()

    def plan_part(self, parts: Sequence[UpdatePart], documents: Sequence[Document], number: int) -> Plan:
        self.done.append((number, parts[0].title))
        self.documents.append([each.name for each in documents])
        planned = self.plans.get(number, plan(change_set=""))
        if isinstance(planned, BaseException):
            raise planned
        return planned

    def execute(self, planned: Plan, documents: Sequence[Document]) -> WatchResult:
        self.done.append(planned.change_set_id)
        self.documents.append([each.name for each in documents])
        return self.outcomes.pop(0) if self.outcomes else outcome()

    def consent(self, question: Question) -> bool:
        self.done.append(question)
        return self.answer

    def carry_out(self, found: PhasedUpdate) -> WatchResult:
        waiting = Interaction(self.done.append, self.consent, lambda: pytest.fail("nobody pressed Ctrl-C"))
        return carry_out_phases(self.api.account, found, waiting, self.execute, "one")

    def said(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.done if isinstance(each, kind)]


def outcome(*, succeeded: bool = True, detached: bool = False) -> WatchResult:
    return WatchResult("one", STACK_ID, StackStatus("UPDATE_COMPLETE"), "update", succeeded, detached, False, 1.0)


CONTROL, FIRST, SECOND = stack(MASTERS, ROLE), group(KEPT), group(NEW)


def divide(operator: Operator, *stacks: StackPlan) -> tuple[PhasedUpdate | None, list[Plan]]:
    discarded: list[Plan] = []
    whole = plan(*stacks, change_set="whole")
    return plan_phases(whole, DEPLOYED, WANTED, operator.plan_part, discarded.append), discarded


@pytest.mark.parametrize("stacks", [[], [CONTROL], [FIRST]])
def test_one_part_is_no_phase(stacks: list[StackPlan]) -> None:
    operator = Operator()
    assert divide(operator, *stacks) == (None, [])
    assert operator.done == []


def test_volumes_alone_keep_what_failed() -> None:
    """Taking back the others would shrink them."""
    found, discarded = divide(Operator(), stack(MASTERS, GROWS))
    assert found is not None
    assert (found.overall_plan, found.overall_plan.on_failure) == (found.first_plan, "DO_NOTHING")
    assert [each.kind for each in found.parts] == ["volumes"]
    assert (found.overall_plan.change_set_id, discarded) == ("whole", [])


def test_the_first_phase_stands_ready_and_the_others_are_predicted() -> None:
    operator = Operator()
    operator.plans[0] = plan(CONTROL)
    found, discarded = divide(operator, CONTROL, FIRST, SECOND)
    assert found is not None
    assert [each.change_set_id for each in discarded] == ["whole"]
    assert found.overall_plan.change_set_id == found.first_plan.change_set_id == "first"
    shown = [(phase.title, phase.predicted) for phase in found.overall_plan.phases]
    assert shown == [("control plane", False), ("node group Kept", True), ("node group New", True)]
    assert found.overall_plan.stacks == (CONTROL, FIRST, SECOND)
    # Groups of later phases stay as they are: the new one is not there yet.
    assert operator.documents == [["vpc", "iam", "master", "nodes-kept", "cluster"]]


def test_a_first_phase_with_nothing_to_do_is_left_out() -> None:
    operator = Operator()
    operator.plans[1] = plan(FIRST)
    found, _ = divide(operator, CONTROL, FIRST, SECOND)
    assert found is not None
    assert [each.title for each in found.parts] == ["node group Kept", "node group New"]
    assert [phase.title for phase in found.overall_plan.phases] == ["node group Kept", "node group New"]


def test_a_single_phase_that_is_left_is_not_shown_as_one() -> None:
    operator = Operator()
    operator.plans[2] = plan(SECOND)
    found, _ = divide(operator, CONTROL, FIRST, SECOND)
    assert found is not None
    assert (len(found.parts), found.overall_plan.phases) == (1, ())
    assert operator.documents[-1] == [each.name for each in WANTED]


def test_where_no_phase_has_anything_to_do_there_are_none() -> None:
    operator = Operator()
    found, discarded = divide(operator, CONTROL, FIRST)
    assert (found, len(discarded)) == (None, 1)


def three(operator: Operator) -> PhasedUpdate:
    operator.plans = {0: plan(CONTROL), 1: plan(FIRST, change_set="second"), 2: plan(SECOND, change_set="third")}
    found, _ = divide(operator, CONTROL, FIRST, SECOND)
    assert found is not None
    operator.done.clear()
    operator.documents.clear()
    return found


def test_all_phases_are_carried_out_in_order() -> None:
    operator = Operator()
    assert operator.carry_out(three(operator)).succeeded
    assert operator.done == [
        Step("phase 1 of 3: control plane"),
        "first",
        (1, "node group Kept"),
        Step("phase 2 of 3: node group Kept"),
        "second",
        (2, "node group New"),
        Step("phase 3 of 3: node group New"),
        "third",
    ]
    assert "nodes-new" not in operator.documents[0]
    assert operator.documents[-1] == [each.name for each in WANTED]


def test_volumes_grow_with_all_else_as_it_is_deployed() -> None:
    operator = Operator()
    operator.plans = {0: plan(stack(MASTERS, GROWS))}
    found, _ = divide(operator, stack(MASTERS, GROWS, ROLE))
    assert found is not None
    operator.carry_out(found)
    assert operator.documents[0] == ["vpc", "master", "nodes-kept", "nodes-gone", "cluster"]


def test_a_phase_that_has_nothing_to_do_any_more_is_left_out() -> None:
    operator = Operator()
    found = three(operator)
    del operator.plans[1]
    operator.outcomes = [replace(outcome(), seconds=60.0), replace(outcome(), seconds=9.0)]
    assert operator.carry_out(found).seconds == 69.0
    assert [each for each in operator.done if isinstance(each, str)] == ["first", "third"]


def test_a_phase_that_fails_is_the_last_and_what_is_left_is_told() -> None:
    operator = Operator()
    operator.outcomes = [outcome(), outcome(succeeded=False)]
    assert not operator.carry_out(three(operator)).succeeded
    [notice] = operator.said(Notice)
    assert notice.text == (
        "phase 2 of 3 did not succeed; the changes of earlier phases are kept. Remaining: node group "
        "Kept, node group New"
    )
    assert "`cfngen deploy`" in str(notice.hint)
    assert "third" not in operator.done


def test_after_a_phase_whose_rollback_failed_the_rollback_comes_first() -> None:
    operator = Operator()
    stuck = replace(outcome(succeeded=False), status=StackStatus("UPDATE_ROLLBACK_FAILED"))
    operator.outcomes = [stuck]
    operator.carry_out(three(operator))
    [notice] = operator.said(Notice)
    assert [str(command) for command in notice.hint.commands] == ["cfngen rollback --stack-name one", "cfngen deploy"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_phase_that_is_left_to_itself_is_the_last(number: int) -> None:
    operator = Operator()
    operator.outcomes = [*(outcome() for _ in range(number - 1)), outcome(succeeded=False, detached=True)]
    assert operator.carry_out(three(operator)).detached
    left = ["node group Kept", "node group New"][number - 1 :]
    # Of the last one nothing is left: it goes on, and has not failed.
    assert [each.text for each in operator.said(Notice)] == ([f"not started: {', '.join(left)}"] if left else [])
    assert ["`cfngen watch --stack-name one`" in str(each.hint) for each in operator.said(Notice)] == [True] * bool(
        left
    )
    assert len([each for each in operator.done if isinstance(each, str)]) == number


def test_a_phase_that_cannot_be_planned_leaves_what_was_done() -> None:
    operator = Operator()
    found = three(operator)
    operator.plans[1] = CfngenError("no")
    with pytest.raises(CfngenError, match=r"^no$"):
        operator.carry_out(found)
    [notice] = operator.said(Notice)
    assert notice.text.startswith("phase 2 of 3 could not start; ")
    assert notice.text.endswith("Remaining: node group Kept, node group New")


def test_an_interrupt_between_phases_names_what_is_left() -> None:
    operator = Operator()
    found = three(operator)
    operator.plans[1] = KeyboardInterrupt()
    with pytest.raises(UnfinishedError) as raised:
        operator.carry_out(found)
    assert str(raised.value) == "interrupted after phase 1 of 3; not started: node group Kept, node group New"
    assert (error_exit_code(raised.value.code), raised.value.left) == (6, ("node group Kept", "node group New"))
    assert operator.said(Notice) == []


def turned(operator: Operator, danger: Danger, **more: Any) -> PhasedUpdate:
    """The second phase turns out to do something else than was agreed to."""
    found = three(operator)
    operator.api.change_sets[CHANGE_SET] = description(CHANGE_SET)
    operator.plans[1] = plan(stack((KEPT,), hurting("Other", danger, "it goes")), change_set=CHANGE_SET, **more)
    return found


@pytest.mark.parametrize(("danger", "typed"), [(Danger.DISRUPTIVE, ""), (Danger.DANGEROUS, "one")])
def test_a_phase_that_turns_out_worse_is_asked_for(danger: Danger, typed: str) -> None:
    operator = Operator()
    assert operator.carry_out(turned(operator, danger)).succeeded
    [question] = operator.said(Question)
    assert question == Question(
        "Continue with node group Kept, which does more than was predicted?",
        (f"{KEPT}/Other: it goes",),
        dangerous=bool(typed),
        name=typed,
    )
    assert operator.done.index(operator.plans[1]) < operator.done.index(question)
    assert CHANGE_SET in operator.api.change_sets


def test_a_phase_that_is_declined_is_not_begun_and_its_change_set_goes() -> None:
    operator = Operator()
    operator.answer = False
    with pytest.raises(UnfinishedError, match=r"^you did not agree to node group Kept; not started: node group Kept, "):
        operator.carry_out(turned(operator, Danger.DISRUPTIVE))
    assert CHANGE_SET not in operator.api.change_sets
    assert "third" not in operator.done
    assert operator.said(Notice) == []


def test_a_phase_that_would_fail_is_not_begun() -> None:
    operator = Operator()
    found = turned(operator, Danger.NONE, predicted=(Impact("EBS refuses it", Danger.DISRUPTIVE, fails=True),))
    with pytest.raises(UnfinishedError, match=r"^node group Kept would fail: EBS refuses it; not started: "):
        operator.carry_out(found)
    assert operator.said(Question) == []
    assert operator.plans[1] in operator.done
    assert CHANGE_SET not in operator.api.change_sets


def test_a_phase_that_hurts_no_more_than_agreed_is_not_asked_for() -> None:
    operator = Operator()
    assert operator.carry_out(turned(operator, Danger.NONE)).succeeded
    assert operator.said(Question) == []
    assert operator.said(Plan) == []


SECRET = {"Parameters": {"Secret": {"NoEcho": True}}}
ROOT = Document(
    "cluster", {"Parameters": {"VolumeSize": {}, "Image": {}, "Gone": {}, "Fresh": {}}, "Resources": {}}, "m", ("vpc",)
)


@pytest.mark.parametrize(
    ("kind", "parameters", "disabled"),
    [
        (
            "volumes",
            [("Fresh", "f", None), ("Image", None, "true"), ("VolumeSize", "40", None)],
            "true",
        ),
        ("control-plane", [("Fresh", "f", None), ("Image", "new", None), ("VolumeSize", "40", None)], "false"),
    ],
)
def test_a_part_has_a_change_set_of_its_own(kind: Any, parameters: list[Any], disabled: str) -> None:
    """Where only volumes change, all other values stay, and what fails is kept: nothing can shrink them."""
    api = Recorded()
    assert api.stack
    api.stack["Parameters"] = [
        {"ParameterKey": "VolumeSize", "ParameterValue": "20"},
        {"ParameterKey": "Image", "ParameterValue": "old"},
    ]
    volume = change("MasterAVolume", "AWS::EC2::Volume", detail("Size", "20", "40", cause="Secret"))
    launch = change("T", "AWS::EC2::LaunchTemplate", detail("LaunchTemplateData/UserData", "old", "new"))
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, launch, volume)
    given = {"VolumeSize": "40", "Image": "new", "Fresh": "f"}
    entries = tuple({"ParameterKey": name, "ParameterValue": value} for name, value in given.items())
    uploaded: list[Any] = []

    def upload(documents: Sequence[Document]) -> PublishedTemplates:
        uploaded.append(list(documents))
        return PublishedTemplates("bucket", "https://bucket/part.json", 1, 0, ROOT, {})

    said: list[Any] = []
    hurts = Impact("predicted of the whole", Danger.DANGEROUS)
    with ExitStack() as leaving, pytest.MonkeyPatch.context() as patch:
        patch.setattr(user_data_diff, "difference", "{} becomes {}".format)
        asked = request(documents=WANTED, parameters=entries, predicted=(hurts,))
        planning = PartPlanner(api.account, asked, upload, said.append, leaving)
        iam = Document(
            "iam", {"Resources": {"R": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "x"}}}, **SECRET}, "m"
        )
        made = planning([UpdatePart(kind, ()), UpdatePart("node-groups", (), (KEPT,))], (iam, ROOT), 3)
        execute(api.account, replace(made, _executed=[]))
        assert CHANGE_SET in api.change_sets
    assert uploaded == [[iam, ROOT]]
    [sent] = api.named("CreateChangeSet")
    assert (sent["ChangeSetName"], sent["TemplateURL"]) == ("cfngen-plan-one-3", "https://bucket/part.json")
    assert sent["Description"].endswith("; then node group Kept")
    assert sent["Capabilities.member.1"] == "CAPABILITY_NAMED_IAM"
    entry = "Parameters.member."
    told = [
        (value, sent.get(name.replace("Key", "Value")), sent.get(name.replace("ParameterKey", "UsePreviousValue")))
        for name, value in sent.items()
        if name.startswith(entry) and name.endswith(".ParameterKey")
    ]
    assert sorted(told) == parameters
    assert made.predicted == ()
    # Which values are secret the part's own templates say.
    properties = {each.logical_id: each.properties[0] for each in made.changes}
    assert properties["MasterAVolume"].sensitive
    assert properties["T"].note == "old becomes new"
    assert api.named("ExecuteChangeSet")[0]["DisableRollback"] == disabled
    assert said == [Step(f"creating a change set: {UpdatePart(kind, ()).title}")]
    # What was planned and not executed goes at the end.
    assert CHANGE_SET not in api.change_sets


UNPLANNED = UnplannedChange((), "Other", "AWS::X::Y", "update")
UPDATES = tuple(PlannedUpdate(f"step {number}", "") for number in (1, 2, 3))


def ended(
    *,
    succeeded: bool = True,
    in_progress: bool = False,
    action: str = "update",
    updates: tuple[PlannedUpdate, ...] = (),
) -> Deployment:
    status = "UPDATE_COMPLETE" if succeeded else "UPDATE_ROLLBACK_COMPLETE"
    finished = Finished(
        action, "one", STACK_ID, status, succeeded, 10.0, in_progress=in_progress, unplanned=(UNPLANNED,)
    )
    return Deployment(finished, plan(updates=updates))


def series(operator: Operator, *outcomes: Any) -> tuple[Finished, list[tuple[str, bool]]]:
    """What comes of a series whose deployments end in some ways, and which were made."""
    left, made = list(outcomes), []

    def deploy_once(wanted: DeploymentRequest, is_agreed: bool) -> Deployment:
        made.append((wanted.token, is_agreed))
        now = left.pop(0)
        if isinstance(now, BaseException):
            raise now
        deployment: Deployment = now
        return deployment

    waiting = Interaction(operator.done.append, operator.consent, lambda: pytest.fail("nobody pressed Ctrl-C"))
    return carry_out_series(DeploymentRequest(request().cluster, (), "one", "t"), waiting, deploy_once), made


def test_a_cluster_that_one_update_leads_to_is_deployed_once() -> None:
    for single in (ended(), ended(succeeded=False), ended(in_progress=True, succeeded=False)):
        operator = Operator()
        assert series(operator, single) == (single.finished, [("t", False)])
        assert operator.done == []


def test_updates_that_follow_each_other_are_one_deployment_for_whom_agreed() -> None:
    operator = Operator()
    finished, made = series(operator, ended(updates=UPDATES), ended(updates=UPDATES[1:]), ended())
    assert made == [("t", False), ("t-u2", True), ("t-u3", True)]
    assert (finished.seconds, len(finished.unplanned), finished.succeeded) == (30.0, 3, True)
    assert [step.text for step in operator.said(Step)] == ["update 2 of 3: step 2", "update 3 of 3: step 3"]
    assert operator.said(Notice) == []


@pytest.mark.parametrize(
    ("outcomes", "says", "seconds"),
    [
        ([ended(updates=UPDATES, succeeded=False)], "update 1 of 3 did not succeed; {}step 1, step 2, step 3", 10.0),
        ([ended(updates=UPDATES, succeeded=False, in_progress=True)],
         "update 1 of 3 has not ended; {}step 2, step 3", 10.0),
        ([ended(updates=UPDATES), ended(succeeded=False)], "update 2 of 3 did not succeed; {}step 2, step 3", 20.0),
        ([ended(updates=UPDATES), ended(succeeded=False, in_progress=True)],
         "update 2 of 3 has not ended; {}step 3", 20.0),
        ([ended(updates=UPDATES), ended(), ended(succeeded=False)], "update 3 of 3 did not succeed; {}step 3", 30.0),
    ],
)  # fmt: skip
def test_an_update_that_does_not_succeed_is_the_last_and_what_remains_is_told(
    outcomes: list[Deployment], says: str, seconds: float
) -> None:
    operator = Operator()
    finished, made = series(operator, *outcomes)
    assert (finished.seconds, len(finished.unplanned), len(made)) == (seconds, len(outcomes), len(outcomes))
    [notice] = operator.said(Notice)
    kept = "the updates before are kept, and the cluster works in this state. Remaining: "
    assert notice.text == says.format(kept)
    assert "`cfngen deploy` continues with the remaining updates" in str(notice.hint)


@pytest.mark.parametrize(
    ("outcomes", "error", "says", "told_of"),
    [
        ([DeclinedError()], UnfinishedError, "you did not agree to update 2; not started: step 2, step 3", ""),
        ([ended(action="none", updates=UPDATES[1:])], UnfinishedError,
         "update 2 found nothing to change; not started: step 2, step 3", ""),
        ([CfngenError("refused")], CfngenError, "refused", "update 1 of 3 is complete"),
        ([KeyboardInterrupt()], KeyboardInterrupt, "", "update 1 of 3 is complete"),
        ([ended(), CfngenError("refused")], CfngenError, "refused", "update 2 of 3 is complete"),
    ],
)  # fmt: skip
def test_an_update_that_is_not_begun_says_what_is_complete(
    outcomes: list[Any], error: type[BaseException], says: str, told_of: str
) -> None:
    operator = Operator()
    with pytest.raises(error) as stopped:
        series(operator, ended(updates=UPDATES), *outcomes)
    assert str(stopped.value) == says
    remaining = ", ".join(update.title for update in UPDATES[len(outcomes) :])
    assert [notice.text.partition(";")[0] for notice in operator.said(Notice)] == [told_of] * bool(told_of)
    assert [notice.text.rpartition(": ")[2] for notice in operator.said(Notice)] == [remaining] * bool(told_of)


def test_of_the_last_update_nothing_remains_while_it_goes_on_by_itself() -> None:
    operator = Operator()
    left_alone = ended(succeeded=False, in_progress=True)
    finished, _ = series(operator, ended(updates=UPDATES[:2]), left_alone)
    assert (finished.in_progress, finished.seconds, operator.said(Notice)) == (True, 20.0, [])


def test_an_update_that_had_nothing_left_to_do_is_no_obstacle() -> None:
    finished, made = series(Operator(), ended(updates=UPDATES[:2]), ended(action="none"))
    assert (finished.action, len(made)) == ("none", 2)
