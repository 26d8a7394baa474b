"""The status of a private cluster: what is wrong with its way out is on the page, and in validation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest
from answers import DENIED, Answers
from recorded import RefusedError

from cfngen.cli.render.status import status_lines
from cfngen.cluster.load import parse
from cfngen.deploy.access.kubernetes_objects import Readiness
from cfngen.deploy.aws.private_network import read_private_network
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.cluster_problems import ClusterState, KubernetesReading
from cfngen.deploy.status.cluster_status import ClusterStatus, Unknown
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.status.validation import validate_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/1-2"
PRIVATE = parse({"network": {"topology": "private"}})
TYPES = {
    "NatGatewayA": ("nat-1", "AWS::EC2::NatGateway"),
    "PrivateRouteTable": ("rtb-1", "AWS::EC2::RouteTable"),
    "NatRoute": ("rtb-1|0.0.0.0/0", "AWS::EC2::Route"),
}
WAY_OUT = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}
FAILED = {"NatGatewayId": "nat-1", "State": "failed", "FailureCode": "Gateway.NotAttached", "FailureMessage": "no way"}


def answering(**changes: Any) -> Answers:
    """An account with a complete stack, in which only the network may be read."""
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
    given: dict[str, Any] = {
        "cloudformation:DescribeStacks": {"Stacks": [stack]},
        "cloudformation:ListStackResources": {"StackResourceSummaries": resources},
        "ec2:DescribeNatGateways": {"NatGateways": [{"NatGatewayId": "nat-1", "State": "available"}]},
        "ec2:DescribeRouteTables": {"RouteTables": [{"RouteTableId": "rtb-1", "Routes": [WAY_OUT]}]},
    }
    return Answers({**given, **{f"ec2:Describe{name}": answer for name, answer in changes.items()}})


def status_of(api: Answers, cluster: Any = PRIVATE) -> ClusterStatus:
    return read_status(api.account, "kubernetes", cluster)


def test_a_nat_gateway_that_failed_is_on_the_page() -> None:
    status = status_of(answering(NatGateways={"NatGateways": [FAILED]}))
    assert isinstance(status.network_problems, tuple)
    [problem] = status.network_problems
    assert problem.sentence.startswith("the NAT gateway nat-1 is failed: ")
    text = click.unstyle("\n".join(map(str, status_lines(status))))
    assert "Network" in text
    assert "  the NAT gateway nat-1 is failed: instances that use it reach nothing outside of the VPC" in text
    assert str(status.next_command) == "cfngen validate cluster"


def test_where_all_is_well_nothing_is_said() -> None:
    status = status_of(answering())
    assert status.network_problems is None
    assert "Network" not in click.unstyle("\n".join(map(str, status_lines(status))))


@pytest.mark.parametrize("refused", ["NatGateways", "RouteTables"])
def test_who_may_not_look_is_told_so(refused: str) -> None:
    denied: RefusedError = DENIED
    status = status_of(answering(**{refused: denied}))
    assert isinstance(status.network_problems, Unknown)


def test_of_a_public_cluster_gateways_are_not_asked_for() -> None:
    api = answering(NatGateways={"NatGateways": [FAILED]})
    assert status_of(api, parse({})).network_problems is None
    assert api.named("ec2:DescribeNatGateways") == []


def test_validation_says_why_and_what_to_do() -> None:
    api = answering(NatGateways={"NatGateways": [FAILED]})
    stack = StackView("kubernetes", ROOT, StackStatus("CREATE_COMPLETE"))
    views = [ResourceView(name, *rest, "CREATE_COMPLETE") for name, rest in TYPES.items()]
    network = read_private_network(api.account, PRIVATE, stack, views)
    kubernetes = KubernetesReading("1.36.3", Readiness(ready=True), (), ())
    found = validate_state(ClusterState(stack, (), kubernetes, network=network), PRIVATE, NOW)
    assert not found.valid
    [problem] = found.problems
    assert (problem.area, problem.subject, problem.detail) == ("natGateway", "nat-1", "no way")
    assert str(problem.hint).startswith("attach the internet gateway to the VPC first; create another one")
    assert "replace-route --region us-west-2 --route-table-id rtb-1" in str(problem.hint)
