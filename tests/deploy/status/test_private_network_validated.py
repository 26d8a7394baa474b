"""What validation says of the way out of a private cluster: NAT gateways, route tables and VPC endpoints.

The network of a golden case is made in moto by hand, with the names that its templates have; then somebody changes it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from answers import Answers
from in_moto import in_moto
from moto.ec2.models.vpcs import VPCEndPoint

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.private_network import EndpointView, PrivateNetwork, read_private_network
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.cluster_problems import Problem
from cfngen.deploy.status.network_problems import find_network_problems
from cfngen.templates import generate

CASES = Path(__file__).parents[2] / "golden" / "cases"
STACK = StackView("k8s", "arn", StackStatus("CREATE_COMPLETE"))
PER_ZONE: dict[str, Any] = {
    "network": {"topology": "private", "plugin": "cilium", "subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}]}
}


def case(name: str) -> Cluster:
    return parse(yaml.safe_load((CASES / name / "cluster.yaml").read_text()))


@dataclass
class Network:
    """A network with its resources by logical id, as the stacks of a cluster have it."""

    account: Account
    cluster: Cluster
    ids: dict[str, str]
    types: dict[str, str]
    parameters: dict[str, str]

    @property
    def ec2(self) -> Any:
        return self.account.client("ec2")

    def read(self) -> PrivateNetwork:
        views = [ResourceView(name, self.ids[name], kind, "CREATE_COMPLETE") for name, kind in self.types.items()]
        return read_private_network(
            self.account, self.cluster, replace(STACK, parameters=self.parameters), [*views, GONE]
        )

    def problems(self) -> list[Problem]:
        return find_network_problems(self.read())

    def said(self) -> list[str]:
        return [problem.sentence for problem in self.problems()]


GONE = ResourceView("NatGatewayZ", "nat-0", "AWS::EC2::NatGateway", "DELETE_COMPLETE")


def make(account: Account, cluster: Cluster) -> Network:
    """Make the parts of a cluster's network that lead out of it, from the templates of the cluster."""
    ec2 = account.client("ec2")
    resources = {
        name: resource
        for document in generate(cluster)
        if document.name in ("vpc", "master")
        for name, resource in document.body["Resources"].items()
        if document.name == "vpc" or name.startswith("Endpoint")
    }
    types = {name: resource["Type"] for name, resource in resources.items()}
    vpc = ec2.create_vpc(CidrBlock="172.20.0.0/16")["Vpc"]["VpcId"]
    ids = {name: f"{name}-id" for name in resources} | {"Vpc": vpc}

    def given(name: str, key: str) -> str:
        value = resources[name]["Properties"][key]
        [referred] = value.values()
        return ids[referred if isinstance(referred, str) else referred[0]]

    by_type = {kind: sorted(name for name in types if types[name] == kind) for kind in types.values()}
    if "InternetGateway" in ids:
        ids["InternetGateway"] = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=ids["InternetGateway"], VpcId=vpc)
    for number, name in enumerate(by_type["AWS::EC2::Subnet"]):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=f"172.20.{number}.0/24")["Subnet"]
        ids[name] = subnet["SubnetId"]
    for name in by_type["AWS::EC2::RouteTable"]:
        ids[name] = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    for name in by_type["AWS::EC2::SubnetRouteTableAssociation"]:
        table, subnet = given(name, "RouteTableId"), given(name, "SubnetId")
        ids[name] = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)["AssociationId"]
    for name in by_type.get("AWS::EC2::NatGateway", ()):
        address = ec2.allocate_address(Domain="vpc")
        ids[name.replace("NatGateway", "NatElasticIp")] = address["PublicIp"]
        gateway = ec2.create_nat_gateway(SubnetId=given(name, "SubnetId"), AllocationId=address["AllocationId"])
        ids[name] = gateway["NatGateway"]["NatGatewayId"]
    for name in by_type.get("AWS::EC2::Route", ()):
        key = "GatewayId" if "GatewayId" in resources[name]["Properties"] else "NatGatewayId"
        table = given(name, "RouteTableId")
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **{key: given(name, key)})
    for name in by_type.get("AWS::EC2::VPCEndpoint", ()):
        parts: dict[str, Any] = {"PrivateDnsEnabled": True}
        service = "com.amazonaws.us-west-2.ec2"
        if resources[name]["Properties"]["VpcEndpointType"] == "Gateway":
            tables = [ids[table["Ref"]] for table in resources[name]["Properties"]["RouteTableIds"]]
            parts, service = {"RouteTableIds": tables}, "com.amazonaws.us-west-2.s3"
        kind = resources[name]["Properties"]["VpcEndpointType"]
        endpoint = ec2.create_vpc_endpoint(VpcId=vpc, VpcEndpointType=kind, ServiceName=service, **parts)
        ids[name] = endpoint["VpcEndpoint"]["VpcEndpointId"]
    return Network(account, cluster, ids, types, {})


