"""cfngen's rules about stacks: signals and pauses, export names, nested parameters, launch configurations."""

from __future__ import annotations

import copy
from typing import Any

import pytest

PARAMETERS = {"Free": {"Type": "String"}, "Number": {"Type": "Number"}}
HANDLE = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
LAUNCH_TEMPLATE = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": {}}}
GROUP_OF_INSTANCES = {
    "Type": "AWS::AutoScaling::AutoScalingGroup",
    "Properties": {"MinSize": "1", "MaxSize": "1", "AvailabilityZones": ["us-west-2a"]},
}


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"ResourceSignal": {"Count": 1, "Timeout": "PT15M"}}, None),
        ({"ResourceSignal": {"Count": "1", "Timeout": "PT1H30M5S"}}, None),
        ({"ResourceSignal": {"Count": {"Ref": "Number"}, "Timeout": {"Ref": "Free"}}}, None),
        ({"ResourceSignal": {"Timeout": "PT12H"}}, None),
        ({"AutoScalingCreationPolicy": {"MinSuccessfulInstancesPercent": 50}}, None),
        ({"ResourceSignal": {"Timeout": "15m"}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Timeout": "PT"}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Timeout": "P1D"}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Timeout": "PT5M3H"}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Timeout": 15}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Timeout": "PT12H1S"}}, ("ResourceSignal", "Timeout")),
        ({"ResourceSignal": {"Count": "many"}}, ("ResourceSignal", "Count")),
        ({"ResourceSignal": {"Timout": "PT5M"}}, ("ResourceSignal", "Timout")),
        ({"ResourceSignals": {}}, ("ResourceSignals",)),
        (
            {"AutoScalingCreationPolicy": {"MinSuccessfulInstancesPercent": 101}},
            ("AutoScalingCreationPolicy", "MinSuccessfulInstancesPercent"),
        ),
    ],
)
def test_creation_policies(reported_paths: Any, policy: dict[str, Any], path: tuple[str, ...] | None) -> None:
    template = {"Parameters": PARAMETERS, "Resources": {"Group": {**GROUP_OF_INSTANCES, "CreationPolicy": policy}}}
    assert reported_paths("E9015", template) == ([("Resources", "Group", "CreationPolicy", *path)] if path else [])


def test_creation_policy_where_none_can_be(reported_paths: Any) -> None:
    resource = {**LAUNCH_TEMPLATE, "CreationPolicy": {"ResourceSignal": {"Timeout": "PT5M"}}}
    assert reported_paths("E9015", {"Resources": {"Template": resource}}) == [
        ("Resources", "Template", "CreationPolicy")
    ]


@pytest.mark.parametrize(
    ("pause", "refused"), [("PT1H", False), ("PT61M", True), ("10 minutes", True), ("PT0S", False)]
)
def test_pause_times(reported_paths: Any, pause: str, refused: bool) -> None:
    group = {**GROUP_OF_INSTANCES, "UpdatePolicy": {"AutoScalingRollingUpdate": {"PauseTime": pause}}}
    assert bool(reported_paths("E9015", {"Resources": {"Group": group}})) == refused


def exported(name: Any, **more: Any) -> dict[str, Any]:
    return {"Value": "x", "Export": {"Name": name}, **more}


