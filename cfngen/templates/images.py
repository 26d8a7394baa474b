"""The distributions' official machine images, and the template parameter that selects an AMI."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.logical_ids import ImageId, MachineRole
from cfngen.cluster.sections.base import Architecture
from cfngen.cluster.sections.instances import Image
from cfngen.templates.stack import PropertyValue, Stack


@dataclass(frozen=True)
class DistributionFacts:
    """Facts about a distribution's official images.

    Attributes:
        ssm_parameter: name of the public SSM parameter with the newest image's AMI id, by architecture (`amd64`,
            `arm64`). See documentation.ubuntu.com, wiki.debian.org/Cloud/AmazonEC2Image and
            docs.aws.amazon.com/linux/al2023.
        user: login name of the image's default user.
    """

    ssm_parameter: dict[str, str]
    root_device: str
    user: str


def _ubuntu(version: str, volume_type: str) -> DistributionFacts:
    """Return the facts about an Ubuntu version; Canonical's parameter names contain the type of the root volume."""
    path = f"/aws/service/canonical/ubuntu/server/{version}/stable/current"
    return DistributionFacts(
        ssm_parameter={
            architecture: f"{path}/{architecture}/hvm/ebs-{volume_type}/ami-id" for architecture in ("amd64", "arm64")
        },
        root_device="/dev/sda1",
        user="ubuntu",
    )


def _debian(version: str) -> DistributionFacts:
    path = f"/aws/service/debian/release/{version}/latest"
    return DistributionFacts(
        ssm_parameter={architecture: f"{path}/{architecture}" for architecture in ("amd64", "arm64")},
        root_device="/dev/xvda",
        user="admin",
    )


_AL2023_PARAMETER_PREFIX = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-6.1"

# The distributions by the names that they have in the cluster file.
DISTRIBUTIONS = {
    # Canonical publishes 24.04 under ebs-gp3 and 22.04 under ebs-gp2.
    "ubuntu-24.04": _ubuntu("24.04", volume_type="gp3"),
    "ubuntu-22.04": _ubuntu("22.04", volume_type="gp2"),
    "debian-12": _debian("12"),
    "debian-13": _debian("13"),
    "amazon-linux-2023": DistributionFacts(
        ssm_parameter={"amd64": f"{_AL2023_PARAMETER_PREFIX}-x86_64", "arm64": f"{_AL2023_PARAMETER_PREFIX}-arm64"},
        root_device="/dev/xvda",
        user="ec2-user",
    ),
}


def image_parameter(
    stack: Stack, role: MachineRole, image: Image, architecture: Architecture, *, parameter_group: str
) -> PropertyValue:
    """Add the stack parameter for the machine image and return a reference to the AMI id.

    If the cluster file gives an AMI id, that id is the parameter's default. Otherwise the default is the name of an SSM
    parameter, which CloudFormation resolves at every create and update: an update may therefore select a newer image
    and replace the instances.

    The stack parameter's name contains the image, for two reasons. Node groups with the same image share a parameter.
    And another image in the cluster file takes effect: if only the default of an existing parameter changed, the update
    would keep the parameter's previous value.
    """
    description = f"{image.distribution}, {architecture}"
    machines = "bastion" if role == "Bastion" else f"{role.lower()}s"
    if image.id:
        return stack.parameter(
            str(ImageId(role, pascal(image.id))),
            type="AWS::EC2::Image::Id",
            label=f"Machine image ({machines}, {description})",
            parameter_group=parameter_group,
            description=f"AMI of the instances ({description})",
            default=image.id,
        )
    return stack.parameter(
        str(ImageId(role, f"{pascal(image.ssm_parameter or image.distribution)}{architecture.capitalize()}")),
        type="AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
        label=f"SSM parameter of the machine image ({machines}, {description})",
        parameter_group=parameter_group,
        description=f"SSM parameter that names the AMI of the instances ({description})",
        default=image.ssm_parameter or DISTRIBUTIONS[image.distribution].ssm_parameter[architecture],
    )


def root_device(image: Image) -> str:
    """Return the name of the image's root device: the name in the cluster file, or else the distribution's."""
    return image.root_device or DISTRIBUTIONS[image.distribution].root_device


def login_name(image: Image) -> str:
    """Return the login name of the default user in the image's distribution, e.g. `ubuntu`."""
    return DISTRIBUTIONS[image.distribution].user


def has_ssm_agent(image: Image) -> bool:
    """Return whether the image contains the SSM agent, which Session Manager needs.

    Debian's official images do not contain it. Images that the user provides are assumed to contain it.
    """
    return bool(image.id or image.ssm_parameter) or not image.distribution.startswith("debian")
