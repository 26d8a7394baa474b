"""cfngen's rules about texts and tags: characters, lengths, keys that a service takes for the same."""

from __future__ import annotations

from typing import Any

import pytest

PROPERTIES = ("Resources", "Tested", "Properties")
RULE = {"GroupId": "sg-1", "IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIp": "10.0.0.0/8"}


def template_of(kind: str, properties: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {"Resources": {"Tested": {"Type": kind, "Properties": properties}}, **sections}


def ingress(description: Any, **sections: Any) -> dict[str, Any]:
    return template_of("AWS::EC2::SecurityGroupIngress", {**RULE, "Description": description}, **sections)


@pytest.mark.parametrize(
    ("description", "refused"),
    [
        ("a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*", False),
        ("Cilium's tunnel", True),
        ("ein für allemal", True),
        ("line\nbreak", True),
        ("x" * 255, False),
        ("x" * 256, True),
        ({"Fn::Sub": "from ${AWS::Region}"}, False),
        ({"Fn::Sub": "from ${AWS::Region}'s"}, True),
        ({"Fn::Sub": ["from ${Who}", {"Who": "it's"}]}, True),
        ({"Fn::Sub": "${!literal}"}, False),
        ({"Fn::Sub": "x" * 256 + "${AWS::Region}"}, True),
        ({"Fn::Join": ["", ["from ", {"Ref": "AWS::Region"}]]}, False),
        ({"Fn::Join": ["'", ["a", "b"]]}, True),
        ({"Fn::Join": ["", ["x" * 200, {"Ref": "AWS::Region"}, "x" * 56]]}, True),
        ({"Ref": "Fine"}, False),
        ({"Ref": "Quoted"}, True),
        ({"Ref": "AWS::Region"}, False),
        ({"Ref": "AWS::NoValue"}, False),
    ],
    ids=str,
)
def test_description_of_a_rule(reported_paths: Any, description: Any, refused: bool) -> None:
    parameters = {"Fine": {"Type": "String", "Default": "fine"}, "Quoted": {"Type": "String", "Default": "it's"}}
    paths = reported_paths("E9020", ingress(description, Parameters=parameters))
    assert paths == ([(*PROPERTIES, "Description")] if refused else [])


def test_each_branch_of_a_condition(reported_paths: Any) -> None:
    conditions = {"Often": {"Fn::Equals": ["a", {"Ref": "AWS::Region"}]}}
    template = ingress({"Fn::If": ["Often", "fine", "isn't"]}, Conditions=conditions)
    assert reported_paths("E9020", template) == [(*PROPERTIES, "Description", "Fn::If", 2)]


@pytest.mark.parametrize(
    ("kind", "properties", "path"),
    [
        ("AWS::EC2::SecurityGroup", {"GroupDescription": "it's"}, ("GroupDescription",)),
        ("AWS::EC2::SecurityGroup", {"GroupDescription": "x", "GroupName": "sg-mine"}, ("GroupName",)),
        (
            "AWS::EC2::SecurityGroup",
            {"GroupDescription": "x", "SecurityGroupEgress": [{**RULE, "Description": "a <b>"}]},
            ("SecurityGroupEgress", 0, "Description"),
        ),
        ("AWS::EC2::NetworkInterface", {"SubnetId": "subnet-1", "Description": "é"}, ("Description",)),
        ("AWS::EC2::LaunchTemplate", {"LaunchTemplateName": "my template"}, ("LaunchTemplateName",)),
        ("AWS::ElasticLoadBalancingV2::LoadBalancer", {"Name": "x" * 33}, ("Name",)),
        ("AWS::ElasticLoadBalancingV2::LoadBalancer", {"Name": "internal-api"}, ("Name",)),
        ("AWS::ElasticLoadBalancingV2::TargetGroup", {"Name": "api-"}, ("Name",)),
        ("AWS::IAM::Role", {"Description": "—"}, ("Description",)),
        ("AWS::IAM::Role", {"RoleName": "a b"}, ("RoleName",)),
        ("AWS::IAM::Role", {"Path": "team"}, ("Path",)),
        ("AWS::IAM::Role", {"Tags": [{"Key": "a;b", "Value": "c"}]}, ("Tags", 0, "Key")),
        ("AWS::IAM::ManagedPolicy", {"Description": "—"}, ("Description",)),
        ("AWS::KMS::Key", {"Description": "x" * 8193}, ("Description",)),
        ("AWS::S3::Bucket", {"BucketName": "my..bucket"}, ("BucketName",)),
        ("AWS::S3::Bucket", {"BucketName": {"Fn::Sub": "${AWS::StackName}_logs"}}, ("BucketName",)),
        ("AWS::SecretsManager::Secret", {"Name": "a b"}, ("Name",)),
        ("AWS::SecretsManager::Secret", {"Description": "x" * 2049}, ("Description",)),
        (
            "AWS::AutoScaling::AutoScalingGroup",
            {"LifecycleHookSpecificationList": [{"LifecycleHookName": "a b"}]},
            ("LifecycleHookSpecificationList", 0, "LifecycleHookName"),
        ),
        ("AWS::CloudFormation::Stack", {"Tags": [{"Key": "team", "Value": ""}]}, ("Tags", 0, "Value")),
        ("AWS::CloudFormation::Stack", {"Parameters": {"Any": "x" * 4097}}, ("Parameters", "Any")),
        ("AWS::EC2::VPC", {"Tags": [{"Key": "AWS:team", "Value": "x"}]}, ("Tags", 0, "Key")),
        (
            "AWS::EC2::LaunchTemplate",
            {"LaunchTemplateData": {"TagSpecifications": [{"Tags": [{"Key": "a", "Value": "b,c"}]}]}},
            ("LaunchTemplateData", "TagSpecifications", 0, "Tags", 0, "Value"),
        ),
    ],
    ids=str,
)
def test_texts_of_other_services(
    reported_paths: Any, kind: str, properties: dict[str, Any], path: tuple[Any, ...]
) -> None:
    assert reported_paths("E9020", template_of(kind, properties)) == [(*PROPERTIES, *path)]


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"Description": "ü" * 513}, ("Description",)),
        ({"Parameters": {"P": {"Type": "String", "Description": "x" * 4001}}}, ("Parameters", "P", "Description")),
        ({"Parameters": {"P": {"Type": "String", "Default": "x" * 4097}}}, ("Parameters", "P", "Default")),
        ({"Outputs": {"O": {"Value": "x", "Description": "x" * 1025}}}, ("Outputs", "O", "Description")),
        ({"Outputs": {"O": {"Value": "x", "Export": {"Name": "a/b"}}}}, ("Outputs", "O", "Export", "Name")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_texts_of_a_template(reported_paths: Any, sections: dict[str, Any], path: tuple[str, ...]) -> None:
    assert reported_paths("E9020", sections) == [path]


def test_tags_of_iam_are_the_same_in_upper_and_lower_case(reported_paths: Any) -> None:
    tags = [{"Key": key, "Value": "x"} for key in ("Name", "Team", "name", "other")]
    assert reported_paths("E9021", template_of("AWS::IAM::Role", {"Tags": tags})) == [(*PROPERTIES, "Tags", 2, "Key")]
    assert reported_paths("E9021", template_of("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Tags": tags})) == []


