"""Network interfaces, security groups, key pairs and tags."""

from __future__ import annotations

from typing import Any

from ec2_parts import (
    CONDITION,
    OTHER_VPC,
    ZONE,
    code,
    ec2,
    guide,
    interface,
    network,
    only,
    operation,
    ref,
    resource,
    security_group,
)
from refusal import Creation, Refusal, Resources, ServiceCall

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.services import quotas

ANYWHERE = "0.0.0.0/0"


def _ingress(**properties: Any) -> dict[str, Any]:
    ports = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    return resource("SecurityGroupIngress", **{"GroupId": ref("Group"), **ports, **properties})


def _rule(**properties: Any) -> Creation:
    return network(Group=security_group(), Rule=_ingress(**properties))


def _in_use() -> tuple[str, str]:
    """Ids of an instance and of its interface, which stays behind when it goes."""
    image = ec2().register_image(Name="image")["ImageId"]
    network_interface_id = ec2().create_network_interface(SubnetId=_default_subnet("a"))["NetworkInterface"][
        "NetworkInterfaceId"
    ]
    [made] = ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1, SubnetId=_default_subnet("a"))["Instances"]
    instance = made["InstanceId"]
    ec2().attach_network_interface(NetworkInterfaceId=network_interface_id, InstanceId=instance, DeviceIndex=1)
    return instance, network_interface_id


