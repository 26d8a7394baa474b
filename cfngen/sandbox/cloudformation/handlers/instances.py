"""Handlers of AWS::EC2 and AWS::AutoScaling types: instances, their launch templates, disks and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    client,
    delete_on_failure,
    update_ec2_tags,
)
from cfngen.sandbox.json_types import JsonDict, JsonObject, Properties
from cfngen.sandbox.services import keys

SIZE_KEYS = frozenset({"MinSize", "MaxSize", "DesiredCapacity"})
HOOKS_KEY = "LifecycleHookSpecificationList"


class NetworkInterface(Handler):
    supported_properties = frozenset(
        {"SubnetId", "PrivateIpAddress", "GroupSet", "Description", "SourceDestCheck", "Tags"}
    )
    updatable = frozenset({"GroupSet", "Description", "SourceDestCheck", "Tags"})

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

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        arguments = {
            "GroupSet": {"Groups": call.properties.get("GroupSet", [])},
            "Description": {"Description": {"Value": call.properties.get("Description", "")}},
            "SourceDestCheck": {"SourceDestCheck": {"Value": call.properties.get("SourceDestCheck", True)}},
        }
        for key in changed & set(arguments):
            call.ec2.modify_network_interface_attribute(NetworkInterfaceId=call.physical_id, **arguments[key])
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_network_interface(NetworkInterfaceId=call.physical_id)


class ElasticIp(Handler):
    supported_properties = frozenset({"Domain", "Tags"})
    updatable = frozenset({"Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        address = call.ec2.allocate_address(
            Domain=call.properties.get("Domain", "vpc"), **call.tag_specifications("elastic-ip")
        )
        return CreatedResource(address["PublicIp"], {key: address[key] for key in ("PublicIp", "AllocationId")})

    def tagged_resource_id(self, call: HandlerCall) -> str:
        """The allocation id, which is not the physical id."""
        return str(call.attributes["AllocationId"])

    def delete(self, call: HandlerCall) -> None:
        call.ec2.release_address(AllocationId=call.attributes["AllocationId"])


class ElasticIpAssociation(Handler):
    supported_properties = frozenset({"AllocationId", "NetworkInterfaceId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        # In a VPC, reassociation is allowed by default (EC2 API, AssociateAddress); moto needs the argument.
        identifier = call.ec2.associate_address(**call.properties, AllowReassociation=True)["AssociationId"]
        return CreatedResource(identifier, {"Id": identifier})

    def delete(self, call: HandlerCall) -> None:
        call.ec2.disassociate_address(AssociationId=call.physical_id)


class Volume(Handler):
    modifiable = frozenset({"Size", "VolumeType", "Iops", "Throughput"})
    supported_properties = modifiable | {"AvailabilityZone", "Encrypted", "KmsKeyId", "Tags"}
    updatable = modifiable | {"Tags"}
    not_updatable = frozenset({"AvailabilityZone", "Encrypted", "KmsKeyId"})
    supports_snapshots = True

    def create(self, call: HandlerCall) -> CreatedResource:
        settings = self.supported_properties - {"Tags"}
        if fault := call.properties.get("Encrypted") and keys.launch_error(
            call.region, call.properties.get("KmsKeyId", "")
        ):
            # API, CreateVolume: the key is checked after the call, and the volume then fails.
            raise ResourceError(f"Volume did not stabilize: {fault}")
        identifier = call.ec2.create_volume(**call.pick(*settings), **call.tag_specifications("volume"))["VolumeId"]
        return CreatedResource(identifier, {"VolumeId": identifier})

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
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


def _keys(*names: str) -> JsonDict:
    """Keys whose values have no further keys, in the form of SUPPORTED_KEYS."""
    return {name: {} for name in names}


# The keys of LaunchTemplateData, at all levels, that the emulator's launches support.
SUPPORTED_KEYS: JsonObject = {
    "BlockDeviceMappings": {
        "DeviceName": {},
        "Ebs": _keys(
            "DeleteOnTermination", "Encrypted", "Iops", "KmsKeyId", "SnapshotId", "Throughput", "VolumeSize",
            "VolumeType",
        ),
    },
    "IamInstanceProfile": _keys("Arn", "Name"),
    "InstanceMarketOptions": {"MarketType": {}, "SpotOptions": _keys("MaxPrice", "SpotInstanceType")},
    "MetadataOptions": _keys("HttpEndpoint", "HttpPutResponseHopLimit", "HttpTokens", "InstanceMetadataTags"),
    "NetworkInterfaces": _keys(
        "AssociatePublicIpAddress", "DeleteOnTermination", "Description", "DeviceIndex", "Groups",
        "NetworkInterfaceId", "PrivateIpAddress", "SubnetId",
    ),
    "TagSpecifications": {"ResourceType": {}, "Tags": _keys("Key", "Value")},
    **_keys("ImageId", "InstanceType", "KeyName", "SecurityGroupIds", "UserData"),
}  # fmt: skip


def _check_supported(data: object, supported: JsonObject, path: str = "LaunchTemplateData") -> None:
    """Refuse launch template data that the emulator's launches would ignore.

    Raises:
        NotModelledError: names the unsupported keys and their path
    """
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, Mapping):
            if unknown := sorted(set(item) - set(supported)):
                raise NotModelledError(f"{unknown} in {path}")
            for key, value in item.items():
                _check_supported(value, supported[key], f"{path}.{key}")


class LaunchTemplate(Handler):
    """New data creates a new version; the default version stays the first one."""

    supported_properties = frozenset({"LaunchTemplateData", "TagSpecifications"})
    updatable = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        _check_supported(call["LaunchTemplateData"], SUPPORTED_KEYS)
        launch_template = call.ec2.create_launch_template(
            LaunchTemplateName=call.generate_name(),
            LaunchTemplateData=call["LaunchTemplateData"],
            **call.pick("TagSpecifications"),
        )["LaunchTemplate"]
        versions = {"LatestVersionNumber": "1", "DefaultVersionNumber": "1"}
        return CreatedResource(
            launch_template["LaunchTemplateId"], {"LaunchTemplateId": launch_template["LaunchTemplateId"], **versions}
        )

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        if "TagSpecifications" in changed:
            update_ec2_tags(call, call.physical_id, _own_tags(previous), _own_tags(call.properties))
        if "LaunchTemplateData" not in changed:
            return {}
        _check_supported(call["LaunchTemplateData"], SUPPORTED_KEYS)
        version = call.ec2.create_launch_template_version(
            LaunchTemplateId=call.physical_id, LaunchTemplateData=call["LaunchTemplateData"]
        )["LaunchTemplateVersion"]
        return {"LatestVersionNumber": str(version["VersionNumber"])}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_launch_template(LaunchTemplateId=call.physical_id)


def _own_tags(properties: Properties) -> list[dict[str, str]]:
    """The tags of the launch template itself, not those of the instances."""
    specifications = properties.get("TagSpecifications", [])
    return [
        tag
        for specification in specifications
        if specification["ResourceType"] == "launch-template"
        for tag in specification["Tags"]
    ]


class AutoScalingGroup(Handler):
    """Updates only the group itself; `rolling` replaces its instances."""

    supported_properties = frozenset(
        {
            "MinSize",
            "MaxSize",
            "DesiredCapacity",
            "AvailabilityZones",
            "VPCZoneIdentifier",
            "LaunchTemplate",
            "Tags",
            HOOKS_KEY,
        }
    )
    updatable = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name()
        hooks = {HOOKS_KEY: list(_hooks(call))} if call.properties.get(HOOKS_KEY) else {}
        client("autoscaling", call.region).create_auto_scaling_group(
            AutoScalingGroupName=name,
            Tags=_group_tags(name, call.properties.get("Tags", [])),
            **_settings(call, set(self.supported_properties)),
            **hooks,
        )
        return CreatedResource(name)

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        if settings := _settings(call, changed):
            client("autoscaling", call.region).update_auto_scaling_group(
                AutoScalingGroupName=call.physical_id, **settings
            )
        if HOOKS_KEY in changed:
            _put_hooks(call, call.physical_id, previous)
        return {}

    def retag(self, call: HandlerCall, previous: Properties) -> None:
        autoscaling = client("autoscaling", call.region)
        old_tags = _group_tags(call.physical_id, previous.get("Tags", []))
        new_tags = _group_tags(call.physical_id, call.properties.get("Tags", []))
        new_keys = {tag["Key"] for tag in new_tags}
        if removed_tags := [tag for tag in old_tags if tag["Key"] not in new_keys]:
            autoscaling.delete_tags(Tags=removed_tags)
        if new_tags:
            autoscaling.create_or_update_tags(Tags=new_tags)

    def must_replace(self, call: HandlerCall) -> bool:
        """Reference, "UpdatePolicy": only AutoScalingReplacingUpdate replaces a group."""
        return bool(call.update_policy.get("AutoScalingReplacingUpdate", {}).get("WillReplace", False))

    def read_actual(self, call: HandlerCall) -> Properties | None:
        groups = client("autoscaling", call.region).describe_auto_scaling_groups(
            AutoScalingGroupNames=[call.physical_id]
        )["AutoScalingGroups"]
        if not groups:
            return None
        sizes = {
            key: str(groups[0][key]) for key in ("MinSize", "MaxSize", "DesiredCapacity") if key in call.properties
        }
        keys = ("Key", "Value", "PropagateAtLaunch")
        tags = [{key: tag[key] for key in keys} for tag in groups[0]["Tags"]]
        return {**sizes, "Tags": tags} if tags or "Tags" in call.properties else {**sizes}

    def delete(self, call: HandlerCall) -> None:
        client("autoscaling", call.region).delete_auto_scaling_group(
            AutoScalingGroupName=call.physical_id, ForceDelete=True
        )


def _settings(call: HandlerCall, keys: set[str]) -> JsonDict:
    """The arguments of CreateAutoScalingGroup and UpdateAutoScalingGroup, without tags and lifecycle hooks."""
    properties = call.pick(*sorted(keys - {"Tags", HOOKS_KEY}))
    settings: JsonDict = {key: int(value) if key in SIZE_KEYS else value for key, value in properties.items()}
    if subnets := settings.get("VPCZoneIdentifier"):
        settings["VPCZoneIdentifier"] = ",".join(subnets)
    return settings


def _put_hooks(call: HandlerCall, group: str, previous: Properties) -> None:
    """Set a group's lifecycle hooks, and delete old ones."""
    autoscaling, names = client("autoscaling", call.region), {hook["LifecycleHookName"] for hook in _hooks(call)}
    for name in {old_hook["LifecycleHookName"] for old_hook in previous.get(HOOKS_KEY, [])} - names:
        autoscaling.delete_lifecycle_hook(AutoScalingGroupName=group, LifecycleHookName=name)
    for hook in _hooks(call):
        autoscaling.put_lifecycle_hook(AutoScalingGroupName=group, **hook)


def _hooks(call: HandlerCall) -> Iterator[JsonDict]:
    """The lifecycle hooks of a group, with the heartbeat timeout as a number."""
    for hook in call.properties.get(HOOKS_KEY, []):
        if "HeartbeatTimeout" in hook:
            yield {**hook, "HeartbeatTimeout": int(hook["HeartbeatTimeout"])}
        else:
            yield hook


def _group_tags(name: str, tags: list[JsonDict]) -> list[JsonDict]:
    """Tags in the form of Auto Scaling's API."""
    return [{**tag, "ResourceId": name, "ResourceType": "auto-scaling-group"} for tag in tags]
