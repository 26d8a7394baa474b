"""The emulator itself: what protects stacks, policies of stacks, what is left behind, and drift."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_stacks import GATEWAY, REGION, TRUST, gateways, group, nested, reasons, signalling, tagged, text, vpc, vpcs

from cfngen.sandbox.cloudformation import CloudFormation, InsufficientCapabilitiesError, ValidationError, client

ALLOW_ALL = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
RULE = {
    "Type": "AWS::EC2::SecurityGroupIngress",
    "Properties": {
        "GroupId": {"Ref": "S"},
        "IpProtocol": "tcp",
        "FromPort": 443,
        "ToPort": 443,
        "CidrIp": "10.0.0.0/8",
    },
}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Statement": list(statements)})


def deny(action: str | list[str], resource: str | list[str], **more: Any) -> dict[str, Any]:
    return {"Effect": "Deny", "Action": action, "Principal": "*", "Resource": resource, **more}


def test_a_protected_stack_is_not_deleted(cloud: CloudFormation) -> None:
    cloud.create_stack("s", body=text({"G": GATEWAY, "Child": nested("child", text({"H": GATEWAY}))}), protected=True)
    stack = cloud.wait(cloud.stack("s"))
    child = stack.children["Child"]
    assert child.protected
    says = r"Stack \[s\] cannot be deleted while TerminationProtection is enabled"
    with pytest.raises(ValidationError, match=says):
        cloud.delete_stack("s")
    with pytest.raises(ValidationError, match="nested"):
        cloud.set_termination_protection(child.name, False)
    cloud.set_termination_protection("s", False)
    assert not child.protected
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"


def test_protection_is_set_in_any_status_but_those_of_a_deletion(cloud: CloudFormation) -> None:
    cloud.durations["*"] = 5
    cloud.create_change_set("s", "c", body=text({"G": GATEWAY}), kind="CREATE")
    cloud.set_termination_protection("s", True)
    cloud.advance(60)
    cloud.execute_change_set("c", "s")
    assert cloud.stack("s").status == "CREATE_IN_PROGRESS"
    cloud.set_termination_protection("s", False)
    cloud.wait(cloud.stack("s"))
    stack = cloud.delete_stack("s")
    with pytest.raises(ValidationError, match="DELETE_IN_PROGRESS"):
        cloud.set_termination_protection("s", True)
    cloud.wait(stack)
    with pytest.raises(ValidationError, match="DELETE_COMPLETE"):
        cloud.set_termination_protection(stack.id, True)


def test_a_stack_policy_is_not_set_while_an_operation_is_under_way(cloud: CloudFormation) -> None:
    cloud.durations["*"] = 5
    cloud.create_change_set("s", "c", body=text({"G": GATEWAY}), kind="CREATE")
    with pytest.raises(ValidationError, match="REVIEW_IN_PROGRESS"):
        cloud.set_stack_policy("s", policy(ALLOW_ALL))
    cloud.advance(60)
    stack = cloud.execute_change_set("c", "s")
    with pytest.raises(ValidationError, match="CREATE_IN_PROGRESS"):
        cloud.set_stack_policy("s", policy(ALLOW_ALL))
    cloud.wait(stack)
    cloud.set_stack_policy("s", policy(ALLOW_ALL))


def test_a_rollback_that_would_delete_a_protected_stack_is_refused(cloud: CloudFormation) -> None:
    cloud.fail("G", "broken")
    stack = cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY}), on_failure="DO_NOTHING", protected=True))
    with pytest.raises(ValidationError, match="TerminationProtection"):
        cloud.rollback_stack("s")
    cloud.set_termination_protection("s", False)
    assert cloud.wait(cloud.rollback_stack("s")) is stack
    assert stack.status == "DELETE_COMPLETE"


def test_resources_can_be_retained_once_their_deletion_has_failed(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"G": GATEWAY, "H": GATEWAY}))
    with pytest.raises(ValidationError, match="DELETE_FAILED state"):
        cloud.delete_stack("s", retain=["G"])
    cloud.fail("G", "is attached", during="DELETE", times=9)
    cloud.delete_stack("s")
    assert stack.status == "DELETE_FAILED"
    with pytest.raises(ValidationError, match="nobody"):
        cloud.delete_stack("s", retain=["nobody"])
    cloud.delete_stack("s", retain=["G"])
    assert stack.status == "DELETE_COMPLETE"
    assert gateways() == [stack.resources["G"].physical_id]
    assert stack.resources["G"].status == "DELETE_SKIPPED"


def test_a_deletion_can_be_forced(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"Child": nested("child", text({"G": GATEWAY, "H": GATEWAY}))}))
    cloud.wait(stack)
    child = stack.children["Child"]
    cloud.fail("G", "is attached", during="DELETE", times=9)
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_FAILED"
    assert child.status == "DELETE_FAILED"
    assert cloud.wait(cloud.delete_stack("s", force=True)).status == "DELETE_COMPLETE"
    assert (len(gateways()), child.status) == (1, "DELETE_COMPLETE")


@pytest.mark.parametrize(
    ("statements", "denied"),
    [
        ([ALLOW_ALL], []),
        ([ALLOW_ALL, deny("Update:Replace", "LogicalResourceId/Vpc")], ["Vpc"]),
        ([ALLOW_ALL, deny("Update:Modify", "LogicalResourceId/Vpc")], []),
        ([ALLOW_ALL, deny("Update:*", ["LogicalResourceId/V*"])], ["Vpc"]),
        ([ALLOW_ALL, deny("Update:Delete", "LogicalResourceId/Old")], ["Old"]),
        ([ALLOW_ALL, deny("Update:*", "*", Condition={"StringEquals": {"ResourceType": ["AWS::EC2::VPC"]}})], ["Vpc"]),
        ([ALLOW_ALL, deny("Update:*", "*", Condition={"StringLike": {"ResourceType": ["AWS::EC2::V*"]}})], ["Vpc"]),
        ([ALLOW_ALL, deny("Update:*", "*", Condition={"StringLike": {"ResourceType": ["AWS::RDS::*"]}})], []),
        (
            [{**ALLOW_ALL, "Resource": "LogicalResourceId/G"}, {**ALLOW_ALL, "Resource": "LogicalResourceId/Old"}],
            ["Vpc"],
        ),
    ],
)
def test_a_policy_denies_what_it_says(cloud: CloudFormation, statements: list[Any], denied: list[str]) -> None:
    stack = cloud.create_stack("s", body=text({"G": tagged(a="1"), "Vpc": vpc(), "Old": GATEWAY}))
    before = vpcs()
    cloud.set_stack_policy("s", policy(*statements))
    cloud.update_stack("s", body=text({"G": tagged(a="2"), "Vpc": vpc("10.1.0.0/16")}))
    failed = [event.logical_id for event in stack.events if event.status == "UPDATE_FAILED"
              and event.reason != "Resource update cancelled"]  # fmt: skip
    assert failed == denied
    assert stack.status == ("UPDATE_ROLLBACK_COMPLETE" if denied else "UPDATE_COMPLETE")
    assert (vpcs() == before) == bool(denied)


def test_a_denial_names_the_statement(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"G": tagged(a="1")}), policy=policy(deny("Update:*", "*")))
    cloud.update_stack("s", body=text({"G": tagged(a="2")}))
    [reason] = reasons(stack, "G", "UPDATE_FAILED")
    assert reason == (
        "Action denied by stack policy: Statement [#1] does not allow [Update:Modify] for resource "
        "[LogicalResourceId/G]"
    )
    cloud.update_stack("s", body=text({"G": tagged(a="3")}), policy_during_update=policy(ALLOW_ALL))
    assert stack.status == "UPDATE_COMPLETE"
    assert cloud.stack("s").policy == policy(deny("Update:*", "*"))
    with pytest.raises(ValidationError, match="Invalid stack policy"):
        cloud.set_stack_policy("s", "{}")


def test_nested_stacks_have_policies_of_their_own(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text({"Child": nested("one", text({"G": tagged(a="1")}))})))
    child = stack.children["Child"]
    cloud.set_stack_policy(child.name, policy(ALLOW_ALL, deny("Update:*", "LogicalResourceId/G")))
    cloud.wait(cloud.update_stack("s", body=text({"Child": nested("two", text({"G": tagged(a="2")}))})))
    assert (stack.status, child.status) == ("UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
    assert "denied by stack policy" in reasons(child, "G", "UPDATE_FAILED")[0]


def test_capabilities(cloud: CloudFormation) -> None:
    role = {"AssumeRolePolicyDocument": TRUST, "RoleName": "mine"}
    body = text({"Role": {"Type": "AWS::IAM::Role", "Properties": role}})
    with pytest.raises(InsufficientCapabilitiesError, match="CAPABILITY_NAMED_IAM"):
        cloud.create_stack("s", body=body, capabilities=["CAPABILITY_IAM"])
    del role["RoleName"]
    body = text({"Role": {"Type": "AWS::IAM::Role", "Properties": role}})
    cloud.create_stack("s", body=body, capabilities=["CAPABILITY_IAM"])
    with pytest.raises(InsufficientCapabilitiesError):
        cloud.update_stack("s", previous_template=True, tags={"a": "1"})


def test_events_belong_to_operations(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"G": tagged(a="1")}), token="first")
    cloud.fail("G", "not now", during="UPDATE")
    cloud.update_stack("s", body=text({"G": tagged(a="2")}), token="second")
    kinds = dict(stack.operations)
    assert list(kinds.values()) == ["CREATE_STACK", "UPDATE_STACK", "ROLLBACK"]
    seen = [(kinds[event.operation_id], event.token) for event in stack.events]
    assert list(dict.fromkeys(seen)) == [("CREATE_STACK", "first"), ("UPDATE_STACK", "second"), ("ROLLBACK", "second")]
    assert len({event.id for event in stack.events}) == len(stack.events)


def test_drift_of_a_security_group_and_its_rules(cloud: CloudFormation) -> None:
    described = {"GroupDescription": "x", "VpcId": {"Ref": "Vpc"}}
    resources = {"Vpc": vpc(), "S": {"Type": "AWS::EC2::SecurityGroup", "Properties": described}, "Rule": RULE}
    described["SecurityGroupEgress"] = [{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}]
    stack = cloud.create_stack("s", body=text(resources))
    assert cloud.drift_detection(cloud.detect_drift("s")).drift == "IN_SYNC"
    ec2, identifier = client("ec2", REGION), stack.resources["S"].physical_id
    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ec2.revoke_security_group_egress(GroupId=identifier, IpPermissions=everything)
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    ec2.revoke_security_group_ingress(GroupId=identifier, IpPermissions=[rule])
    detection = cloud.drift_detection(cloud.detect_drift("s"))
    assert (detection.drift, detection.drifted_resource_count, stack.drift) == ("DRIFTED", 2, "DRIFTED")
    assert {resource_drift.logical_id: resource_drift.status for resource_drift in cloud.resource_drifts("s")} == {
        "Vpc": "IN_SYNC", "S": "MODIFIED", "Rule": "DELETED"
    }  # fmt: skip


def test_drift_of_a_group_and_of_tags() -> None:
    cloud = signalling((1, "SUCCESS"))
    stack = cloud.wait(cloud.create_stack("s", body=text({**group(1), "Vpc": vpc(), "G": GATEWAY})))
    name = stack.resources["Group"].physical_id
    client("autoscaling", REGION).update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=5)
    client("ec2", REGION).create_tags(Resources=[stack.resources["Vpc"].physical_id], Tags=[{"Key": "a", "Value": "b"}])
    cloud.detect_drift("s")
    found = {resource_drift.logical_id: resource_drift for resource_drift in cloud.resource_drifts("s")}
    assert [
        (difference.path, difference.expected, difference.actual, difference.kind)
        for difference in found["Group"].differences
    ] == [("/MaxSize", "1", "5", "NOT_EQUAL")]
    assert [difference.kind for difference in found["Vpc"].differences] == ["ADD"]
    assert stack.resources["G"].drift == "NOT_CHECKED"
    with pytest.raises(ValidationError):
        cloud.drift_detection("nothing")


@pytest.mark.parametrize("status", ["IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"])
def test_after_an_import_and_after_one_that_was_taken_back_stacks_are_updated(
    cloud: CloudFormation, status: str
) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
    stack.status = status
    cloud.fail("G", "no", during="UPDATE")
    cloud.wait(cloud.update_stack("s", body=text({"G": tagged(a="1")})))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    stack.status = status
    assert cloud.wait(cloud.update_stack("s", body=text({"G": tagged(a="1")}))).status == "UPDATE_COMPLETE"
