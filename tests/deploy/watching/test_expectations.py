"""What an operation is expected to do and how its parts add up, whatever each of them takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cfngen.deploy.watching.expectations import (
    SECONDS_BY_RESOURCE_TYPE,
    Expectation,
    expect_operation,
    usual_seconds,
)

CASES = Path(__file__).parents[2] / "golden" / "cases"

VPC, ADDRESS = "AWS::EC2::VPC", "AWS::EC2::EIP"
GROUP, STACK = "AWS::AutoScaling::AutoScalingGroup", "AWS::CloudFormation::Stack"


def body(parameters: Mapping[str, Any] | None = None, **resources: Any) -> dict[str, Any]:
    complete = {name: {"Type": each} if isinstance(each, str) else each for name, each in resources.items()}
    return {"Resources": complete, **({"Parameters": parameters} if parameters else {})}


def seconds(bodies: Mapping[tuple[str, ...], Any], actions: Any = "create") -> int:
    return expect_operation(bodies, actions).seconds


ONE = usual_seconds(VPC, "create")
TWO = usual_seconds(ADDRESS, "create")


@pytest.mark.parametrize(
    ("resources", "total"),
    [
        ({"A": VPC}, ONE),
        ({"A": VPC, "B": VPC}, ONE),
        ({"A": VPC, "B": {"Type": ADDRESS, "DependsOn": "A"}}, ONE + TWO),
        ({"A": VPC, "B": {"Type": ADDRESS, "DependsOn": ["A"]}}, ONE + TWO),
        ({"A": VPC, "B": {"Type": ADDRESS, "Properties": {"X": {"Ref": "A"}}}}, ONE + TWO),
        ({"B": {"Type": ADDRESS, "Properties": {"X": {"Fn::GetAtt": ["A", "Y"]}}}, "A": VPC}, ONE + TWO),
        ({"A": VPC, "B": {"Type": ADDRESS, "Properties": {"X": {"Ref": "AWS::Region"}}}}, max(ONE, TWO)),
        (
            {
                "A": VPC,
                "B": {"Type": ADDRESS, "DependsOn": "A"},
                "C": {"Type": VPC, "DependsOn": ["A", "B"]},
                "D": {"Type": VPC, "DependsOn": "A"},
            },
            2 * ONE + TWO,
        ),
        # A circle, which CloudFormation refuses, is no endless search.
        ({"A": {"Type": VPC, "DependsOn": "B"}, "B": {"Type": VPC, "DependsOn": "A"}}, 2 * ONE),
        ({}, 0),
    ],
)
def test_an_operation_takes_as_long_as_its_longest_chain(resources: dict[str, Any], total: int) -> None:
    assert seconds({(): body(**resources)}) == total
    assert ONE
    assert TWO


def test_a_nested_stack_takes_as_long_as_what_is_in_it() -> None:
    bodies = {
        (): body(Child=STACK, After={"Type": ADDRESS, "DependsOn": "Child"}),
        ("Child",): body(A=VPC, B={"Type": VPC, "DependsOn": "A"}),
    }
    expected = expect_operation(bodies, "create")
    assert expected.seconds == 2 * ONE + TWO
    assert [(resource.path, resource.logical_id) for resource in expected.resources] == [
        ((), "Child"), ((), "After"), (("Child",), "A"), (("Child",), "B"),
    ]  # fmt: skip
    assert [each.logical_id for each in expected.of(("Child",))] == ["A", "B"]
    known = expected.find(("Child",), "A")
    assert known is not None
    assert (known.type, known.action, known.seconds, known.signals) == (VPC, "create", ONE, 0)
    assert expected.find((), "A") is None
    child = expected.find((), "Child")
    assert child is not None
    assert child.seconds == 0


def test_only_what_is_worked_on_takes_time() -> None:
    bodies = {(): body(A=VPC, B={"Type": ADDRESS, "DependsOn": "A"})}
    expected = expect_operation(bodies, {((), "B"): "update"})
    assert [(resource.logical_id, resource.action) for resource in expected.resources] == [("B", "update")]
    assert expected.seconds == usual_seconds(ADDRESS, "update")
    assert expect_operation(bodies, {}).seconds == 0
    assert Expectation().seconds == 0


def test_a_replacement_takes_as_long_as_a_creation() -> None:
    for kind in (VPC, ADDRESS, GROUP):
        assert usual_seconds(kind, "replace") == usual_seconds(kind, "create")
    balancer = "AWS::ElasticLoadBalancingV2::LoadBalancer"
    assert len({usual_seconds(balancer, action) for action in ("create", "update", "delete")}) == 3
    assert usual_seconds("AWS::New::Thing", "create") == usual_seconds("AWS::New::Thing", "delete") > 0


def test_every_type_in_templates_has_times_of_its_own() -> None:
    files = [*CASES.glob("*/differences.json"), *CASES.glob("*/expected/*.json")]
    types = {kind for file in files for kind in re.findall(r'"Type": "(AWS::\w+::\w+)"', file.read_text())}
    assert types - SECONDS_BY_RESOURCE_TYPE.keys() == {STACK}


def test_instances_of_a_group_are_replaced_one_after_another() -> None:
    once = usual_seconds(GROUP, "update", 1)
    assert usual_seconds(GROUP, "update", 0) == once > 0
    assert usual_seconds(GROUP, "update", 3) == 3 * once
    assert usual_seconds(GROUP, "create", 3) == usual_seconds(GROUP, "create", 1)
    assert usual_seconds(VPC, "update", 3) == usual_seconds(VPC, "update")


def group(**more: Any) -> dict[str, Any]:
    rolling = {"AutoScalingRollingUpdate": {"WaitOnResourceSignals": True}}
    return {"Type": GROUP, "Properties": {"MinSize": "3"}, "UpdatePolicy": rolling, **more}


def signalled(count: Any) -> dict[str, Any]:
    return {"CreationPolicy": {"ResourceSignal": {"Count": count} if count is not None else {"Timeout": "PT15M"}}}


@pytest.mark.parametrize(
    ("resource", "action", "signals"),
    [
        (group(**signalled(2)), "create", 2),
        (group(**signalled("2")), "create", 2),
        (group(**signalled(None)), "create", 1),
        (group(**signalled({"Ref": "Known"})), "create", 7),
        (group(**signalled({"Ref": "Unknown"})), "create", 0),
        (group(**signalled({"Fn::Sub": "x"})), "create", 0),
        (group(**signalled("many")), "create", 0),
        (group(**signalled(2)), "update", 2),
        (group(**signalled(2)), "delete", 0),
        (group(), "create", 0),
        (group(), "update", 3),
        (group(), "delete", 0),
        (group(Properties={}), "update", 1),
        (group(UpdatePolicy={}), "update", 0),
        (group(UpdatePolicy={"AutoScalingRollingUpdate": {"WaitOnResourceSignals": False}}), "update", 0),
    ],
)
def test_of_how_many_instances_signals_are_waited_for(resource: dict[str, Any], action: Any, signals: int) -> None:
    parameters = {"Known": {"Type": "Number", "Default": 7}, "Unknown": {"Type": "Number"}}
    [found] = expect_operation({(): body(parameters, Group=resource)}, action).resources
    assert found.signals == signals


def test_values_of_parameters_count_where_they_are_known() -> None:
    size = {"Size": {"Type": "Number", "Default": 1}}
    child = {"Type": STACK, "Properties": {"Parameters": {}}}
    inner = body({**size, "Other": {"Type": "Number", "Default": 9}}, Group=group(**signalled({"Ref": "Size"})))

    def signals(passed: Mapping[str, Any], **values: str) -> int:
        root = body(size, Child={**child, "Properties": {"Parameters": passed}})
        found = expect_operation({(): root, ("Child",): inner}, "create", values).find(("Child",), "Group")
        assert found is not None
        return found.signals

    assert signals({}) == 1
    assert signals({"Size": {"Ref": "Size"}}) == 1
    assert signals({"Size": {"Ref": "Size"}}, Size="5") == 5
    # Of another stack's parameter the root's value says nothing.
    assert signals({}, Size="5") == 1
    assert signals({"Size": "4"}) == 4
    assert signals({"Size": 4}) == 4
    # What another stack supplies is not known before it is there.
    assert signals({"Size": {"Fn::GetAtt": ["Other", "Outputs.Size"]}}) == 0
    assert signals({"Size": {"Ref": "Strange"}}, Strange="8") == 0


def test_draining_takes_its_time_where_instances_leave() -> None:
    hook = {"LifecycleHookSpecificationList": [{}], "MinSize": "3"}

    def took(action: Any, **properties: Any) -> int:
        with_hook, without = (
            expect_operation({(): body(Group=group(Properties={"MinSize": "3", **more}))}, action).seconds
            for more in (hook, {})
        )
        return with_hook - without

    assert took("create") == 0
    once = took("delete")
    assert once > 0
    assert took("update") == 3 * once
    single = expect_operation({(): body(Group=group(UpdatePolicy={}, Properties=hook))}, "update").seconds
    assert single - usual_seconds(GROUP, "update") == once


def test_a_group_that_is_not_waited_for_is_there_soon() -> None:
    awaited = expect_operation({(): body(Group=group(**signalled(1)))}, "create").seconds
    assert 0 < expect_operation({(): body(Group=group())}, "create").seconds < awaited == usual_seconds(GROUP, "create")
    assert expect_operation({(): body(Group=group())}, "update").seconds == usual_seconds(GROUP, "update", 3)
