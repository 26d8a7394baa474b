"""What a caller acknowledges follows from what stands in the templates."""

from __future__ import annotations

import pytest
from clusters import golden

from cfngen.cluster.load import parse
from cfngen.deploy.plan.publishing.publish import capabilities
from cfngen.sandbox.cloudformation.property_schemas import schema
from cfngen.templates import Document, generate


def document(body):
    return Document("vpc", body, "")


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ({"Resources": {"A": {"Type": "AWS::EC2::VPC"}}}, ()),
        ({"Resources": {"A": {"Type": "AWS::IAM::Role", "Properties": {}}}}, ("CAPABILITY_IAM",)),
        ({"Resources": {"A": {"Type": "AWS::IAM::InstanceProfile"}}}, ("CAPABILITY_IAM",)),
        ({"Resources": {"A": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "x"}}}}, ("CAPABILITY_NAMED_IAM",)),
        # The name of an inline policy is no name of its own.
        ({"Resources": {"A": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyName": "x"}}}}, ("CAPABILITY_IAM",)),
        ({"Resources": {"Fn::ForEach::Subnets": ["Zone", ["a"], {}]}}, ("CAPABILITY_AUTO_EXPAND",)),
        ({"Transform": "AWS::Serverless-2016-10-31", "Resources": {}}, ("CAPABILITY_AUTO_EXPAND",)),
        (
            {"Resources": {"A": {"Type": "AWS::EC2::VPC", "Properties": {"Tags": [{"Fn::Transform": {"Name": "x"}}]}}}},
            ("CAPABILITY_AUTO_EXPAND",),
        ),
    ],
)
def test_what_a_template_needs(body, needed):
    assert capabilities([document(body)]) == needed


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Group", "GroupName"),
        ("InstanceProfile", "InstanceProfileName"),
        ("ManagedPolicy", "ManagedPolicyName"),
        ("Role", "RoleName"),
        ("User", "UserName"),
    ],
)
def test_an_iam_resource_with_a_name_of_its_own_needs_more(kind, name):
    """Those that can be given a custom name ("CreateChangeSet", CloudFormation API Reference)."""
    resource = {"Type": f"AWS::IAM::{kind}", "Properties": {"Path": "/"}}
    assert name in schema("us-west-2", resource["Type"])["properties"]
    assert capabilities([document({"Resources": {"A": resource}})]) == ("CAPABILITY_IAM",)
    resource["Properties"][name] = "mine"
    assert capabilities([document({"Resources": {"A": resource}})]) == ("CAPABILITY_NAMED_IAM",)


def test_templates_need_what_any_of_them_needs():
    role = document({"Resources": {"A": {"Type": "AWS::IAM::Role"}}})
    named = document({"Resources": {"A": {"Type": "AWS::IAM::User", "Properties": {"UserName": "x"}}}})
    macro = document({"Transform": "X", "Resources": {}})
    assert capabilities([role, macro, named]) == ("CAPABILITY_AUTO_EXPAND", "CAPABILITY_NAMED_IAM")


def test_a_cluster_with_existing_instance_profiles_needs_nothing():
    assert capabilities(generate(golden("own-instance-profiles"))) == ()
    assert capabilities(generate(golden("own-roles"))) == ("CAPABILITY_IAM",)


def test_a_cluster_needs_roles_and_names_none():
    assert capabilities(generate(parse({}))) == ("CAPABILITY_IAM",)
