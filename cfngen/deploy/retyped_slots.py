"""Master slots that launch another instance type than their stack says, since `cfngen replace` gave them another one.

The type is in a version of the slot's launch template that CloudFormation does not know. The description of that
version says which type it stands in for, so nothing has to be remembered elsewhere. The next deployment that changes
the launch template makes a version of its own, with the type of the cluster file, and the slot's group launches that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.launch_templates import read_version
from cfngen.deploy.stacks import AUTO_SCALING_GROUP, ResourceView

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
    """Return the slots that launch another type than their stack's, in the order of their letters.

    Args:
        account: account and region of the cluster.
        resources: the resources of all the cluster's stacks.

    Raises:
        AwsError: a call failed.
    """
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
        groups = account.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=list(letter_by_group_name), MaxRecords=100
        )["AutoScalingGroups"]
        for group in groups:
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
