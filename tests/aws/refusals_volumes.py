"""Volumes of EBS."""

from __future__ import annotations

from refusal import Refusal, ServiceCall
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client


def _in_another_zone(cloud: CloudFormation) -> None:
    ec2 = client("ec2", REGION)
    image = ec2.register_image(Name="image")["ImageId"]
    place = {"AvailabilityZone": "us-west-2a"}
    [instance] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, Placement=place)["Instances"]
    volume = ec2.create_volume(AvailabilityZone="us-west-2b", Size=1)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=instance["InstanceId"], Device="/dev/sdf")


ROWS = [
    Refusal(
        resource="ec2:AttachVolume",
        condition="volume in another zone than the instance",
        words="is not in the same availability zone as instance",
        source="EC2 API: [error codes](https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html), "
        "InvalidVolume.ZoneMismatch",
        evidence="condition documented",
        tried=ServiceCall(_in_another_zone),
    ),
]
