"""Launch templates, and Auto Scaling groups that start to use one.

EC2 validates little of a launch template; Auto Scaling validates it when a group starts to use it.

moto 5.2.5 ignores `SourceVersion`: "The new version inherits the same launch parameters as the source version, except
for parameters that you specify" (EC2 API, CreateLaunchTemplateVersion).
"""

from __future__ import annotations

import dataclasses

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
from moto.ec2.responses.launch_templates import LaunchTemplates

from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.services.launch import IMAGE_PARAMETER, from_template
from cfngen.sandbox.services.launch_checks import check_request, check_user_data
from cfngen.sandbox.services.mixed_instances_policies import overrides_of, policy_in_effect, template_of
from cfngen.sandbox.services.resource_tags import MALFORMED, check_specification
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoResponse, Original

MESSAGE_PREFIX = "You must use a valid fully-formed launch template. "  # of Auto Scaling's errors


@rule("ec2", "CreateLaunchTemplate", "CreateLaunchTemplateVersion")
def check_data_of_a_template(call: PendingCall) -> None:
    """Refuse the few invalid settings of a launch template that EC2 checks: user data and tags."""
    data = call.get("LaunchTemplateData") or {}
    check_user_data(data.get("UserData"))
    for specification in data.get("TagSpecifications") or []:
        check_specification(specification)
        if not specification.get("Tags"):
            raise Refused(MALFORMED, "The tags cannot be null or empty.")


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_template_of_a_group(call: PendingCall) -> None:
    """Refuse a launch template from which no instance can be launched in the group's subnets and zones.

    Of a mixed instances policy, every override is checked, with its instance type (assumed).
    """
    source_keys = {"LaunchTemplate", "MixedInstancesPolicy", "VPCZoneIdentifier", "AvailabilityZones"}
    if not source_keys & set(call.parameters):
        return
    group = call.backend.autoscaling_groups.get(call.get("AutoScalingGroupName"))  # None if it is being created
    reference, policy = call.get("LaunchTemplate"), {} if call.get("LaunchTemplate") else policy_in_effect(call)
    subnet_ids = call.get("VPCZoneIdentifier")  # separated by commas
    group_zones = ()
    if group is not None:  # what the call does not set stays as it is
        if reference is None and group.ec2_launch_template:
            reference = {"LaunchTemplateId": group.ec2_launch_template.id, "Version": group.launch_template_version}
        subnet_ids = subnet_ids or group.vpc_zone_identifier
        group_zones = group.availability_zones if not subnet_ids else ()
    types: list[str | None] = [None] if reference else []
    if own := template_of(policy):
        # Those that match requirements match the image.
        reference = own
        if any(override.get("InstanceRequirements") for override in overrides_of(policy)):
            _refuse_image_of_parameter(call.backend.ec2_backend, own)
        types = [
            each.get("InstanceType") for each in overrides_of(policy) or [{}] if not each.get("InstanceRequirements")
        ]
    subnets = [subnet_id for subnet_id in (subnet_ids or "").split(",") if subnet_id]
    zones = list(call.get("AvailabilityZones") or group_zones)
    for instance_type in types:
        _check_launch_of_a_group(call.backend.ec2_backend, reference, instance_type, subnets, zones)


def _refuse_image_of_parameter(backend: MotoBackend, reference: JsonObject) -> None:
    """Refuse a parameter as image where types are chosen by requirements (hashicorp/terraform-provider-aws#38767)."""
    template = backend.get_launch_template(reference.get("LaunchTemplateId"))
    image = str(template.get_version(str(reference.get("Version") or "$Default")).data.get("ImageId", ""))
    if image.startswith(IMAGE_PARAMETER):
        raise validation_error(f'{MESSAGE_PREFIX}Invalid id: "{image}" (expecting "ami-...")')


def _check_launch_of_a_group(
    backend: MotoBackend, reference: JsonObject, instance_type: str | None, subnets: list[str], zones: list[str]
) -> None:
    try:
        launch = from_template(backend, reference, subnets=subnets, zones=zones)
        if instance_type:
            launch = dataclasses.replace(launch, data={**launch.data, "InstanceType": instance_type})
        if not launch.data.get("InstanceType"):
            raise Refused("MissingParameter", "The request must contain the parameter InstanceType")
        check_request(launch)
    except Refused as refused:
        raise validation_error(f"{MESSAGE_PREFIX}{refused.message}") from refused
    except EC2ClientError as error:
        raise validation_error(f"{MESSAGE_PREFIX}{error.message}") from error


@patches(LaunchTemplates, "create_launch_template_version")
def _inherit_from_source_version(original: Original, self: MotoResponse) -> ActionResult:
    result: ActionResult = original(self)
    source = self._get_param("SourceVersion")
    if source:
        template_id = self._get_param("LaunchTemplateId")
        template: LaunchTemplate = self.ec2_backend.get_launch_template(template_id)
        version = template.versions[-1]
        # The new version is the latest one by now, so `$Latest` is the one before.
        source_version = template.versions[-2] if str(source) == "$Latest" else template.get_version(source)
        data = {**source_version.data, **version.data}
        template.versions[-1] = LaunchTemplateVersion(template, version.number, data, version.description)
    return result


@rule("ec2", "CreateLaunchTemplateVersion")
def check_source(call: PendingCall) -> None:
    """Refuse a launch template or a source version that does not exist."""
    if call.get("SourceVersion"):
        reference = {"LaunchTemplateId": call.get("LaunchTemplateId"), "Version": call.get("SourceVersion")}
        from_template(call.backend, reference)
