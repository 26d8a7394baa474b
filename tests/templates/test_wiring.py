"""Parameters find their suppliers by name, or generation stops."""

from __future__ import annotations

import pytest

from cfngen.cluster.model import Cluster
from cfngen.templates.expressions import substitute
from cfngen.templates.stack import Stack
from cfngen.templates.wiring import WiringError, wire


def stack(name: str) -> Stack:
    return Stack(Cluster(), name, f"{name.title()}Stack", __name__, name)


def test_a_wired_parameter_takes_the_output_of_an_earlier_stack() -> None:
    first, second = stack("first"), stack("second")
    first.output("Thing", "value", "a thing")
    second.parameter_from_other_stack("Thing", description="a thing")
    wiring = wire([first, second])
    assert wiring.suppliers["Thing"].stack is first
    assert wiring.root_parameters == {}


def test_a_parameter_nobody_supplies_is_refused() -> None:
    second = stack("second")
    second.parameter_from_other_stack("Thing", description="a thing")
    with pytest.raises(WiringError, match="second needs Thing, but no earlier stack has this output"):
        wire([second])


def test_a_later_stack_does_not_supply_an_earlier_one() -> None:
    first, second = stack("first"), stack("second")
    first.parameter_from_other_stack("Thing", description="a thing")
    second.output("Thing", "value", "a thing")
    with pytest.raises(WiringError, match="first needs Thing"):
        wire([first, second])


def test_an_output_may_be_there_only_once() -> None:
    first, second = stack("first"), stack("second")
    for each in (first, second):
        each.output("Thing", "value", "a thing")
    with pytest.raises(WiringError, match="second and first both have the output Thing"):
        wire([first, second])


def test_stacks_that_ask_for_the_same_thing_in_the_same_words_share_the_parameter() -> None:
    first, second = stack("first"), stack("second")
    for each in (first, second):
        each.parameter("Zone", label="Zone", parameter_group="Network", description="zone", default="a")
    assert list(wire([first, second]).root_parameters) == ["Zone"]


def test_stacks_that_ask_otherwise_for_the_same_thing_are_refused() -> None:
    first, second = stack("first"), stack("second")
    first.parameter("Zone", label="Zone", parameter_group="Network", description="zone", default="a")
    second.parameter("Zone", label="Zone", parameter_group="Network", description="zone", default="b")
    with pytest.raises(WiringError, match="second and an earlier stack define the parameter Zone differently"):
        wire([first, second])


KNOWN = {
    "Vpc": {"Ref": "TheVpc"},
    "Arn": {"Fn::GetAtt": ["Key", "Arn"]},
    "Text": "plain",
    "Joined": {"Fn::Join": ["-", ["a", {"Ref": "B"}]]},
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"Ref": "Vpc"}, {"Ref": "TheVpc"}),
        ({"Ref": "Other"}, {"Ref": "Other"}),
        ({"A": [{"Ref": "Arn"}, 1, "x"]}, {"A": [{"Fn::GetAtt": ["Key", "Arn"]}, 1, "x"]}),
        ({"Fn::Sub": "x-${Vpc}-${AWS::Region}"}, {"Fn::Sub": "x-${TheVpc}-${AWS::Region}"}),
        ({"Fn::Sub": "${Arn}/*"}, {"Fn::Sub": "${Key.Arn}/*"}),
        ({"Fn::Sub": "${Text}/*"}, {"Fn::Sub": "plain/*"}),
        ({"Fn::Sub": "${!Vpc}"}, {"Fn::Sub": "${!Vpc}"}),
        ({"Fn::Sub": "${Joined}"}, {"Fn::Sub": ["${Joined}", {"Joined": KNOWN["Joined"]}]}),
        ({"Fn::Sub": ["${Mine}", {"Mine": {"Ref": "Vpc"}}]}, {"Fn::Sub": "${TheVpc}"}),
    ],
)
def test_substitution_replaces_references_wherever_they_stand(before: object, after: object) -> None:
    assert substitute(before, KNOWN) == after
