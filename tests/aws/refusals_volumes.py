"""Volumes of EBS."""

from __future__ import annotations

from typing import Any

from ec2_parts import CONDITION, ZONE, code, ec2, only, operation, resource, seen
from refusal import Creation, Refusal, Resources, ServiceCall, Update
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client


def _instance() -> str:
    image = ec2().register_image(Name="image")["ImageId"]
    response = ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1, Placement={"AvailabilityZone": ZONE})
    return str(response["Instances"][0]["InstanceId"])


def _volume(zone: str = ZONE) -> str:
    return str(ec2().create_volume(AvailabilityZone=zone, Size=1, VolumeType="gp3")["VolumeId"])


def _attached() -> tuple[str, str]:
    instance, volume = _instance(), _volume()
    ec2().attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdf")
    return instance, volume


def _in_another_zone(_: CloudFormation) -> None:
    ec2().attach_volume(VolumeId=_volume("us-west-2b"), InstanceId=_instance(), Device="/dev/sdf")


def _attached_twice(_: CloudFormation) -> None:
    instance, volume = _attached()
    ec2().attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdg")


def _device_in_use(_: CloudFormation) -> None:
    instance, _ = _attached()
    ec2().attach_volume(VolumeId=_volume(), InstanceId=instance, Device="/dev/sdf")


def _no_device(_: CloudFormation) -> None:
    ec2().attach_volume(VolumeId=_volume(), InstanceId=_instance(), Device="sdf")


def _dead_instance(_: CloudFormation) -> None:
    instance = _instance()
    ec2().terminate_instances(InstanceIds=[instance])
    ec2().attach_volume(VolumeId=_volume(), InstanceId=instance, Device="/dev/sdf")


def _detached(_: CloudFormation) -> None:
    ec2().detach_volume(VolumeId=_volume())


def _delete_attached(_: CloudFormation) -> None:
    ec2().delete_volume(VolumeId=_attached()[1])


def _modified_again(_: CloudFormation) -> None:
    volume = _volume()
    for size in (2, 3):
        ec2().modify_volume(VolumeId=volume, Size=size)


def _modified_a_fifth_time(cloud: CloudFormation) -> None:
    volume = _volume()
    for size in range(2, 7):
        ec2().modify_volume(VolumeId=volume, Size=size)
        cloud.advance(3600)


def _shrunk(_: CloudFormation) -> None:
    ec2().modify_volume(VolumeId=ec2().create_volume(AvailabilityZone=ZONE, Size=9)["VolumeId"], Size=8)


def _throughput(_: CloudFormation) -> None:
    ec2().create_volume(AvailabilityZone=ZONE, Size=8, VolumeType="gp3", Throughput=1000)


def _too_much_throughput(_: CloudFormation) -> None:
    ec2().create_volume(AvailabilityZone=ZONE, Size=800, VolumeType="gp3", Iops=16000, Throughput=2500)


def _throughput_of_gp2(_: CloudFormation) -> None:
    ec2().create_volume(AvailabilityZone=ZONE, Size=8, VolumeType="gp2", Throughput=250)


def _key_without_encryption(_: CloudFormation) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-4333-8444-555555555555"
    ec2().create_volume(AvailabilityZone=ZONE, Size=8, KmsKeyId=key)


def _disabled_key() -> Resources:
    kms = client("kms", REGION)
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.disable_key(KeyId=key)
    return {"Volume": _resource(Encrypted=True, KmsKeyId=key)}


def _resource(**properties: Any) -> dict[str, Any]:
    return resource("Volume", **{"AvailabilityZone": ZONE, "Size": 20, **properties})


def _template(**properties: Any) -> Creation:
    return only(Volume=_resource(**properties))


def _change(before: dict[str, Any], after: dict[str, Any]) -> Update:
    return Update(lambda: {"Volume": _resource(**before)}, lambda first: {"Volume": _resource(**after)}, fails="Volume")


