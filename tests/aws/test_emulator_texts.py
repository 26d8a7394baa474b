"""Texts and tags that services refuse, and that the emulator therefore refuses: halfway, in the service's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_stacks import TRUST, group, reasons, tagged, text, vpc

from cfngen.sandbox.cloudformation import CloudFormation, ValidationError
from cfngen.sandbox.services.resource_tags import set_tags_in_metadata

WORDS = (
    "Valid descriptions are strings less than 256 characters from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*"
)
CLUSTER = {"Key": "kubernetes.io/cluster/blue", "Value": "owned", "PropagateAtLaunch": True}
NO_INSTANCE = (
    "Group did not stabilize. Last scaling activity: 'kubernetes.io/cluster/blue' is not a valid tag key. Tag keys "
    "must match pattern ([0-9a-zA-Z\\\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index'). "
    "Launching EC2 instance failed."
)


def security_group(description: str, rule: str) -> dict[str, Any]:
    egress = [{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1", "Description": rule}]
    properties = {"GroupDescription": description, "VpcId": {"Ref": "V"}, "SecurityGroupEgress": egress}
    return {"Type": "AWS::EC2::SecurityGroup", "Properties": properties}


def ingress(description: str) -> dict[str, Any]:
    rule = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIp": "10.0.0.0/8", "Description": description}
    return {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"GroupId": {"Ref": "G"}, **rule}}


def role(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, **properties}}


def failure(cloud: CloudFormation, logical_id: str, resources: dict[str, Any]) -> list[str]:
    stack = cloud.wait(cloud.create_stack("s", body=text(resources), capabilities=["CAPABILITY_IAM"]))
    assert stack.status == "ROLLBACK_COMPLETE"
    return reasons(stack, logical_id, "CREATE_FAILED")


@pytest.mark.parametrize("rule", ["Cilium's tunnel", "x" * 256])
def test_a_rule_is_refused_in_words_of_ec2(cloud: CloudFormation, rule: str) -> None:
    resources = {"V": vpc(), "G": security_group("fine", "fine"), "R": ingress(rule)}
    assert failure(cloud, "R", resources) == [f"Invalid rule description. {WORDS}"]


def test_a_rule_within_its_group_is_refused_too(cloud: CloudFormation) -> None:
    resources = {"V": vpc(), "G": security_group("fine", "isn't")}
    assert failure(cloud, "G", resources) == [f"Invalid rule description. {WORDS}"]


def test_tags_of_a_role_that_differ_in_case(cloud: CloudFormation) -> None:
    tags = [{"Key": "Name", "Value": "a"}, {"Key": "name", "Value": "b"}]
    said = ["Duplicate tag keys found. Please note that Tag keys are case insensitive."]
    assert failure(cloud, "R", {"R": role(Tags=tags)}) == said
    other = tagged(Name="a", name="b")
    assert cloud.create_stack("t", body=text({"G": other})).status == "CREATE_COMPLETE"


def test_tags_of_the_stack_count_as_the_roles_own(cloud: CloudFormation) -> None:
    body = text({"R": role(Tags=[{"Key": "Team", "Value": "a"}])})
    stack = cloud.create_stack("s", body=body, tags={"team": "b"}, capabilities=["CAPABILITY_IAM"])
    assert reasons(stack, "R", "CREATE_FAILED")[0].startswith("Duplicate tag keys found")


def test_an_update_is_refused_and_rolled_back(cloud: CloudFormation) -> None:
    resources = {"V": vpc(), "G": security_group("fine", "fine"), "R": ingress("fine")}
    stack = cloud.create_stack("s", body=text(resources))
    cloud.update_stack("s", body=text({**resources, "R": ingress("it's")}))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reasons(stack, "R", "UPDATE_FAILED") == [f"Invalid rule description. {WORDS}"]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"Description": "x" * 1025}, "'Description' length is greater than 1024"),
        ({"Parameters": {"P": {"Type": "String", "Default": "", "Description": "x" * 4001}}}, "has 4001 characters"),
        ({"Parameters": {"not-so": {"Type": "String", "Default": ""}}}, "not-so is non alphanumeric"),
        ({"Outputs": {"O": {"Value": "x", "Export": {"Name": "a/b"}}}}, "name of an export"),
    ],
)
def test_a_template_is_refused_for_its_own_texts(cloud: CloudFormation, sections: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        cloud.create_stack("s", body=text({"V": vpc()}, **sections))


def with_tags(**options: str) -> dict[str, Any]:
    resources = json.loads(json.dumps(group(1)))
    launch = next(resource for resource in resources.values() if resource["Type"] == "AWS::EC2::LaunchTemplate")
    launch["Properties"]["LaunchTemplateData"]["MetadataOptions"] = options
    scaling = next(
        resource for resource in resources.values() if resource["Type"] == "AWS::AutoScaling::AutoScalingGroup"
    )
    scaling["Properties"]["Tags"] = [CLUSTER]
    del scaling["CreationPolicy"], scaling["UpdatePolicy"]
    return resources


def test_no_instance_starts_whose_tags_the_metadata_service_cannot_show(cloud: CloudFormation) -> None:
    set_tags_in_metadata(cloud.region, True)
    [said] = failure(cloud, "Group", with_tags())
    assert said == NO_INSTANCE


@pytest.mark.parametrize(("default", "options"), [(False, {}), (True, {"InstanceMetadataTags": "disabled"})])
def test_instances_start_without_tags_in_their_metadata(
    cloud: CloudFormation, default: bool, options: dict[str, str]
) -> None:
    set_tags_in_metadata(cloud.region, default)
    assert cloud.create_stack("s", body=text(with_tags(**options))).status == "CREATE_COMPLETE"


def test_an_update_that_leaves_it_to_the_account_fails_once_it_launches(cloud: CloudFormation) -> None:
    set_tags_in_metadata(cloud.region, True)
    stack = cloud.create_stack("s", body=text(with_tags(InstanceMetadataTags="disabled")))
    grown = with_tags(HttpTokens="required")
    grown["Group"]["Properties"] |= {"MinSize": "2", "MaxSize": "2"}
    cloud.wait(cloud.update_stack("s", body=text(grown)))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reasons(stack, "Group", "UPDATE_FAILED") == [NO_INSTANCE]
