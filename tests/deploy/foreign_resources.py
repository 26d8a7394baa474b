"""What a person puts into a cluster's network by hand: nothing of it bears a tag, and no stack knows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import made_by_kubernetes as made
from made_by_kubernetes import Place


def security_group(place: Place) -> str:
    return made.security_group(place, "by-hand", {})


def interface(place: Place) -> str:
    return made.interface(place, "by hand", made.security_group(place, "of-an-interface", {}))


def endpoint(place: Place) -> str:
    service = "com.amazonaws.us-west-2.s3"
    return _id(place.ec2.create_vpc_endpoint(VpcId=place.vpc_id, ServiceName=service), "VpcEndpoint", "VpcEndpointId")


def peering(place: Place) -> str:
    """A connection that is asked for; the other VPC's owner need not have agreed."""
    other = place.ec2.create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]
    made_ = place.ec2.create_vpc_peering_connection(VpcId=other, PeerVpcId=place.vpc_id)
    return _id(made_, "VpcPeeringConnection", "VpcPeeringConnectionId")


def nat_gateway(place: Place) -> str:
    created = place.ec2.create_nat_gateway(SubnetId=place.subnet_id, ConnectivityType="private")
    return _id(created, "NatGateway", "NatGatewayId")


def egress_only(place: Place) -> str:
    key = "EgressOnlyInternetGateway"
    return _id(place.ec2.create_egress_only_internet_gateway(VpcId=place.vpc_id), key, f"{key}Id")


def transit_gateway(place: Place) -> str:
    gateway = place.ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    created = place.ec2.create_transit_gateway_vpc_attachment(
        TransitGatewayId=gateway, VpcId=place.vpc_id, SubnetIds=[place.subnet_id]
    )
    return _id(created, "TransitGatewayVpcAttachment", "TransitGatewayAttachmentId")


def subnet(place: Place) -> str:
    block = place.ec2.describe_vpcs(VpcIds=[place.vpc_id])["Vpcs"][0]["CidrBlock"]
    free = ".".join((*block.split(".")[:2], "200.0/24"))
    return _id(place.ec2.create_subnet(VpcId=place.vpc_id, CidrBlock=free), "Subnet", "SubnetId")


def route_table(place: Place) -> str:
    return _id(place.ec2.create_route_table(VpcId=place.vpc_id), "RouteTable", "RouteTableId")


def network_acl(place: Place) -> str:
    return _id(place.ec2.create_network_acl(VpcId=place.vpc_id), "NetworkAcl", "NetworkAclId")


def load_balancer(place: Place) -> str:
    elbv2 = place.account.client("elbv2")
    created = elbv2.create_load_balancer(Name="by-hand", Type="network", Subnets=[place.subnet_id])
    return str(created["LoadBalancers"][0]["LoadBalancerArn"])


def _id(answer: Mapping[str, Any], kind: str, key: str) -> str:
    return str(answer[kind][key])


GUESTS: dict[str, Callable[[Place], str]] = {
    "security group": security_group,
    "network interface": interface,
    "VPC endpoint": endpoint,
    "peering connection": peering,
    "NAT gateway": nat_gateway,
    "egress-only internet gateway": egress_only,
    "transit gateway attachment": transit_gateway,
    "subnet": subnet,
    "route table": route_table,
    "network ACL": network_acl,
    "load balancer": load_balancer,
}
"""By what it is, what makes one in a place and returns its id."""
