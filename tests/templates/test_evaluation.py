"""Expressions evaluated as far as values are known, and what then differs between two of them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from test_expressions import expressions

from cfngen.templates.evaluation import (
    EvaluatedTemplate,
    calls,
    contains_call,
    differences,
    evaluate_stacks,
    known_value,
    with_placeholders,
)

VPC, ARN = {"Ref": "Vpc"}, {"Fn::GetAtt": ["Key", "Arn"]}
TEMPLATE = {
    "Parameters": {
        "Name": {"Type": "String", "Default": "unused"},
        "Count": {"Type": "Number", "Default": 3},
        "Zones": {"Type": "CommaDelimitedList"},
        "Subnets": {"Type": "List<AWS::EC2::Subnet::Id>"},
        "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/a/path"},
        "Secret": {"Type": "String", "NoEcho": "true", "Default": "unused"},
        "Passed": {"Type": "String", "Default": "unused"},
    },
    "Mappings": {"Sizes": {"small": {"gib": "20"}}},
    "Conditions": {
        "Yes": {"Fn::Equals": [{"Ref": "Name"}, "blue"]},
        "No": {"Fn::Not": [{"Condition": "Yes"}]},
        "Unknown": {"Fn::Equals": [{"Ref": "Passed"}, "x"]},
        "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "Unknown"}]},
        "None": {"Fn::And": [{"Condition": "No"}, {"Condition": "Unknown"}]},
        "One": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "Unknown"}]},
    },
    "Resources": {
        "Always": {"Type": "X", "DependsOn": "Vpc", "Properties": {"A": {"Ref": "Name"}}},
        "Never": {"Type": "X", "Condition": "No"},
        "Perhaps": {"Type": "X", "Condition": "Unknown"},
    },
}
VALUES = {"Name": "blue", "Zones": "a,b", "Secret": "never shown", "Passed": None, "AWS::Region": "us-west-2"}
EVALUATED = EvaluatedTemplate(TEMPLATE, VALUES)


def joined(*parts: Any) -> dict[str, Any]:
    return {"Fn::Join": ["", list(parts)]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Name"}, "blue"),
        ({"Ref": "Count"}, "3"),
        ({"Ref": "Zones"}, ["a", "b"]),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        # What is looked up, secret, passed without being known, or missing stays what it is.
        *(({"Ref": name}, {"Ref": name}) for name in ("Image", "Secret", "Passed", "Subnets", "AWS::StackName")),
        (VPC, VPC),
        ({"Fn::GetAtt": "Key.Arn"}, ARN),
        ({"A": [{"Ref": "AWS::NoValue"}, 1], "B": {"Ref": "AWS::NoValue"}}, {"A": [1]}),
        ({"Fn::Sub": "${Name}-${Count}"}, "blue-3"),
        ({"Fn::Sub": "${!Name}"}, "${Name}"),
        ({"Fn::Sub": ["${A}/${Name}", {"A": {"Ref": "Count"}}]}, "3/blue"),
        ({"Fn::Sub": "a-${Name}-${Vpc}-${Key.Arn}"}, joined("a-blue-", VPC, "-", ARN)),
        ({"Fn::Sub": "${Vpc}"}, VPC),
        ({"Fn::Join": ["-", ["a", {"Ref": "Name"}, True]]}, "a-blue-true"),
        ({"Fn::Join": ["-", ["a", VPC, "b"]]}, joined("a-", VPC, "-b")),
        ({"Fn::Join": ["", [{"Fn::Sub": "x${Vpc}y"}, "z"]]}, joined("x", VPC, "yz")),
        ({"Fn::Join": ["", []]}, ""),
        ({"Fn::Join": [",", {"Ref": "Zones"}]}, "a,b"),
        ({"Fn::Join": [",", {"Ref": "Subnets"}]}, {"Fn::Join": [",", {"Ref": "Subnets"}]}),
        ({"Fn::Select": [1, {"Ref": "Zones"}]}, "b"),
        ({"Fn::Select": ["0", [VPC, "b"]]}, VPC),
        ({"Fn::Select": [2, {"Ref": "Zones"}]}, {"Fn::Select": [2, ["a", "b"]]}),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Split": [",", VPC]}, {"Fn::Split": [",", VPC]}),
        ({"Fn::FindInMap": ["Sizes", "small", "gib"]}, "20"),
        ({"Fn::FindInMap": ["Sizes", "large", "gib"]}, {"Fn::FindInMap": ["Sizes", "large", "gib"]}),
        ({"Fn::Base64": {"Ref": "Name"}}, base64.b64encode(b"blue").decode()),
        ({"Fn::Base64": {"Fn::Sub": "${Name}${Vpc}"}}, {"Fn::Base64": joined("blue", VPC)}),
        ({"Fn::If": ["Yes", {"Ref": "Name"}, 2]}, "blue"),
        ({"Fn::If": ["No", 1, 2]}, 2),
        ({"Fn::If": ["Both", {"Ref": "Name"}, 2]}, {"Fn::If": ["Both", "blue", 2]}),
        ({"Fn::If": ["None", 1, 2]}, 2),
        ({"Fn::If": ["One", 1, 2]}, 1),
        ({"Fn::If": ["Missing", 1, 2]}, {"Fn::If": ["Missing", 1, 2]}),
        ({"Fn::GetStackOutput": {"StackName": {"Ref": "Name"}}}, {"Fn::GetStackOutput": {"StackName": "blue"}}),
        ({"Condition": {"StringEquals": {"a": {"Ref": "Name"}}}}, {"Condition": {"StringEquals": {"a": "blue"}}}),
    ],
)
def test_what_is_known_is_filled_in_and_the_rest_has_one_form(value: Any, expected: Any) -> None:
    assert EVALUATED.evaluate(value) == expected


def test_a_resource_is_as_its_condition_says() -> None:
    assert EVALUATED.resources == {
        "Always": {"Type": "X", "DependsOn": "Vpc", "Properties": {"A": "blue"}},
        "Perhaps": {"Type": "X"},
    }


@given(expressions)
def test_evaluated_values_stay_as_they_are(value: Any) -> None:
    evaluated = EVALUATED.evaluate(value)
    assert EVALUATED.evaluate(evaluated) == evaluated
    assert list(differences(evaluated, evaluated)) == []
    assert contains_call(evaluated) is (known_value(evaluated) is None and evaluated is not None)


def test_nested_stacks_have_what_the_root_passes_to_them() -> None:
    image = TEMPLATE["Parameters"]["Image"]
    child = {"Parameters": {**{name: {"Type": "String", "Default": "d"} for name in ("A", "B", "C")}, "Image": image}}
    passed = {"A": {"Ref": "Name"}, "B": {"Fn::GetAtt": ["Other", "Outputs.X"]}, "Image": "/a/path"}
    root = {**TEMPLATE, "Resources": {"Child": {"Type": "S", "Properties": {"Parameters": passed}}}}
    stacks = evaluate_stacks({"": root, "Child": child}, VALUES)
    assert sorted(stacks) == ["", "Child"]
    # The name of a stack is its own; the region is the same.
    expected = {"A": "blue", "B": {"Fn::GetAtt": ["Other", "Outputs.X"]}, "C": "d", "AWS::Region": "us-west-2"}
    assert stacks["Child"].values == expected
    # What is passed for an image is where CloudFormation looks it up.
    [_, found] = evaluate_stacks({"": root, "Child": child}, VALUES, {"Child": {"Image": "ami-1"}}).values()
    assert found.values == {**expected, "Image": "ami-1"}
    assert evaluate_stacks({"Child": child}, VALUES) == {}


def test_what_a_stack_gets_from_another_one_refers_to_its_resources() -> None:
    outputs = {"Id": {"Value": VPC}, "Name": {"Value": {"Fn::Sub": "${P}-${Vpc}"}}}
    supplier = {"Parameters": {"P": {"Type": "String"}}, "Outputs": outputs}
    types = {"Id": "String", "Name": "String", "Lost": "String", "List": "CommaDelimitedList", "Known": "List<Number>"}
    user = {"Parameters": {name: {"Type": type_} for name, type_ in types.items()}}
    taken = {name: {"Fn::GetAtt": ["Supplier", f"Outputs.{name}"]} for name in ("Id", "Name", "Lost")}
    lists = {"List": {"Fn::Join": [",", ["a", taken["Id"]]]}, "Known": ["1", "2"]}
    passed = {"Supplier": {"P": {"Ref": "Name"}}, "User": {**taken, **lists}}
    resources = {name: {"Type": "S", "Properties": {"Parameters": parameters}} for name, parameters in passed.items()}
    stacks = evaluate_stacks({"User": user, "": {**TEMPLATE, "Resources": resources}, "Supplier": supplier}, VALUES)
    assert stacks["User"].values == {
        "AWS::Region": "us-west-2",
        "Id": VPC,
        "Name": joined("blue-", VPC),
        "Lost": taken["Lost"],
        "List": {"Fn::Split": [",", joined("a,", VPC)]},
        "Known": ["1", "2"],
    }
    assert stacks["User"].evaluate({"Fn::Sub": "x${Name}"}) == joined("xblue-", VPC)


def test_stacks_that_need_each_other_end_somewhere() -> None:
    template = {"Parameters": {"P": {"Type": "String"}}, "Outputs": {"O": {"Value": {"Ref": "P"}}}}
    resources = {
        name: {"Type": "S", "Properties": {"Parameters": {"P": {"Fn::GetAtt": [other, "Outputs.O"]}}}}
        for name, other in (("A", "B"), ("B", "A"))
    }
    stacks = evaluate_stacks({"": {"Resources": resources}, "A": template, "B": template}, {})
    assert stacks["A"].values == stacks["B"].values == {"P": {"Fn::GetAtt": ["A", "Outputs.O"]}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"A": 1}, {"A": "1"}, []),
        ({"A": True}, {"A": "true"}, []),
        ({"A": 1}, {"A": 2}, [("/A", 1, 2)]),
        ({"A": 1}, {}, [("/A", 1, None)]),
        ({"A": [1]}, {"A": [1, {"B": 2}]}, [("/A/1", None, {"B": 2})]),
        ({"A": {"B": 1}}, {"A": {"B": 2, "C": 3}}, [("/A/B", 1, 2), ("/A/C", None, 3)]),
        ({"A": VPC}, {"A": ARN}, [("/A", VPC, ARN)]),
        ({"A": VPC}, {"A": VPC}, []),
        ({"A": [1]}, {"A": "1"}, [("/A", [1], "1")]),
    ],
)
def test_what_differs(old: Any, new: Any, expected: list[Any]) -> None:
    assert list(differences(old, new)) == expected


def test_calls_that_remain_are_found_and_written_as_people_write_them() -> None:
    value = {"A": [VPC, 1], "B": joined("x", VPC, "-", ARN), "C": {"Fn::GetAZs": ""}, "D": {"Fn::Base64": joined(VPC)}}
    assert [path for path, _ in calls(value)] == ["/A/0", "/B", "/C", "/D"]
    assert with_placeholders(value) == {
        "A": ["${Vpc}", 1],
        "B": "x${Vpc}-${Key.Arn}",
        "C": "${Fn::GetAZs}",
        "D": "${Vpc}",
    }
