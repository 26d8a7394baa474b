"""Handlers of AWS::EC2 types that instances use.

They are network interfaces, Elastic IPs, volumes, key pairs, launch templates and Capacity Reservations.
"""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Ec2Resource,
    Handler,
    HandlerCall,
    Tag,
    delete_on_failure,
)
from cfngen.sandbox.services import keys
from cfngen.sandbox.services.modelled_parameters import MODELLED
from cfngen.sandbox.untyped import Properties

# In a VPC, reassociation is allowed by default (EC2 API, AssociateAddress); moto needs the argument.
ELASTIC_IP_ASSOCIATION = Ec2Resource(
    "AllocationId",
    "NetworkInterfaceId",
    create="associate_address",
    delete="disassociate_address",
    path=("AssociationId",),
    attribute="Id",
    arguments={"AllowReassociation": True},
)


class NetworkInterface(Handler):
    supported_properties = frozenset(
        {"SubnetId", "PrivateIpAddress", "GroupSet", "Description", "SourceDestCheck", "Tags"}
    )
    deletion = ("ec2", "delete_network_interface", "NetworkInterfaceId")

    def create(self, call: HandlerCall) -> CreatedResource:
        interface = call.ec2.create_network_interface(
            **call.pick("SubnetId", "PrivateIpAddress", "Description"),
            Groups=call.properties.get("GroupSet", []),
            **call.tag_specifications("network-interface"),
        )["NetworkInterface"]
        identifier = interface["NetworkInterfaceId"]
        source_dest_check = {"Value": call.properties.get("SourceDestCheck", True)}
        with delete_on_failure(lambda: call.ec2.delete_network_interface(NetworkInterfaceId=identifier)):
            call.ec2.modify_network_interface_attribute(
                NetworkInterfaceId=identifier, SourceDestCheck=source_dest_check
            )
        address = interface["PrivateIpAddress"]
        return CreatedResource(
            identifier, {"Id": identifier, "PrimaryPrivateIpAddress": address, "VpcId": interface["VpcId"]}
        )

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        # By property: the argument of ModifyNetworkInterfaceAttribute, which sets one attribute in each call.
        arguments_by_property = {
            "GroupSet": {"Groups": call.properties.get("GroupSet", [])},
            "Description": {"Description": {"Value": call.properties.get("Description", "")}},
            "SourceDestCheck": {"SourceDestCheck": {"Value": call.properties.get("SourceDestCheck", True)}},
        }
        for key in changed & set(arguments_by_property):
            call.ec2.modify_network_interface_attribute(
                NetworkInterfaceId=call.physical_id, **arguments_by_property[key]
            )


class ElasticIp(Handler):
    supported_properties = frozenset({"Domain=vpc", "Tags"})
    never_updated_properties = frozenset({"Domain"})

    def create(self, call: HandlerCall) -> CreatedResource:
        address = call.ec2.allocate_address(
            Domain=call.properties.get("Domain", "vpc"), **call.tag_specifications("elastic-ip")
        )
        return CreatedResource(address["PublicIp"], {key: address[key] for key in ("PublicIp", "AllocationId")})

    def tagged_resource_id(self, call: HandlerCall) -> str:
        """The allocation id; the physical id is the IP address."""
        return str(call.attributes["AllocationId"])

    def delete(self, call: HandlerCall) -> None:
        call.ec2.release_address(AllocationId=call.attributes["AllocationId"])


