"""Gives a master's slot another instance type: checks the type, and makes a launch template version with it."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.checks.instance_types_and_images import not_offered_message
from cfngen.cluster.instances import instance_types
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.instance_types import find_similar_types, read_offerings
from cfngen.deploy.aws.launched_versions import described_stack_type, read_version, version_description
from cfngen.deploy.aws.types import AwsArguments, AwsObject
from cfngen.deploy.operations.replacing.members import Member
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount
from cfngen.deploy.preflight.quotas.vcpus import check_vcpu_quotas
from cfngen.errors import CfngenError
from cfngen.text import join_and


class UnsuitableTypeError(CfngenError):
    """The instance type cannot replace the master's."""

    code = "unsuitable-instance-type"


@dataclass(frozen=True)
class SlotTemplate:
    """The launch template of a slot, and the versions of it that matter.

    Attributes:
        version: the version that the slot's group launches from.
        type: the instance type in that version, so the master's own.
        latest_version: the newest version, which a new one is made from.
        stack_type: the instance type that the stack's template asks for; cfngen describes a version of another type
            with it.
        targets_reservation: whether the newest version targets a capacity reservation.
    """

    id: str
    version: str
    type: str
    latest_version: str
    latest_type: str
    stack_type: str
    targets_reservation: bool


def read_slot_template(account: Account, group: AwsObject) -> SlotTemplate:
    """Return the launch template of a slot, given its group as Auto Scaling describes it."""
    specification = group.get("LaunchTemplate") or {}
    template_id = str(specification.get("LaunchTemplateId", ""))
    launched = read_version(account, template_id, str(specification.get("Version", "")))
    latest = read_version(account, template_id, "$Latest")
    latest_data: AwsObject = latest.get("LaunchTemplateData", {})
    latest_type = str(latest_data.get("InstanceType", ""))
    return SlotTemplate(
        id=template_id,
        version=str(specification.get("Version", "")),
        type=str(launched.get("LaunchTemplateData", {}).get("InstanceType", "")),
        latest_version=str(latest.get("VersionNumber", "")),
        latest_type=latest_type,
        stack_type=described_stack_type(str(latest.get("VersionDescription") or "")) or latest_type,
        targets_reservation=bool(
            (latest_data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget")
        ),
    )


def check_type(account: Account, instance_type: str, template: SlotTemplate, zone: str, member: Member) -> None:
    """Refuse an instance type that cannot run this master, before anything is changed.

    Raises:
        UnsuitableTypeError: the type is unknown, too small, of another architecture, not offered in the zone, or
            beyond the quota of vCPUs.
    """
    reason = _why_unsuitable(account, instance_type, template, zone) or _exceeded_quota(
        account, instance_type, template, member
    )
    if reason:
        similar_types = find_similar_types(account, template.stack_type, zone)
        advice = f"types of similar size that {zone} offers: {join_and(similar_types)}." if similar_types else ""
        raise UnsuitableTypeError(f"{reason}; nothing was changed", hint=advice)


def _why_unsuitable(account: Account, instance_type: str, template: SlotTemplate, zone: str) -> str:
    """Return why a type cannot run a master with this launch template in this zone; empty if it can."""
    known_types = instance_types.types_in_region(account.region)
    if known_types is not None and instance_type not in known_types:
        return not_offered_message(instance_type, account.region)
    if too_small := instance_types.why_unsuitable(instance_type, "master"):
        return too_small
    architecture = instance_types.architecture(template.stack_type)
    if instance_types.architecture(instance_type) != architecture:
        return (
            f"{instance_type} is {instance_types.architecture(instance_type)}, and the image of the masters is for "
            f"{architecture}, as {template.stack_type} is"
        )
    zones = read_offerings(account, {instance_type}).get(instance_type, set())
    if zone not in zones:
        elsewhere = f", but in {join_and(sorted(zones))}" if zones else ""
        return f"{instance_type} is not offered in {zone}{elsewhere}"
    return ""


def _exceeded_quota(account: Account, instance_type: str, template: SlotTemplate, member: Member) -> str:
    """Return which quota of vCPUs the new instance would exceed; empty if none is known to be exceeded."""
    old_types = [member.instance.type or template.type] if member.instance else []
    current = [InstanceCount(old_type, 1, is_spot=False, max_count=1) for old_type in old_types]
    planned = [InstanceCount(instance_type, 1, is_spot=False, max_count=1)]
    for quota in check_vcpu_quotas(account, planned, current):
        if quota.sufficient is False:
            return f"{quota.name}: {quota.needed} more are needed, {quota.used} of {quota.limit} are in use"
    return ""


def launch_type(account: Account, group_name: str, template: SlotTemplate, instance_type: str) -> str:
    """Let a slot's group launch a type from now on; return the launch template version that it uses.

    The new version is the newest one, in which only the type is changed. A capacity reservation of another type is no
    longer targeted, since EC2 would launch nothing into it. With the stack's own type, the new version is a copy of the
    newest one of the stack.
    """
    is_stack_type = instance_type == template.stack_type
    data: AwsArguments = {"InstanceType": instance_type}
    if template.targets_reservation and not is_stack_type:
        # What a launch template without this setting means ("open", LaunchTemplateCapacityReservationSpecification).
        data["CapacityReservationSpecification"] = {"CapacityReservationPreference": "open"}
    response = account.client("ec2").create_launch_template_version(
        LaunchTemplateId=template.id,
        SourceVersion=_newest_version_of_stack(account, template) if is_stack_type else template.latest_version,
        VersionDescription=version_description(instance_type, template.stack_type),
        LaunchTemplateData=data,
    )
    version = str(response["LaunchTemplateVersion"]["VersionNumber"])
    account.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=group_name, LaunchTemplate={"LaunchTemplateId": template.id, "Version": version}
    )
    return version


def _newest_version_of_stack(account: Account, template: SlotTemplate) -> str:
    """Return the newest launch template version that has the stack's own type, not one that stands in for it."""
    call = "ec2.describe_launch_template_versions"
    numbers = [
        int(version["VersionNumber"])
        for version in account.items(call, "LaunchTemplateVersions", LaunchTemplateId=template.id)
        if not described_stack_type(str(version.get("VersionDescription") or ""))
    ]
    return str(max(numbers, default=int(template.latest_version)))
