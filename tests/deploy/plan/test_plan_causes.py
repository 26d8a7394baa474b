"""Why a plan says "replaced": it follows a reference to an output, to a created resource, to what the root hands on."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import UNKNOWN_VALUE, change, detail, nested
from test_plan_replacement import ASG, GROUP, RULE, SECURITY_GROUPS, SUBNET, VPC, by_id, handed, planned

from cfngen.deploy.plan.plan import Replacement

WILL, MIGHT, NO = Replacement.WILL, Replacement.MIGHT, Replacement.NO


def verdicts(*root: Any, **children: tuple[Any, ...]) -> dict[str, Replacement]:
    """Whether each resource of a plan is replaced; what is not in the plan is missing."""
    return {name: each.replacement for name, each in by_id(planned(root, **children)).items()}


def rule(*details: dict[str, Any]) -> dict[str, Any]:
    return change("MasterApiFromNodes", RULE, *details, replacement="Conditional")


@pytest.mark.parametrize(("action", "expected"), [("Add", WILL), ("Remove", WILL)])
def test_what_refers_to_a_resource_that_comes_or_goes_is_replaced(action: str, expected: Replacement) -> None:
    other = change("MasterSecurityGroup", GROUP, action=action)
    refers = rule(detail("GroupId", "sg-1", UNKNOWN_VALUE, recreation="Always", cause="MasterSecurityGroup.GroupId"))
    replacements = verdicts(nested("SecurityGroupsStack"), SecurityGroupsStack=(other, refers))
    assert replacements["MasterApiFromNodes"] is expected


def test_what_refers_to_a_resource_that_might_be_replaced_might_be_too() -> None:
    other = change(
        "MasterSecurityGroup",
        GROUP,
        detail("VpcId", "vpc-1", UNKNOWN_VALUE, recreation="Always", evaluation="Dynamic"),
        replacement="Conditional",
    )
    refers = rule(detail("GroupId", "sg-1", UNKNOWN_VALUE, recreation="Always", cause="MasterSecurityGroup.GroupId"))
    replacements = verdicts(nested("SecurityGroupsStack"), SecurityGroupsStack=(other, refers))
    assert replacements == {"MasterSecurityGroup": MIGHT, "MasterApiFromNodes": MIGHT}


def test_an_output_of_a_stack_that_is_made_anew_is_another_value() -> None:
    replacements = verdicts(
        nested("VpcStack", action="Add"),
        nested("SecurityGroupsStack", handed("VpcId", "VpcStack")),
        VpcStack=(change("Vpc", VPC, action="Add"),),
        SecurityGroupsStack=SECURITY_GROUPS,
    )
    assert (replacements["MasterSecurityGroup"], replacements["MasterApiFromNodes"]) == (WILL, WILL)


def test_an_output_of_a_stack_that_is_not_listed_at_all_stays() -> None:
    replacements = verdicts(
        nested("SecurityGroupsStack", handed("VpcId", "VpcStack")), SecurityGroupsStack=SECURITY_GROUPS
    )
    assert replacements == {}


@pytest.mark.parametrize(("evaluation", "expected"), [("Static", WILL), ("Dynamic", MIGHT)])
def test_a_parameter_of_the_root_that_is_handed_on_without_its_value(evaluation: str, expected: Replacement) -> None:
    """Without values all that CloudFormation says is whether it has evaluated the parameter."""
    size = change(
        "MasterAVolume",
        "AWS::EC2::Volume",
        detail("Size", recreation="Always", cause="MasterVolumeSize", evaluation=evaluation),
        replacement="True",
    )
    handed_on = detail("Parameters/MasterVolumeSize", cause="MasterVolumeSize")
    replacements = verdicts(nested("MasterStack", handed_on), MasterStack=(size,))
    assert replacements == {"MasterAVolume": expected}


def test_a_parameter_of_the_stack_itself_is_as_certain_as_cloudformation_says() -> None:
    for evaluation, expected in (("Static", WILL), ("Dynamic", MIGHT)):
        group = change(
            "Group",
            "AWS::X::Y",
            detail("Name", recreation="Always", cause="Name", evaluation=evaluation),
            replacement="True",
        )
        assert verdicts(group) == {"Group": expected}


def test_a_property_that_never_replaces_changes_in_place_though_its_cause_is_replaced() -> None:
    vpc = change("Vpc", VPC, detail("CidrBlock", "10.0.0.0/16", "10.1.0.0/16", recreation="Always"), replacement="True")
    tagged = change("SubnetA", SUBNET, detail("MapPublicIpOnLaunch", "x", UNKNOWN_VALUE, cause="Vpc.CidrBlock"))
    assert verdicts(nested("VpcStack"), VpcStack=(vpc, tagged)) == {"Vpc": WILL, "SubnetA": NO}


def test_a_group_that_does_not_roll_might_be_replaced() -> None:
    version = detail("LaunchTemplate/Version", "1", "2", recreation="Conditionally")
    group = change("SomebodysGroup", ASG, version, replacement="Conditional")
    assert verdicts(group) == {"SomebodysGroup": MIGHT}


def test_the_cause_is_named_in_the_plan() -> None:
    refers = rule(detail("GroupId", "sg-1", UNKNOWN_VALUE, recreation="Always", cause="MasterSecurityGroup.GroupId"))
    plan = planned(
        (nested("SecurityGroupsStack"),),
        SecurityGroupsStack=(change("MasterSecurityGroup", GROUP, action="Add"), refers),
    )
    [prop] = by_id(plan)["MasterApiFromNodes"].properties
    assert (prop.cause, prop.replaces, prop.certain) == ("attribute MasterSecurityGroup.GroupId", WILL, True)


def test_an_output_of_a_stack_without_a_change_set_might_change() -> None:
    """Neither CloudFormation nor the deployed templates, which cannot be read here, say what changes in the stack."""
    replacements = verdicts(
        nested("SecurityGroupsStack", handed("VpcId", "VpcStack")),
        change("VpcStack", "AWS::CloudFormation::Stack", detail("Tags/0/Value", "a", "b")),
        SecurityGroupsStack=SECURITY_GROUPS,
    )
    assert replacements["MasterSecurityGroup"] == MIGHT