class Volume(Handler):
    modifiable = frozenset({"Size", "VolumeType", "Iops", "Throughput"})
    supported_properties = modifiable | {"AvailabilityZone", "Encrypted", "KmsKeyId", "Tags"}
    deletion = ("ec2", "delete_volume", "VolumeId")
    non_updatable_properties = frozenset({"AvailabilityZone", "Encrypted", "KmsKeyId"})
    supports_snapshots = True

    def create(self, call: HandlerCall) -> CreatedResource:
        if call.properties.get("Encrypted"):
            key_error = keys.launch_error(call.region, call.properties.get("KmsKeyId", ""))
            if key_error:
                # API, CreateVolume: the key is checked after the call, and the volume then fails.
                raise ResourceError(f"Volume did not stabilize: {key_error}")
        settings = call.pick(*(self.supported_properties - {"Tags"}))
        volume_id = call.ec2.create_volume(**settings, **call.tag_specifications("volume"))["VolumeId"]
        return CreatedResource(volume_id, {"VolumeId": volume_id})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        settings = call.pick(*sorted(self.modifiable))
        [volume] = call.ec2.describe_volumes(VolumeIds=[call.physical_id])["Volumes"]
        if any(volume.get(key) != value for key, value in settings.items()):
            call.ec2.modify_volume(VolumeId=call.physical_id, **settings)

    def snapshot(self, call: HandlerCall) -> None:
        call.ec2.create_snapshot(
            VolumeId=call.physical_id, Description=call.generate_name(), **call.tag_specifications("snapshot")
        )


class KeyPair(Handler):
    supported_properties = frozenset({"KeyName", "PublicKeyMaterial", "Tags"})
    deletion = ("ec2", "delete_key_pair", "KeyName")

    def create(self, call: HandlerCall) -> CreatedResource:
        key_pair = call.ec2.import_key_pair(
            KeyName=call["KeyName"],
            PublicKeyMaterial=call["PublicKeyMaterial"].encode(),
            **call.tag_specifications("key-pair"),
        )
        return CreatedResource(
            call["KeyName"], {"KeyPairId": key_pair["KeyPairId"], "KeyFingerprint": key_pair["KeyFingerprint"]}
        )


class LaunchTemplate(Handler):
    """A launch template; changed data becomes a new version, and the default version stays the first one."""

    supported_properties = MODELLED["ec2.CreateLaunchTemplate"] - {"LaunchTemplateName"}
    deletion = ("ec2", "delete_launch_template", "LaunchTemplateId")

    def create(self, call: HandlerCall) -> CreatedResource:
        launch_template = call.ec2.create_launch_template(
            LaunchTemplateName=call.generate_name(),
            LaunchTemplateData=call["LaunchTemplateData"],
            **call.pick("TagSpecifications"),
        )["LaunchTemplate"]
        template_id = launch_template["LaunchTemplateId"]
        return CreatedResource(
            template_id, {"LaunchTemplateId": template_id, "LatestVersionNumber": "1", "DefaultVersionNumber": "1"}
        )

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        if "TagSpecifications" in changed:
            both = (old_properties, call.properties)
            old_tags, tags = (_own_tags(properties, "launch-template") for properties in both)
            self.change_tags(call, old_tags, tags)
        if "LaunchTemplateData" not in changed:
            return {}
        version = call.ec2.create_launch_template_version(
            LaunchTemplateId=call.physical_id, LaunchTemplateData=call["LaunchTemplateData"]
        )["LaunchTemplateVersion"]
        return {"LatestVersionNumber": str(version["VersionNumber"])}


def _own_tags(properties: Properties, resource_type: str) -> list[Tag]:
    """The tags of a resource itself; those of other types are for what a launch template launches."""
    specifications = properties.get("TagSpecifications", [])
    own = [specification for specification in specifications if specification["ResourceType"] == resource_type]
    return [tag for specification in own for tag in specification["Tags"]]


class CapacityReservation(Handler):
    """A capacity reservation for one instance: another type, platform or zone replaces it; its tags can be changed."""

    supported_properties = frozenset({
        "AvailabilityZone", "InstanceCount=1", "InstanceMatchCriteria=targeted", "InstancePlatform", "InstanceType",
        "TagSpecifications",
    })  # fmt: skip
    deletion = ("ec2", "cancel_capacity_reservation", "CapacityReservationId")

    def create(self, call: HandlerCall) -> CreatedResource:
        reservation = call.ec2.create_capacity_reservation(**call.properties)
        reservation_id = reservation["CapacityReservation"]["CapacityReservationId"]
        return CreatedResource(reservation_id, {"Id": reservation_id})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        if "TagSpecifications" in changed:
            both = (old_properties, call.properties)
            old_tags, tags = (_own_tags(properties, "capacity-reservation") for properties in both)
            self.change_tags(call, old_tags, tags)