EBS = "https://docs.aws.amazon.com/ebs/latest/userguide"
TYPES = f"Amazon EBS user guide: [volume types]({EBS}/ebs-volume-types.html)"
MODIFY = operation("ModifyVolume")
ROWS = [
    Refusal(
        "AWS::EC2::Volume", "zone that there is not", "The zone 'us-west-2z' does not exist",
        code("InvalidZone.NotFound"), CONDITION, _template(AvailabilityZone="us-west-2z"),
    ),
    Refusal(
        "AWS::EC2::Volume", "without a size", "Properties validation failed", operation("CreateVolume", "Size"),
        CONDITION, only(Volume=resource("Volume", AvailabilityZone=ZONE)),
    ),
    Refusal(
        "AWS::EC2::Volume", "gp3 above 64 TiB", "is too large for volume type gp3", TYPES, CONDITION,
        _template(VolumeType="gp3", Size=65537),
    ),
    Refusal(
        "AWS::EC2::Volume", "gp2 above 16 TiB", "is too large for volume type gp2", TYPES, CONDITION,
        _template(VolumeType="gp2", Size=16385),
    ),
    Refusal(
        "AWS::EC2::Volume", "unknown type", "gp4", TYPES, CONDITION, _template(VolumeType="gp4"),
    ),
    Refusal(
        "AWS::EC2::Volume", "IOPS of gp2", "The parameter iops is not supported for gp2 volumes", TYPES, CONDITION,
        _template(VolumeType="gp2", Iops=3000),
    ),
    Refusal(
        "AWS::EC2::Volume", "io1 without IOPS", "iops for io1 volumes", operation("CreateVolume", "Iops"),
        CONDITION, _template(VolumeType="io1"),
    ),
    Refusal(
        "AWS::EC2::Volume", "gp3 with fewer than 3,000 IOPS", "is too low; minimum is 3000", TYPES,
        CONDITION, _template(VolumeType="gp3", Iops=2999),
    ),
    Refusal(
        "AWS::EC2::Volume", "gp3 with more than 80,000 IOPS", "is too high; maximum is 80000", TYPES,
        CONDITION, _template(VolumeType="gp3", Size=1000, Iops=80001),
    ),
    Refusal(
        "AWS::EC2::Volume", "gp3 with more than 500 IOPS for each GiB",
        "Iops to volume size ratio of 750.000000 is too high; maximum is 500",
        seen("mono#4410", "https://github.com/rocicorp/mono/pull/4410"), "seen",
        _template(VolumeType="gp3", Iops=15000),
    ),
    Refusal(
        "AWS::EC2::Volume", "io1 with more than 50 IOPS for each GiB", "Iops to volume size ratio of 50.050000", TYPES,
        CONDITION, _template(VolumeType="io1", Iops=1001),
    ),
    Refusal(
        "AWS::EC2::Volume", "key of KMS that there is not", "did not stabilize", operation("CreateVolume", "KmsKeyId"),
        CONDITION, _template(Encrypted=True, KmsKeyId="11111111-2222-4333-8444-555555555555"),
    ),
    Refusal(
        "AWS::EC2::Volume", "key of KMS that is disabled", "did not stabilize", operation("CreateVolume", "KmsKeyId"),
        CONDITION, Creation(_disabled_key, fails="Volume"),
    ),
    Refusal(
        "AWS::EC2::Volume", "made smaller", "New size cannot be smaller than existing size", MODIFY, CONDITION,
        _change({"Size": 20}, {"Size": 19}),
    ),
    Refusal(
        "AWS::EC2::Volume", "moved to another zone", "Updates are not supported",
        "CloudFormation template reference: [AWS::EC2::Volume](https://docs.aws.amazon.com/AWSCloudFormation/latest/"
        "TemplateReference/aws-resource-ec2-volume.html), AvailabilityZone", CONDITION,
        _change({}, {"AvailabilityZone": "us-west-2b"}),
    ),
    Refusal(
        "AWS::EC2::Volume", "more IOPS than its size allows", "Iops to volume size ratio", TYPES, CONDITION,
        _change({"VolumeType": "gp3"}, {"VolumeType": "gp3", "Iops": 10001}),
    ),
    Refusal(
        "ec2:CreateVolume", "more than 0.25 MiB/s for each IOPS",
        "Throughput (MiBps) to iops ratio of 0.333333 is too high; maximum is 0.250000 MiBps per iops",
        seen("runs-on#260", "https://github.com/runs-on/runs-on/issues/260"), "seen", ServiceCall(_throughput),
    ),
    Refusal(
        "ec2:CreateVolume", "gp3 with more than 2,000 MiB/s", "is too high; maximum is 2000", TYPES,
        CONDITION, ServiceCall(_too_much_throughput),
    ),
    Refusal(
        "ec2:CreateVolume", "throughput of gp2", "The parameter throughput is not supported for gp2 volumes", TYPES,
        CONDITION, ServiceCall(_throughput_of_gp2),
    ),
    Refusal(
        "ec2:CreateVolume", "key without encryption", "KmsKeyId", code("InvalidParameterDependency"),
        CONDITION, ServiceCall(_key_without_encryption),
    ),
    Refusal(
        "ec2:AttachVolume", "volume in another zone than the instance",
        "is not in the same availability zone as instance", code("InvalidVolume.ZoneMismatch"), CONDITION,
        ServiceCall(_in_another_zone),
    ),
    Refusal(
        "ec2:AttachVolume", "attached already", "is already attached to an instance", code("VolumeInUse"), CONDITION,
        ServiceCall(_attached_twice),
    ),
    Refusal(
        "ec2:AttachVolume", "device that another volume has", "is already in use", operation("AttachVolume"), CONDITION,
        ServiceCall(_device_in_use),
    ),
    Refusal(
        "ec2:AttachVolume", "name of a device that is none", "is not a valid EBS device name",
        operation("AttachVolume", "Device"), CONDITION, ServiceCall(_no_device),
    ),
    Refusal(
        "ec2:AttachVolume", "instance that is terminated", "is not 'running'", code("IncorrectState"), CONDITION,
        ServiceCall(_dead_instance),
    ),
    Refusal(
        "ec2:DetachVolume", "not attached", "is in the 'available' state", code("IncorrectState"), CONDITION,
        ServiceCall(_detached),
    ),
    Refusal(
        "ec2:DeleteVolume", "attached", "is currently attached to", code("VolumeInUse"), CONDITION,
        ServiceCall(_delete_attached),
    ),
    Refusal(
        "ec2:ModifyVolume", "before the modification before it is complete",
        "cannot be modified in modification state OPTIMIZING", MODIFY, CONDITION, ServiceCall(_modified_again),
    ),
    Refusal(
        "ec2:ModifyVolume", "a fifth time within 24 hours",
        "You've reached the maximum modification rate per volume limit", MODIFY, CONDITION,
        ServiceCall(_modified_a_fifth_time),
    ),
    Refusal(
        "ec2:ModifyVolume", "smaller", "New size cannot be smaller than existing size", MODIFY, CONDITION,
        ServiceCall(_shrunk),
    ),
]  # fmt: skip
