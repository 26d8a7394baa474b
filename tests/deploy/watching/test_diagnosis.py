"""Why an operation failed: the cause among everything that follows from it, with what other services know about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click import unstyle
from cloud import default_cloud
from clusters import ALLOWED, BUCKET, PREFIX
from small_stacks import GATEWAY, nested, running, text, vpc
from watched import NAME, Operator, operating

from cfngen.cli.render.diagnosis import diagnosis_lines
from cfngen.deploy.aws.account import connect
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
def test_the_failure_in_each_nested_stack_of_a_cluster_is_named(stack: str, resource: str):
    with default_cloud() as cloud:
        cloud.engine.fail(resource, NO_WAY)
        given = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        root = cloud.engine.create_stack(
            NAME, url=cloud.account.url("cluster"), parameters=given, capabilities=["CAPABILITY_IAM"]
        )
        cloud.engine.wait(root)
        account = connect(cloud.session, cloud.cluster.region, clock=cloud.clock)
        found = diagnose(account, root.id)
        cloud.faults.deny("cloudformation:DescribeEvents")
        assert diagnose(account, root.id) == found
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


def test_a_stack_that_fails_before_its_first_resource(operator: Operator):
    zone = {"Zone": {"Type": "AWS::EC2::AvailabilityZone::Name"}}
    child = nested("child", text({"Gateway": GATEWAY}, Parameters=zone), Parameters={"Zone": "us-west-2x"})
    operator.cloudformation.create_stack(StackName=NAME, TemplateBody=text({"ChildStack": child}))
    found = ended(operator, operator.root.id)
    assert found.cause is not None
    assert "us-west-2x" in found.cause.event.reason
    assert "Embedded stack" not in found.cause.event.reason
    assert found.cause.hint.startswith("correct the value")


def test_a_creation_that_somebody_ended_by_deleting_the_stack_has_no_cause(operator: Operator):
    root_id = operator.create()
    operator.engine.advance(20)
    operator.cloudformation.delete_stack(StackName=NAME)
    found = ended(operator, root_id)
    assert found.status == "DELETE_COMPLETE"
    assert (found.cause, found.action, found.cancelled) == (None, "create", True)
    assert [step.purpose for step in found.next_steps] == ["creates the cluster"]
    assert "was ended by deleting the stack (DELETE_COMPLETE)" in unstyle("\n".join(diagnosis_lines(found, 120)))


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


def test_a_diagnosis_is_one_json_document(operator: Operator):
    from cfngen.cli.display.json_output import to_json_value

    told = to_json_value(fails(operator))
    assert told["type"] == "diagnosis"
    assert told["cause"]["event"]["logicalId"] == "Disk"
    assert json.loads(json.dumps(told)) == told
