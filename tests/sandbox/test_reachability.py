"""What an interface reaches, as the VPC user guide and the AWS PrivateLink guide describe it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from private_network import DEFAULT_ROUTE, REGION, PrivateNetwork

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.instances.reachability import Interface, reaches_host, reaches_internet, reaches_service


@pytest.fixture
def network() -> Iterator[PrivateNetwork]:
    with open_emulated_account(REGION):
        yield PrivateNetwork.create()


@pytest.fixture
def ec2(network: PrivateNetwork) -> Any:
    return client("ec2", REGION)


def interface(subnet_id: str, *, public: bool = False, group_ids: tuple[str, ...] = ()) -> Interface:
    return Interface(
        REGION,
        subnet_id,
        has_public_address=public,
        private_address="10.20.0.9",
        group_ids=frozenset(group_ids),
    )


@pytest.mark.parametrize("public", [True, False])
def test_an_internet_gateway_serves_public_addresses_only(network: PrivateNetwork, public: bool) -> None:
    assert reaches_internet(interface(network.public_subnet_id, public=public)) == public


def test_a_public_address_is_no_way_out_of_a_private_subnet(network: PrivateNetwork) -> None:
    assert not reaches_internet(interface(network.subnet_id, public=True))


def test_a_detached_internet_gateway_is_no_way_out(network: PrivateNetwork, ec2: Any) -> None:
    ec2.detach_internet_gateway(InternetGatewayId=network.gateway_id, VpcId=network.vpc_id)
    assert not reaches_internet(interface(network.public_subnet_id, public=True))


def test_a_subnet_without_a_route_table_of_its_own_has_the_main_one(network: PrivateNetwork, ec2: Any) -> None:
    subnet = ec2.create_subnet(VpcId=network.vpc_id, CidrBlock="10.20.250.0/24")["Subnet"]["SubnetId"]
    assert not reaches_internet(interface(subnet, public=True))
    [main] = ec2.describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [network.vpc_id]}, {"Name": "association.main", "Values": ["true"]}]
    )["RouteTables"]
    ec2.create_route(
        RouteTableId=main["RouteTableId"], DestinationCidrBlock=DEFAULT_ROUTE, GatewayId=network.gateway_id
    )
    assert reaches_internet(interface(subnet, public=True))


def test_a_nat_gateway_is_a_way_out_with_a_route_to_it(network: PrivateNetwork) -> None:
    gateway_id = network.add_nat_gateway()
    assert not reaches_internet(interface(network.subnet_id))
    network.route_out(NatGatewayId=gateway_id)
    assert reaches_internet(interface(network.subnet_id))
    assert reaches_service(interface(network.subnet_id), "ec2")
    assert reaches_service(interface(network.subnet_id), "s3")


def test_a_nat_gateway_in_a_subnet_without_a_way_out_is_none(network: PrivateNetwork, ec2: Any) -> None:
    network.route_out(NatGatewayId=network.add_nat_gateway())
    ec2.delete_route(RouteTableId=network.public_table_id, DestinationCidrBlock=DEFAULT_ROUTE)
    assert not reaches_internet(interface(network.subnet_id))


def test_a_nat_gateway_in_the_private_subnet_itself_is_no_way_out(network: PrivateNetwork) -> None:
    network.route_out(NatGatewayId=network.add_nat_gateway(SubnetId=network.subnet_id))
    assert not reaches_internet(interface(network.subnet_id))


def test_a_deleted_nat_gateway_is_no_way_out(network: PrivateNetwork, ec2: Any) -> None:
    gateway_id = network.add_nat_gateway()
    network.route_out(NatGatewayId=gateway_id)
    ec2.delete_nat_gateway(NatGatewayId=gateway_id)
    assert not reaches_internet(interface(network.subnet_id))


def test_a_private_nat_gateway_is_no_way_out(network: PrivateNetwork, ec2: Any) -> None:
    made = ec2.create_nat_gateway(SubnetId=network.public_subnet_id, ConnectivityType="private")
    network.route_out(NatGatewayId=made["NatGateway"]["NatGatewayId"])
    assert not reaches_internet(interface(network.subnet_id))


def test_an_interface_without_a_public_address_does_not_pass_packets_on(network: PrivateNetwork, ec2: Any) -> None:
    made = ec2.create_network_interface(SubnetId=network.public_subnet_id)
    network.route_out(NetworkInterfaceId=made["NetworkInterface"]["NetworkInterfaceId"])
    assert not reaches_internet(interface(network.subnet_id))


def test_a_gateway_endpoint_leads_to_s3_and_nowhere_else(network: PrivateNetwork) -> None:
    assert not reaches_service(interface(network.subnet_id), "s3")
    network.add_s3_endpoint()
    assert reaches_service(interface(network.subnet_id), "s3")
    assert not reaches_service(interface(network.public_subnet_id), "s3"), "the endpoint is in another route table"
    assert not reaches_service(interface(network.subnet_id), "ec2")
    assert not reaches_internet(interface(network.subnet_id))


def test_an_interface_endpoint_serves_the_whole_vpc(network: PrivateNetwork) -> None:
    network.add_endpoint("secretsmanager")
    for subnet_id in (network.subnet_id, network.public_subnet_id):
        assert reaches_service(interface(subnet_id), "secretsmanager")
        assert not reaches_service(interface(subnet_id), "cloudformation")


@pytest.mark.parametrize("attribute", ["EnableDnsSupport", "EnableDnsHostnames"])
def test_private_dns_needs_the_dns_attributes_of_the_vpc(network: PrivateNetwork, ec2: Any, attribute: str) -> None:
    network.add_endpoint("ec2")
    ec2.modify_vpc_attribute(VpcId=network.vpc_id, **{attribute: {"Value": False}})
    assert not reaches_service(interface(network.subnet_id), "ec2")


def test_an_endpoint_without_private_dns_is_not_used(network: PrivateNetwork) -> None:
    network.add_endpoint("ec2", PrivateDnsEnabled=False)
    assert not reaches_service(interface(network.subnet_id), "ec2")


def test_a_deleted_endpoint_is_not_used(network: PrivateNetwork, ec2: Any) -> None:
    ec2.delete_vpc_endpoints(VpcEndpointIds=[network.add_endpoint("ec2")])
    assert not reaches_service(interface(network.subnet_id), "ec2")


def test_the_security_group_of_an_endpoint_decides_even_with_a_way_to_the_internet(network: PrivateNetwork) -> None:
    network.route_out(NatGatewayId=network.add_nat_gateway())
    assert reaches_service(interface(network.subnet_id), "ec2")
    network.add_endpoint("ec2", admitted="10.99.0.0/16")
    assert not reaches_service(interface(network.subnet_id), "ec2")


def test_an_endpoint_admits_the_security_groups_in_its_rules(network: PrivateNetwork, ec2: Any) -> None:
    groups = [
        ec2.create_security_group(GroupName=name, Description=name, VpcId=network.vpc_id)["GroupId"]
        for name in ("endpoint", "nodes", "others")
    ]
    pair = {"UserIdGroupPairs": [{"GroupId": groups[1]}]}
    for port in (22, 443):
        permission = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, **pair}
        ec2.authorize_security_group_ingress(GroupId=groups[0], IpPermissions=[permission])
    network.add_endpoint("ec2", SecurityGroupIds=[groups[0]])
    assert reaches_service(interface(network.subnet_id, group_ids=(groups[1],)), "ec2")
    assert not reaches_service(interface(network.subnet_id, group_ids=(groups[2],)), "ec2")


@pytest.mark.parametrize(
    ("host", "isolated", "with_nat", "with_s3"),
    [
        ("10.20.9.9", True, True, True),
        ("mirror.example.com", True, True, True),  # a name stands for a server in the VPC
        ("10.99.0.1", False, False, False),
        ("198.51.100.7", False, False, False),
        ("8.8.8.8", False, True, False),
        ("files.s3.us-west-2.amazonaws.com", False, True, True),
        ("files.s3.dualstack.us-west-2.amazonaws.com", False, True, True),
        ("files.s3.eu-central-1.amazonaws.com", False, True, False),
        ("123456789012.dkr.ecr.us-west-2.amazonaws.com", False, True, False),
    ],
)
def test_a_mirror_is_in_the_vpc_in_s3_or_on_the_internet(
    network: PrivateNetwork, host: str, isolated: bool, with_nat: bool, with_s3: bool
) -> None:
    assert reaches_host(interface(network.subnet_id), host) == isolated
    network.add_s3_endpoint()
    assert reaches_host(interface(network.subnet_id), host) == with_s3
    network.route_out(NatGatewayId=network.add_nat_gateway())
    assert reaches_host(interface(network.subnet_id), host) == with_nat
