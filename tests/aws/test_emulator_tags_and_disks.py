"""What moto makes otherwise of tags, disks and addresses, and the emulator puts right, from the creation on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.sandbox.cloudformation import CloudFormation, client

REGION = "us-west-2"


def options(team: str) -> dict[str, Any]:
    properties = {"DomainNameServers": ["AmazonProvidedDNS"], "Tags": [{"Key": "team", "Value": team}]}
    return {"Type": "AWS::EC2::DHCPOptions", "Properties": properties}


def launch_template(team: str, **data: Any) -> dict[str, Any]:
    tags = [{"Key": "team", "Value": team}]
    return {
        "Type": "AWS::EC2::LaunchTemplate",
        "Properties": {
            "LaunchTemplateData": {"InstanceType": "t3.medium", **data},
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}],
        },
    }


def body(**resources: Any) -> str:
    return json.dumps({"Resources": resources})


def test_dhcp_options_have_their_tags_from_the_beginning(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=body(Options=options("blue"))))
    [found] = [
        dhcp_option
        for dhcp_option in client("ec2", REGION).describe_dhcp_options()["DhcpOptions"]
        if dhcp_option.get("Tags")
    ]
    assert {"Key": "team", "Value": "blue"} in found["Tags"]


def test_a_launch_template_has_the_tags_that_it_was_given_last(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=body(Template=launch_template("blue"))))
    cloud.wait(cloud.update_stack("s", body=body(Template=launch_template("green"))))
    [found] = client("ec2", REGION).describe_launch_templates()["LaunchTemplates"]
    assert {"Key": "team", "Value": "green"} in found["Tags"]
    [version] = client("ec2", REGION).describe_launch_template_versions(LaunchTemplateId=found["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    assert "TagSpecifications" not in version["LaunchTemplateData"]


@pytest.mark.parametrize(
    "team", ["<blue & 'green'/>", 'a "b" ]]> é\u2026', "&amp;", "#text", "@xmlns", "true", "None", ""]
)
def test_a_text_comes_back_whatever_it_means_in_xml(team: str) -> None:
    ec2 = client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "team", "Value": team}])
    [described] = ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"]
    assert described["Tags"] == [{"Key": "team", "Value": team}]


@pytest.mark.parametrize("kind", ["io1", "io2"])
def test_an_instance_may_have_a_disk_with_iops_of_its_own(cloud: CloudFormation, kind: str) -> None:
    ec2 = client("ec2", REGION)
    image = ec2.register_image(Name="image")["ImageId"]
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 20, "VolumeType": kind, "Iops": 1000}}
    ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, BlockDeviceMappings=[disk])
    [volume] = ec2.describe_volumes()["Volumes"]
    assert (volume["VolumeType"], volume["Size"]) == (kind, 20)


def test_a_volume_has_the_throughput_that_it_was_given_last(cloud: CloudFormation) -> None:
    def volume(**performance: int) -> str:
        properties = {"AvailabilityZone": "us-west-2a", "Size": 20, "VolumeType": "gp3", **performance}
        return body(Volume={"Type": "AWS::EC2::Volume", "Properties": properties})

    cloud.wait(cloud.create_stack("s", body=volume(Iops=3000, Throughput=200)))
    [found] = client("ec2", REGION).describe_volumes()["Volumes"]
    assert found["Throughput"] == 200
    cloud.wait(cloud.update_stack("s", body=volume(Iops=4000, Throughput=500)))
    [found] = client("ec2", REGION).describe_volumes()["Volumes"]
    assert (found["Iops"], found["Throughput"]) == (4000, 500)


def test_an_interface_has_the_address_that_it_was_given_last(cloud: CloudFormation) -> None:
    def interface(address: str) -> str:
        allocation = {"Fn::GetAtt": [address, "AllocationId"]}
        association = {"AllocationId": allocation, "NetworkInterfaceId": {"Ref": "Interface"}}
        subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24"}
        return body(
            Vpc={"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
            Subnet={"Type": "AWS::EC2::Subnet", "Properties": subnet},
            Interface={"Type": "AWS::EC2::NetworkInterface", "Properties": {"SubnetId": {"Ref": "Subnet"}}},
            One={"Type": "AWS::EC2::EIP"},
            Other={"Type": "AWS::EC2::EIP"},
            Gateway={"Type": "AWS::EC2::InternetGateway"},
            Attachment={
                "Type": "AWS::EC2::VPCGatewayAttachment",
                "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
            },
            Association={
                "Type": "AWS::EC2::EIPAssociation",
                "Properties": association,
                "DependsOn": "Attachment",
            },
        )

    stack = cloud.wait(cloud.create_stack("s", body=interface("One")))
    cloud.wait(cloud.update_stack("s", body=interface("Other")))
    assert stack.status == "UPDATE_COMPLETE"
    identifier = stack.resources["Interface"].physical_id
    [found] = client("ec2", REGION).describe_network_interfaces(NetworkInterfaceIds=[identifier])["NetworkInterfaces"]
    assert found["Association"]["PublicIp"] == stack.resources["Other"].physical_id
