"""The dependencies that templates state (`DependsOn`), and templates without some of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FORMS = ("standalone", "cluster")

# Each pair of types of which one states that it depends on the other: a case in which that is needed, with overrides,
# and in which forms. Templates say what each is for; `test_templates_depends_on.py` sees what goes wrong without it.
NEEDED = {
    ("AWS::AutoScaling::AutoScalingGroup", "AWS::AutoScaling::AutoScalingGroup"): ("three-masters", FORMS),
    ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::EIPAssociation"): ("default", FORMS),
    ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::Route"): ("default", ("standalone",)),
    ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SubnetRouteTableAssociation"): ("default", ("standalone",)),
    ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::VPCEndpoint"): ("private-no-way-out", FORMS),
    ("AWS::CloudFormation::Stack", "AWS::CloudFormation::Stack"): ("default", ("cluster",)),
    ("AWS::CloudFormation::WaitCondition", "AWS::AutoScaling::AutoScalingGroup"): ("default", ("standalone",)),
    ("AWS::CloudFormation::WaitCondition", "AWS::CloudFormation::Stack"): ("default", ("cluster",)),
    ("AWS::EC2::EIP", "AWS::EC2::VPCGatewayAttachment"): ("default", ("standalone",)),
    # `test_an_address_of_ones_own_needs_the_gateway_too`
    ("AWS::EC2::EIPAssociation", "AWS::EC2::VPCGatewayAttachment"): ("existing-elastic-ip", ()),
    ("AWS::EC2::LaunchTemplate", "AWS::CloudFormation::WaitConditionHandle"): ("default", FORMS),
    ("AWS::EC2::Route", "AWS::EC2::VPCGatewayAttachment"): ("default", FORMS),
    ("AWS::EC2::Subnet", "AWS::EC2::VPCCidrBlock"): ("vpc-ranges", FORMS),
    ("AWS::EC2::VPCEndpoint", "AWS::EC2::NetworkInterface"): ("private-no-way-out", FORMS),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::EC2::VPCGatewayAttachment"): ("three-masters", ("standalone",)),
    # Few seeds show what these are for.
    ("AWS::EC2::NatGateway", "AWS::EC2::SubnetRouteTableAssociation"): ("private-single-nat", ("standalone",)),
    ("AWS::EC2::NetworkInterface", "AWS::EC2::NetworkInterface"): (
        "bastion-public bastion.zone=us-west-2a",
        ("standalone",),
    ),
}

# Pairs whose absence the emulator does not show, and why they are stated nevertheless.
NOT_SHOWN = {
    ("AWS::EC2::NatGateway", "AWS::EC2::Route"): (
        "A NAT gateway works once its subnet has a route to the internet gateway (VPC user guide: its route table "
        "`must include a route that points internet traffic to an internet gateway`). "
        "Instances wait for that route, too, so that nothing fails; but whoever sees a NAT gateway complete may use it."
    ),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::EC2::NetworkInterface"): (
        "A network load balancer takes any free address of each of its subnets, also one that is to be a master's (CDK "
        "API reference, SubnetMapping: `AWS default is to allocate a private IPv4 address from the subnet's pool`). "
        "In the emulator load balancers have no addresses."
    ),
}


@dataclass(frozen=True, order=True)
class Edge:
    """A dependency that a template states: the types of both resources, and one pair of them."""

    kind: str
    needs_kind: str
    logical_id: str = field(compare=False)
    needs: str = field(compare=False)


def edges(templates: Mapping[str, Any], form: str) -> list[Edge]:
    """One for each pair of types, of those templates that make the cluster in this form."""
    first_of_kind: dict[Edge, Edge] = {}
    for name, body in templates.items():
        if (name == "standalone") == (form == "standalone"):
            for logical_id, resource in body["Resources"].items():
                for needs in _needs(resource):
                    edge = Edge(resource["Type"], body["Resources"][needs]["Type"], logical_id, needs)
                    first_of_kind.setdefault(edge, edge)
    return sorted(first_of_kind)


def without(templates: Mapping[str, Any], edge: Edge | None) -> dict[str, Any]:
    """The templates without every dependency between two types."""
    changed = copy.deepcopy(dict(templates))
    for body in changed.values() if edge else ():
        for resource in body["Resources"].values():
            kept = [need for need in _needs(resource) if not _is(edge, body, resource, need)]
            resource.pop("DependsOn", None)
            if kept:
                resource["DependsOn"] = kept
    return changed


def rows() -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, str]]]:
    """Yield case, overrides, form and pair of types of each dependency to take out."""
    for pair, (cluster, forms) in NEEDED.items():
        case, *overrides = cluster.split()
        for form in forms:
            yield case, tuple(overrides), form, pair


def _needs(resource: Mapping[str, Any]) -> list[str]:
    needs = resource.get("DependsOn", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _is(edge: Edge, body: Mapping[str, Any], resource: Mapping[str, Any], needs: str) -> bool:
    return (resource["Type"], body["Resources"][needs]["Type"]) == (edge.kind, edge.needs_kind)
