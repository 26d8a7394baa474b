"""The emulator itself: how stacks come into being, wait, fail and go."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from small_stacks import (
    BAD,
    GATEWAY,
    REGION,
    TRUST,
    VOLUME,
    gateways,
    group,
    nested,
    reasons,
    signalling,
    snapshots,
    statuses,
    text,
)

from cfngen.sandbox.cloudformation import AlreadyExistsError, CloudFormation, Resource, Stack, ValidationError, client
from cfngen.sandbox.cloudformation.simulation import Clock, Simulation, StuckError


def test_dependents_are_made_after_and_removed_before(cloud: CloudFormation) -> None:
    resources = {
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
        },
        "Gateway": GATEWAY,
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}, "DependsOn": "Gateway"},
    }
    stack = cloud.create_stack("s", body=text(resources))
    creation = ("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    assert statuses(stack) == [
        ("s", "CREATE_IN_PROGRESS"),
        *((key, status) for key in ("Gateway", "Vpc", "Attachment") for status in creation),
        ("s", "CREATE_COMPLETE"),
    ]
    created = len(stack.events)
    cloud.delete_stack("s")
    deletion = ("DELETE_IN_PROGRESS", "DELETE_COMPLETE")
    assert statuses(stack)[created:] == [
        ("s", "DELETE_IN_PROGRESS"),
        *((key, status) for key in ("Attachment", "Vpc", "Gateway") for status in deletion),
        ("s", "DELETE_COMPLETE"),
    ]
    assert gateways() == []


def test_a_failure_rolls_back_what_was_made(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"Gateway": GATEWAY, "Vpc": {**BAD, "DependsOn": "Gateway"}}))
    reasons = {event.status: event.reason for event in stack.events if event.logical_id == "s"}
    assert [*reasons] == ["CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"]
    assert reasons["ROLLBACK_IN_PROGRESS"] == (
        "The following resource(s) failed to create: [Vpc]. Rollback requested by user."
    )
    assert statuses(stack, "Gateway")[-2:] == [("Gateway", "DELETE_IN_PROGRESS"), ("Gateway", "DELETE_COMPLETE")]
    assert gateways() == []


def test_a_failure_may_leave_what_was_made(cloud: CloudFormation) -> None:
    body = text({"Gateway": GATEWAY, "Vpc": {**BAD, "DependsOn": "Gateway"}})
    stack = cloud.create_stack("s", body=body, on_failure="DO_NOTHING")
    assert stack.status == "CREATE_FAILED"
    assert gateways() == [stack.resources["Gateway"].physical_id]
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"
    assert gateways() == []


def test_names_are_free_again_after_deletion(cloud: CloudFormation) -> None:
    first = cloud.create_stack("s", body=text({"Gateway": GATEWAY}))
    with pytest.raises(AlreadyExistsError, match=r"Stack \[s\] already exists"):
        cloud.create_stack("s", body=text({"Gateway": GATEWAY}))
    cloud.delete_stack("s")
    second = cloud.create_stack("s", body=text({"Gateway": GATEWAY}))
    assert (cloud.stack("s"), cloud.stack(first.id)) == (second, first)


@pytest.mark.parametrize(
    ("policy", "after_deletion", "after_rollback"),
    [("Delete", 0, 0), ("Retain", 1, 1), ("RetainExceptOnCreate", 1, 0)],
)
def test_deletion_policies(cloud: CloudFormation, policy: str, after_deletion: int, after_rollback: int) -> None:
    kept = {**GATEWAY, "DeletionPolicy": policy}
    cloud.create_stack("s", body=text({"Gateway": kept}))
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"
    assert len(gateways()) == after_deletion
    stack = cloud.create_stack("t", body=text({"Gateway": kept, "Vpc": {**BAD, "DependsOn": "Gateway"}}))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert len(gateways()) == after_deletion + after_rollback


def test_a_snapshot_is_taken_before_deletion(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"Volume": {**VOLUME, "DeletionPolicy": "Snapshot"}}))
    volume = stack.resources["Volume"].physical_id
    cloud.delete_stack("s")
    assert [snapshot["VolumeId"] for snapshot in snapshots()] == [volume]
    assert client("ec2", REGION).describe_volumes()["Volumes"] == []


def test_what_cannot_be_deleted_can_be_tried_again(cloud: CloudFormation) -> None:
    ec2 = client("ec2", REGION)
    stack = cloud.create_stack("s", body=text({"Gateway": GATEWAY, "Volume": VOLUME}))
    attachment = {
        "InternetGatewayId": stack.resources["Gateway"].physical_id,
        "VpcId": ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"],
    }
    ec2.attach_internet_gateway(**attachment)
    cloud.delete_stack("s")
    assert (stack.status, stack.reason) == ("DELETE_FAILED", "The following resource(s) failed to delete: [Gateway]. ")
    assert statuses(stack, "Volume")[-1] == ("Volume", "DELETE_COMPLETE")
    ec2.detach_internet_gateway(**attachment)
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"


def test_tags_of_the_stack_reach_what_can_be_tagged(cloud: CloudFormation) -> None:
    own = {"Tags": [{"Key": "a", "Value": "own"}]}
    stack = cloud.create_stack("s", body=text({"G": {**GATEWAY, "Properties": own}}), tags={"a": "stack", "b": "stack"})
    [gateway] = client("ec2", REGION).describe_internet_gateways(InternetGatewayIds=[stack.resources["G"].physical_id])[
        "InternetGateways"
    ]
    assert {tag["Key"]: tag["Value"] for tag in gateway["Tags"]} == {"a": "own", "b": "stack"}


def test_nested_stacks_take_parameters_and_give_outputs(cloud: CloudFormation) -> None:
    child = text(
        {"Gateway": GATEWAY},
        Parameters={"Word": {"Type": "String"}},
        Outputs={"Said": {"Value": {"Fn::Sub": "${Word} ${Gateway}"}}},
    )
    resources = {
        "Second": nested("child", child, Parameters={"Word": {"Fn::GetAtt": "First.Outputs.Said"}}),
        "First": nested("child", child, Parameters={"Word": "hello"}),
    }
    outputs = {"It": {"Value": {"Fn::GetAtt": "Second.Outputs.Said"}}}
    stack = cloud.wait(cloud.create_stack("s", body=text(resources, Outputs=outputs)))
    first, second = (stack.children[key].resources["Gateway"].physical_id for key in ("First", "Second"))
    assert stack.outputs == {"It": f"hello {first} {second}"}
    child_stack = stack.children["First"]
    assert child_stack.name.startswith("s-First-")
    assert cloud.stack(child_stack.name).root is stack
    assert cloud.wait(cloud.delete_stack(child_stack.name)).status == "DELETE_COMPLETE"
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert (child_stack.status, gateways()) == ("DELETE_COMPLETE", [])


@pytest.mark.parametrize(
    ("child", "says"),
    [
        (text({"Gateway": GATEWAY, "Vpc": {**BAD, "DependsOn": "Gateway"}}), "failed to create: [Vpc]"),
        (text({"Gateway": GATEWAY}, Parameters={"P": {"Type": "String"}}), "Parameters: [P] must have values"),
        (text({"Gateway": {"Type": "AWS::IAM::Role", "Properties": {}}}), "Requires capabilities"),
        ("{", "JSON not well-formed"),
    ],
)
def test_a_nested_stack_that_fails_fails_its_parent(cloud: CloudFormation, child: str, says: str) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text({"Gateway": GATEWAY, "Child": nested("child", child)})))
    assert stack.status == "ROLLBACK_COMPLETE"
    [reason] = [event.reason for event in stack.events if event.status == "CREATE_FAILED"]
    assert says in reason
    assert gateways() == []
    assert {child.status for child in stack.children.values()} <= {"DELETE_COMPLETE"}


def waiting(cloud: CloudFormation, **arguments: Any) -> tuple[Stack, Resource]:
    stack = cloud.create_stack("s", body=text(group(2, **arguments)))
    assert stack.status == "CREATE_IN_PROGRESS"
    return stack, stack.resources["Group"]


def test_a_group_is_complete_when_every_instance_has_signalled() -> None:
    cloud = signalling((30, "SUCCESS"), (90, "SUCCESS"))
    stack, resource = waiting(cloud)
    cloud.simulation.run(lambda: cloud.clock.now >= 30)
    assert resource.status == "CREATE_IN_PROGRESS"
    assert resource.reason.startswith("Received SUCCESS signal with UniqueId i-")
    cloud.wait(stack)
    assert (stack.status, cloud.clock.now) == ("CREATE_COMPLETE", 90)
    with pytest.raises(ValidationError, match="cannot be signaled"):
        cloud.signal_resource("s", "Group", "i-late", "SUCCESS")


def test_one_instance_counts_once() -> None:
    cloud = CloudFormation(REGION)
    stack, resource = waiting(cloud)
    cloud.signal_resource("s", "Group", "i-one", "SUCCESS")
    with pytest.raises(ValidationError, match=r"^Signal with ID i-one for resource Group already exists\. Signals may"):
        cloud.signal_resource("s", "Group", "i-one", "SUCCESS")
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    assert [event.reason for event in stack.events if event.status == "CREATE_FAILED"] == [
        "Failed to receive 1 resource signal(s) within the specified duration"
    ]
    assert (cloud.clock.now, resource.signals) == (600, {"i-one": "SUCCESS"})


def test_a_failure_takes_the_place_of_an_earlier_signal() -> None:
    cloud = CloudFormation(REGION)
    stack, _ = waiting(cloud)
    cloud.signal_resource("s", "Group", "i-one", "SUCCESS")
    cloud.signal_resource("s", "Group", "i-one", "FAILURE")
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    assert cloud.clock.now == 0
    assert "Received FAILURE signal with UniqueId i-one" in [event.reason for event in stack.events]


def test_one_failure_fails_the_group() -> None:
    cloud = signalling((30, "FAILURE"), (20, "SUCCESS"))
    stack, resource = waiting(cloud)
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    assert cloud.clock.now == 30
    assert client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert resource.status == "DELETE_COMPLETE"


@pytest.mark.parametrize(("logical_id", "status"), [("Group", "MAYBE"), ("None", "SUCCESS"), ("Template", "SUCCESS")])
def test_signals_nobody_waits_for_are_refused(cloud: CloudFormation, logical_id: str, status: str) -> None:
    waiting(cloud)
    with pytest.raises(ValidationError):
        cloud.signal_resource("s", logical_id, "i-one", status)


@pytest.mark.parametrize(("timeout", "seconds"), [("PT90S", 90), ("PT1H30M", 5400), ("PT12H", 12 * 3600)])
def test_the_time_to_wait(cloud: CloudFormation, timeout: str, seconds: int) -> None:
    stack, _ = waiting(cloud, timeout=timeout)
    cloud.wait(stack)
    assert cloud.clock.now == seconds


@pytest.mark.parametrize(
    ("throttled", "seconds", "status"), [(90, 90, "CREATE_COMPLETE"), (3600, 600, "ROLLBACK_COMPLETE")]
)
def test_throttling_of_a_service_is_outlasted_for_a_while(
    cloud: CloudFormation, throttled: int, seconds: int, status: str
) -> None:
    cloud.throttle("G", throttled)
    stack = cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
    assert (cloud.clock.now, stack.status) == (seconds, status)
    failed = reasons(stack, "G", "CREATE_FAILED")
    assert failed == [] or "Rate exceeded" in failed[0]


def test_what_cannot_be_completed_goes_again(cloud: CloudFormation) -> None:
    rules = [{"Id": "a", "Status": "Enabled", "Prefix": "a", "ExpirationInDays": days} for days in (1, 2)]
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"LifecycleConfiguration": {"Rules": rules}}}
    policies = [{"PolicyName": "a", "PolicyDocument": {}}]
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, "Policies": policies}}
    for name, resource in (("bucket", bucket), ("role", role)):
        body = text({"It": resource})
        stack = cloud.wait(cloud.create_stack(name, body=body, capabilities=["CAPABILITY_IAM"]))
        assert [status for _, status in statuses(stack, "It")] == [
            "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"
        ]  # fmt: skip
    assert client("s3", REGION).list_buckets()["Buckets"] == []
    assert client("iam", REGION).list_roles()["Roles"] == []


def test_a_failure_elsewhere_cancels_what_waits(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({**group(1), "Child": nested("child", text(group(1)))}))
    child = stack.children["Child"]
    cloud.signal_resource("s", "Group", "i-one", "FAILURE")
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    assert ("Group", "CREATE_FAILED") in statuses(child)
    cancelled = [event.logical_id for event in stack.events if event.reason == "Resource creation cancelled"]
    assert (cancelled, child.status, cloud.clock.now) == (["Child"], "DELETE_COMPLETE", 0)
    assert client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"] == []


def test_user_data_has_a_limit(cloud: CloudFormation) -> None:
    resources = group(0)
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["UserData"] = base64.b64encode(b"x" * 16385).decode()
    stack = cloud.create_stack("s", body=text(resources))
    [reason] = [event.reason for event in stack.events if event.status == "CREATE_FAILED"]
    assert "16384 bytes" in reason


def test_a_role_has_room_for_so_much_policy(cloud: CloudFormation) -> None:
    allow = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": ["arn:aws:s3:::" + "x" * 10_240]}
    policy = {"PolicyName": "large", "PolicyDocument": {"Version": "2012-10-17", "Statement": [allow]}}
    properties = {"AssumeRolePolicyDocument": TRUST, "Policies": [policy]}
    body = text({"Role": {"Type": "AWS::IAM::Role", "Properties": properties}})
    stack = cloud.create_stack("s", body=body, capabilities=["CAPABILITY_IAM"])
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "Maximum policy size of 10240 bytes exceeded" in reasons(stack, "Role", "CREATE_FAILED")[-1]


def test_the_clock_jumps_to_what_is_next() -> None:
    clock, seen = Clock(), []
    clock.schedule(60, lambda: seen.append((clock.now, "later")))
    clock.schedule(5, lambda: seen.append((clock.now, "first")))
    clock.schedule(5, lambda: seen.append((clock.now, "second")))
    while clock.jump_to_next_action():
        pass
    assert seen == [(5, "first"), (5, "second"), (60, "later")]


def test_waiting_for_what_cannot_happen_is_an_error() -> None:
    simulation = Simulation(Clock())
    with pytest.raises(StuckError):
        simulation.run(lambda: False)
