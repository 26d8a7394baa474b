"""The distributions' own images: where each is looked up, its root device, and who logs in.

Sources: documentation.ubuntu.com/aws (images by SSM), wiki.debian.org/Cloud/AmazonEC2Image, "Launch AL2023 using the
SSM parameter" (AL2023 User Guide).
"""

from __future__ import annotations

from typing import Any

import pytest

UBUNTU, DEBIAN = "/aws/service/canonical/ubuntu/server", "/aws/service/debian/release"
AL2023 = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-6.1"
IMAGES = [
    ("ubuntu-24.04", "amd64", f"{UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id", "/dev/sda1", "ubuntu"),
    ("ubuntu-24.04", "arm64", f"{UBUNTU}/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id", "/dev/sda1", "ubuntu"),
    ("ubuntu-22.04", "amd64", f"{UBUNTU}/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id", "/dev/sda1", "ubuntu"),
    ("ubuntu-22.04", "arm64", f"{UBUNTU}/22.04/stable/current/arm64/hvm/ebs-gp2/ami-id", "/dev/sda1", "ubuntu"),
    ("debian-12", "amd64", f"{DEBIAN}/12/latest/amd64", "/dev/xvda", "admin"),
    ("debian-12", "arm64", f"{DEBIAN}/12/latest/arm64", "/dev/xvda", "admin"),
    ("debian-13", "amd64", f"{DEBIAN}/13/latest/amd64", "/dev/xvda", "admin"),
    ("debian-13", "arm64", f"{DEBIAN}/13/latest/arm64", "/dev/xvda", "admin"),
    ("amazon-linux-2023", "amd64", f"{AL2023}-x86_64", "/dev/xvda", "ec2-user"),
    ("amazon-linux-2023", "arm64", f"{AL2023}-arm64", "/dev/xvda", "ec2-user"),
]


@pytest.mark.parametrize(("distribution", "architecture", "looked_up", "device", "user"), IMAGES)
def test_a_distributions_newest_image(
    templates: Any, distribution: str, architecture: str, looked_up: str, device: str, user: str
) -> None:
    instance_type = {"amd64": "t3.medium", "arm64": "t4g.medium"}[architecture]
    body = templates(
        {
            "image": {"distribution": distribution},
            "controlPlane": {"instanceType": instance_type},
            "ssh": {"keyName": "mine", "allowedCidrs": ["203.0.113.0/24"]},
        }
    )["standalone"]
    data = body["Resources"]["MasterALaunchTemplate"]["Properties"]["LaunchTemplateData"]
    name = data["ImageId"]["Ref"]
    assert name.startswith("MasterImage")
    assert name.endswith(architecture.capitalize())
    assert body["Parameters"][name]["Default"] == looked_up
    assert data["BlockDeviceMappings"][0]["DeviceName"] == device
    assert body["Outputs"]["ShellCommand"]["Value"]["Fn::Sub"].startswith(f"ssh {user}@")


@pytest.mark.parametrize(
    ("image", "shell"),
    [
        ({"distribution": "debian-13"}, False),
        ({"distribution": "debian-13", "id": "ami-01234567"}, True),
        ({"distribution": "debian-12", "ssmParameter": "/own/image"}, True),
        ({"distribution": "ubuntu-22.04"}, True),
        ({"distribution": "amazon-linux-2023"}, True),
    ],
)
def test_session_manager_needs_an_agent_on_the_image(templates: Any, image: dict[str, Any], shell: bool) -> None:
    assert ("ShellCommand" in templates({"image": image})["standalone"]["Outputs"]) is shell


def test_an_image_by_a_parameter_of_ones_own(templates: Any) -> None:
    body = templates({"image": {"ssmParameter": "/own/image", "rootDevice": "/dev/xvdb"}})["standalone"]
    parameter = body["Parameters"]["MasterImageOwnImageAmd64"]
    assert (parameter["Type"], parameter["Default"]) == (
        "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
        "/own/image",
    )
    data = body["Resources"]["NodeGroupNodesLaunchTemplate"]["Properties"]["LaunchTemplateData"]
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvdb"
