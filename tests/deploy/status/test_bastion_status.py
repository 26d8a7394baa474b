"""The status of a cluster with a bastion, and what validation and `validate` say about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest
from answers import Answers

from cfngen.cli.render.status import status_lines
from cfngen.cluster.load import parse
from cfngen.deploy.access.kubernetes_objects import Readiness
from cfngen.deploy.aws.addresses import find_lost_addresses
from cfngen.deploy.aws.groups import find_groups
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.cluster_problems import ClusterState, KubernetesReading
from cfngen.deploy.status.cluster_status import BastionState, ClusterStatus
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.status.validation import validate_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/1-2"
CLUSTER = parse({"ssh": {"keyName": "admin"}, "bastion": {"allowedCidrs": ["203.0.113.0/24"]}})
TYPES = {
    "BastionAutoScalingGroup": ("one-bastion", "AWS::AutoScaling::AutoScalingGroup"),
    "BastionNetworkInterface": ("eni-1", "AWS::EC2::NetworkInterface"),
    "BastionElasticIp": ("52.10.20.30", "AWS::EC2::EIP"),
    "BastionElasticIpAssociation": ("eipassoc-1", "AWS::EC2::EIPAssociation"),
}
VIEWS = [ResourceView(name, *rest, "CREATE_COMPLETE") for name, rest in TYPES.items()]
MEMBER = {
    "InstanceId": "i-1",
    "AvailabilityZone": "us-west-2a",
    "LifecycleState": "InService",
    "HealthStatus": "Healthy",
    "InstanceType": "t3.micro",
    "ProtectedFromScaleIn": False,
}
INSTANCE = {
    "InstanceId": "i-1",
    "State": {"Name": "running"},
    "PrivateIpAddress": "172.20.0.77",
    "PublicIpAddress": "52.10.20.30",
    "ImageId": "ami-1",
    "LaunchTime": NOW,
}


def group(*members: Any) -> dict[str, Any]:
    description = {
        "AutoScalingGroupName": "one-bastion",
        "MinSize": 1,
        "MaxSize": 1,
        "DesiredCapacity": 1,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2a"],
        "HealthCheckType": "EC2",
        "CreatedTime": NOW,
        "Instances": list(members),
    }
    return {"AutoScalingGroups": [description]}


def answering(*members: Any, public_ip: str = "52.10.20.30") -> Answers:
    """An account with a complete stack, in which only the bastion may be read."""
    stack = {"StackName": "kubernetes", "StackId": ROOT, "StackStatus": "CREATE_COMPLETE", "CreationTime": NOW}
    resources = [
        {
            "LogicalResourceId": name,
            "PhysicalResourceId": physical_id,
            "ResourceType": kind,
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": NOW,
        }
        for name, (physical_id, kind) in TYPES.items()
    ]
    association = {"Association": {"PublicIp": public_ip}} if public_ip else {}
    return Answers(
        {
            "cloudformation:DescribeStacks": {"Stacks": [stack]},
            "cloudformation:ListStackResources": {"StackResourceSummaries": resources},
            "autoscaling:DescribeAutoScalingGroups": group(*members),
            "ec2:DescribeInstances": {"Reservations": [{"Instances": [INSTANCE]}]},
            "ec2:DescribeLaunchTemplates": {"LaunchTemplates": []},
            "ec2:DescribeNetworkInterfaces": {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1", **association}]},
            "ec2:DescribeAddresses": {"Addresses": [{"PublicIp": "52.10.20.30", "AllocationId": "eipalloc-1"}]},
        }
    )


def status_of(api: Answers) -> ClusterStatus:
    return read_status(api.account, "kubernetes", CLUSTER)


def page(status: ClusterStatus) -> str:
    return click.unstyle("\n".join(map(str, status_lines(status))))


def test_the_bastion_and_its_address_are_on_the_page() -> None:
    status = status_of(answering(MEMBER))
    assert isinstance(status.bastion, BastionState)
    assert (status.bastion.instance, status.bastion.address, status.bastion.in_service) == ("i-1", "52.10.20.30", True)
    assert status.node_groups == ()
    lines = page(status).splitlines()
    row = lines[lines.index("Bastion") + 2].split()
    assert row[:6] == ["i-1", "InService", "running", "us-west-2a", "52.10.20.30", "t3.micro"]


def test_while_it_is_replaced_the_new_instance_is_shown() -> None:
    leaving = {**MEMBER, "InstanceId": "i-0", "LifecycleState": "Terminating"}
    bastion = status_of(answering(leaving, {**MEMBER, "LifecycleState": "Pending"})).bastion
    assert isinstance(bastion, BastionState)
    assert (bastion.instance, bastion.in_service) == ("i-1", False)


def test_a_bastion_without_an_instance_is_shown_as_such() -> None:
    assert "none" in page(status_of(answering())).partition("Bastion")[2].splitlines()[2]


def test_an_address_that_it_has_lost_comes_with_the_command_that_gives_it_back() -> None:
    api = answering(MEMBER, public_ip="")
    [lost] = find_lost_addresses(api.account, VIEWS, {})
    assert lost.text == "the bastion has lost its Elastic IP: 52.10.20.30 is not associated"
    assert lost.command == (
        "aws ec2 associate-address --region us-west-2 --allocation-id eipalloc-1 --network-interface-id eni-1"
    )
    assert find_lost_addresses(answering(MEMBER).account, VIEWS, {}) == ()


@pytest.mark.parametrize(
    ("members", "sentences"),
    [
        ([MEMBER], []),
        ([], ["the bastion has 0 of 1 instances in service"]),
        (
            [{**MEMBER, "HealthStatus": "Unhealthy"}],
            [
                "the bastion has 0 of 1 instances in service",
                "the instance i-1 of the bastion is InService, unhealthy",
            ],
        ),
    ],
)
def test_validation_looks_at_its_group_and_expects_no_node(members: list[Any], sentences: list[str]) -> None:
    api = answering(*members)
    groups = find_groups(api.account, CLUSTER, VIEWS)
    stack = StackView("kubernetes", ROOT, StackStatus("CREATE_COMPLETE"))
    kubernetes = KubernetesReading("1.36.3", Readiness(ready=True), (), ())
    found = validate_state(ClusterState(stack, groups, kubernetes), CLUSTER, NOW)
    assert [problem.sentence for problem in found.problems] == sentences
    assert found.members == ()
