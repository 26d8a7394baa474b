"""Why an operation failed: the cause among everything that follows from it, with what other services know about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber
from click import unstyle
from cloud import default_cloud
from clusters import ALLOWED, BUCKET, PREFIX
from small_stacks import GATEWAY, nested, running, text, vpc
from watched import NAME, Operator, operating

from cfngen.cli.render.diagnosis import diagnosis_lines
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.errors import UnreachableError
from cfngen.deploy.watching.diagnosis import Diagnosis, diagnose
from cfngen.sandbox.cloudformation import client

NO_WAY = "Resource handler returned message: this is what went wrong (HandlerErrorCode: GeneralServiceException)"
FAILED_BOOT = """\
[    0.000000] Linux version 6.8.0
[   21.113000] cloud-init[621]: Cloud-init v. 24.1 running 'modules:final'
[   24.912345] python3[702]: cfngen: [1/6] identity: i-1 in us-west-2a, node of kubernetes (0.1 s)
[   51.000001] python3[702]: cfngen: [2/6] packages: nothing to install (0.0 s)
[  171.500000] python3[702]: cfngen: [3/6] join FAILED after 120.0 s: no secret. What to do: see the master
[  171.700000] python3[702]: cfngen: signalled FAILURE
"""


@pytest.fixture
def operator() -> Iterator[Operator]:
    with operating() as made:
        yield made


def ended(operator: Operator, root_id: str = NAME) -> Diagnosis:
    operator.engine.wait(operator.engine.stack(root_id))
    return diagnose(operator.account, root_id)


@pytest.mark.parametrize(
    ("stack", "resource"),
    [
        ("VpcStack", "SubnetA"),
        ("SecurityGroupsStack", "NodeSecurityGroup"),
        ("SecretsStack", "SecretsKey"),
        ("IamStack", "NodeRole"),
        ("MasterStack", "MasterAVolume"),
        ("NodeGroupNodesStack", "NodeGroupNodesLaunchTemplate"),
    ],
)
@pytest.mark.parametrize("allowed", [True, False], ids=["DescribeEvents", "without"])
def test_the_failure_in_each_nested_stack_of_a_cluster_is_named(stack: str, resource: str, allowed: bool):
    with default_cloud() as cloud:
        cloud.engine.fail(resource, NO_WAY)
        given = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        root = cloud.engine.create_stack(
            NAME, url=cloud.account.url("cluster"), parameters=given, capabilities=["CAPABILITY_IAM"]
        )
        cloud.engine.wait(root)
        if not allowed:
            cloud.faults.deny("cloudformation:DescribeEvents")
        account = connect(cloud.session, cloud.cluster.region, clock=cloud.clock)
        found = diagnose(account, root.id)
    assert (found.stack, found.status, found.action) == (NAME, "ROLLBACK_COMPLETE", "create")
    assert found.cause is not None
    assert (found.cause.event.path, found.cause.event.logical_id) == ((stack,), resource)
    assert found.cause.event.reason == NO_WAY
    assert found.others == ()
    assert found.rollback_failures == ()
    assert not found.cancelled


def test_the_history_of_every_stack_is_not_read_where_failures_alone_are_told(operator: Operator):
    operator.engine.fail("Disk", NO_WAY)
    root_id = operator.create()
    operator.engine.wait(operator.root)
    operator.faults.calls.clear()
    assert ended(operator, root_id).cause is not None
    asked = {call.parameters["StackName"] for call in operator.faults.called("DescribeStackEvents")}
    assert asked == {root_id}


def test_failures_that_have_nothing_to_do_with_each_other_are_both_told(operator: Operator):
    operator.engine.fail("Gateway", "no gateways today")
    operator.engine.fail("Disk", "no disks today")
    operator.engine.durations.clear()
    found = ended(operator, operator.create())
    causes = [found.cause, *found.others]
    assert {cause.event.logical_id for cause in causes if cause} <= {"Gateway", "Disk"}
    assert found.cause is not None


def test_what_fails_while_it_is_taken_back_is_told_apart(operator: Operator):
    operator.engine.fail("Disk", NO_WAY)
    operator.engine.fail(
        "Gateway", "The internetGateway 'igw-1' has dependencies and cannot be deleted.", during="DELETE"
    )
    found = ended(operator, operator.create())
    assert found.status == "ROLLBACK_FAILED"
    assert found.cause is not None
    assert found.cause.event.logical_id == "Disk"
    [later] = found.rollback_failures
    assert later.event.logical_id == "Gateway"
    assert "still uses it" in later.explanation


def test_a_stack_that_fails_before_its_first_resource(operator: Operator):
    zone = {"Zone": {"Type": "AWS::EC2::AvailabilityZone::Name"}}
    child = nested("child", text({"Gateway": GATEWAY}, Parameters=zone), Parameters={"Zone": "us-west-2x"})
    operator.cloudformation.create_stack(StackName=NAME, TemplateBody=text({"ChildStack": child}))
    found = ended(operator, operator.root.id)
    assert found.cause is not None
    assert "us-west-2x" in found.cause.event.reason
    assert "Embedded stack" not in found.cause.event.reason
    assert found.cause.hint.startswith("correct the value")


def test_a_nested_stack_that_never_came_to_be(operator: Operator):
    child = nested("child", text({"Gateway": GATEWAY}))
    client("s3", "us-west-2").delete_object(Bucket="templates-of-a-test", Key="child.json")
    operator.cloudformation.create_stack(StackName=NAME, TemplateBody=text({"ChildStack": child}))
    found = ended(operator, operator.root.id)
    assert found.cause is not None
    assert (found.cause.event.path, found.cause.event.logical_id) == ((), "ChildStack")


def test_of_an_update_the_failure_that_it_was_rolled_back_for(operator: Operator):
    operator.created()
    operator.engine.advance(1)
    operator.engine.fail("Group", NO_WAY, during="UPDATE")
    operator.update("t3.large")
    found = ended(operator)
    assert (found.action, found.status) == ("update", "UPDATE_ROLLBACK_COMPLETE")
    assert found.cause is not None
    assert found.cause.event.logical_id == "Group"
    [step] = found.next_steps
    assert str(step.command) == "cfngen deploy --stack-name k8s"
    assert "the cluster is unchanged" in step.purpose


def test_of_a_rollback_the_failure_before_it(operator: Operator):
    operator.created()
    operator.engine.advance(1)
    operator.engine.fail("Group", NO_WAY, during="UPDATE")
    operator.update("t3.large", DisableRollback=True)
    operator.engine.wait(operator.root)
    operator.engine.advance(60)
    operator.cloudformation.rollback_stack(StackName=NAME)
    found = ended(operator)
    assert found.status == "UPDATE_ROLLBACK_COMPLETE"
    assert found.cause is not None
    assert found.cause.event.reason == NO_WAY


def test_only_the_last_operation_counts(operator: Operator):
    operator.created()
    operator.engine.advance(1)
    operator.engine.fail("Group", NO_WAY, during="UPDATE")
    operator.update("t3.large")
    operator.engine.wait(operator.root)
    operator.engine.advance(1)
    operator.update("t3.medium")
    found = ended(operator)
    assert (found.cause, found.others, found.next_steps) == (None, (), ())


def test_a_cancelled_update_has_no_cause(operator: Operator):
    operator.created()
    operator.engine.advance(1)
    operator.update("t3.large")
    operator.engine.advance(10)
    operator.cloudformation.cancel_update_stack(StackName=NAME)
    found = ended(operator)
    assert (found.cause, found.cancelled) == (None, True)
    [step] = found.next_steps
    assert str(step.command) == "cfngen deploy --stack-name k8s"
    assert "cause" not in step.purpose


def test_a_creation_that_somebody_ended_by_deleting_the_stack_has_no_cause(operator: Operator):
    root_id = operator.create()
    operator.engine.advance(20)
    operator.cloudformation.delete_stack(StackName=NAME)
    found = ended(operator, root_id)
    assert found.status == "DELETE_COMPLETE"
    assert (found.cause, found.action, found.cancelled) == (None, "create", True)
    assert [step.purpose for step in found.next_steps] == ["creates the cluster"]
    assert "was ended by deleting the stack (DELETE_COMPLETE)" in unstyle("\n".join(diagnosis_lines(found, 120)))


def test_a_rollback_of_an_import_cannot_be_continued(operator: Operator):
    operator.created()
    operator.root.status = "IMPORT_ROLLBACK_FAILED"
    found = diagnose(operator.account, NAME)
    assert [str(step.command) for step in found.next_steps] == ["cfngen delete --stack-name k8s"]


def test_no_such_stack(operator: Operator):
    found = diagnose(operator.account, "other")
    assert (found.stack, found.status, found.cause) == ("other", "", None)


# What instances know


def test_instances_that_never_signal_are_asked_for_their_last_words(operator: Operator):
    operator.signals = [None, None]
    root_id = operator.create()
    operator.engine.advance(60)
    one, two = sorted(running())
    operator.served.moto_extensions.set_console_output(one, FAILED_BOOT)
    found = ended(operator, root_id)
    assert found.cause is not None
    assert found.cause.event.reason.startswith("Failed to receive 2 resource signal(s)")
    assert found.cause.explanation == "2 of the group's instances did not signal success in time"
    spoken, silent = found.cause.instances
    assert (spoken.id, spoken.state, spoken.failed) == (one, "terminated", True)
    assert spoken.lines[0] == "[1/6] identity: i-1 in us-west-2a, node of kubernetes (0.1 s)"
    assert spoken.lines[-2].startswith("[3/6] join FAILED after 120.0 s: no secret")
    assert (silent.id, silent.lines) == (two, ())
    assert "empty" in silent.note
    assert silent.fetch.endswith(f"--instance-id {two}")


def test_an_instance_that_says_it_failed_is_the_one_that_is_asked(operator: Operator):
    operator.signals = ["SUCCESS", "FAILURE"]
    root_id = operator.create()
    operator.engine.advance(60)
    for each in running():
        operator.served.moto_extensions.set_console_output(each, FAILED_BOOT)
    found = ended(operator, root_id)
    assert found.cause is not None
    [instance] = found.cause.instances
    assert instance.id in found.cause.event.reason
    assert instance.failed


def test_without_the_right_to_read_consoles_the_cause_is_still_told(operator: Operator):
    operator.signals = [None, None]
    operator.faults.deny("ec2:GetConsoleOutput")
    found = ended(operator, operator.create())
    assert found.cause is not None
    assert len(found.cause.instances) == 2
    assert all("no permission to read the console output" in instance.note for instance in found.cause.instances)


def test_without_the_right_to_see_instances_the_cause_is_still_told(operator: Operator):
    operator.signals = [None, None]
    operator.faults.deny("ec2:DescribeInstances", "autoscaling:DescribeScalingActivities")
    found = ended(operator, operator.create())
    assert found.cause is not None
    assert found.cause.instances == ()
    assert [note.split(":")[0] for note in found.cause.notes] == [
        "not allowed to call DescribeScalingActivities",
        "not allowed to call DescribeInstances",
    ]


def test_a_group_that_could_not_launch_says_why(operator: Operator, monkeypatch: pytest.MonkeyPatch):
    operator.signals = [None, None]
    root_id = operator.create()
    operator.engine.wait(operator.root)
    message = (
        "We currently do not have sufficient t3.small capacity in the Availability Zone you requested (us-west-2a). "
        "Launching EC2 instance failed. (InsufficientInstanceCapacity)"
    )
    with activities(operator.account, message):
        found = diagnose(operator.account, root_id)
    assert found.cause is not None
    assert found.cause.launches == (message,)
    assert "no capacity for this instance type" in found.cause.explanation
    assert "another instance type or zone" in found.cause.hint


def activities(account: Account, message: str) -> Stubber:
    """Auto Scaling that answers once, which moto cannot."""
    scaling = account.client("autoscaling")
    made = Stubber(scaling)
    activity = {
        "ActivityId": "1",
        "AutoScalingGroupName": "g",
        "Cause": "At 2026-01-01T00:00:00Z a user request …",
        "StartTime": "2026-01-01T00:00:00Z",
        "StatusCode": "Failed",
        "StatusMessage": message,
    }
    made.add_response("describe_scaling_activities", {"Activities": [activity, activity]})
    return made


def test_what_still_uses_a_network_that_could_not_be_deleted(operator: Operator):
    body = text({"Vpc": vpc()})
    operator.cloudformation.create_stack(StackName=NAME, TemplateBody=body)
    operator.engine.wait(operator.root)
    [made] = [resource.physical_id for resource in operator.root.resources.values()]
    ec2 = client("ec2", "us-west-2")
    subnet = ec2.create_subnet(VpcId=made, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    interface = ec2.create_network_interface(SubnetId=subnet, Description="ELB app/web/1")["NetworkInterface"]
    operator.engine.fail(
        "Vpc", f"The vpc '{made}' has dependencies and cannot be deleted. (DependencyViolation)", during="DELETE"
    )
    operator.engine.advance(1)
    operator.cloudformation.delete_stack(StackName=NAME)
    found = ended(operator)
    assert (found.action, found.status) == ("delete", "DELETE_FAILED")
    assert found.cause is not None
    [occupant] = found.cause.occupants
    assert occupant.startswith(f"{interface['NetworkInterfaceId']} (ELB app/web/1)")
    assert [str(step.command) for step in found.next_steps] == [
        "cfngen delete --stack-name k8s",
        "cfngen delete --leave-behind --stack-name k8s",
    ]


# What to do now


def fails(operator: Operator, **options: Any) -> Diagnosis:
    operator.engine.fail("Disk", NO_WAY)
    return ended(operator, operator.create(**options))


def test_next_after_a_creation_that_was_rolled_back(operator: Operator):
    steps = [str(step.command) for step in fails(operator).next_steps]
    assert steps == ["cfngen deploy --stack-name k8s", "cfngen delete --stack-name k8s"]


def test_next_after_a_creation_that_was_kept(operator: Operator):
    found = fails(operator, OnFailure="DO_NOTHING")
    assert found.status == "CREATE_FAILED"
    assert [str(step.command) for step in found.next_steps] == [
        "cfngen deploy --stack-name k8s",
        "cfngen rollback --stack-name k8s",
    ]


def test_next_after_a_creation_that_was_deleted(operator: Operator):
    found = fails(operator, OnFailure="DELETE")
    assert found.status == "DELETE_COMPLETE"
    assert found.cause is not None
    assert found.cause.event.logical_id == "Disk"
    assert [str(step.command) for step in found.next_steps] == ["cfngen deploy --stack-name k8s"]


def test_next_after_a_rollback_that_failed(operator: Operator):
    operator.created()
    operator.engine.advance(1)
    operator.engine.fail("Group", NO_WAY, during="UPDATE", times=2)
    operator.engine.durations["AWS::EC2::LaunchTemplate"] = 5
    operator.update("t3.large")
    found = ended(operator)
    assert found.status == "UPDATE_ROLLBACK_FAILED"
    assert [str(step.command) for step in found.next_steps] == [
        "cfngen rollback --stack-name k8s",
        "cfngen rollback --force --stack-name k8s",
    ]
    assert found.cause is not None
    assert [each.event.logical_id for each in found.rollback_failures] == ["Group"]


def test_next_while_it_goes_on(operator: Operator):
    operator.create()
    assert [str(step.command) for step in diagnose(operator.account, NAME).next_steps] == [
        "cfngen watch --stack-name k8s"
    ]


def test_what_cloudformation_does_not_tell_is_an_error(operator: Operator):
    operator.create()
    operator.faults.disconnect("DescribeStackEvents", times=20, kind="refused")
    with pytest.raises(UnreachableError):
        diagnose(operator.account, NAME)


def test_a_diagnosis_is_one_json_document(operator: Operator):
    from cfngen.cli.display.json_output import to_json_value

    told = to_json_value(fails(operator))
    assert told["type"] == "diagnosis"
    assert told["cause"]["event"]["logicalId"] == "Disk"
    assert json.loads(json.dumps(told)) == told