CLUSTER = {"Key": "kubernetes.io/cluster/blue", "Value": "owned"}


def launched(options: Any, *, own: list[Any], groups: list[Any]) -> dict[str, Any]:
    data = {"TagSpecifications": [{"ResourceType": "instance", "Tags": own}], **options}
    template = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
    specification = {"LaunchTemplateId": {"Ref": "Tested"}, "Version": "1"}
    properties = {"MinSize": "1", "MaxSize": "1", "LaunchTemplate": specification, "Tags": groups}
    return {
        "Resources": {
            "Tested": template,
            "Group": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties},
        }
    }


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({}, True),
        ({"MetadataOptions": {"HttpTokens": "required"}}, True),
        ({"MetadataOptions": {"InstanceMetadataTags": "enabled"}}, True),
        ({"MetadataOptions": {"InstanceMetadataTags": "disabled"}}, False),
        ({"MetadataOptions": {"InstanceMetadataTags": {"Ref": "P"}}}, False),
        ({"MetadataOptions": {"HttpEndpoint": "disabled"}}, False),
    ],
    ids=str,
)
def test_tags_that_the_metadata_service_cannot_show(
    reported_paths: Any, options: dict[str, Any], refused: bool
) -> None:
    assert bool(reported_paths("W9022", launched(options, own=[CLUSTER], groups=[]))) == refused
    passed_on = [{**CLUSTER, "PropagateAtLaunch": True}]
    by_group = launched(options, own=[], groups=passed_on)
    assert bool(reported_paths("W9022", by_group)) == refused
    properties = by_group["Resources"]["Group"]["Properties"]
    specification = {"LaunchTemplateSpecification": properties.pop("LaunchTemplate")}
    properties["MixedInstancesPolicy"] = {"LaunchTemplate": specification}
    assert bool(reported_paths("W9022", by_group)) == refused


def test_tags_that_the_metadata_service_can_show(reported_paths: Any) -> None:
    kept = [{**CLUSTER, "PropagateAtLaunch": False}]
    assert reported_paths("W9022", launched({}, own=[{"Key": "Name", "Value": "a"}], groups=kept)) == []
