"""What moto forgets of tags and disks, and the double puts right: what a stack has after its creation and an update."""

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
    [found] = [each for each in client("ec2", REGION).describe_dhcp_options()["DhcpOptions"] if each.get("Tags")]
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


@pytest.mark.parametrize("kind", ["io1", "io2"])
def test_an_instance_may_have_a_disk_with_iops_of_its_own(cloud: CloudFormation, kind: str) -> None:
    ec2 = client("ec2", REGION)
    image = ec2.register_image(Name="image")["ImageId"]
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 20, "VolumeType": kind, "Iops": 1000}}
    ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, BlockDeviceMappings=[disk])
    [volume] = ec2.describe_volumes()["Volumes"]
    assert (volume["VolumeType"], volume["Size"]) == (kind, 20)
