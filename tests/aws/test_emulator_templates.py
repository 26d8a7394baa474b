"""The emulator itself: which templates and parameters it takes, and what expressions mean."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from small_stacks import nested, refused_early

from cfngen.sandbox.cloudformation import (
    CloudFormation,
    InsufficientCapabilitiesError,
    NotModelledError,
    ValidationError,
    client,
)
from cfngen.sandbox.cloudformation.stack import masked_parameters

VPC, VOLUME = "AWS::EC2::VPC", "AWS::EC2::Volume"
GATEWAY = {"Type": "AWS::EC2::InternetGateway"}
KEY_PAIR = {"Type": "AWS::EC2::KeyPair", "Properties": {"KeyName": {"Ref": "Name"}}}


def template(**sections: Any) -> str:
    return json.dumps({"Resources": {"Gateway": GATEWAY}, **sections})


def outputs(cloud: CloudFormation, value: Any, **sections: Any) -> str:
    stack = cloud.create_stack("s", body=template(Outputs={"It": {"Value": value}}, **sections))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return stack.outputs["It"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "JSON not well-formed"),
        (template(Extra={}), "Invalid template property"),
        (template(Resources={}), "At least one Resources member"),
        (template(Resources={f"G{index}": GATEWAY for index in range(501)}), "maximum allowed, 500"),
        (template(Parameters={f"P{index}": {"Type": "String", "Default": ""} for index in range(201)}), "allowed, 200"),
        (template(Resources={"not-so": GATEWAY}), "non alphanumeric"),
        (template(Resources={"G": {**GATEWAY, "Depends": []}}), "Invalid template resource property Depends"),
        (template(Resources={"G": {**GATEWAY, "DependsOn": "Other"}}), "Unresolved resource dependencies"),
        (template(Resources={"G": {**GATEWAY, "DeletionPolicy": "Keep"}}), "Unrecognized DeletionPolicy"),
        (template(Resources={"G": {**GATEWAY, "DeletionPolicy": "Snapshot"}}), "does not support snapshots"),
        (template(Resources={"G": {"Type": "AWS::No::Such"}}), r"Unrecognized resource types: \[AWS::No::Such\]"),
        (template(Resources={"K": KEY_PAIR}), r"Unresolved resource dependencies \[Name\]"),
        (template(Outputs={"It": {"Value": {"Fn::Sub": "${Nothing.Arn}"}}}), "in the Outputs block"),
        (
            template(Resources={"A": {**GATEWAY, "DependsOn": "B"}, "B": {**GATEWAY, "DependsOn": ["A"]}}),
            r"Circular dependency between resources: \['A', 'B'\]",
        ),
    ],
)
def test_malformed_templates_are_refused(cloud: CloudFormation, body: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        cloud.create_stack("s", body=body)
    with pytest.raises(ValidationError, match="does not exist"):
        cloud.stack("s")


@pytest.mark.parametrize(
    "sections",
    [
        {"Transform": "AWS::Serverless-2016-10-31"},
        {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}}},
        {"Resources": {"Gateway": {**GATEWAY, "CreationPolicy": {"ResourceSignal": {"Count": 1}}}}},
        {"Outputs": {"It": {"Value": {"Fn::Length": ["it"]}}}},
    ],
)
def test_what_is_not_modelled_stops_the_test(cloud: CloudFormation, sections: dict[str, Any]) -> None:
    with pytest.raises(NotModelledError):
        cloud.create_stack("s", body=template(**sections))


def test_sizes_of_templates(cloud: CloudFormation) -> None:
    large = template(Metadata={"Padding": "x" * 51_200})
    with pytest.raises(ValidationError, match="51200"):
        cloud.create_stack("s", body=large)
    s3 = client("s3", "us-west-2")
    s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="bucket", Key="large.json", Body=large.encode())
    s3.put_object(Bucket="bucket", Key="huge.json", Body=template(Metadata={"Padding": "x" * 1_048_576}).encode())
    cloud.endpoint = "http://127.0.0.1:5000"
    for url in (
        "https://bucket.s3.us-west-2.amazonaws.com/large.json",
        "https://bucket.s3-us-west-2.amazonaws.com/large.json",
        "https://bucket.s3.amazonaws.com/large.json",
        "https://s3.us-west-2.amazonaws.com/bucket/large.json",
        "https://s3-us-west-2.amazonaws.com/bucket/large.json",
        "https://s3.amazonaws.com/bucket/large.json",
        "http://127.0.0.1:5000/bucket/large.json",  # as the AWS CLI names it: the endpoint that it talks to
    ):
        assert cloud.create_stack("s", url=url).status == "CREATE_COMPLETE"
        cloud.delete_stack("s")
    for url, says in (
        ("https://bucket.s3.us-west-2.amazonaws.com/huge.json", "1048576 bytes"),
        ("https://bucket.s3.us-west-2.amazonaws.com/none.json", "S3 error"),
        ("https://bucket.s3.eu-west-1.amazonaws.com/large.json", "supported URL"),
        ("http://bucket.s3.us-west-2.amazonaws.com/large.json", "supported URL"),
        ("https://s3.eu-west-1.amazonaws.com/bucket/large.json", "supported URL"),
        ("http://s3.us-west-2.amazonaws.com/bucket/large.json", "supported URL"),
        ("https://s3.us-west-2.amazonaws.com/bucket", "supported URL"),
        ("https://127.0.0.1:5000/bucket/large.json", "supported URL"),
        ("http://127.0.0.1:5001/bucket/large.json", "supported URL"),
    ):
        with pytest.raises(ValidationError, match=says):
            cloud.create_stack("t", url=url)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Ref": "AWS::StackName"}, "s"),
        ({"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}, "arn:aws:iam::123456789012:root"),
        ({"Fn::Sub": "${!Literal} ${Name}"}, "${Literal} joe"),
        ({"Fn::Sub": ["${Own}-${Name}", {"Own": {"Ref": "AWS::URLSuffix"}}]}, "amazonaws.com-joe"),
        ({"Fn::Join": ["", ["a", {"Ref": "Name"}, {"Ref": "AWS::NoValue"}, "${Name}"]]}, "ajoe${Name}"),
        ({"Fn::Select": ["1", {"Fn::Split": [",", "a,b,c"]}]}, "b"),
        ({"Fn::Join": ["|", {"Ref": "List"}]}, "x|y"),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "AWS::Region"}, "Small"]}, "t3.small"),
        ({"Fn::Base64": "hello"}, "aGVsbG8="),
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "us-west-2a"),
        ({"Fn::Select": [2, {"Fn::Cidr": ["10.0.0.0/16", 4, 8]}]}, "10.0.2.0/24"),
        ({"Fn::If": ["IsJoe", "yes", "no"]}, "yes"),
        ({"Fn::If": ["IsNotJoe", "yes", "no"]}, "no"),
        ({"Fn::If": ["Both", "yes", "no"]}, "no"),
        ({"Fn::If": ["Either", "yes", "no"]}, "yes"),
    ],
)
def test_expressions(cloud: CloudFormation, value: Any, result: str) -> None:
    is_joe = {"Fn::Equals": [{"Ref": "Name"}, "joe"]}
    conditions = {
        "IsJoe": is_joe,
        "IsNotJoe": {"Fn::Not": [{"Condition": "IsJoe"}]},
        "Both": {"Fn::And": [{"Condition": "IsJoe"}, {"Condition": "IsNotJoe"}]},
        "Either": {"Fn::Or": [{"Condition": "IsJoe"}, {"Condition": "IsNotJoe"}]},
    }
    parameters = {
        "Name": {"Type": "String", "Default": "joe"},
        "List": {"Type": "CommaDelimitedList", "Default": "x, y"},
    }
    mappings = {"Sizes": {"us-west-2": {"Small": "t3.small"}}}
    assert outputs(cloud, value, Parameters=parameters, Conditions=conditions, Mappings=mappings) == result


def test_what_a_false_condition_guards_is_not_made(cloud: CloudFormation) -> None:
    never = {"Never": {"Fn::Equals": ["a", "b"]}}
    body = template(
        Conditions=never,
        Resources={"One": GATEWAY, "Two": {**GATEWAY, "Condition": "Never"}},
        Outputs={"Two": {"Condition": "Never", "Value": {"Ref": "Two"}}},
    )
    stack = cloud.create_stack("s", body=body)
    assert (list(stack.resources), stack.outputs, stack.status) == (["One"], {}, "CREATE_COMPLETE")


@pytest.mark.parametrize(
    ("definition", "value", "says"),
    [
        ({"Type": "String"}, None, r"Parameters: \[P\] must have values"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc1", "must match pattern"),
        ({"Type": "String", "AllowedPattern": "a", "ConstraintDescription": "an a"}, "b", "failed to satisfy.*an a"),
        ({"Type": "String", "AllowedValues": ["a", "b"]}, "c", "AllowedValues"),
        ({"Type": "String", "MinLength": 2}, "c", "at least 2"),
        ({"Type": "String", "MaxLength": "2"}, "ccc", "at most 2"),
        ({"Type": "Number", "MinValue": 1}, "0", "not less than 1"),
        ({"Type": "Number", "MaxValue": 1}, "1.5", "not greater than 1"),
        ({"Type": "Number"}, "one", "must be a number"),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/none", r"Unable to fetch parameters \[/none\]"),
        ({"Type": "String", "Allowed": "x"}, "x", "Unrecognized parameter attribute"),
    ],
)
def test_parameters_that_are_refused(cloud: CloudFormation, definition: Any, value: str | None, says: str) -> None:
    parameters = {} if value is None else {"P": value}
    with pytest.raises(ValidationError, match=says):
        cloud.create_stack("s", body=template(Parameters={"P": definition}), parameters=parameters)


def test_a_parameter_the_template_does_not_have_is_refused(cloud: CloudFormation) -> None:
    with pytest.raises(ValidationError, match=r"Parameters: \[P\] do not exist in the template"):
        cloud.create_stack("s", body=template(), parameters={"P": "x"})


def test_values_from_parameter_store() -> None:
    cloud = CloudFormation("us-west-2", parameter_store={"/image": "ami-12345678"})
    parameters = {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/image"}}
    assert outputs(cloud, {"Ref": "P"}, Parameters=parameters) == "ami-12345678"


def test_values_that_the_account_has_stored(cloud: CloudFormation) -> None:
    client("ssm", "us-west-2").put_parameter(Name="/network/gateway", Value="igw-1", Type="String")
    parameters = {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/network/gateway"}}
    assert outputs(cloud, {"Ref": "P"}, Parameters=parameters) == "igw-1"


def test_a_secure_string_is_no_value_of_a_parameter(cloud: CloudFormation) -> None:
    client("ssm", "us-west-2").put_parameter(Name="/secret", Value="x", Type="SecureString")
    parameters = {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/secret"}}
    with pytest.raises(ValidationError, match="types not supported by CloudFormation"):
        cloud.create_stack("s", body=template(Parameters=parameters))


def test_an_output_of_another_stack_needs_no_export(cloud: CloudFormation) -> None:
    cloud.create_stack("other", body=template(Outputs={"It": {"Value": "vpc-1"}}))
    assert outputs(cloud, {"Fn::GetStackOutput": {"StackName": "other", "OutputName": "It"}}) == "vpc-1"


def test_an_output_of_another_stack_is_read_anew_by_an_update(cloud: CloudFormation) -> None:
    tags = [{"Key": "it", "Value": {"Fn::GetStackOutput": {"StackName": "other", "OutputName": "It"}}}]
    body = json.dumps({"Resources": {"Gateway": {**GATEWAY, "Properties": {"Tags": tags}}}})
    cloud.create_stack("other", body=template(Outputs={"It": {"Value": "old"}}))
    cloud.create_stack("s", body=body)
    cloud.update_stack("other", body=template(Outputs={"It": {"Value": "new"}}))
    [gateway] = cloud.stack("s").resources.values()
    assert gateway.properties["Tags"][0]["Value"] == "old"
    cloud.update_stack("s", body=body)
    [gateway] = cloud.stack("s").resources.values()
    assert gateway.properties["Tags"][0]["Value"] == "new"


def test_an_output_needs_its_stack_and_its_name(cloud: CloudFormation) -> None:
    with pytest.raises(ValidationError, match=r"Fn::GetStackOutput object requires StackName and OutputName"):
        outputs(cloud, {"Fn::GetStackOutput": {"StackName": "other"}})


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("AWS::EC2::VPC::Id", "vpc-0123456789abcdef0"),
        ("AWS::EC2::Subnet::Id", "subnet-0123456789abcdef0"),
        ("AWS::EC2::SecurityGroup::Id", "sg-0123456789abcdef0"),
        ("AWS::EC2::KeyPair::KeyName", "nobody"),
        ("AWS::EC2::AvailabilityZone::Name", "us-west-2x"),
        ("AWS::EC2::Image::Id", "ami-0123456789abcdef0"),
        ("AWS::Route53::HostedZone::Id", "Z0123456789ABC"),
    ],
)
def test_what_the_account_does_not_have_fails_the_stack_before_its_resources(
    cloud: CloudFormation, declared: str, value: str
) -> None:
    stack = cloud.create_stack("s", body=template(Parameters={"P": {"Type": declared}}), parameters={"P": value})
    assert (stack.status, stack.resources) == ("ROLLBACK_COMPLETE", {})
    reason = f"Parameter validation failed: parameter value {value} for parameter name P does not exist."
    assert stack.events[1].reason == f"{reason} Rollback requested by user."


def test_what_must_not_be_echoed_is_not_shown(cloud: CloudFormation) -> None:
    parameters = {"P": {"Type": "String", "NoEcho": True}, "Q": {"Type": "String", "Default": "seen"}}
    stack = cloud.create_stack("s", body=template(Parameters=parameters), parameters={"P": "secret"})
    assert masked_parameters(stack.revision) == {"P": "****", "Q": "seen"}


def test_rules(cloud: CloudFormation) -> None:
    assertion = {"Assert": {"Fn::Contains": [["a", "b"], {"Ref": "P"}]}, "AssertDescription": "P is a or b"}
    condition = {"Fn::Not": [{"Fn::Equals": [{"Ref": "P"}, "free"]}]}
    body = template(
        Parameters={"P": {"Type": "String"}}, Rules={"R": {"RuleCondition": condition, "Assertions": [assertion]}}
    )
    with pytest.raises(ValidationError, match="P is a or b"):
        cloud.create_stack("s", body=body, parameters={"P": "c"})
    assert cloud.create_stack("s", body=body, parameters={"P": "b"}).status == "CREATE_COMPLETE"
    assert cloud.create_stack("t", body=body, parameters={"P": "free"}).status == "CREATE_COMPLETE"


def test_iam_resources_must_be_acknowledged(cloud: CloudFormation) -> None:
    body = template(Resources={"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}}}})
    with pytest.raises(InsufficientCapabilitiesError, match="CAPABILITY_IAM"):
        cloud.create_stack("s", body=body)


@pytest.mark.parametrize(
    ("resource_type", "properties", "says"),
    [
        pytest.param(VPC, {"CidrBlock": "10.0.0.0/16", "Colour": "red"}, "extraneous key.*Colour", id="unknown"),
        pytest.param("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24"}, "required key.*VpcId", id="missing"),
        pytest.param(VPC, {"CidrBlock": "10.0.0.0/16", "VpcId": "vpc-1"}, "read-only.*VpcId", id="read-only"),
        pytest.param(VPC, {"CidrBlock": ["10.0.0.0/16"]}, "found: array", id="list"),
        pytest.param(VOLUME, {"AvailabilityZone": "us-west-2a", "Size": "much"}, "found: 'much'", id="no number"),
        pytest.param(VOLUME, {"AvailabilityZone": "us-west-2a", "Size": 1, "Tags": [{"Key": "a"}]}, "Value", id="deep"),
        pytest.param(
            VOLUME,
            {"AvailabilityZone": {"Fn::Select": [0, {"Fn::Split": ["|", {"Ref": "Gateway"}]}]}, "Size": "much"},
            "found: 'much'",
            id="beside what is not known yet",
        ),
    ],
)
def test_properties_that_stop_the_operation_before_its_first_resource(
    cloud: CloudFormation, resource_type: str, properties: Any, says: str
) -> None:
    resources = {"Gateway": GATEWAY, "It": {"Type": resource_type, "Properties": properties}}
    cloud.create_stack("right", body=template())
    for stack, status in (
        (cloud.create_stack("s", body=template(Resources=resources), tags={"a": "b"}), "ROLLBACK_COMPLETE"),
        (cloud.update_stack("right", body=template(Resources=resources)), "UPDATE_ROLLBACK_COMPLETE"),
    ):
        assert stack.status == status
        assert re.search(says, refused_early(cloud)["It"])
        began = [event for event in stack.events if "PropertyValidation" in event.reason]
        assert [event.logical_id for event in began] == [stack.name]
        assert not [event for event in stack.events if event.logical_id == "It"]


def test_what_the_service_refuses_fails_its_resource(cloud: CloudFormation) -> None:
    vpc = {"Type": VPC, "Properties": {"CidrBlock": "10.0.0.0/4"}}
    stack = cloud.create_stack("s", body=template(Resources={"It": vpc}))
    assert stack.status == "ROLLBACK_COMPLETE"
    [failed] = [event for event in stack.events if event.status == "CREATE_FAILED"]
    assert failed.logical_id == "It"
    assert "CreateVpc" in failed.reason


def test_texts_become_the_types_of_the_schema(cloud: CloudFormation) -> None:
    properties = {"AvailabilityZone": "us-west-2a", "Size": "7", "Encrypted": "true", "VolumeType": "gp3"}
    body = template(Resources={"It": {"Type": "AWS::EC2::Volume", "Properties": properties}})
    it = cloud.create_stack("s", body=body).resources["It"]
    assert (it.properties["Size"], it.properties["Encrypted"]) == (7, True)
    [volume] = client("ec2", "us-west-2").describe_volumes(VolumeIds=[it.physical_id])["Volumes"]
    assert (volume["Size"], volume["Encrypted"]) == (7, True)


def test_an_output_that_a_nested_stack_does_not_have_fails_what_asks_for_it(cloud: CloudFormation) -> None:
    child = nested("child", template())
    body = template(Resources={"Child": child}, Outputs={"It": {"Value": {"Fn::GetAtt": "Child.Outputs.None"}}})
    stack = cloud.wait(cloud.create_stack("s", body=body))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "Requested attribute Outputs.None does not exist" in " ".join(event.reason for event in stack.events)