@pytest.mark.parametrize(
    ("outputs", "refused"),
    [
        ({"A": exported("one"), "B": exported("two")}, False),
        ({"A": exported("one"), "B": exported("one")}, True),
        ({"A": exported({"Fn::Sub": "${AWS::StackName}-a"}), "B": exported({"Fn::Sub": "${AWS::StackName}-a"})}, True),
        ({"A": exported("one", Condition="Yes"), "B": exported("one", Condition="No")}, False),
        ({"A": exported("one", Condition="Yes"), "B": exported("one", Condition="Yes")}, True),
        ({"A": exported("one"), "B": exported("one", Condition="Yes")}, True),
        ({"A": {"Value": "x"}, "B": {"Value": "x"}}, False),
    ],
)
def test_export_names(reported_paths: Any, outputs: dict[str, Any], refused: bool) -> None:
    conditions = {
        "Yes": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-west-2"]},
        "No": {"Fn::Not": [{"Condition": "Yes"}]},
    }
    expected = [("Outputs", "B", "Export", "Name")] if refused else []
    assert reported_paths("E9016", {"Conditions": conditions, "Outputs": outputs}) == expected


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("one", "one", True),
        ({"Fn::Sub": "${AWS::Region}-one"}, {"Fn::Sub": "${AWS::Region}-one"}, True),
        ({"Fn::Sub": "${AWS::StackName}-one"}, {"Fn::Sub": "${AWS::StackName}-one"}, False),
        ({"Ref": "AWS::StackName"}, {"Ref": "AWS::StackName"}, False),
        ("one", "two", False),
    ],
)
def test_export_names_of_nested_stacks(reported_paths: Any, first: Any, second: Any, refused: bool) -> None:
    root = {"Resources": {name: nested_stack(f"{name}.json") for name in ("One", "Two")}}
    children = {"One": {"Outputs": {"A": exported(first)}}, "Two": {"Outputs": {"B": exported(second)}}}
    expected = [("Resources", "Two", "Properties", "TemplateURL")] if refused else []
    assert reported_paths("E9016", root, **children) == expected


def nested_stack(url: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {"TemplateURL": url, **({} if parameters is None else {"Parameters": parameters})}
    return {"Type": "AWS::CloudFormation::Stack", "Properties": properties}


def test_launch_configurations(reported_paths: Any) -> None:
    configuration = {
        "Type": "AWS::AutoScaling::LaunchConfiguration",
        "Properties": {"ImageId": "ami-1", "InstanceType": "t3.medium", "MetadataOptions": {"HttpTokens": "required"}},
    }
    group = copy.deepcopy(GROUP_OF_INSTANCES)
    group["Properties"]["LaunchConfigurationName"] = {"Ref": "Configuration"}
    assert reported_paths("W9017", {"Resources": {"Configuration": configuration, "Group": group}}) == [
        ("Resources", "Group", "Properties", "LaunchConfigurationName"),
        ("Resources", "Configuration"),
    ]
    assert reported_paths("W9017", {"Resources": {"Template": LAUNCH_TEMPLATE, "Group": GROUP_OF_INSTANCES}}) == []


@pytest.mark.parametrize(
    ("definition", "value", "refused"),
    [
        ({"Type": "String"}, "text", False),
        ({"Type": "String"}, ["a", "b"], True),
        ({"Type": "String"}, {"Ref": "Zones"}, True),
        ({"Type": "String"}, {"Fn::Join": [",", {"Ref": "Zones"}]}, False),
        ({"Type": "String"}, {"Fn::GetAZs": ""}, True),
        ({"Type": "Number"}, "5", False),
        ({"Type": "Number"}, 5, False),
        ({"Type": "Number"}, "-1.5", False),
        ({"Type": "Number"}, "five", True),
        ({"Type": "Number"}, {"Ref": "Free"}, False),
        ({"Type": "Number"}, {"Ref": "Vpc"}, True),
        ({"Type": "AWS::EC2::VPC::Id"}, {"Ref": "Vpc"}, False),
        ({"Type": "AWS::EC2::Subnet::Id"}, {"Ref": "Vpc"}, True),
        ({"Type": "String", "AllowedValues": ["a", "b"]}, "b", False),
        ({"Type": "String", "AllowedValues": ["a", "b"]}, "c", True),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a", "b"]}, "a, b", False),
        ({"Type": "String", "AllowedValues": ["true", "false"]}, True, False),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc", False),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc1", True),
        ({"Type": "String", "AllowedPattern": r"\p{Alpha}+"}, "abc", False),
    ],
)
def test_values_of_nested_parameters(
    reported_paths: Any, definition: dict[str, Any], value: Any, refused: bool
) -> None:
    template = {
        "Parameters": {
            "Free": {"Type": "String"},
            "Vpc": {"Type": "AWS::EC2::VPC::Id"},
            "Zones": {"Type": "List<AWS::EC2::AvailabilityZone::Name>"},
        },
        "Resources": {"Nested": nested_stack("child.json", {"Wanted": value})},
    }
    expected = [("Resources", "Nested", "Properties", "Parameters", "Wanted")] if refused else []
    assert reported_paths("E9018", template, child={"Parameters": {"Wanted": definition}}) == expected