@contextlib.contextmanager
def empty_account() -> Iterator[Account]:
    """moto 5.2.5 does not know the filter `vpc-endpoint-id`, and takes it from an attribute of that name."""
    with pytest.MonkeyPatch.context() as patch, in_moto() as (account, _):
        patch.setattr(VPCEndPoint, "vpc_endpoint_id", property(lambda endpoint: endpoint.id), raising=False)
        yield account


@functools.cache
def as_made(name: str) -> tuple[dict[str, str], PrivateNetwork]:
    """The ids of a golden case's network, and what is read of it before anybody changes it."""
    with empty_account() as account:
        network = make(account, case(name))
        return network.ids, network.read()


@pytest.fixture
def account() -> Iterator[Account]:
    with empty_account() as account:
        yield account


@pytest.fixture
def per_zone(account: Account) -> Network:
    return make(account, parse({**PER_ZONE, "network": {**PER_ZONE["network"], "nat": "perZone"}}))


@pytest.fixture
def isolated(account: Account) -> Network:
    return make(account, case("private-no-way-out"))


@pytest.mark.parametrize("name", ["private-nat-per-zone", "private-single-nat", "private-no-way-out"])
def test_a_network_as_the_templates_make_it_has_no_problems(name: str) -> None:
    _, network = as_made(name)
    assert find_network_problems(network) == []
    assert network.tables


def test_of_a_public_cluster_nothing_is_asked(aws: Answers) -> None:
    views = [
        ResourceView(name, "id", kind, "CREATE_COMPLETE")
        for name, kind in (("RouteTable", "AWS::EC2::RouteTable"), ("SubnetA", "AWS::EC2::Subnet"))
    ]
    assert read_private_network(aws.account, parse({}), STACK, views) == PrivateNetwork()
    assert aws.calls == []


def test_a_nat_gateway_that_is_gone_is_named_once_with_its_subnet_address_and_route(per_zone: Network) -> None:
    gateway, table = per_zone.ids["NatGatewayA"], per_zone.ids["PrivateRouteTableA"]
    per_zone.ec2.delete_nat_gateway(NatGatewayId=gateway)
    [problem] = per_zone.problems()
    assert (problem.area, problem.subject) == ("natGateway", gateway)
    assert problem.sentence.startswith(f"the NAT gateway {gateway} is deleted: instances that use it reach nothing")
    assert f"create-nat-gateway --region us-west-2 --subnet-id {per_zone.ids['PublicSubnetA']} " in str(problem.hint)
    assert per_zone.ids["NatElasticIpA"] in str(problem.hint)
    assert f"replace-route --region us-west-2 --route-table-id {table} --destination-cidr-block 0.0.0.0/0" in str(
        problem.hint
    )
    per_zone.ids["NatGatewayA"] = "nat-00000000000000000"
    assert "does not exist any more" in per_zone.said()[0]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("InsufficientFreeAddressesInSubnet", "free an address in its subnet first; "),
        ("Gateway.NotAttached", "attach the internet gateway"),
        ("Resource.AlreadyAssociated", "disassociate its Elastic IP"),
        ("InvalidAllocationID.NotFound", "its Elastic IP does not exist any more; "),
        ("InternalError", "create another one"),
    ],
)
def test_a_nat_gateway_that_failed_says_why(code: str, remedy: str) -> None:
    _, network = as_made("private-nat-per-zone")
    first, *others = network.nat_gateways
    failed = replace(first, state="failed", failure_code=code, failure="Network vpc-1 has no internet gateway attached")
    [problem] = find_network_problems(replace(network, nat_gateways=(failed, *others)))
    assert "is failed" in problem.text
    assert problem.detail == "Network vpc-1 has no internet gateway attached"
    assert str(problem.hint).startswith(remedy)


def test_what_is_being_made_is_waited_for() -> None:
    _, network = as_made("private-nat-per-zone")
    first, *others = network.nat_gateways
    pending = replace(network, nat_gateways=(replace(first, state="pending"), *others))
    [problem] = find_network_problems(pending)
    assert (problem.text, str(problem.hint)) == ("is pending", "it is available within a few minutes.")


def test_a_route_that_is_missing_is_created_again(per_zone: Network) -> None:
    table, gateway = per_zone.ids["PrivateRouteTableB"], per_zone.ids["NatGatewayB"]
    per_zone.ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
    [problem] = per_zone.problems()
    assert problem.sentence == f"the route table {table} has no route for 0.0.0.0/0 to the NAT gateway"
    assert str(problem.hint) == (
        f"aws ec2 create-route --region us-west-2 --route-table-id {table} "
        f"--destination-cidr-block 0.0.0.0/0 --nat-gateway-id {gateway}"
    )


