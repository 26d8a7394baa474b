"""How long each step takes and what it costs, estimated before anything is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from cfngen.deploy.plan.costs.costs import cost_differences
from cfngen.deploy.preflight.quotas.demand import Demand, count_demand
from cfngen.deploy.watching.expectations import ResourceAction, expect_operation
from cfngen.rehearse.expectations import Expectations, expectation_key
from cfngen.rehearse.operations import NameNormalizer, template_bodies
from cfngen.rehearse.steps import DELETE, PARAMETER_VALUES, Deployable, RehearsalStep, StepAction, Zones, ends_stack
from cfngen.text import plural_form

PLANNING_MINUTES = 2
"""Minutes that CloudFormation needs to create and delete a change set with nested stacks."""
_ACTION_BY_CHANGE: Mapping[str, ResourceAction] = {
    "add": "create",
    "update": "update",
    "replace": "replace",
    "remove": "delete",
}


@dataclass(frozen=True)
class Outline:
    """A step with its estimated duration and costs.

    Attributes:
        number: the step's number, from 1.
        name: the step's name, for `--up-to`.
        title: what the step does.
        shows: what can be verified only in AWS.
        minutes: how long it usually takes, including the deletion of the stack.
        units: the resources that are billed meanwhile, e.g. `1 instance (t3.medium)`; empty if there are none.
    """

    number: int
    name: str
    title: str
    shows: str
    minutes: int
    units: tuple[str, ...]


def outline_steps(steps: Sequence[RehearsalStep], zones: Zones, expectations: Expectations) -> tuple[Outline, ...]:
    """Return the outlines of steps; which resources an update changes follows from the expectations."""
    return tuple(
        Outline(
            number=number,
            name=step.name,
            title=step.title,
            shows=step.shows,
            minutes=_total_minutes(step, steps, zones, expectations),
            units=_billed_units(step, zones),
        )
        for number, step in enumerate(steps, 1)
    )


def usual_minutes(step: RehearsalStep, action: StepAction, zones: Zones, expectations: Expectations) -> int:
    """Return how long an operation usually takes."""
    if action.verb == "plan":
        return PLANNING_MINUTES
    # A deletion deletes what an earlier action of the step has deployed.
    make = action.make or next(earlier.make for earlier in step.actions if earlier.make)
    bodies = template_bodies(make_deployable(make, zones).documents)
    if action.verb == "delete":
        return ceil(expect_operation(bodies, "delete", PARAMETER_VALUES).seconds / 60)
    expected = expectations.get(expectation_key(step.stack, action.name))
    if expected is None or expected.status == "CREATE_COMPLETE":
        return ceil(expect_operation(bodies, "create", PARAMETER_VALUES).seconds / 60)
    # A change is a text such as `add VpcStack/Vpc (AWS::EC2::VPC)`.
    change_by_resource = {name: action for action, name, _ in (change.split(" ") for change in expected.changes)}
    names = NameNormalizer(zones)
    actions = {
        (path, logical_id): _ACTION_BY_CHANGE[change_by_resource[names.path((*path, logical_id))]]
        for path, body in bodies.items()
        for logical_id in body["Resources"]
        if names.path((*path, logical_id)) in change_by_resource
    }
    return ceil(expect_operation(bodies, actions, PARAMETER_VALUES).seconds / 60)


@lru_cache(maxsize=16)
def make_deployable(make: Callable[[Zones], Deployable], zones: Zones) -> Deployable:
    """Return the cluster and templates of an action; cached, as they are the same each time."""
    return make(zones)


def _total_minutes(
    step: RehearsalStep, steps: Sequence[RehearsalStep], zones: Zones, expectations: Expectations
) -> int:
    """Return how long a step usually takes, with the deletion of the stack if no later step uses it."""
    is_stack_deleted = ends_stack(step, steps) and step.actions[-1].verb != "plan"
    actions = [*step.actions, *([DELETE] if is_stack_deleted else [])]
    return sum(usual_minutes(step, action, zones, expectations) for action in actions)


def _billed_units(step: RehearsalStep, zones: Zones) -> tuple[str, ...]:
    """Return the resources of a step that AWS bills, e.g. `1 instance (t3.medium)`."""
    # A change set creates nothing, and all deployments of a step have the same billed resources.
    make = next((action.make for action in step.actions if action.verb == "deploy"), None)
    if make is None:
        return ()
    documents = make_deployable(make, zones).documents
    parameters = next(document for document in documents if document.children).body.get("Parameters", {})
    defaults = {name: str(parameter["Default"]) for name, parameter in parameters.items() if "Default" in parameter}
    costs = cost_differences(Demand(), count_demand(documents, {**defaults, **PARAMETER_VALUES}))
    return tuple(f"{cost.quantity} {_unit_name(cost.unit, cost.quantity)} ({cost.what})" for cost in costs)


def _unit_name(unit: str, quantity: int) -> str:
    """Return the name of a billed unit in the singular or plural; GiB has no plural."""
    return unit if quantity == 1 or unit == "GiB" else plural_form(unit)
