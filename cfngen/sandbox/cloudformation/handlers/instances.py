"""AWS::EC2 and AWS::AutoScaling types that instances are made of."""

from __future__ import annotations

import base64
import ipaddress

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler, client

USER_DATA_LIMIT = 16384  # bytes before base64, EC2 user guide, "Run commands when you launch an instance"


class NetworkInterface(Handler):
    properties = frozenset({"SubnetId", "PrivateIpAddress", "GroupSet", "Description", "SourceDestCheck", "Tags"})

    def create(self, call: Call) -> Created:
        if address := call.properties.get("PrivateIpAddress"):
            _check_address(call, address)
        made = call.ec2.create_network_interface(
            **call.only("SubnetId", "PrivateIpAddress", "Description"),
            Groups=call.properties.get("GroupSet", []),
            **call.tagged("network-interface"),
        )["NetworkInterface"]
        identifier = made["NetworkInterfaceId"]
        check = {"Value": call.properties.get("SourceDestCheck", True)}
        call.ec2.modify_network_interface_attribute(NetworkInterfaceId=identifier, SourceDestCheck=check)
        address = made["PrivateIpAddress"]
        return Created(identifier, {"Id": identifier, "PrimaryPrivateIpAddress": address, "VpcId": made["VpcId"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_network_interface(NetworkInterfaceId=call.physical_id)


def _check_address(call: Call, address: str) -> None:
    """Refuse what EC2 refuses and moto takes: VPC user guide, "Subnet CIDR blocks", keeps five addresses for itself."""
    [subnet] = call.ec2.describe_subnets(SubnetIds=[call["SubnetId"]])["Subnets"]
    block = ipaddress.ip_network(subnet["CidrBlock"])
    kept = {block[index] for index in (0, 1, 2, 3, -1)}
    if ipaddress.ip_address(address) not in block or ipaddress.ip_address(address) in kept:
        raise ResourceError(f"{address} is no address of the subnet's range {block} that can be used")


class ElasticIp(Handler):
    properties = frozenset({"Domain", "Tags"})

    def create(self, call: Call) -> Created:
        made = call.ec2.allocate_address(Domain=call.properties.get("Domain", "vpc"), **call.tagged("elastic-ip"))
        return Created(made["PublicIp"], {key: made[key] for key in ("PublicIp", "AllocationId")})

    def delete(self, call: Call) -> None:
        call.ec2.release_address(AllocationId=call.attributes["AllocationId"])


class ElasticIpAssociation(Handler):
    properties = frozenset({"AllocationId", "NetworkInterfaceId"})

    def create(self, call: Call) -> Created:
        identifier = call.ec2.associate_address(**call.properties)["AssociationId"]
        return Created(identifier, {"Id": identifier})

    def delete(self, call: Call) -> None:
        call.ec2.disassociate_address(AssociationId=call.physical_id)


class Volume(Handler):
    properties = frozenset({"AvailabilityZone", "Size", "Encrypted", "VolumeType", "Iops", "KmsKeyId", "Tags"})
    snapshots = True

    def create(self, call: Call) -> Created:
        plain = self.properties - {"Tags"}
        identifier = call.ec2.create_volume(**call.only(*plain), **call.tagged("volume"))["VolumeId"]
        return Created(identifier, {"VolumeId": identifier})

    def delete(self, call: Call) -> None:
        call.ec2.delete_volume(VolumeId=call.physical_id)

    def snapshot(self, call: Call) -> None:
        call.ec2.create_snapshot(VolumeId=call.physical_id, Description=call.name(), **call.tagged("snapshot"))


class KeyPair(Handler):
    properties = frozenset({"KeyName", "PublicKeyMaterial", "Tags"})

    def create(self, call: Call) -> Created:
        made = call.ec2.import_key_pair(
            KeyName=call["KeyName"], PublicKeyMaterial=call["PublicKeyMaterial"].encode(), **call.tagged("key-pair")
        )
        return Created(call["KeyName"], {"KeyPairId": made["KeyPairId"], "KeyFingerprint": made["KeyFingerprint"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_key_pair(KeyName=call.physical_id)


class LaunchTemplate(Handler):
    properties = frozenset({"LaunchTemplateData", "TagSpecifications"})

    def create(self, call: Call) -> Created:
        data = call["LaunchTemplateData"]
        if len(base64.b64decode(data.get("UserData", ""), validate=True)) > USER_DATA_LIMIT:
            raise ResourceError(f"User data is limited to {USER_DATA_LIMIT} bytes")
        made = call.ec2.create_launch_template(
            LaunchTemplateName=call.name(), LaunchTemplateData=data, **call.only("TagSpecifications")
        )["LaunchTemplate"]
        versions = {"LatestVersionNumber": "1", "DefaultVersionNumber": "1"}
        return Created(made["LaunchTemplateId"], {"LaunchTemplateId": made["LaunchTemplateId"], **versions})

    def delete(self, call: Call) -> None:
        call.ec2.delete_launch_template(LaunchTemplateId=call.physical_id)


class AutoScalingGroup(Handler):
    properties = frozenset(
        {"MinSize", "MaxSize", "DesiredCapacity", "AvailabilityZones", "VPCZoneIdentifier", "LaunchTemplate", "Tags"}
    )

    def create(self, call: Call) -> Created:
        name = call.name()
        sizes = {key: int(value) for key, value in call.only("MinSize", "MaxSize", "DesiredCapacity").items()}
        where = call.only("AvailabilityZones")
        if subnets := call.properties.get("VPCZoneIdentifier"):
            where["VPCZoneIdentifier"] = ",".join(subnets)
        group = {"ResourceId": name, "ResourceType": "auto-scaling-group"}
        client("autoscaling", call.region).create_auto_scaling_group(
            AutoScalingGroupName=name, **sizes, **where, LaunchTemplate=call["LaunchTemplate"],
            Tags=[{**tag, **group} for tag in call.properties.get("Tags", [])],
        )  # fmt: skip
        return Created(name)

    def delete(self, call: Call) -> None:
        client("autoscaling", call.region).delete_auto_scaling_group(
            AutoScalingGroupName=call.physical_id, ForceDelete=True
        )
