"""What changes of a private cluster's ways out mean: whose address changes, what breaks, and what is lost."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import default_cluster

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

NONE, DISRUPTIVE, DANGEROUS = Danger.NONE, Danger.DISRUPTIVE, Danger.DANGEROUS
WILL = Replacement.WILL
EC2 = "AWS::EC2::"
ADD: dict[str, Any] = {"action": "add"}
REMOVE: dict[str, Any] = {"action": "remove"}
REPLACE: dict[str, Any] = {"replacement": WILL}


def changed(path: str) -> dict[str, Any]:
    return {"paths": (path,)}


def private(nat: str) -> Cluster:
    """A private cluster with subnets in three zones; its pods need no routes of the VPC."""
    zones = [{"zone": f"us-west-2{letter}", "cidr": f"172.20.{number}.0/24"} for number, letter in enumerate("abc")]
    return parse({"network": {"topology": "private", "plugin": "cilium", "nat": nat, "subnets": zones}})


def meaning(
    cluster: Cluster,
    logical_id: str,
    type_: str,
    *,
    action: str = "update",
    replacement: Replacement = Replacement.NO,
    paths: tuple[str, ...] = (),
    before: dict[str, Any] | None = None,
) -> Impact | None:
    properties = tuple(PropertyChange(f"/Properties/{path}", "old", None, known=False) for path in paths)
    change = Change(logical_id, "id", type_, action, replacement, "", properties)
    listed = ResourceChange(action.title(), logical_id, "id", type_, before={"Properties": before or {}})
    return ImpactAssessment(cluster).of_resource(change, listed)


@pytest.mark.parametrize(
    ("nat", "change", "danger", "words"),
    [
        # From one NAT gateway to one in each zone
        ("perZone", ("NatGatewayB", "NatGateway", ADD), NONE, "through which instances in us-west-2b reach"),
        ("perZone", ("NatElasticIpB", "EIP", ADD), NONE, "address under which others see instances in us-west-2b"),
        (
            "perZone",
            ("NatRouteB", "Route", changed("NatGatewayId")),
            DISRUPTIVE,
            "through another NAT gateway: others see another address, and open connections break",
        ),
        # And back
        ("single", ("NatGatewayB", "NatGateway", REMOVE), DISRUPTIVE, "connections through it break"),
        ("single", ("NatElasticIpB", "EIP", REMOVE), DISRUPTIVE, "the NAT gateway in us-west-2b is released"),
        (
            "single",
            ("NatGatewayA", "NatGateway", ADD),
            NONE,
            "through which instances in us-west-2a, us-west-2b and us-west-2c reach the internet",
        ),
        # The gateway or its address is exchanged
        ("single", ("NatGatewayA", "NatGateway", REPLACE), DISRUPTIVE, "us-west-2b and us-west-2c reach the internet"),
        (
            "single",
            ("NatElasticIpA", "EIP", REPLACE),
            DISRUPTIVE,
            "others see instances in us-west-2a, us-west-2b and us-west-2c under another address",
        ),
        # Routes
        ("perZone", ("NatRouteA", "Route", ADD), DISRUPTIVE, "reach the internet through a NAT gateway from now on"),
        ("none", ("NatRouteA", "Route", REMOVE), DANGEROUS, "instances in us-west-2a no longer reach the internet"),
        ("single", ("NatRouteC", "Route", REMOVE), DISRUPTIVE, "the route of instances in us-west-2c"),
        ("single", ("PrivateRouteTableA", "RouteTable", REPLACE), DISRUPTIVE, "the route table of instances in us-we"),
        (
            "single",
            ("PrivateRouteTable", "RouteTable", REMOVE),
            DISRUPTIVE,
            "of instances in us-west-2a, us-west-2b and us-west-2c is removed",
        ),
        (
            "single",
            ("SubnetBRouteTableAssociation", "SubnetRouteTableAssociation", changed("RouteTableId")),
            DISRUPTIVE,
            "the subnet in us-west-2b uses another route table",
        ),
        # Public subnets have no instances
        ("single", ("PublicSubnetA", "Subnet", REMOVE), DISRUPTIVE, "the public subnet in us-west-2a is removed, with"),
        (
            "single",
            ("PublicSubnetARouteTableAssociation", "SubnetRouteTableAssociation", REMOVE),
            DISRUPTIVE,
            "the route of the public subnet in us-west-2a to the internet gateway is removed",
        ),
        ("single", ("SubnetA", "Subnet", REMOVE), DANGEROUS, "every instance and address in it"),
        # Endpoints
        ("none", ("EndpointEcrApi", "VPCEndpoint", ADD), NONE, "reach ecr.api (credentials for images in Amazon ECR)"),
        ("none", ("EndpointSsm", "VPCEndpoint", REMOVE), DISRUPTIVE, "no longer reach ssm (Session Manager), unless"),
        ("perZone", ("EndpointEc2", "VPCEndpoint", REMOVE), NONE, "through a NAT gateway instead of a VPC endpoint"),
        ("none", ("EndpointS3", "VPCEndpoint", REMOVE), DISRUPTIVE, "instances no longer reach s3 (backups of etcd"),
        ("none", ("EndpointEc2", "VPCEndpoint", REPLACE), DISRUPTIVE, "so the update may fail"),
        ("none", ("EndpointEc2", "VPCEndpoint", changed("SubnetIds")), NONE, "in other zones, or loses one"),
        ("none", ("EndpointS3", "VPCEndpoint", changed("RouteTableIds")), NONE, "instances of other subnets reach s3"),
        ("none", ("EndpointEc2", "VPCEndpoint", changed("PolicyDocument")), DISRUPTIVE, "who may use the VPC endpoint"),
        (
            "none",
            ("EndpointsSecurityGroup", "SecurityGroup", changed("SecurityGroupIngress")),
            DISRUPTIVE,
            "which instances may use the VPC endpoints",
        ),
        ("none", ("EndpointsSecurityGroup", "SecurityGroup", REPLACE), DISRUPTIVE, "of the VPC endpoints is replaced"),
    ],
)
def test_a_change_says_whose_traffic_is_affected(nat, change, danger, words):
    logical_id, type_, how = change
    impact = meaning(private(nat), logical_id, EC2 + type_, **how)
    assert impact is not None
    assert words in impact.text
    assert impact.danger is danger


def test_an_endpoint_of_the_users_is_named_by_its_service():
    impact = meaning(
        private("none"),
        "EndpointKms",
        f"{EC2}VPCEndpoint",
        action="remove",
        before={"ServiceName": "com.amazonaws.us-west-2.kms"},
    )
    assert impact is not None
    assert "instances no longer reach kms, unless" in impact.text


def test_what_interrupts_nothing_says_nothing():
    assert meaning(private("single"), "NatRouteA", f"{EC2}Route", paths=("DestinationCidrBlock",)) is None
    assert meaning(private("single"), "PublicSubnetA", f"{EC2}Subnet", paths=("MapPublicIpOnLaunch",)) is None


def test_a_load_balancer_of_a_single_private_master_moves_the_api():
    impact = meaning(private("single"), "ApiLoadBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer", action="add")
    assert impact is not None
    assert impact.danger is DISRUPTIVE
    assert "fetch kubeconfigs again" in impact.text


def test_the_address_of_a_public_master_is_still_the_apis():
    impact = meaning(default_cluster(), "MasterAElasticIp", f"{EC2}EIP", action="remove")
    assert impact is not None
    assert impact.danger is DANGEROUS
