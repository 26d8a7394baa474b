"""Handlers of AWS::EC2 and AWS::AutoScaling types: instances, their launch templates, disks and addresses."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers import group_updates
from cfngen.sandbox.cloudformation.handlers.group_updates import TARGET_GROUPS_KEY
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Ec2Resource,
    Handler,
    HandlerCall,
    Tag,
    client,
    delete_on_failure,
)
from cfngen.sandbox.json_types import JsonDict, JsonObject, Properties
from cfngen.sandbox.services import keys

GROUP_SIZE_KEYS = frozenset({"MinSize", "MaxSize", "DesiredCapacity"})
NUMBER_KEYS = GROUP_SIZE_KEYS | {"MaxInstanceLifetime", "HealthCheckGracePeriod"}
HOOKS_KEY = "LifecycleHookSpecificationList"


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
    updatable_properties = frozenset({"GroupSet", "Description", "SourceDestCheck", "Tags"})

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

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
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
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_network_interface(NetworkInterfaceId=call.physical_id)


class ElasticIp(Handler):
    supported_properties = frozenset({"Domain", "Tags"})
    updatable_properties = frozenset({"Tags"})

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
    updatable_properties = modifiable | {"Tags"}
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

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        settings = call.pick(*sorted(self.modifiable))
        [volume] = call.ec2.describe_volumes(VolumeIds=[call.physical_id])["Volumes"]
        if any(volume.get(key) != value for key, value in settings.items()):
            call.ec2.modify_volume(VolumeId=call.physical_id, **settings)
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_volume(VolumeId=call.physical_id)

    def snapshot(self, call: HandlerCall) -> None:
        call.ec2.create_snapshot(
            VolumeId=call.physical_id, Description=call.generate_name(), **call.tag_specifications("snapshot")
        )


class KeyPair(Handler):
    supported_properties = frozenset({"KeyName", "PublicKeyMaterial", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        key_pair = call.ec2.import_key_pair(
            KeyName=call["KeyName"],
            PublicKeyMaterial=call["PublicKeyMaterial"].encode(),
            **call.tag_specifications("key-pair"),
        )
        return CreatedResource(
            call["KeyName"], {"KeyPairId": key_pair["KeyPairId"], "KeyFingerprint": key_pair["KeyFingerprint"]}
        )

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_key_pair(KeyName=call.physical_id)


def _leaf_keys(*names: str) -> JsonDict:
    """Keys whose values have no further keys, in the form of SUPPORTED_LAUNCH_TEMPLATE_KEYS."""
    return {name: {} for name in names}


# The keys of LaunchTemplateData that the emulator's launches support, each with the supported keys of its value (or of
# its items, if the value is a list).
SUPPORTED_LAUNCH_TEMPLATE_KEYS: JsonObject = {
    "BlockDeviceMappings": {
        "DeviceName": {},
        "Ebs": _leaf_keys(
            "DeleteOnTermination", "Encrypted", "Iops", "KmsKeyId", "SnapshotId", "Throughput", "VolumeSize",
            "VolumeType",
        ),
    },
    "IamInstanceProfile": _leaf_keys("Arn", "Name"),
    "CapacityReservationSpecification": {
        "CapacityReservationPreference": {},
        "CapacityReservationTarget": _leaf_keys("CapacityReservationId", "CapacityReservationResourceGroupArn"),
    },
    "InstanceMarketOptions": {"MarketType": {}, "SpotOptions": _leaf_keys("MaxPrice", "SpotInstanceType")},
    "MetadataOptions": _leaf_keys("HttpEndpoint", "HttpPutResponseHopLimit", "HttpTokens", "InstanceMetadataTags"),
    "NetworkInterfaces": _leaf_keys(
        "AssociatePublicIpAddress", "DeleteOnTermination", "Description", "DeviceIndex", "Groups",
        "NetworkInterfaceId", "PrivateIpAddress", "SubnetId",
    ),
    "TagSpecifications": {"ResourceType": {}, "Tags": _leaf_keys("Key", "Value")},
    **_leaf_keys("ImageId", "InstanceType", "KeyName", "SecurityGroupIds", "UserData"),
}  # fmt: skip


def _refuse_unsupported_keys(
    data: object, supported_keys: JsonObject = SUPPORTED_LAUNCH_TEMPLATE_KEYS, path: str = "LaunchTemplateData"
) -> None:
    """Refuse launch template data that the emulator's launches would ignore.

    Args:
        supported_keys: the supported keys of the value, in the form of SUPPORTED_LAUNCH_TEMPLATE_KEYS

    Raises:
        NotModelledError: names the unsupported keys and their path
    """
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, Mapping):
            if unsupported := sorted(set(item) - set(supported_keys)):
                raise NotModelledError(f"{unsupported} in {path}")
            for key, value in item.items():
                _refuse_unsupported_keys(value, supported_keys[key], f"{path}.{key}")


class LaunchTemplate(Handler):
    """A launch template; changed data becomes a new version, and the default version stays the first one."""

    supported_properties = frozenset({"LaunchTemplateData", "TagSpecifications"})
    updatable_properties = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        _refuse_unsupported_keys(call["LaunchTemplateData"])
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
            self.change_tags(call, _own_tags(old_properties), _own_tags(call.properties))
        if "LaunchTemplateData" not in changed:
            return {}
        _refuse_unsupported_keys(call["LaunchTemplateData"])
        version = call.ec2.create_launch_template_version(
            LaunchTemplateId=call.physical_id, LaunchTemplateData=call["LaunchTemplateData"]
        )["LaunchTemplateVersion"]
        return {"LatestVersionNumber": str(version["VersionNumber"])}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_launch_template(LaunchTemplateId=call.physical_id)


def _own_tags(properties: Properties) -> list[Tag]:
    """The tags of the launch template itself, not those of the instances and volumes that it launches."""
    specifications = properties.get("TagSpecifications", [])
    return [
        tag
        for specification in specifications
        if specification["ResourceType"] == "launch-template"
        for tag in specification["Tags"]
    ]


class AutoScalingGroup(Handler):
    """An Auto Scaling group; this handler updates only the group itself, and `rolling` replaces its instances."""

    supported_properties = frozenset(
        {
            "MinSize",
            "MaxSize",
            "DesiredCapacity",
            "AvailabilityZones",
            "VPCZoneIdentifier",
            "LaunchTemplate",
            "MixedInstancesPolicy",
            "DesiredCapacityType",
            "CapacityRebalance",
            "CapacityReservationSpecification",
            "InstanceMaintenancePolicy",
            "MaxInstanceLifetime",
            "HealthCheckType",
            "HealthCheckGracePeriod",
            TARGET_GROUPS_KEY,
            "Tags",
            HOOKS_KEY,
        }
    )
    updatable_properties = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name()
        lifecycle_hooks = _lifecycle_hooks(call)
        client("autoscaling", call.region).create_auto_scaling_group(
            AutoScalingGroupName=name,
            Tags=_group_tags(name, call.properties.get("Tags", [])),
            **_group_settings(call, set(self.supported_properties)),
            **({HOOKS_KEY: lifecycle_hooks} if lifecycle_hooks else {}),
        )
        return CreatedResource(name)

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        settings = _group_settings(call, changed - {TARGET_GROUPS_KEY})
        if settings := group_updates.with_cleared_settings(settings, removed=changed - set(call.properties)):
            client("autoscaling", call.region).update_auto_scaling_group(
                AutoScalingGroupName=call.physical_id, **settings
            )
        if TARGET_GROUPS_KEY in changed:
            group_updates.update_target_groups(call, old_properties)
        if HOOKS_KEY in changed:
            _update_lifecycle_hooks(call, old_properties)
        return {}

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        client("autoscaling", call.region).create_or_update_tags(Tags=_group_tags(call.physical_id, tags))

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        removed = _group_tags(call.physical_id, [{"Key": key} for key in keys])
        client("autoscaling", call.region).delete_tags(Tags=removed)

    def must_replace(self, call: HandlerCall) -> bool:
        """Reference, "UpdatePolicy": only AutoScalingReplacingUpdate replaces a group."""
        return bool(call.update_policy.get("AutoScalingReplacingUpdate", {}).get("WillReplace", False))

    def read_actual(self, call: HandlerCall) -> Properties | None:
        groups = client("autoscaling", call.region).describe_auto_scaling_groups(
            AutoScalingGroupNames=[call.physical_id]
        )["AutoScalingGroups"]
        if not groups:
            return None
        [group] = groups
        actual: JsonDict = {}
        for key in ("MinSize", "MaxSize", "DesiredCapacity"):
            if key in call.properties:
                actual[key] = str(group[key])
        if group["Tags"] or "Tags" in call.properties:
            tag_keys = ("Key", "Value", "PropagateAtLaunch")
            actual["Tags"] = [{key: tag[key] for key in tag_keys} for tag in group["Tags"]]
        return actual

    def delete(self, call: HandlerCall) -> None:
        client("autoscaling", call.region).delete_auto_scaling_group(
            AutoScalingGroupName=call.physical_id, ForceDelete=True
        )


def _group_settings(call: HandlerCall, keys: set[str]) -> JsonDict:
    """The arguments of CreateAutoScalingGroup and UpdateAutoScalingGroup, without tags and lifecycle hooks.

    Args:
        keys: the properties to include, if the template sets them
    """
    settings = call.pick(*sorted(keys - {"Tags", HOOKS_KEY}))
    for key in NUMBER_KEYS & set(settings):
        settings[key] = int(settings[key])
    if settings.get("DesiredCapacityType", "units") != "units":
        raise NotModelledError("a desired capacity in vCPUs or memory")
    if subnet_ids := settings.get("VPCZoneIdentifier"):
        settings["VPCZoneIdentifier"] = ",".join(subnet_ids)
    return settings


def _update_lifecycle_hooks(call: HandlerCall, old_properties: Properties) -> None:
    autoscaling = client("autoscaling", call.region)
    new_hooks = _lifecycle_hooks(call)
    old_names = {hook["LifecycleHookName"] for hook in old_properties.get(HOOKS_KEY, [])}
    new_names = {hook["LifecycleHookName"] for hook in new_hooks}
    for name in old_names - new_names:
        autoscaling.delete_lifecycle_hook(AutoScalingGroupName=call.physical_id, LifecycleHookName=name)
    for hook in new_hooks:
        autoscaling.put_lifecycle_hook(AutoScalingGroupName=call.physical_id, **hook)


def _lifecycle_hooks(call: HandlerCall) -> list[JsonDict]:
    hooks = []
    for template_hook in call.properties.get(HOOKS_KEY, []):
        hook = dict(template_hook)
        if "HeartbeatTimeout" in hook:
            hook["HeartbeatTimeout"] = int(hook["HeartbeatTimeout"])
        hooks.append(hook)
    return hooks


def _group_tags(group_name: str, tags: list[JsonDict]) -> list[JsonDict]:
    """A group's tags in the form of Auto Scaling's API, which names the group in each tag."""
    return [{**tag, "ResourceId": group_name, "ResourceType": "auto-scaling-group"} for tag in tags]