def test_a_private_subnet_with_a_route_to_the_internet_gateway_is_found(per_zone: Network) -> None:
    table, internet = per_zone.ids["PrivateRouteTableA"], per_zone.ids["InternetGateway"]
    per_zone.ec2.replace_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=internet)
    [problem] = per_zone.problems()
    assert problem.text == f"has a route for 0.0.0.0/0 to {internet}, not to the NAT gateway"
    assert str(problem.hint).endswith(f"--nat-gateway-id {per_zone.ids['NatGatewayA']}")


def test_a_nat_gateway_of_another_zone_will_do(per_zone: Network) -> None:
    table, other = per_zone.ids["PrivateRouteTableA"], per_zone.ids["NatGatewayB"]
    per_zone.ec2.replace_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=other)
    assert per_zone.said() == []


def test_public_subnets_lead_to_the_internet_gateway(per_zone: Network) -> None:
    table = per_zone.ids["RouteTable"]
    per_zone.ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
    [problem] = per_zone.problems()
    assert problem.text == "has no route for 0.0.0.0/0 to the internet gateway"
    assert str(problem.hint).endswith(f"--gateway-id {per_zone.ids['InternetGateway']}")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_subnet_with_another_route_table_is_found(per_zone: Network, elsewhere: bool) -> None:
    subnet, own, public = (per_zone.ids[name] for name in ("SubnetA", "PrivateRouteTableA", "RouteTable"))
    per_zone.ec2.disassociate_route_table(AssociationId=per_zone.ids["SubnetARouteTableAssociation"])
    association = ""
    if elsewhere:
        association = per_zone.ec2.associate_route_table(RouteTableId=public, SubnetId=subnet)["AssociationId"]
    [problem] = per_zone.problems()
    assert problem.sentence == (
        f"the subnet {subnet} uses {public if elsewhere else 'another route table'} instead of the route table {own}"
    )
    how = f"replace-route-table-association --association-id {association}"
    command = how if elsewhere else f"associate-route-table --subnet-id {subnet}"
    assert str(problem.hint) == f"aws ec2 {command} --region us-west-2 --route-table-id {own}"


def test_a_route_table_that_is_gone_is_found(per_zone: Network) -> None:
    per_zone.ids["PrivateRouteTableA"] = "rtb-00000000000000000"
    assert per_zone.said()[0].startswith("the route table rtb-00000000000000000 does not exist any more")


def test_an_endpoint_that_is_gone_is_named_with_its_service(isolated: Network) -> None:
    endpoint = isolated.ids["EndpointEcrDkr"]
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    [problem] = isolated.problems()
    assert problem.sentence.startswith(f"the VPC endpoint {endpoint} for ecr.dkr ")
    assert "--service-name com.amazonaws.us-west-2." in str(problem.hint)
    assert "--vpc-endpoint-type Interface --subnet-ids" in str(problem.hint)


@pytest.mark.parametrize(
    ("state", "hint"),
    [
        ("failed", "create-vpc-endpoint"),
        ("partial", "create-vpc-endpoint"),
        ("pending", "it is available within a few minutes."),
        ("pendingacceptance", "ask the owner of the service"),
        ("rejected", "ask the owner of the service"),
        ("expired", "ask the owner of the service"),
        ("modifying", "it is available within a few minutes."),
        ("", "create-vpc-endpoint"),
    ],
)
def test_an_endpoint_that_is_not_available_says_why(state: str, hint: str) -> None:
    _, network = as_made("private-no-way-out")
    changed = [
        replace(endpoint, state=state, failure="no more addresses") if endpoint.service == "sts" else endpoint
        for endpoint in network.endpoints
    ]
    [problem] = find_network_problems(replace(network, endpoints=tuple(changed)))
    assert problem.text == f"for sts is {state}" if state else problem.text == "for sts does not exist any more"
    assert (problem.area, problem.detail) == ("endpoint", "no more addresses")
    assert hint in str(problem.hint)


STS, S3 = "com.amazonaws.us-west-2.sts", "com.amazonaws.us-west-2.s3"


