"""Another instance type for a master: which one suits, and the version of the launch template that launches it."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.deploy.operations.replacing.master_type import SlotTemplate, launch_type, read_slot_template

# Versions of a launch template: the stack's, and one for which the operator has chosen another type.
OF_STACK = {"LaunchTemplateId": "lt-1", "VersionNumber": 1, "LaunchTemplateData": {"InstanceType": "m5.large"}}
IN_PLACE = {
    "LaunchTemplateId": "lt-1",
    "VersionNumber": 2,
    "VersionDescription": "cfngen: m6i.large in place of m5.large",
    "LaunchTemplateData": {"InstanceType": "m6i.large"},
}
BACK = {**OF_STACK, "VersionNumber": 3, "VersionDescription": "cfngen: m5.large, as in the stack"}
RESERVATION = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
RESERVED = {
    **OF_STACK,
    "LaunchTemplateData": {"InstanceType": "m5.large", "CapacityReservationSpecification": RESERVATION},
}


def ec2(*versions: dict[str, Any]) -> Answers:
    """EC2 with these versions of a launch template, the newest last."""

    def described(sent: dict[str, Any]) -> dict[str, Any]:
        [asked] = sent.get("Versions", [""])
        by_number = {str(version["VersionNumber"]): version for version in versions}
        asked_for = [versions[-1]] if asked == "$Latest" else [by_number[asked]] if asked else list(versions)
        return {"LaunchTemplateVersions": asked_for}

    made = {"LaunchTemplateVersion": {"VersionNumber": len(versions) + 1}}
    return Answers(
        {
            "ec2:DescribeLaunchTemplateVersions": described,
            "ec2:CreateLaunchTemplateVersion": made,
            "autoscaling:UpdateAutoScalingGroup": {},
        }
    )


def slot(version: str) -> dict[str, Any]:
    return {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": version}}


@pytest.mark.parametrize(
    ("versions", "launched", "expected"),
    [
        ([OF_STACK], "1", SlotTemplate("lt-1", "1", "m5.large", "1", "m5.large", "m5.large", False)),
        ([RESERVED], "1", SlotTemplate("lt-1", "1", "m5.large", "1", "m5.large", "m5.large", True)),
        ([OF_STACK, IN_PLACE], "2", SlotTemplate("lt-1", "2", "m6i.large", "2", "m6i.large", "m5.large", False)),
        # The group is not updated yet.
        ([OF_STACK, IN_PLACE], "1", SlotTemplate("lt-1", "1", "m5.large", "2", "m6i.large", "m5.large", False)),
        ([OF_STACK, IN_PLACE, BACK], "3", SlotTemplate("lt-1", "3", "m5.large", "3", "m5.large", "m5.large", False)),
    ],
)
def test_the_type_of_the_stack_is_known_whatever_stands_in_for_it(
    versions: list[dict[str, Any]], launched: str, expected: SlotTemplate
) -> None:
    assert read_slot_template(ec2(*versions).account, slot(launched)) == expected


def test_a_launch_template_that_is_gone_has_no_types() -> None:
    aws = Answers({"ec2:DescribeLaunchTemplateVersions": RefusedError("InvalidLaunchTemplateId.NotFound")})
    assert read_slot_template(aws.account, slot("1")) == SlotTemplate("lt-1", "1", "", "", "", "", False)
    assert read_slot_template(aws.account, {}) == SlotTemplate("", "", "", "", "", "", False)


OPEN = {"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}


@pytest.mark.parametrize(
    ("versions", "instance_type", "source", "description", "data"),
    [
        ([OF_STACK], "c6i.large", "1", "c6i.large in place of m5.large", {}),
        # A reservation is for the stack's type.
        ([RESERVED], "c6i.large", "1", "c6i.large in place of m5.large", OPEN),
        ([RESERVED], "m5.large", "1", "m5.large, as in the stack", {}),
        ([OF_STACK, IN_PLACE], "c6i.large", "2", "c6i.large in place of m5.large", {}),
        # Back to what the stack has, with all that a version of the operator's lacks.
        ([RESERVED, IN_PLACE], "m5.large", "1", "m5.large, as in the stack", {}),
        ([OF_STACK, IN_PLACE, BACK], "m5.large", "3", "m5.large, as in the stack", {}),
    ],
)
def test_a_slot_launches_the_type_from_a_new_version(
    versions: list[dict[str, Any]], instance_type: str, source: str, description: str, data: dict[str, Any]
) -> None:
    aws = ec2(*versions)
    template = read_slot_template(aws.account, slot("1"))
    new = str(len(versions) + 1)
    assert launch_type(aws.account, "one-MasterA", template, instance_type) == new
    assert aws.written() == [
        (
            "ec2:CreateLaunchTemplateVersion",
            {
                "LaunchTemplateId": "lt-1",
                "SourceVersion": source,
                "VersionDescription": f"cfngen: {description}",
                "LaunchTemplateData": {"InstanceType": instance_type, **data},
            },
        ),
        (
            "autoscaling:UpdateAutoScalingGroup",
            {
                "AutoScalingGroupName": "one-MasterA",
                "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": new},
            },
        ),
    ]
