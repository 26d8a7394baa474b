"""The emulator itself: every property that our templates can change, changed in place, what the account has then."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from small_stacks import REGION, group, reasons, signalling, text, vpc

from cfngen.sandbox.cloudformation import CloudFormation, client

TRUST, OTHER_TRUST = (
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": each}, "Action": "sts:AssumeRole"}],
    }
    for each in ("ec2.amazonaws.com", "ssm.amazonaws.com")
)
LISTING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
ROOT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "kms:*", "Resource": "*"}
KEY_POLICY = {"Version": "2012-10-17", "Statement": [ROOT]}


def changed(cloud: CloudFormation, kind: str, before: dict[str, Any], after: dict[str, Any], **others: Any) -> str:
    """Physical id of a resource whose properties have been changed and changed back and changed again."""

    def body(properties: dict[str, Any]) -> str:
        return text({**others, "It": {"Type": kind, "Properties": properties}})

    stack = cloud.create_stack("s", body=body(before), capabilities=["CAPABILITY_IAM"])
    assert stack.status == "CREATE_COMPLETE", stack.resources["It"].reason
    identifier = stack.resources["It"].physical_id
    for properties in (after, before, after):
        cloud.update_stack("s", body=body(properties), capabilities=["CAPABILITY_IAM"])
        assert stack.status == "UPDATE_COMPLETE", reasons(stack, "It", "UPDATE_FAILED")
        assert stack.resources["It"].physical_id == identifier
    return identifier


def tags(**values: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def tags_of(identifier: str) -> dict[str, str]:
    found = client("ec2", REGION).describe_tags(Filters=[{"Name": "resource-id", "Values": [identifier]}])["Tags"]
    return {each["Key"]: each["Value"] for each in found}


SUBNET = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24"}}
SECURITY = {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "x", "VpcId": {"Ref": "Vpc"}}}


@pytest.mark.parametrize(
    ("kind", "properties", "others"),
    [
        ("AWS::EC2::DHCPOptions", {"DomainNameServers": ["AmazonProvidedDNS"]}, {}),
        ("AWS::EC2::InternetGateway", {}, {}),
        ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}, {}),
        ("AWS::EC2::RouteTable", {"VpcId": {"Ref": "Vpc"}}, {"Vpc": vpc()}),
        ("AWS::EC2::Subnet", SUBNET["Properties"], {"Vpc": vpc()}),
        ("AWS::EC2::SecurityGroup", SECURITY["Properties"], {"Vpc": vpc()}),
        ("AWS::EC2::NetworkInterface", {"SubnetId": {"Ref": "Subnet"}}, {"Vpc": vpc(), "Subnet": SUBNET}),
        ("AWS::EC2::Volume", {"AvailabilityZone": "us-west-2a", "Size": 1}, {}),
    ],
)
def test_tags(cloud: CloudFormation, kind: str, properties: dict[str, Any], others: dict[str, Any]) -> None:
    before, after = {**properties, "Tags": tags(a="1", b="1")}, {**properties, "Tags": tags(a="2", c="1")}
    assert tags_of(changed(cloud, kind, before, after, **others)) == {"a": "2", "c": "1"}


def test_tags_of_an_address(cloud: CloudFormation) -> None:
    address = changed(cloud, "AWS::EC2::EIP", {"Tags": tags(a="1")}, {"Tags": tags(a="2")})
    [found] = client("ec2", REGION).describe_addresses(PublicIps=[address])["Addresses"]
    assert found["Tags"] == tags(a="2")


@pytest.mark.parametrize(("attribute", "value"), [("enableDnsSupport", False), ("enableDnsHostnames", True)])
def test_a_vpc(cloud: CloudFormation, attribute: str, value: bool) -> None:
    block, key = {"CidrBlock": "10.0.0.0/16"}, attribute[0].upper() + attribute[1:]
    identifier = changed(cloud, "AWS::EC2::VPC", block, {**block, key: value})
    answer = client("ec2", REGION).describe_vpc_attribute(VpcId=identifier, Attribute=attribute)
    assert answer[key]["Value"] is value


def test_egress_of_a_security_group(cloud: CloudFormation) -> None:
    rules = [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}]
    properties = SECURITY["Properties"]
    after = {**properties, "SecurityGroupEgress": rules}
    identifier = changed(cloud, "AWS::EC2::SecurityGroup", properties, after, Vpc=vpc())
    [found] = client("ec2", REGION).describe_security_groups(GroupIds=[identifier])["SecurityGroups"]
    assert [each["FromPort"] for each in found["IpPermissionsEgress"]] == [443]


def test_the_description_of_a_rule(cloud: CloudFormation) -> None:
    rule = {"GroupId": {"Ref": "S"}, "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"}
    before, after = {**rule, "Description": "one"}, {**rule, "Description": "two"}
    changed(cloud, "AWS::EC2::SecurityGroupIngress", before, after, Vpc=vpc(), S=SECURITY)
    identifier = cloud.stack("s").resources["S"].physical_id
    [found] = client("ec2", REGION).describe_security_groups(GroupIds=[identifier])["SecurityGroups"]
    assert found["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8", "Description": "two"}]


def test_another_range_replaces_a_rule(cloud: CloudFormation) -> None:
    def body(block: str) -> str:
        properties = {"GroupId": {"Ref": "S"}, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": block}
        rule = {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": properties}
        return text({"Vpc": vpc(), "S": SECURITY, "Rule": rule})

    stack = cloud.create_stack("s", body=body("10.0.0.0/8"))
    before = stack.resources["Rule"].physical_id
    cloud.update_stack("s", body=body("11.0.0.0/8"))
    assert stack.resources["Rule"].physical_id != before
    [found] = client("ec2", REGION).describe_security_groups(GroupIds=[stack.resources["S"].physical_id])[
        "SecurityGroups"
    ]
    assert [ip_range["CidrIp"] for ip_range in found["IpPermissions"][0]["IpRanges"]] == ["11.0.0.0/8"]


def test_a_network_interface(cloud: CloudFormation) -> None:
    place = {"SubnetId": {"Ref": "Subnet"}}
    before = {**place, "Description": "one"}
    after = {**place, "Description": "two", "SourceDestCheck": False, "GroupSet": [{"Ref": "S"}]}
    others = {"Vpc": vpc(), "Subnet": SUBNET, "S": SECURITY}
    identifier = changed(cloud, "AWS::EC2::NetworkInterface", before, after, **others)
    ec2 = client("ec2", REGION)
    [found] = ec2.describe_network_interfaces(NetworkInterfaceIds=[identifier])["NetworkInterfaces"]
    assert found["SourceDestCheck"] is False
    assert [group["GroupId"] for group in found["Groups"]] == [cloud.stack("s").resources["S"].physical_id]
    assert found["Description"] == "two"


def test_a_volume_grows(cloud: CloudFormation) -> None:
    def body(size: int, **more: Any) -> str:
        properties = {"AvailabilityZone": "us-west-2a", "Size": size, "VolumeType": "gp3", **more}
        return text({"V": {"Type": "AWS::EC2::Volume", "Properties": properties}})

    stack = cloud.create_stack("s", body=body(10))
    cloud.update_stack("s", body=body(20, VolumeType="io2", Iops=400))
    [found] = client("ec2", REGION).describe_volumes()["Volumes"]
    assert (found["Size"], found["VolumeType"], found["Iops"]) == (20, "io2", 400)
    cloud.update_stack("s", body=body(5))
    [reason] = reasons(stack, "V", "UPDATE_FAILED")
    assert "New size cannot be smaller than existing size" in reason
    cloud.update_stack("s", body=body(20, AvailabilityZone="us-west-2b"))
    assert "Updates are not supported" in reasons(stack, "V", "UPDATE_FAILED")[-1]
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"


def test_a_role_and_its_profile(cloud: CloudFormation) -> None:
    boundary = "arn:aws:iam::aws:policy/PowerUserAccess"
    before = {
        "AssumeRolePolicyDocument": TRUST,
        "Policies": [{"PolicyName": "a", "PolicyDocument": ALLOW}, {"PolicyName": "b", "PolicyDocument": ALLOW}],
        "Tags": tags(a="1", b="1"),
    }
    after = {
        "AssumeRolePolicyDocument": OTHER_TRUST,
        "Policies": [{"PolicyName": "a", "PolicyDocument": LISTING}, {"PolicyName": "c", "PolicyDocument": ALLOW}],
        "Description": "changed",
        "PermissionsBoundary": boundary,
        "Tags": tags(a="2"),
    }
    iam = client("iam", REGION)
    name = changed(cloud, "AWS::IAM::Role", before, after)
    role = iam.get_role(RoleName=name)["Role"]
    assert (role["AssumeRolePolicyDocument"], role["Description"], role["Tags"]) == (
        OTHER_TRUST, "changed", tags(a="2")
    )  # fmt: skip
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    assert iam.list_role_policies(RoleName=name)["PolicyNames"] == ["a", "c"]
    assert iam.get_role_policy(RoleName=name, PolicyName="a")["PolicyDocument"] == LISTING


def test_the_role_of_a_profile(cloud: CloudFormation) -> None:
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
    before, after = ({"Roles": [{"Ref": each}]} for each in ("One", "Two"))
    name = changed(cloud, "AWS::IAM::InstanceProfile", before, after, One=role, Two=role)
    [found] = client("iam", REGION).get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]
    assert found["RoleName"] == cloud.stack("s").resources["Two"].physical_id


def test_a_key(cloud: CloudFormation) -> None:
    other = {"Version": "2012-10-17", "Statement": [{**ROOT, "Sid": "changed"}]}
    before = {"KeyPolicy": KEY_POLICY, "Description": "one", "Tags": tags(a="1", b="1")}
    after = {"KeyPolicy": other, "Description": "two", "EnableKeyRotation": True, "Tags": tags(a="2")}
    identifier = changed(cloud, "AWS::KMS::Key", before, after)
    kms = client("kms", REGION)
    assert kms.describe_key(KeyId=identifier)["KeyMetadata"]["Description"] == "two"
    assert kms.get_key_rotation_status(KeyId=identifier)["KeyRotationEnabled"]
    assert json.loads(kms.get_key_policy(KeyId=identifier, PolicyName="default")["Policy"]) == other
    assert kms.list_resource_tags(KeyId=identifier)["Tags"] == [{"TagKey": "a", "TagValue": "2"}]


def test_a_secret(cloud: CloudFormation) -> None:
    keys = {each: {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": KEY_POLICY}} for each in ("One", "Two")}
    before = {"Description": "one", "KmsKeyId": {"Ref": "One"}, "Tags": tags(a="1", b="1")}
    after = {"Description": "two", "KmsKeyId": {"Ref": "Two"}, "Tags": tags(a="2")}
    identifier = changed(cloud, "AWS::SecretsManager::Secret", before, after, **keys)
    response = client("secretsmanager", REGION).describe_secret(SecretId=identifier)
    assert (response["Description"], response["Tags"]) == ("two", tags(a="2"))
    assert response["KmsKeyId"] == cloud.stack("s").resources["Two"].physical_id


def test_tags_of_a_launch_template_make_no_version(cloud: CloudFormation) -> None:
    def properties(value: str) -> dict[str, Any]:
        data = {"ImageId": "ami-12345678", "UserData": base64.b64encode(b"x").decode()}
        specification = {"ResourceType": "launch-template", "Tags": tags(a=value)}
        return {"LaunchTemplateData": data, "TagSpecifications": [specification]}

    identifier = changed(cloud, "AWS::EC2::LaunchTemplate", properties("1"), properties("2"))
    [found] = client("ec2", REGION).describe_launch_templates(LaunchTemplateIds=[identifier])["LaunchTemplates"]
    assert (tags_of(identifier), found["LatestVersionNumber"]) == ({"a": "2"}, 1)


def test_sizes_and_tags_of_a_group() -> None:
    cloud = signalling((1, "SUCCESS"))
    stack = cloud.wait(cloud.create_stack("s", body=text(group(1, most=2))))
    resources = group(1, most=5)
    resources["Group"]["Properties"]["Tags"] = [{"Key": "a", "Value": "1", "PropagateAtLaunch": False}]
    resources["Group"]["Properties"]["DesiredCapacity"] = "2"
    cloud.update_stack("s", body=text(resources))
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (found["MaxSize"], found["DesiredCapacity"], len(found["Instances"])) == (5, 2, 2)
    assert [(tag["Key"], tag["PropagateAtLaunch"]) for tag in found["Tags"]] == [("a", False)]
    del resources["Group"]["Properties"]["Tags"]
    cloud.update_stack("s", body=text(resources))
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (found["Tags"], stack.status) == ([], "UPDATE_COMPLETE")


def test_routes_and_attachments(cloud: CloudFormation) -> None:
    def body(gateway: str) -> str:
        gateways = {each: {"Type": "AWS::EC2::InternetGateway"} for each in ("One", "Two")}
        there = {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": gateway}}
        route = {"RouteTableId": {"Ref": "Table"}, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": {"Ref": gateway}}
        return text(
            {
                **gateways,
                "Vpc": vpc(),
                "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
                "Attachment": {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": there},
                "Route": {"Type": "AWS::EC2::Route", "Properties": route, "DependsOn": "Attachment"},
            }
        )

    stack = cloud.create_stack("s", body=body("One"))
    cloud.update_stack("s", body=body("Two"))
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    wanted = stack.resources["Two"].physical_id
    [found] = client("ec2", REGION).describe_route_tables(RouteTableIds=[stack.resources["Table"].physical_id])[
        "RouteTables"
    ]
    assert wanted in [route.get("GatewayId") for route in found["Routes"]]
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"
