"""Finds Auto Scaling groups that use another launch template version than CloudFormation has recorded.

A rollback that skips a group (`rollback --force`, or ResourcesToSkip in the console) leaves the group on the launch
template version of the failed update. CloudFormation records the group as rolled back, plans no change for it, and
deletes the boot program that this version refers to: the next instance of the group cannot boot. Neither a change set
nor the stack shows this; only the group itself does. See docs/develop/architecture.md, "The boot program".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import error_code, translate_aws_errors
from cfngen.deploy.aws.groups import describe_groups, launch_template_specification
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, ResourceView
from cfngen.deploy.aws.types import AwsObject
from cfngen.userdata.first_stage import unpacked

_LAUNCH_TEMPLATE_TYPE = "AWS::EC2::LaunchTemplate"


@dataclass(frozen=True)
class StaleGroup:
    """An Auto Scaling group that does not use the launch template version of its stack.

    Attributes:
        group: logical id of the group in its stack.
        id: name of the Auto Scaling group in AWS.
        launch_template: id of the launch template from which the group launches instances.
        version: the launch template version that the group uses.
        newest: the version that the stack's template describes; empty if the launch template is not the stack's.
        program: logical id of the resource with the boot program that this version refers to; empty if not known.
        sha256: digest of the boot program.
        unbootable: whether the stack lacks the resource with the boot program, so that new instances cannot boot.
    """

    group: str
    id: str
    launch_template: str
    version: str
    newest: str = ""
    program: str = ""
    sha256: str = ""
    unbootable: bool = False

    @property
    def text(self) -> str:
        """The problem, in one sentence."""
        sentence = f"{self.group} launches from version {self.version} of the launch template {self.launch_template}"
        if self.version != self.newest:
            sentence += f", where the stack has version {self.newest}" if self.newest else ", which is not its stack's"
        if self.unbootable:
            sentence += (
                f"; the boot program of that version, {self.program}, no longer exists, and new instances cannot boot"
            )
        return sentence


def find_stale_groups(account: Account, resources: Iterable[ResourceView]) -> tuple[StaleGroup, ...]:
    """Return the groups that use another launch template version than their stack's, or whose boot program is gone."""
    existing = [resource for resource in resources if resource.physical_id and resource.status != "DELETE_COMPLETE"]
    logical_ids = frozenset(resource.logical_id for resource in existing)
    logical_id_by_group_name = {
        resource.physical_id: resource.logical_id for resource in existing if resource.type == AUTO_SCALING_GROUP
    }
    launch_template_ids = [resource.physical_id for resource in existing if resource.type == _LAUNCH_TEMPLATE_TYPE]
    with translate_aws_errors():
        newest_versions = _read_newest_versions(account, launch_template_ids) if logical_id_by_group_name else {}
        checked_groups = [
            _check_group(account, logical_id, group, newest_versions, logical_ids)
            for group in describe_groups(account, logical_id_by_group_name)
            if (logical_id := logical_id_by_group_name.get(group["AutoScalingGroupName"]))
        ]
    stale_groups = (group for group in checked_groups if group)
    return tuple(sorted(stale_groups, key=lambda group: group.group))


def _check_group(
    account: Account, logical_id: str, group: AwsObject, newest_versions: Mapping[str, str], logical_ids: frozenset[str]
) -> StaleGroup | None:
    """Return the group if it is stale; None if its launch template version is current and its instances can boot.

    Args:
        newest_versions: newest version of each of the stacks' launch templates, by the launch template's id.
        logical_ids: logical ids of all existing resources of the stacks, among them the boot programs.
    """
    specification = launch_template_specification(group)
    template_id = str(specification.get("LaunchTemplateId", ""))
    version = str(specification.get("Version", ""))
    newest = newest_versions.get(template_id, "")
    launch_data = read_version(account, template_id, version).get("LaunchTemplateData")
    first_stage = unpacked(str(launch_data.get("UserData", ""))) if launch_data else None
    unbootable = first_stage is not None and first_stage.program not in logical_ids
    # A rollback creates a third version with the content of the first; groups that it did not update still use the
    # first. Versions with the same content are therefore equally current.
    is_current = version == newest or (
        bool(launch_data)
        and bool(newest)
        and launch_data == read_version(account, template_id, newest).get("LaunchTemplateData")
    )
    if is_current and not unbootable:
        return None
    return StaleGroup(
        group=logical_id,
        id=str(group["AutoScalingGroupName"]),
        launch_template=template_id,
        version=version,
        newest=version if is_current else newest,
        program=first_stage.program if first_stage else "",
        sha256=first_stage.sha256 if first_stage else "",
        unbootable=unbootable,
    )