@pytest.mark.parametrize(
    ("logical_id", "described", "expected"),
    [
        # Those that EC2 does not describe any more: what the cluster file says of them.
        ("EndpointSts", None, EndpointView("vpce-1", "sts", STS, "", has_private_dns=False)),
        ("EndpointS3", None, EndpointView("vpce-1", "s3", S3, "", is_gateway=True)),
        ("EndpointOther", None, EndpointView("vpce-1", "", "", "", has_private_dns=False)),
        # The API Reference writes states with a capital, EC2 answers without.
        (
            "EndpointSts",
            {"State": "Failed", "LastError": {"Code": "x", "Message": "no room"}, "PrivateDnsEnabled": False},
            EndpointView("vpce-1", "sts", STS, "failed", "no room", has_private_dns=False),
        ),
        (
            "EndpointSts",
            {"State": "failed", "FailureReason": "full", "LastError": {"Message": "x"}, "PrivateDnsEnabled": True},
            EndpointView("vpce-1", "sts", STS, "failed", "full"),
        ),
        (
            "EndpointS3",
            {"State": "available", "VpcEndpointType": "Gateway", "RouteTableIds": ["rtb-1", "rtb-2"]},
            EndpointView("vpce-1", "s3", S3, "available", is_gateway=True, tables=("rtb-1", "rtb-2")),
        ),
        (
            "EndpointOther",
            {"State": "available", "VpcEndpointType": "Interface", "ServiceName": "com.example.other"},
            EndpointView("vpce-1", "com.example.other", "com.example.other", "available", has_private_dns=False),
        ),
    ],
)
def test_an_endpoint_is_read_as_ec2_and_the_cluster_file_describe_it(
    logical_id: str, described: dict[str, Any] | None, expected: EndpointView
) -> None:
    endpoints = [] if described is None else [{"VpcEndpointId": "vpce-1", **described}]
    aws = Answers({"ec2:DescribeVpcEndpoints": {"VpcEndpoints": endpoints}}, otherwise=None)
    views = [ResourceView(logical_id, "vpce-1", "AWS::EC2::VPCEndpoint", "CREATE_COMPLETE")]
    assert read_private_network(aws.account, case("private-no-way-out"), STACK, views).endpoints == (expected,)


def test_an_endpoint_is_created_again_as_one_of_its_kind() -> None:
    _, network = as_made("private-no-way-out")
    gateway = next(replace(endpoint, state="") for endpoint in network.endpoints if endpoint.is_gateway)
    interface = next(replace(endpoint, state="") for endpoint in network.endpoints if not endpoint.is_gateway)
    unknown = replace(interface, service="", service_name="")
    problems = find_network_problems(replace(network, endpoints=(gateway, interface, unknown)))
    create = "aws ec2 create-vpc-endpoint --region us-west-2 --vpc-id vpc-…"
    privately = "--vpc-endpoint-type Interface --subnet-ids … --security-group-ids … --private-dns-enabled"
    assert [str(problem.hint).partition("another one: ")[2] for problem in problems] == [
        f"{create} --service-name {gateway.service_name} --vpc-endpoint-type Gateway --route-table-ids rtb-…",
        f"{create} --service-name {interface.service_name} {privately}",
        f"{create} --service-name … {privately}",
    ]
    assert problems[2].text == "does not exist any more"


def test_an_endpoint_without_the_services_name_is_not_used() -> None:
    ids, network = as_made("private-no-way-out")
    endpoint = ids["EndpointEc2"]
    changed = [replace(each, has_private_dns=each.id != endpoint) for each in network.endpoints]
    [problem] = find_network_problems(replace(network, endpoints=tuple(changed)))
    assert str(problem.hint) == (
        f"aws ec2 modify-vpc-endpoint --region us-west-2 --vpc-endpoint-id {endpoint} --private-dns-enabled"
    )


def test_a_route_table_without_the_way_to_s3_is_found() -> None:
    ids, network = as_made("private-no-way-out")
    endpoint, table = ids["EndpointS3"], ids["PrivateRouteTableB"]
    changed = [
        replace(each, tables=tuple(other for other in each.tables if other != table)) for each in network.endpoints
    ]
    [problem] = find_network_problems(replace(network, endpoints=tuple(changed)))
    assert problem.sentence == f"the VPC endpoint {endpoint} for s3 is not in the route table {table}"
    assert str(problem.hint).endswith(f"--vpc-endpoint-id {endpoint} --add-route-table-ids {table}")


def test_parts_that_existed_before_the_cluster_count_as_its_own(account: Account) -> None:
    """A subnet with an existing route table, and a table whose route leads to an existing NAT gateway."""
    network = make(account, parse({**PER_ZONE, "network": {**PER_ZONE["network"], "nat": "perZone"}}))
    theirs, table = network.ids["NatGatewayB"], network.ids["PrivateRouteTableB"]
    for name in ("NatGatewayB", "NatElasticIpB", "PrivateRouteTableB", "NatRouteB"):
        del network.ids[name], network.types[name]
    network.parameters = {"NatGatewayBId": theirs, "RouteTableBId": table}
    network.ec2.replace_route(
        RouteTableId=network.ids["PrivateRouteTableA"], DestinationCidrBlock="0.0.0.0/0", NatGatewayId=theirs
    )
    assert network.said() == []
    assert network.read().table_by_subnet[network.ids["SubnetB"]] == table
