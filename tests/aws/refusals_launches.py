"""Launches of instances, launch templates, and the groups that use them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from ec2_parts import (
    CONDITION,
    OTHER_VPC,
    VPC,
    ZONE,
    code,
    ec2,
    interface,
    only,
    operation,
    ref,
    resource,
    security_group,
    seen,
    subnet,
)
from refusal import Creation, Refusal, Resources, ServiceCall, Update
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.services import capacity

UNKNOWN_INTERFACE = "eni-0123456789abcdef0"
UNKNOWN_IMAGE = "ami-0123456789abcdef0"
NO_SIGNAL = {"MinSize": "1", "MaxSize": "1"}


def _image(**settings: Any) -> str:
    return str(ec2().register_image(Name="image", **settings)["ImageId"])


def _group(**properties: Any) -> dict[str, Any]:
    version = {"LaunchTemplateId": ref("Template"), "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}}
    place = {} if "VPCZoneIdentifier" in properties else {"AvailabilityZones": [ZONE]}
    return {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {**NO_SIGNAL, **place, "LaunchTemplate": version, **properties},
    }


def _template(**data: Any) -> dict[str, Any]:
    return resource("LaunchTemplate", LaunchTemplateData=data)


def _launched(
    data: Mapping[str, Any],
    others: Mapping[str, Any] | None = None,
    *,
    before: Callable[[], object] = lambda: None,
    image: Mapping[str, Any] | None = None,
    **group: Any,
) -> Creation:
    """A group of one, or as it says, whose launch template has these data."""

    def resources() -> Resources:
        before()
        own = {"ImageId": _image(**(image or {})), "InstanceType": "t3.medium", **data}
        kept = {key: value for key, value in own.items() if value is not None}
        return {**(others or {}), "Template": _template(**kept), "Group": _group(**group)}

    return Creation(resources, fails="Group")


def _templated(**data: Any) -> Creation:
    return only(Template=_template(**data))


def _by_hand(**request: Any) -> ServiceCall:
    def run(_: CloudFormation) -> None:
        ec2().run_instances(**{"ImageId": _image(), "MinCount": 1, "MaxCount": 1, **request})

    return ServiceCall(run)


def _of_a_group(name: str, text: str) -> str:
    return f"Amazon EC2 Auto Scaling user guide: [{name}]({AUTO_SCALING}/{text}.html)"


def _deregistered() -> Resources:
    image = _image()
    ec2().deregister_image(ImageId=image)
    return {"Template": _template(ImageId=image, InstanceType="t3.medium"), "Group": _group()}


def _used_interface() -> Resources:
    [place] = ec2().describe_subnets(Filters=[{"Name": "availability-zone", "Values": [ZONE]}])["Subnets"]
    network_interface_id = ec2().create_network_interface(SubnetId=place["SubnetId"])["NetworkInterface"][
        "NetworkInterfaceId"
    ]
    own = [{"DeviceIndex": 0, "NetworkInterfaceId": network_interface_id}]
    image = _image()
    [made] = ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1, SubnetId=place["SubnetId"])["Instances"]
    ec2().attach_network_interface(
        NetworkInterfaceId=network_interface_id, InstanceId=made["InstanceId"], DeviceIndex=1
    )
    data = {"ImageId": image, "InstanceType": "t3.medium", "NetworkInterfaces": own}
    return {"Template": _template(**data), "Group": _group()}


def _twelve_in_a_small_subnet(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/28")["Subnet"]["SubnetId"]
    ec2().run_instances(ImageId=_image(), MinCount=12, MaxCount=12, SubnetId=place)


def _profile_without_a_role() -> None:
    client("iam", REGION).create_instance_profile(InstanceProfileName="empty")


def _key_that_is_gone(cloud: CloudFormation) -> None:
    kms = client("kms", REGION)
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": True, "KmsKeyId": key, "VolumeSize": 8}}
    ec2().run_instances(ImageId=_image(), MinCount=1, MaxCount=1, BlockDeviceMappings=[disk])


def _tags_without_a_type(_: CloudFormation) -> None:
    ec2().create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=[{"Tags": [{"Key": "a", "Value": "b"}]}])


def _update(data: Mapping[str, Any]) -> Update:
    """A group of one whose launch template gets these data."""

    def first() -> Resources:
        return {"Template": _template(ImageId=_image(), InstanceType="t3.medium"), "Group": _group()}

    def second(before: Resources) -> Resources:
        own = before["Template"]["Properties"]["LaunchTemplateData"]
        return {**before, "Template": _template(**{**own, **data})}

    return Update(first, second, fails="Group")


def _name_in_use(_: CloudFormation) -> None:
    for _ in range(2):
        ec2().create_launch_template(LaunchTemplateName="one", LaunchTemplateData={"InstanceType": "t3.medium"})


def _other_version() -> Resources:
    own = {"LaunchTemplateId": ref("Template"), "Version": "2"}
    return {"Template": _template(ImageId=_image(), InstanceType="t3.medium"), "Group": _group(LaunchTemplate=own)}


def _disks(*disks: Mapping[str, Any], device: str = "/dev/sda1") -> dict[str, Any]:
    return {"BlockDeviceMappings": [{"DeviceName": device, "Ebs": dict(disk)} for disk in disks]}


def _existing(**more: Any) -> dict[str, Any]:
    return {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": ref("Interface"), **more}]}


def _spot(price: str) -> dict[str, Any]:
    options = {"SpotInstanceType": "one-time", "MaxPrice": price}
    return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}


NETWORK = {"Vpc": VPC, "Subnet": subnet()}
INTERFACE = {**NETWORK, "Interface": interface()}
OTHER_ZONE = {"Vpc": VPC, "Subnet": subnet(zone="us-west-2b"), "Interface": interface()}
PROFILE = "arn:aws:iam::123456789012:instance-profile/nobody"
AUTO_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/userguide"
FAILURES = _of_a_group("launch failures", "ts-as-instancelaunchfailure")
IMAGES = _of_a_group("AMI issues", "ts-as-ami")
CAPACITY = _of_a_group("capacity", "ts-as-capacity")
STABLE = "Group did not stabilize. Last scaling activity: "
FORMED = "You must use a valid fully-formed launch template. "
PROFILES = seen("terraform#29866", "https://github.com/hashicorp/terraform-provider-aws/issues/29866")
TEMPLATES = operation("RequestLaunchTemplateData")
TAGS_OF_TEMPLATES = seen("cfn-lint#975", "https://github.com/aws-cloudformation/cfn-lint/issues/975")
GROUP = "AWS::AutoScaling::AutoScalingGroup"
TEMPLATE = "AWS::EC2::LaunchTemplate"
ROWS = [
    Refusal(
        GROUP, "image that there is not", f"{FORMED}The image id '[{UNKNOWN_IMAGE}]' does not exist", IMAGES, CONDITION,
        _launched({"ImageId": UNKNOWN_IMAGE}),
    ),
    Refusal(
        GROUP, "image that is deregistered", "is no longer available", code("InvalidAMIID.Unavailable"),
        CONDITION, Creation(_deregistered, fails="Group"),
    ),
    Refusal(
        GROUP, "instance type that there is not", f"{FORMED}Invalid value 'm5.medium' for InstanceType",
        operation("RunInstances", "InstanceType"),
        CONDITION, _launched({"InstanceType": "m5.medium"}),
    ),
    Refusal(
        GROUP, "instance type of another architecture than the image", "does not match the architecture", IMAGES,
        CONDITION, _launched({"InstanceType": "m7g.large"}, image={"Architecture": "x86_64"}),
    ),
    Refusal(
        GROUP, "instance type that the zone does not offer",
        f"{STABLE}Your requested instance type (h1.2xlarge) is not supported in your requested Availability Zone",
        FAILURES, "documented", _launched({"InstanceType": "h1.2xlarge"}),
    ),
    Refusal(
        GROUP, "key pair that there is not", f"{FORMED}The key pair 'nobody' does not exist",
        seen("terraform-aws-bastion#173", "https://github.com/Guimove/terraform-aws-bastion/issues/173"), "seen",
        _launched({"KeyName": "nobody"}),
    ),
    Refusal(
        GROUP, "instance profile that there is not, by its ARN",
        f"{FORMED}Value ({PROFILE}) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN",
        PROFILES, "seen", _launched({"IamInstanceProfile": {"Arn": PROFILE}}),
    ),
    Refusal(
        GROUP, "instance profile that there is not, by its name",
        f"{FORMED}Value (nobody) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        seen("terraform#4769", "https://github.com/hashicorp/terraform-provider-aws/issues/4769"), "seen",
        _launched({"IamInstanceProfile": {"Name": "nobody"}}),
    ),
    Refusal(
        GROUP, "instance profile without a role", "has no associated IAM Roles",
        operation("RunInstances", "IamInstanceProfile"), CONDITION,
        _launched({"IamInstanceProfile": {"Name": "empty"}}, before=_profile_without_a_role),
    ),
    Refusal(
        GROUP, "security group that there is not", f"{FORMED}The security group 'sg-0123456789abcdef0' does not exist",
        FAILURES, "documented",
        _launched({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}]}),
    ),
    Refusal(
        GROUP, "security group of another VPC", "belong to different networks", operation("RunInstances"), CONDITION,
        _launched({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [ref("Foreign")]}]},
                  {**NETWORK, "Other": OTHER_VPC, "Foreign": security_group("Other")},
                  VPCZoneIdentifier=[ref("Subnet")]),
    ),
    Refusal(
        GROUP, "interface that exists, and subnets",
        f"{FORMED}A network interface may not specify both a network interface ID and a subnet",
        TEMPLATES, CONDITION, _launched(_existing(), INTERFACE, VPCZoneIdentifier=[ref("Subnet")]),
    ),
    Refusal(
        GROUP, "interface that exists, and security groups",
        "A network interface may not specify both a network interface ID and security groups", TEMPLATES,
        CONDITION,
        _launched(_existing(Groups=[ref("Own")]), {**INTERFACE, "Own": security_group()}),
    ),
    Refusal(
        GROUP, "interface that there is not", "does not exist", code("InvalidNetworkInterfaceID.NotFound"),
        CONDITION, _launched({"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": UNKNOWN_INTERFACE}]}),
    ),
    Refusal(
        GROUP, "interface in another zone",
        "You may not attach a network interface to an instance if they are not in the same availability zone",
        TEMPLATES, CONDITION, _launched(_existing(), OTHER_ZONE),
    ),
    Refusal(
        GROUP, "interface that an instance has", "in use. Launching EC2 instance failed",
        code("InvalidNetworkInterface.InUse"), CONDITION, Creation(_used_interface, fails="Group"),
    ),
    Refusal(
        GROUP, "two instances on one interface", "in use. Launching EC2 instance failed",
        code("InvalidNetworkInterface.InUse"), CONDITION, _launched(_existing(), INTERFACE, MinSize="2", MaxSize="2"),
    ),
    Refusal(
        GROUP, "root volume smaller than the image's snapshot", "GB is smaller than snapshot",
        code("InvalidBlockDeviceMapping"), CONDITION,
        _launched(_disks({"VolumeSize": 7})),
    ),
    Refusal(
        GROUP, "more IOPS than the root volume's size allows", "Iops to volume size ratio", TEMPLATES, CONDITION,
        _launched(_disks({"VolumeType": "gp3", "VolumeSize": 8, "Iops": 5000})),
    ),
    Refusal(
        GROUP, "more throughput than the root volume's IOPS allow", "to iops ratio of", TEMPLATES, CONDITION,
        _launched(_disks({"VolumeType": "gp3", "VolumeSize": 8, "Throughput": 1000})),
    ),
    Refusal(
        GROUP, "root volume encrypted with a key that there is not", f"{STABLE}The KMS key provided does not exist",
        "EC2 user guide: [Instance terminates immediately](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
        "troubleshooting-launch.html)", CONDITION,
        _launched(_disks({"VolumeSize": 8, "Encrypted": True, "KmsKeyId": "11111111-2222-4333-8444-555555555555"})),
    ),
    Refusal(
        GROUP, "price of a Spot Instance below the least bid", "Bid price must be greater than or equal to 0.001",
        TEMPLATES,
        CONDITION, _launched(_spot("0.0001")),
    ),
    Refusal(
        GROUP, "price of a Spot Instance below the market's",
        f"{STABLE}Your Spot request price of 0.01 is lower than the minimum required Spot request fulfillment price of "
        "0.0125", FAILURES, "documented",
        _launched(_spot("0.01"), before=lambda: capacity.set_spot_price(REGION, "t3.medium", 0.0125)),
    ),
    Refusal(
        GROUP, "zone without room", f"{STABLE}We currently do not have sufficient t3.medium capacity in the "
        "Availability Zone you requested (us-west-2a)", CAPACITY, "documented",
        _launched({}, before=lambda: capacity.remove_capacity(REGION, "t3.medium", ZONE)),
    ),
    Refusal(
        GROUP, "more processors than the quota", f"{STABLE}You have requested more vCPU capacity than your current "
        "vCPU limit of 64 allows", code("VcpuLimitExceeded"), CONDITION, _launched({"InstanceType": "m5.24xlarge"}),
    ),
    Refusal(
        GROUP, "more processors of Spot Instances than the quota", f"{STABLE}Max spot instance count exceeded",
        code("MaxSpotInstanceCountExceeded"), CONDITION, _launched({"InstanceType": "m5.24xlarge", **_spot("1")}),
    ),
    Refusal(
        GROUP, "version of the launch template that there is not", "Could not find launch template version 2",
        code("InvalidLaunchTemplateId.VersionNotFound"), CONDITION,
        Creation(_other_version, fails="Group"),
    ),
    Refusal(
        GROUP, "launch template that gets an unknown image", f"{FORMED}The image id '[{UNKNOWN_IMAGE}]'", IMAGES,
        CONDITION, _update({"ImageId": UNKNOWN_IMAGE}),
    ),
    Refusal(
        GROUP, "launch template that gets an unknown instance type", f"{FORMED}Invalid value 'm5.medium'",
        operation("RunInstances", "InstanceType"),
        CONDITION, _update({"InstanceType": "m5.medium"}),
    ),
    Refusal(
        TEMPLATE, "user data that is no base64", "Invalid BASE64 encoding of user data",
        code("InvalidUserData.Malformed"), CONDITION, _templated(UserData="#!/bin/sh"),
    ),
    Refusal(
        TEMPLATE, "user data above 16,384 bytes", "User data is limited to 16384 bytes",
        "EC2 user guide: [user data](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html)", CONDITION,
        _templated(UserData=base64.b64encode(b"#" * 16385).decode()),
    ),
    Refusal(
        TEMPLATE, "key of a tag twice", "Duplicate tag key 'a' specified", TEMPLATES, CONDITION,
        _templated(TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "b"}] * 2}]),
    ),
    Refusal(
        "ec2:CreateLaunchTemplate", "name that another one has", "already in use",
        code("InvalidLaunchTemplateName.AlreadyExistsException"), CONDITION, ServiceCall(_name_in_use),
    ),
    Refusal(
        "ec2:RunInstances", "image that there is not", f"The image id '[{UNKNOWN_IMAGE}]' does not exist",
        code("InvalidAMIID.NotFound"), CONDITION, _by_hand(ImageId=UNKNOWN_IMAGE),
    ),
    Refusal(
        "ec2:RunInstances", "id of an image that is none", 'Invalid id: "ubuntu" (expecting "ami-...")',
        code("InvalidAMIID.Malformed"), CONDITION, _by_hand(ImageId="ubuntu"),
    ),
    Refusal(
        "ec2:RunInstances", "root volume encrypted with a key that is being deleted", "is in an incorrect state",
        "EC2 user guide: [Instance terminates immediately](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
        "troubleshooting-launch.html)", CONDITION, ServiceCall(_key_that_is_gone),
    ),
    Refusal(
        "ec2:RunInstances", "key pair that there is not", "The key pair 'nobody' does not exist",
        code("InvalidKeyPair.NotFound"), CONDITION, _by_hand(KeyName="nobody"),
    ),
    Refusal(
        "ec2:RunInstances", "more instances than the subnet has addresses",
        "There are not enough free addresses in subnet to satisfy the requested number of instances",
        code("InsufficientFreeAddressesInSubnet"), CONDITION, ServiceCall(_twelve_in_a_small_subnet),
    ),
    Refusal(
        GROUP, "volume of io1 without its IOPS", "The request must contain the parameter iops for io1 volumes",
        operation("EbsBlockDevice", "Iops"), CONDITION,
        _launched(_disks({"VolumeSize": 20, "VolumeType": "io1"})),
    ),
    Refusal(
        GROUP, "profile by both name and ARN", "may not be used in combination with 'iamInstanceProfile.arn'",
        seen("terraform#4344", "https://github.com/hashicorp/terraform-provider-aws/issues/4344"), "seen",
        _launched({"IamInstanceProfile": {"Arn": PROFILE, "Name": "nobody"}}),
    ),
    Refusal(
        GROUP, "device twice", "is used in more than one mapping", TEMPLATES, CONDITION,
        _launched(_disks({"VolumeSize": 8}, {"VolumeSize": 8})),
    ),
    Refusal(
        GROUP, "launch template without an instance type", "The request must contain the parameter InstanceType",
        _of_a_group("launch templates", "create-launch-template"), CONDITION, _launched({"InstanceType": None}),
    ),
    Refusal(
        TEMPLATE, "tags for a type of which there are none", "The tags cannot be null or empty", TAGS_OF_TEMPLATES,
        "seen", _templated(TagSpecifications=[{"ResourceType": "instance"}]),
    ),
    Refusal(
        TEMPLATE, "tags without a type", "The resource type cannot be null or empty", TAGS_OF_TEMPLATES, "seen",
        _templated(TagSpecifications=[{"Tags": [{"Key": "a", "Value": "b"}]}]),
    ),
    Refusal(
        "ec2:CreateVpc", "tags without a type", "The resource type cannot be null or empty", TAGS_OF_TEMPLATES,
        "assumed", ServiceCall(_tags_without_a_type),
    ),
    Refusal(
        GROUP, "two interfaces at one index", "requires a unique device index", TEMPLATES, CONDITION,
        _launched({"NetworkInterfaces": [{"DeviceIndex": 0}, {"DeviceIndex": 0}]}),
    ),
    Refusal(
        GROUP, "name of a device that is none", "Invalid device name", FAILURES, "documented",
        _launched(_disks({"VolumeSize": 8}, device="disk")),
    ),
    Refusal(
        GROUP, "price of a Spot Instance that is no number", "Invalid value 'cheap' for spotPrice", TEMPLATES,
        CONDITION, _launched(_spot("cheap")),
    ),
    Refusal(
        GROUP, "settings of a Spot Instance without a market",
        "The request must contain the parameter MarketType", code("MissingParameter"), CONDITION,
        _launched({"InstanceMarketOptions": {"SpotOptions": {"MaxPrice": "1"}}}),
    ),
]  # fmt: skip
