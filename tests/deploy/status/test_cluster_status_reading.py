"""The status of a cluster: all that can be read, and a reason for what cannot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import boto3
import pytest
from botocore.stub import ANY, Stubber
from deployed import Place, allow_everything_but, place

from cfngen.deploy.aws import drift
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.drift import Difference
from cfngen.deploy.aws.errors import CredentialsError
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status import derived_status
from cfngen.deploy.status.cluster_status import ApiState, ClusterStatus, StackState, Unknown, next_command, stack_state
from cfngen.deploy.status.derived_status import read_status
from cfngen.sandbox.cloudformation import client

MASTERS, NODES = "MasterAAutoScalingGroup", "NodeGroupNodesAutoScalingGroup"
NOWHERE = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """The default cluster; a test that changes something puts it back."""
    with place() as made:
        made.create()
        yield made


def read(where: Place, account: Account | None = None) -> ClusterStatus:
    return read_status(account or where.account, where.name, where.cluster, find_url_override=where.override)


def test_everything_about_a_cluster_is_read(where):
    status = read(where)
    assert (status.cluster, status.region, status.account) == ("kubernetes", "us-west-2", "123456789012")
    assert (status.stack.name, status.stack.status, status.stack.health) == ("k8s", "CREATE_COMPLETE", "healthy")
    assert (status.stack.operation, status.stack.succeeded) == ("create", True)
    assert status.stack.since == where.clock.now()
    assert status.next_command == ""
    assert status.api == ApiState("1.36.3", ready=True)
    assert status.kubelets == {"1.36.3": 5}
    assert status.target_version == "1.36.3"
    assert status.persistent_volumes == 0
    assert status.drift is None

    [master] = status.masters
    assert (master.slot, master.lifecycle, master.state, master.zone) == ("a", "InService", "running", "us-west-2a")
    assert [master.instance] == where.instances(MASTERS)
    assert (master.type, master.ready, master.current) == ("t3.medium", True, True)
    assert master.image.startswith("ami-")
    assert master.image_created is not None

    [group] = status.node_groups
    assert (group.name, group.desired, group.in_service, group.ready) == ("nodes", 4, 4, 4)
    assert (group.minimum, group.maximum, group.types, group.outdated) == (4, 4, ("t3.medium",), 0)

    [volume] = status.volumes
    assert (volume.slot, volume.size, volume.type, volume.zone) == ("a", 20, "gp3", "us-west-2a")

    ends = {certificate.what: certificate.ends for certificate in status.certificates}
    now = where.clock.now()
    assert ends["certificate authority"] > now + timedelta(days=365)
    assert ends["API server's certificate"] > now + timedelta(days=365)
    assert timedelta(hours=23) < ends["join token"] - now <= timedelta(hours=24)


def test_no_stack_is_a_status_too(where):
    status = read_status(where.account, "nothing", where.cluster)
    assert status.stack == StackState("nothing")
    assert str(status.next_command) == "cfngen deploy"
    assert (status.api, status.masters, status.certificates) == (None, None, ())


def test_one_missing_permission_hides_nothing_else(where):
    policy = allow_everything_but("secretsmanager:GetSecretValue", "ec2:DescribeVolumes", "ec2:DescribeImages")
    with where.served.permissions.enforcing(policy) as credentials:
        status = read(where, where.connected(where.session_of(credentials)))
    assert isinstance(status.api, Unknown)
    assert "has no permission to read the secret" in status.api.unknown
    assert "kms:Decrypt" in status.api.hint
    assert isinstance(status.volumes, Unknown)
    assert "DescribeVolumes" in status.volumes.unknown
    ends = {certificate.what: certificate.ends for certificate in status.certificates}
    assert isinstance(ends["certificate authority"], Unknown)
    assert isinstance(ends["join token"], Unknown)
    assert not isinstance(ends["API server's certificate"], Unknown)
    [master] = status.masters
    assert (master.state, master.ready, master.image_created) == ("running", None, None)
    [group] = status.node_groups
    assert (group.in_service, group.ready) == (4, None)
    assert str(status.next_command) == "cfngen validate cluster"


def test_without_the_groups_the_api_is_still_asked(where):
    with where.served.permissions.enforcing(allow_everything_but("autoscaling:*")) as credentials:
        status = read(where, where.connected(where.session_of(credentials)))
    assert isinstance(status.masters, Unknown)
    assert isinstance(status.node_groups, Unknown)
    assert status.kubelets == {"1.36.3": 5}


def test_without_the_resources_of_the_stack_the_api_is_still_asked(where):
    with where.served.permissions.enforcing(
        allow_everything_but("cloudformation:ListStackResources", "cloudformation:DescribeStackEvents")
    ) as credentials:
        status = read(where, where.connected(where.session_of(credentials)))
    assert isinstance(status.stack.since, Unknown)
    for part in (status.masters, status.volumes, *(certificate.ends for certificate in status.certificates[2:])):
        assert "ListStackResources" in part.unknown
    assert status.api == ApiState("1.36.3", ready=True)


def test_without_the_stack_there_is_no_status(where):
    with (
        where.served.permissions.enforcing(allow_everything_but("cloudformation:DescribeStacks")) as credentials,
        pytest.raises(Exception, match="not allowed to call DescribeStacks"),
    ):
        read(where, where.connected(where.session_of(credentials)))


def test_an_api_that_nobody_reaches_is_unknown(where):
    status = read_status(where.account, where.name, where.cluster, find_url_override=lambda url: NOWHERE)
    assert isinstance(status.api, Unknown)
    assert "does not answer" in status.api.unknown
    assert status.kubelets == status.api
    assert status.endpoint.startswith("https://")
    ends = {certificate.what: certificate.ends for certificate in status.certificates}
    assert "no TLS connection" in ends["API server's certificate"].unknown
    assert not isinstance(ends["certificate authority"], Unknown)


def test_what_is_not_as_it_should_be_asks_for_validation(where):
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False)
    status = read(where)
    where.kubernetes.state.set_ready(node, True)
    assert status.node_groups[0].ready == 3
    assert str(status.next_command) == "cfngen validate cluster"


def test_an_instance_that_auto_scaling_gave_up_does_not_count(where):
    [node, *_] = where.instances(NODES)
    scaling = client("autoscaling", where.cluster.region)
    [group] = scaling.describe_auto_scaling_instances(InstanceIds=[node])["AutoScalingInstances"]
    # Otherwise the group replaces the instance at once.
    processes = {"AutoScalingGroupName": group["AutoScalingGroupName"], "ScalingProcesses": ["ReplaceUnhealthy"]}
    scaling.suspend_processes(**processes)
    scaling.set_instance_health(InstanceId=node, HealthStatus="Unhealthy")
    status = read(where)
    scaling.set_instance_health(InstanceId=node, HealthStatus="Healthy")
    scaling.resume_processes(**processes)
    assert (status.node_groups[0].desired, status.node_groups[0].in_service) == (4, 3)


def test_instances_of_an_older_launch_template_are_outdated(where):
    scaling = client("autoscaling", where.cluster.region)
    [group] = [
        auto_scaling_group
        for auto_scaling_group in scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        if auto_scaling_group["DesiredCapacity"] == 4
    ]
    template = group["LaunchTemplate"]["LaunchTemplateId"]
    ec2 = client("ec2", where.cluster.region)
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    version = ec2.create_launch_template_version(
        LaunchTemplateId=template, LaunchTemplateData={**versions[0]["LaunchTemplateData"], "InstanceType": "t3.large"}
    )["LaunchTemplateVersion"]["VersionNumber"]

    def use(number: str) -> None:
        scaling.update_auto_scaling_group(
            AutoScalingGroupName=group["AutoScalingGroupName"],
            LaunchTemplate={"LaunchTemplateId": template, "Version": number},
        )

    use(str(version))
    outdated = read(where).node_groups[0].outdated
    use(group["LaunchTemplate"]["Version"])
    assert outdated == 4
    assert read(where).node_groups[0].outdated == 0


def test_throttling_passes_unnoticed(where):
    undisturbed = read(where)
    where.served.faults.throttle("*", every=3)
    status = read(where)
    where.served.faults.clear()
    assert status.next_command == undisturbed.next_command
    assert status.masters == undisturbed.masters
    assert not isinstance(status.masters, Unknown)


def test_expired_credentials_end_it(where):
    account = where.account
    where.served.faults.expire_credentials()
    with pytest.raises(CredentialsError):
        read(where, account)
    where.served.faults.renew_credentials()


@pytest.mark.parametrize(
    ("status", "operation", "succeeded", "command"),
    [
        ("REVIEW_IN_PROGRESS", "", None, "cfngen deploy"),
        ("CREATE_IN_PROGRESS", "create", None, "cfngen watch"),
        ("CREATE_FAILED", "create", False, "cfngen deploy"),
        ("ROLLBACK_COMPLETE", "create", False, "cfngen deploy"),
        ("UPDATE_COMPLETE", "update", True, ""),
        ("UPDATE_ROLLBACK_COMPLETE", "update", False, ""),
        ("UPDATE_ROLLBACK_FAILED", "update", False, "cfngen rollback"),
        ("DELETE_FAILED", "delete", False, "cfngen delete"),
        ("IMPORT_COMPLETE", "import", True, ""),
    ],
)
def test_every_status_says_what_was_done_and_what_is_due(status, operation, succeeded, command):
    state = stack_state(StackView("k8s", "arn", StackStatus(status)), None)
    assert (state.operation, state.succeeded) == (operation, succeeded)
    assert str(next_command(StackStatus(status))) == command


def answers(stub: Stubber, stack: str, *statuses: dict, found: list[dict]) -> None:
    for status in statuses:
        stub.add_response("describe_stack_drift_detection_status", status, {"StackDriftDetectionId": f"d-{stack}"})
    asked = {"StackName": stack}
    stub.add_response("describe_stack_resource_drifts", {"StackResourceDrifts": found}, asked)


def test_drift_of_a_large_stack_is_read_page_by_page(where):
    cloudformation = boto3.Session("key", "secret").client("cloudformation", "us-west-2")
    account = Account("123456789012", "us-west-2", "aws", "arn", None, where.clock)
    account._clients["cloudformation"] = cloudformation
    status = {
        "StackId": "x",
        "StackDriftDetectionId": "d-root",
        "DetectionStatus": "DETECTION_COMPLETE",
        "Timestamp": where.clock.now(),
    }
    asked = {"StackName": "root"}
    names = [f"Group{number:03}" for number in range(5)]
    with Stubber(cloudformation) as stub:
        stub.add_response("detect_stack_drift", {"StackDriftDetectionId": "d-root"}, {"StackName": "root"})
        stub.add_response("describe_stack_drift_detection_status", status, {"StackDriftDetectionId": "d-root"})
        for page, some in enumerate((names[:2], names[2:4], names[4:])):
            found = [
                {"StackId": "x", "LogicalResourceId": name, "ResourceType": "AWS::EC2::SecurityGroup",
                 "StackResourceDriftStatus": "DELETED", "Timestamp": where.clock.now()} for name in some
            ]  # fmt: skip
            answer = {"StackResourceDrifts": found, **({"NextToken": f"page-{page + 1}"} if page < 2 else {})}
            following = {"NextToken": f"page-{page}"} if page else {}
            stub.add_response("describe_stack_resource_drifts", answer, asked | following)
        drifted = drift.detect_drift(account, {"root": "k8s"}, "kubernetes")
        stub.assert_no_pending_responses()
    assert [resource.logical_id for resource in drifted.resources] == names
    assert {resource.status for resource in drifted.resources} == {"DELETED"}
    assert drifted.failures == {}


def test_drift_is_detected_in_every_stack_and_awaited(where):
    cloudformation = boto3.Session("key", "secret").client("cloudformation", "us-west-2")
    account = Account("123456789012", "us-west-2", "aws", "arn", None, where.clock)
    account._clients["cloudformation"] = cloudformation
    time = where.clock.now()
    going = {
        "StackId": "x",
        "StackDriftDetectionId": "d-x",
        "DetectionStatus": "DETECTION_IN_PROGRESS",
        "Timestamp": time,
    }
    done = going | {"DetectionStatus": "DETECTION_COMPLETE"}
    broken = going | {"DetectionStatus": "DETECTION_FAILED", "DetectionStatusReason": "no permission to describe keys"}
    group = {
        "StackId": "x", "LogicalResourceId": "NodeSecurityGroup", "PhysicalResourceId": "sg-1",
        "ResourceType": "AWS::EC2::SecurityGroup", "StackResourceDriftStatus": "MODIFIED", "Timestamp": time,
        "PropertyDifferences": [
            {"PropertyPath": "/Tags/0", "ExpectedValue": "a", "ActualValue": "b", "DifferenceType": "NOT_EQUAL"}
        ],
    }  # fmt: skip
    with Stubber(cloudformation) as stub:
        for stack in ("root", "child"):
            stub.add_response("detect_stack_drift", {"StackDriftDetectionId": f"d-{stack}"}, {"StackName": stack})
        stub.add_client_error(
            "detect_stack_drift", "ValidationError", "in progress", expected_params={"StackName": ANY}
        )
        stub.add_response("describe_stack_drift_detection_status", going, {"StackDriftDetectionId": "d-root"})
        answers(stub, "child", done, found=[group])
        answers(stub, "root", broken, found=[])
        found = drift.detect_drift(account, {"root": "k8s", "child": "k8s-Groups", "busy": "k8s-Busy"}, "kubernetes")
        stub.assert_no_pending_responses()
    [resource] = found.resources
    assert (resource.stack, resource.logical_id, resource.status) == ("k8s-Groups", "NodeSecurityGroup", "MODIFIED")
    assert resource.differences == (Difference("/Tags/0", "a", "b", "NOT_EQUAL"),)
    assert found.failures == {
        "k8s": "no permission to describe keys",
        "k8s-Busy": "DetectStackDrift: in progress (ValidationError)",
    }


def test_drift_is_asked_of_the_root_and_its_children(where, monkeypatch):
    asked = {}
    monkeypatch.setattr(derived_status.drift, "detect_drift", lambda account, stacks, cluster: asked.update(stacks))
    said = []
    read_status(
        where.account,
        where.name,
        where.cluster,
        find_url_override=where.override,
        detect_drift=True,
        report=said.append,
    )
    names = sorted(asked.values())
    assert names[0] == "k8s"
    assert len(names) == 7
    assert all(name.startswith("k8s-") for name in names[1:])
    assert "is comparing" in said[0].text