def _read_newest_versions(account: Account, ids: list[str]) -> dict[str, str]:
    """Return the newest version of each launch template; deleted launch templates are left out."""
    from botocore.exceptions import ClientError

    if not ids:
        return {}
    call = "ec2.describe_launch_templates"
    try:
        launch_templates = list(account.items(call, "LaunchTemplates", LaunchTemplateIds=ids))
    except ClientError as error:
        if not error_code(error).startswith("InvalidLaunchTemplateId"):
            raise
        if len(ids) == 1:
            return {}
        # EC2 rejects the whole call for one missing launch template; then each one is read by its own call.
        newest_versions: dict[str, str] = {}
        for template_id in ids:
            newest_versions |= _read_newest_versions(account, [template_id])
        return newest_versions
    return {
        launch_template["LaunchTemplateId"]: str(launch_template["LatestVersionNumber"])
        for launch_template in launch_templates
    }


_DESCRIPTION = re.compile(r"cfngen: (?P<type>\S+) in place of (?P<stack_type>\S+)")


@dataclass(frozen=True)
class RetypedSlot:
    """A master slot that launches another instance type than its stack says.

    Attributes:
        slot: its letter.
        type: the type that it launches.
        stack_type: the type in its stack.
        version: the launch template version that its group uses.
    """

    slot: str
    type: str
    stack_type: str
    version: str

    @property
    def text(self) -> str:
        """What differs, and for how long, in one sentence without a full stop."""
        return (
            f"master {self.slot} launches {self.type} in place of the stack's {self.stack_type}; the next deployment "
            "that changes this master goes back to the type of the cluster file (controlPlane.instanceType)"
        )


def version_description(instance_type: str, stack_type: str) -> str:
    """Return the description of a launch template version in which one type stands in for the stack's."""
    if instance_type == stack_type:
        return f"cfngen: {instance_type}, as in the stack"
    return f"cfngen: {instance_type} in place of {stack_type}"


def described_stack_type(description: str) -> str:
    """Return the stack's type that the description of a version names; empty if the version has the stack's type."""
    match = _DESCRIPTION.fullmatch(description)
    return match["stack_type"] if match else ""


def find_retyped_slots(account: Account, resources: Iterable[ResourceView]) -> tuple[RetypedSlot, ...]:
    """Return the slots that launch another type than their stack's, in the order of their letters."""
    letter_by_group_name = {
        resource.physical_id: master.letter
        for resource in resources
        if resource.type == AUTO_SCALING_GROUP and resource.physical_id and resource.status != "DELETE_COMPLETE"
        if (master := MasterId.parse(resource.logical_id))
    }
    if not letter_by_group_name:
        return ()
    retyped_slots: list[RetypedSlot] = []
    with translate_aws_errors():
        for group in describe_groups(account, letter_by_group_name):
            specification = group.get("LaunchTemplate") or {}
            version = read_version(
                account, str(specification.get("LaunchTemplateId", "")), str(specification.get("Version", ""))
            )
            match = _DESCRIPTION.fullmatch(str(version.get("VersionDescription") or ""))
            if match:
                slot = letter_by_group_name[group["AutoScalingGroupName"]]
                retyped_slots.append(
                    RetypedSlot(slot, match["type"], match["stack_type"], version=str(specification["Version"]))
                )
    return tuple(sorted(retyped_slots, key=lambda slot: slot.slot))


def read_version(account: Account, template_id: str, version: str) -> AwsObject:
    """Return a launch template version as EC2 describes it; empty if it does not exist."""
    from botocore.exceptions import ClientError

    if not (template_id and version):
        return {}
    try:
        response = account.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=template_id, Versions=[version]
        )
    except ClientError as error:
        if error_code(error).startswith("InvalidLaunchTemplate"):
            return {}
        raise
    versions = response["LaunchTemplateVersions"]
    return dict(versions[0]) if versions else {}


def find_capacity_reservations(account: Account, template_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids of the capacity reservations that the newest versions of launch templates name."""
    reservations = set()
    for template_id in template_ids:
        response = account.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=template_id, Versions=["$Latest"]
        )
        for version in response["LaunchTemplateVersions"]:
            specification = version["LaunchTemplateData"].get("CapacityReservationSpecification") or {}
            target = specification.get("CapacityReservationTarget") or {}
            reservations.add(target.get("CapacityReservationId", ""))
    return frozenset(reservations - {""})
