"""What an operation touches and its plan does not name is said at once, and again at the end."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cli.render.operations import finished_lines, unplanned_change_lines
from cfngen.deploy.messages.message import Danger, Event, Message, UnplannedChange
from cfngen.deploy.operations.deployment import deploy as deployment
from cfngen.deploy.operations.deployment.preparation import Preparation
from cfngen.deploy.operations.deployment.unplanned import PlanWitness
from cfngen.deploy.plan.plan import Change, Plan, StackPlan

ONE = {"name": "one", "nodeGroups": groups("general", minSize=1, maxSize=1)}
GROUP = "NodeGroupGeneralAutoScalingGroup"
NODES = ("NodeGroupGeneralStack",)
REPLACED = "Requested update requires the creation of a new physical resource; hence creating one."


def plan_of(*stacks: tuple[tuple[str, ...], str, tuple[str, ...]]) -> Plan:
    """A plan of stacks: path, action, and the logical ids of what changes."""
    return Plan(
        "one",
        "arn",
        "update",
        stacks=tuple(
            StackPlan(path, "", action, tuple(Change(each, "", "AWS::EC2::VPC", "update") for each in changes))
            for path, action, changes in stacks
        ),
    )


def event(name: str, status: str, *path: str, of: str = "AWS::EC2::VPC", reason: str = "") -> Event:
    """An event of a resource; of the stack itself if it has no name."""
    id_ = f"arn/{'/'.join(path)}"
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(status, when, "one", path, name or "one", "" if name else id_, of, status, reason, id_)


def unplanned(plans: list[Plan], *events: Event) -> list[tuple[str, str, Danger]]:
    """What a witness reports of these events: path, action and danger."""
    messages: list[Message] = []
    witness = PlanWitness(messages.append)
    report = witness.compare_with(*plans)
    for each in events:
        report(each)
    reported = [each for each in messages if isinstance(each, UnplannedChange)]
    assert reported == witness.unplanned
    return [
        ("/".join((*each.path, each.logical_id)), each.action, each.impact.danger if each.impact else Danger.NONE)
        for each in reported
    ]


ASG, VOLUME, NESTED = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::Volume", "AWS::CloudFormation::Stack"
NOTHING = plan_of()


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([event("Vpc", "UPDATE_IN_PROGRESS"), event("Vpc", "UPDATE_COMPLETE")], [("Vpc", "update", Danger.NONE)]),
        ([event("Vpc", "CREATE_IN_PROGRESS", "A")], [("A/Vpc", "create", Danger.NONE)]),
        ([event("G", "UPDATE_IN_PROGRESS", of=ASG)], [("G", "update", Danger.DISRUPTIVE)]),
        ([event("G", "CREATE_IN_PROGRESS", of=ASG)], [("G", "create", Danger.NONE)]),
        ([event("V", "UPDATE_IN_PROGRESS", of=VOLUME)], [("V", "update", Danger.NONE)]),
        ([event("V", "UPDATE_IN_PROGRESS", of=VOLUME, reason=REPLACED)], [("V", "replace", Danger.DANGEROUS)]),
        (
            [
                event("V", "UPDATE_IN_PROGRESS", reason=REPLACED),
                event("", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
                event("V", "DELETE_IN_PROGRESS"),
                event("W", "DELETE_IN_PROGRESS", of=VOLUME),
            ],
            [("V", "replace", Danger.NONE), ("W", "delete", Danger.DANGEROUS)],
        ),
        ([event("AStack", "UPDATE_IN_PROGRESS", of=NESTED), event("", "UPDATE_IN_PROGRESS", "AStack", of=NESTED)], []),
        ([event("", "UPDATE_ROLLBACK_IN_PROGRESS"), event("Vpc", "UPDATE_IN_PROGRESS", "AStack")], []),
        # The next operation, which somebody else has begun.
        ([event("", "UPDATE_COMPLETE"), event("", "UPDATE_IN_PROGRESS"), event("Vpc", "UPDATE_IN_PROGRESS", "A")], []),
        (
            [
                event("", "UPDATE_ROLLBACK_IN_PROGRESS", "AStack"),
                event("Vpc", "UPDATE_IN_PROGRESS", "AStack"),
                event("Vpc", "UPDATE_IN_PROGRESS", "BStack"),
            ],
            [("BStack/Vpc", "update", Danger.NONE)],
        ),
    ],
)
def test_what_no_plan_names_is_said_once(events: list[Event], said: list[tuple[str, str, Danger]]) -> None:
    assert unplanned([NOTHING], *events) == said


@pytest.mark.parametrize(
    "plans",
    [
        [plan_of((("AStack",), "update", ("Vpc",)))],
        [NOTHING, plan_of((("AStack",), "update", ("Vpc",)))],
        [plan_of((("AStack",), "delete", ()))],
        [plan_of(((), "create", ()))],
    ],
    ids=["the plan", "one of the plans", "the whole stack", "the whole tree"],
)
def test_what_a_plan_names_is_not_said(plans: list[Plan]) -> None:
    assert unplanned(plans, event("Vpc", "UPDATE_IN_PROGRESS", "AStack")) == []


def without(plan: Plan, *names: str) -> Plan:
    """A plan that does not name these resources."""
    stacks = [
        dataclasses.replace(stack, changes=tuple(each for each in stack.changes if each.logical_id not in names))
        for stack in plan.stacks
    ]
    return dataclasses.replace(plan, stacks=tuple(stacks))


@pytest.mark.drill
def test_a_deployment_says_that_its_plan_was_wrong(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Operator(cloud)
    operator.deploy(ONE)
    prepare = deployment.prepare

    def prepare_wrong_plan(*arguments: Any, **options: Any) -> Preparation:
        preparation = prepare(*arguments, **options)
        return dataclasses.replace(preparation, plan=without(preparation.plan, GROUP))

    monkeypatch.setattr(deployment, "prepare", prepare_wrong_plan)
    changed = operator.wanted({**ONE, "nodeGroups": [{**ONE["nodeGroups"][0], "instanceType": "m5.large"}]})
    operator.messages.clear()
    finished = deployment.deploy(operator.account, changed, operator.waiting)
    assert finished.status == "UPDATE_COMPLETE"
    [said] = finished.unplanned
    assert (said.path, said.logical_id, said.action) == (NODES, GROUP, "update")
    before = operator.messages[operator.messages.index(said) - 1]
    assert isinstance(before, Event)
    assert (before.logical_id, before.status) == (GROUP, "UPDATE_IN_PROGRESS")
    [warning] = unplanned_change_lines(said)
    text = f"NodeGroupGeneralStack/{GROUP} ({ASG}) is updated; disruptive: the group's instances may be replaced"
    assert warning == f"\x1b[33m\x1b[1mwarning: \x1b[0mnot in the plan: {text}"
    report = "\n".join(map(str, finished_lines(finished)))
    assert "The plan was wrong: it did not name 1 changed resource." in report
    assert "`cfngen events --output json`" in report