def test_missing_nested_parameters(reported_paths: Any) -> None:
    child = {"Parameters": {"Needed": {"Type": "String"}, "Optional": {"Type": "String", "Default": ""}}}
    without = {"Resources": {"Nested": nested_stack("child.json")}}
    assert reported_paths("E9018", without, child=child) == [("Resources", "Nested", "Properties", "TemplateURL")]
    assert reported_paths("E9018", without, child={}) == []
    empty = {"Resources": {"Nested": nested_stack("child.json", {})}}
    assert reported_paths("E3043", empty, child=child) == [("Resources", "Nested", "Properties", "Parameters")]


KNOWN_LATER = [{"Fn::GetAtt": ["Wait", "Arn"]}, {"Ref": "Wait"}, {"Fn::Sub": "x-${Wait}"}, {"Fn::Sub": "${Wait.Arn}"}]


@pytest.mark.parametrize("value", KNOWN_LATER)
@pytest.mark.parametrize(
    ("definition", "refused"),
    [
        ({"Type": "String"}, False),
        ({"Type": "CommaDelimitedList"}, False),
        ({"Type": "AWS::EC2::VPC::Id"}, True),
        ({"Type": "List<AWS::EC2::Subnet::Id>"}, True),
        ({"Type": "Number"}, True),
        ({"Type": "String", "AllowedPattern": "^vpc-.*$"}, True),
        ({"Type": "String", "AllowedValues": ["a"]}, True),
    ],
)
def test_parameters_that_take_what_is_known_later(
    reported_paths: Any, value: Any, definition: dict[str, Any], refused: bool
) -> None:
    template = {"Resources": {"Wait": HANDLE, "Nested": nested_stack("child.json", {"Later": value})}}
    expected = [("Resources", "Nested", "Properties", "Parameters", "Later")] if refused else []
    assert reported_paths("E9019", template, child={"Parameters": {"Later": definition}}) == expected


def test_what_a_person_types_keeps_its_type(reported_paths: Any) -> None:
    vpc = {"Type": "AWS::EC2::VPC::Id"}
    template = {"Parameters": {"Vpc": vpc}, "Resources": {"Nested": nested_stack("child.json", {"V": {"Ref": "Vpc"}})}}
    assert reported_paths("E9019", template, child={"Parameters": {"V": vpc}}) == []


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ({"Ref": "Later"}, False),
        ({"Fn::Join": ["-", ["a", {"Ref": "Later"}]]}, False),
        ({"Fn::Select": [0, {"Fn::Split": [",", {"Ref": "Later"}]}]}, True),
        ({"Fn::Select": [0, {"Fn::Cidr": [{"Fn::Sub": "${Later}"}, 4, 8]}]}, True),
        ({"Fn::FindInMap": ["Map", {"Ref": "Later"}, "x"]}, True),
    ],
)
def test_functions_that_look_into_what_is_known_later(reported_paths: Any, value: Any, refused: bool) -> None:
    template = {
        "Resources": {"Wait": HANDLE, "Nested": nested_stack("child.json", {"Later": {"Fn::GetAtt": ["Wait", "Arn"]}})}
    }
    child = {
        "Parameters": {"Later": {"Type": "String"}},
        "Resources": {"Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": value}}},
    }
    expected = [("Resources", "Nested", "Properties", "Parameters", "Later")] if refused else []
    assert reported_paths("E9019", template, child=child) == expected
    rule = {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Later"}, "x"]}}]}
    ruled = {"Parameters": {"Later": {"Type": "String"}}, "Rules": {"R": rule}}
    assert reported_paths("E9019", template, child=ruled)
