"""Launch templates, and Auto Scaling groups that start to use one.

EC2 validates little of a launch template; Auto Scaling validates it when a group starts to use it.
"""

from __future__ import annotations

from moto.ec2.exceptions import EC2ClientError

from cfngen.sandbox.services.ec2_tags import check as check_tags
from cfngen.sandbox.services.launch import from_template
from cfngen.sandbox.services.launch_requests import check_request, check_user_data
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

HOP_LIMITS = range(1, 65)  # API, LaunchTemplateInstanceMetadataOptionsRequest
TAGGABLE_TYPES = frozenset({"instance", "volume", "network-interface", "spot-instances-request"})
MESSAGE_PREFIX = "You must use a valid fully-formed launch template. "


@rule("ec2", "CreateLaunchTemplate", "CreateLaunchTemplateVersion")
def check_data_of_a_template(call: PendingCall) -> None:
    """Refuse the few invalid settings of a launch template that EC2 checks: user data, tags, metadata options."""
    data = call.get("LaunchTemplateData") or {}
    check_user_data(data.get("UserData"))
    resource_types = [
        tag_specification.get("ResourceType") for tag_specification in data.get("TagSpecifications") or []
    ]
    if repeated := sorted({kind for kind in resource_types if resource_types.count(kind) > 1}):
        raise Refused("InvalidParameterValue", f"Duplicate tag specifications for resource type {repeated[0]}")
    for specification in data.get("TagSpecifications") or []:
        if specification.get("ResourceType") not in TAGGABLE_TYPES:
            kind = specification.get("ResourceType")
            raise Refused(
                "InvalidParameterValue", f"'{kind}' is not a valid taggable resource type for this operation."
            )
        check_tags(specification.get("Tags") or [])
    hops = (data.get("MetadataOptions") or {}).get("HttpPutResponseHopLimit")
    if hops is not None and int(hops) not in HOP_LIMITS:
        raise Refused("InvalidParameterValue", f"Invalid value '{hops}' for HttpPutResponseHopLimit")


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_template_of_a_group(call: PendingCall) -> None:
    """Refuse a launch template from which no instance can be launched in the group's subnets and zones."""
    if not {"LaunchTemplate", "VPCZoneIdentifier", "AvailabilityZones"} & set(call.parameters):
        return
    group = call.backend.autoscaling_groups.get(call.get("AutoScalingGroupName"))
    reference, subnets, zones = call.get("LaunchTemplate"), call.get("VPCZoneIdentifier"), ()
    if group is not None:
        if reference is None and group.ec2_launch_template:
            reference = {
                "LaunchTemplateId": group.ec2_launch_template.id,
                "Version": group.launch_template_version,
            }
        subnets = subnets or group.vpc_zone_identifier
        zones = group.availability_zones if not subnets else ()
    if not reference:
        return
    backend = call.backend.ec2_backend
    try:
        launch = from_template(
            backend,
            reference,
            subnets=[subnet_id for subnet_id in (subnets or "").split(",") if subnet_id],
            zones=list(call.get("AvailabilityZones") or zones),
        )
        check_request(launch)
    except Refused as refused:
        raise Refused("ValidationError", f"{MESSAGE_PREFIX}{refused.message}") from refused
    except EC2ClientError as error:
        raise Refused("ValidationError", f"{MESSAGE_PREFIX}{error.message}") from error