def _default_subnet(letter: str) -> str:
    filters = [{"Name": "availability-zone", "Values": [f"us-west-2{letter}"]}]
    return str(ec2().describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"])


def _delete_attached(_: CloudFormation) -> None:
    ec2().delete_network_interface(NetworkInterfaceId=_in_use()[1])


def _attach_twice(_: CloudFormation) -> None:
    instance, made = _in_use()
    ec2().attach_network_interface(NetworkInterfaceId=made, InstanceId=instance, DeviceIndex=2)


def _attach_in_another_zone(_: CloudFormation) -> None:
    instance, _ = _in_use()
    other = ec2().create_network_interface(SubnetId=_default_subnet("b"))["NetworkInterface"]["NetworkInterfaceId"]
    ec2().attach_network_interface(NetworkInterfaceId=other, InstanceId=instance, DeviceIndex=2)


def _full_subnet() -> Resources:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/28")["Subnet"]["SubnetId"]
    for last in range(4, 15):
        ec2().create_network_interface(SubnetId=place, PrivateIpAddress=f"10.0.0.{last}")
    return {"Interface": interface(SubnetId=place)}


def _group_full_of_rules() -> Resources:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2().create_security_group(GroupName="full", Description="full", VpcId=vpc)["GroupId"]
    ranges = [{"CidrIp": f"10.0.{number}.0/24"} for number in range(60)]
    permission = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": ranges}
    ec2().authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
    return {"Rule": _ingress(GroupId=group, CidrIp=ANYWHERE)}


def _group_used_by_an_interface(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group = ec2().create_security_group(GroupName="used", Description="used", VpcId=vpc)["GroupId"]
    ec2().create_network_interface(SubnetId=place, Groups=[group])
    ec2().delete_security_group(GroupId=group)


def _group_named_by_another(_: CloudFormation) -> None:
    groups = [ec2().create_security_group(GroupName=name, Description=name)["GroupId"] for name in ("one", "two")]
    permission = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": groups[0]}]}
    ec2().authorize_security_group_ingress(GroupId=groups[1], IpPermissions=[permission])
    ec2().delete_security_group(GroupId=groups[0])


def _default_group(_: CloudFormation) -> None:
    filters = [{"Name": "group-name", "Values": ["default"]}]
    [group] = ec2().describe_security_groups(Filters=filters)["SecurityGroups"]
    ec2().delete_security_group(GroupId=group["GroupId"])


def _name_in_use(_: CloudFormation) -> None:
    for _ in range(2):
        ec2().create_security_group(GroupName="one", Description="one")


def _name_in_use_by_a_key() -> Resources:
    ec2().import_key_pair(KeyName="key", PublicKeyMaterial=KEY.encode())
    return {"Key": resource("KeyPair", KeyName="key", PublicKeyMaterial=KEY)}


def _tag_too_many(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for first in (0, 25, 50):
        tags = [{"Key": str(number), "Value": ""} for number in range(first, first + 25)]
        ec2().create_tags(Resources=[vpc], Tags=tags)


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOKrSmyTvtpRsTNgvA42jvG operator"
NETWORKS = "belong to different networks"
RANGES = guide("subnet-sizing", "Subnet CIDR blocks")
PERMISSION = operation("IpPermission")
TAGS = "EC2 user guide: [Tag your resources](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html)"


def _rule_of_nobody(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2().create_security_group(GroupName="one", Description="group", VpcId=vpc)["GroupId"]
    ec2().authorize_security_group_ingress(
        GroupId=group, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}]
    )


def _name_of_aws(_: CloudFormation) -> None:
    ec2().create_security_group(GroupName="sg-one", Description="one")


def _group_by_hand(name: str = "one", most: int = 2500) -> ServiceCall:
    def run(_: CloudFormation) -> None:
        vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        with quotas.override_quotas(
            {quotas.SECURITY_GROUPS: quotas.Quota(*quotas.SECURITY_GROUPS, "Security groups", most)}
        ):
            ec2().create_security_group(GroupName=name, Description="group", VpcId=vpc)

    return ServiceCall(run)


ROWS = [
    Refusal(
        "ec2:CreateSecurityGroup", "one more than the quota", "The maximum number of security groups has been reached",
        code("SecurityGroupLimitExceeded"), CONDITION, _group_by_hand(most=0),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "address outside of the subnet",
        "Address does not fall within the subnet's address range",
        operation("CreateNetworkInterface", "PrivateIpAddress"), CONDITION,
        network(Interface=interface(PrivateIpAddress="10.0.1.9")),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "one of the five addresses that are AWS's",
        "Address is in subnet's reserved address range", RANGES, CONDITION,
        network(Interface=interface(PrivateIpAddress="10.0.0.3")),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "address that another one has", "Address 10.0.0.9 is in use",
        code("InvalidIPAddress.InUse"), CONDITION,
        network(First=interface(PrivateIpAddress="10.0.0.9"),
                Second={**interface(PrivateIpAddress="10.0.0.9"), "DependsOn": "First"}),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "subnet without a free address", "does not have enough free addresses",
        code("InsufficientFreeAddressesInSubnet"), CONDITION, Creation(_full_subnet, fails="Interface"),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "subnet that there is not", "does not exist", code("InvalidSubnetID.NotFound"),
        CONDITION, only(Interface=interface(SubnetId="subnet-0123456789abcdef0")),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "security group that there is not", "does not exist",
        code("InvalidGroup.NotFound"), CONDITION, network(Interface=interface(GroupSet=["sg-0123456789abcdef0"])),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "security group of another VPC", NETWORKS,
        operation("CreateNetworkInterface", "Groups"), CONDITION,
        network(Other=OTHER_VPC, Group=security_group("Other"), Interface=interface(GroupSet=[ref("Group")])),
    ),
    Refusal(
        "AWS::EC2::NetworkInterface", "six security groups, where the quota is five",
        "The maximum number of security groups per interface has been reached",
        code("SecurityGroupsPerInterfaceLimitExceeded"), CONDITION,
        network(**{f"Group{number}": security_group() for number in range(6)},
                Interface=interface(GroupSet=[ref(f"Group{number}") for number in range(6)])),
    ),
    Refusal(
        "ec2:DeleteNetworkInterface", "attached", "is currently in use", operation(
            "DeleteNetworkInterface", "You must detach the network interface before you can delete it"), CONDITION,
        ServiceCall(_delete_attached),
    ),
    Refusal(
        "ec2:AttachNetworkInterface", "attached already", "in use", code("InvalidNetworkInterface.InUse"), CONDITION,
        ServiceCall(_attach_twice),
    ),
    Refusal(
        "ec2:AttachNetworkInterface", "instance in another zone",
        "You may not attach a network interface to an instance if they are not in the same availability zone",
        "EC2 user guide: [Elastic network interfaces](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
        "using-eni.html)", CONDITION, ServiceCall(_attach_in_another_zone),
    ),
    Refusal(
        "AWS::EC2::SecurityGroup", "VPC that there is not", "does not exist", code("InvalidVpcID.NotFound"),
        CONDITION, only(Group=resource("SecurityGroup", VpcId="vpc-0123456789abcdef0", GroupDescription="group")),
    ),
    Refusal(
        "AWS::EC2::SecurityGroup", "egress rule twice", "The same permission must not appear multiple times",
        operation("AuthorizeSecurityGroupEgress"), CONDITION,
        network(Group=security_group(SecurityGroupEgress=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443,
                                                           "CidrIp": ANYWHERE}] * 2)),
    ),
    Refusal(
        "AWS::EC2::SecurityGroup", "61 egress rules, where the quota is 60",
        "The maximum number of rules per security group has been reached",
        code("RulesPerSecurityGroupLimitExceeded"), CONDITION,
        network(Group=security_group(SecurityGroupEgress=[
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": f"10.0.{number}.0/24"}
            for number in range(61)])),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "61st rule, where the quota is 60",
        "The maximum number of rules per security group has been reached",
        code("RulesPerSecurityGroupLimitExceeded"), CONDITION, Creation(_group_full_of_rules, fails="Rule"),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "rule that the group has", "already exists",
        code("InvalidPermission.Duplicate"), CONDITION,
        network(Group=security_group(), First=_ingress(CidrIp=ANYWHERE),
                Second={**_ingress(CidrIp=ANYWHERE), "DependsOn": "First"}),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "group that there is not", "does not exist", code("InvalidGroup.NotFound"),
        CONDITION, only(Rule=_ingress(GroupId="sg-0123456789abcdef0", CidrIp=ANYWHERE)),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "source group that there is not", "does not exist",
        code("InvalidGroup.NotFound"), CONDITION, _rule(SourceSecurityGroupId="sg-0123456789abcdef0"),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "source group of another VPC",
        "You have specified two resources that belong to different networks", code("InvalidGroup.NotFound"), CONDITION,
        network(Other=OTHER_VPC, Foreign=security_group("Other"), Group=security_group(),
                Rule=_ingress(SourceSecurityGroupId=ref("Foreign"))),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "prefix list that there is not", "does not exist",
        code("InvalidPrefixListID.NotFound"), CONDITION, _rule(SourcePrefixListId="pl-0123456789abcdef0"),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "range that is none", "CIDR block 10.0.0.0/33 is malformed",
        operation("AuthorizeSecurityGroupIngress", "CidrIp"), CONDITION, _rule(CidrIp="10.0.0.0/33"),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "first port above the last", "Invalid TCP/UDP port range", PERMISSION,
        CONDITION, _rule(CidrIp=ANYWHERE, FromPort=443, ToPort=80),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "port above 65535", "Invalid TCP/UDP port range", PERMISSION,
        CONDITION, _rule(CidrIp=ANYWHERE, FromPort=65530, ToPort=65536),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "TCP without ports", "Must specify both from and to ports with TCP/UDP",
        PERMISSION, CONDITION,
        network(Group=security_group(),
                Rule=resource("SecurityGroupIngress", GroupId=ref("Group"), IpProtocol="tcp", CidrIp=ANYWHERE)),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "unknown protocol", "Unknown protocol", PERMISSION, CONDITION,
        _rule(CidrIp=ANYWHERE, IpProtocol="tpc"),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "ICMP type above 255", "is out of range", PERMISSION,
        CONDITION, _rule(CidrIp=ANYWHERE, IpProtocol="icmp", FromPort=300, ToPort=-1),
    ),
    Refusal(
        "AWS::EC2::SecurityGroupIngress", "ICMP without a type", "is out of range", PERMISSION, CONDITION,
        network(Group=security_group(), Rule=resource(
            "SecurityGroupIngress", GroupId=ref("Group"), IpProtocol="icmp", CidrIp=ANYWHERE)),
    ),
    Refusal(
        "ec2:CreateSecurityGroup", "name that another one in the VPC has", "InvalidGroup.Duplicate",
        code("InvalidGroup.Duplicate"), "documented", ServiceCall(_name_in_use),
    ),
    Refusal(
        "ec2:DeleteSecurityGroup", "an interface has it", "has a dependent object", code("DependencyViolation"),
        CONDITION, ServiceCall(_group_used_by_an_interface),
    ),
    Refusal(
        "ec2:DeleteSecurityGroup", "a rule of another group names it", "has a dependent object",
        code("DependencyViolation"), CONDITION, ServiceCall(_group_named_by_another),
    ),
    Refusal(
        "ec2:DeleteSecurityGroup", "a VPC's default one", "cannot be deleted by a user", code("CannotDelete"),
        CONDITION,
        ServiceCall(_default_group),
    ),
    Refusal(
        "AWS::EC2::KeyPair", "name that another one has", "InvalidKeyPair.Duplicate", code("InvalidKeyPair.Duplicate"),
        "documented", Creation(_name_in_use_by_a_key, fails="Key"),
    ),
    Refusal(
        "AWS::EC2::KeyPair", "material that is no public key", "not in valid OpenSSH public key format",
        code("InvalidKey.Format"), CONDITION,
        only(Key=resource("KeyPair", KeyName="key", PublicKeyMaterial="ssh-ed25519 nonsense")),
    ),
    Refusal(
        "AWS::EC2::Volume", "key of a tag twice", "Duplicate tag key 'a' specified", TAGS, CONDITION,
        only(Volume=resource("Volume", AvailabilityZone=ZONE, Size=1, Tags=[{"Key": "a", "Value": "1"}] * 2)),
    ),
    Refusal(
        "AWS::EC2::Volume", "51 tags", "More than 50 tags specified", code("TagLimitExceeded"), CONDITION,
        only(Volume=resource("Volume", AvailabilityZone=ZONE, Size=1,
                             Tags=[{"Key": str(number), "Value": ""} for number in range(51)])),
    ),
    Refusal(
        "AWS::EC2::Volume", "tag of AWS's own", "aws:", TAGS, CONDITION,
        only(Volume=resource("Volume", AvailabilityZone=ZONE, Size=1, Tags=[{"Key": "aws:a", "Value": ""}])),
    ),
    Refusal(
        "ec2:CreateTags", "51st tag", "More than 50 tags specified", code("TagLimitExceeded"), CONDITION,
        ServiceCall(_tag_too_many),
    ),
    Refusal(
        "ec2:AuthorizeSecurityGroupIngress", "rule without a source",
        "The request must contain a source or a destination of the rule", code("MissingParameter"), CONDITION,
        ServiceCall(_rule_of_nobody),
    ),
    Refusal(
        "ec2:CreateSecurityGroup", "name that begins with sg-", "must not begin with sg-",
        operation("CreateSecurityGroup", "GroupName"), CONDITION, ServiceCall(_name_of_aws),
    ),
]  # fmt: skip
