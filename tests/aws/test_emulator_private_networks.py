"""The emulator itself: NAT gateways, VPC endpoints and the routes to them, as CloudFormation makes and changes them."""

from __future__ import annotations

import contextlib
import ipaddress
import random
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from ec2_parts import GATEWAY, ec2, ref, resource, security_group, subnet, table
from refusals_endpoints import NAMED_VPC, gateway_endpoint, interface_endpoint
from refusals_nat_gateways import ADDRESS, OPEN, nat
from small_stacks import REGION, reasons, text
from test_updates_properties import changed, tags, tags_of

from cfngen.sandbox.cloudformation import CloudFormation

HOUR = 3600
WITH_NAT = {"Vpc": NAMED_VPC, "Subnet": subnet(), **OPEN, "Address": ADDRESS, "Nat": nat()}
OTHER_ZONE = subnet("10.0.1.0/24", zone=f"{REGION}b")
HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}


def nat_gateways(**arguments: Any) -> list[dict[str, Any]]:
    return ec2().describe_nat_gateways(**arguments)["NatGateways"]


def interfaces() -> list[dict[str, Any]]:
    return ec2().describe_network_interfaces()["NetworkInterfaces"]


def endpoint(cloud: CloudFormation, logical_id: str = "It") -> dict[str, Any]:
    identifier = cloud.stack("s").resources[logical_id].physical_id
    [found] = ec2().describe_vpc_endpoints(VpcEndpointIds=[identifier])["VpcEndpoints"]
    return found


def routes(cloud: CloudFormation, logical_id: str = "Table") -> dict[str, tuple[str, str]]:
    """Target and state by destination, of a route table."""
    identifier = cloud.stack("s").resources[logical_id].physical_id
    [found] = ec2().describe_route_tables(RouteTableIds=[identifier])["RouteTables"]
    return {
        route.get("DestinationCidrBlock") or route["DestinationPrefixListId"]: (
            route.get("GatewayId") or route.get("NatGatewayId", ""),
            route["State"],
        )
        for route in found["Routes"]
    }


def test_a_nat_gateway_has_an_address_of_its_subnet_and_its_elastic_ip(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({**WITH_NAT}))
    assert stack.status == "CREATE_COMPLETE", reasons(stack, "Nat", "CREATE_FAILED")
    [gateway] = nat_gateways(NatGatewayIds=[stack.resources["Nat"].physical_id])
    [address] = gateway["NatGatewayAddresses"]
    assert gateway["State"] == "available"
    assert ipaddress.ip_address(address["PrivateIp"]) in ipaddress.ip_network("10.0.0.0/24")
    assert address["PublicIp"] == stack.resources["Address"].physical_id
    [interface] = interfaces()
    assert stack.resources["Nat"].attributes["EniId"] == interface["NetworkInterfaceId"]
    assert (interface["InterfaceType"], interface["Groups"]) == ("nat_gateway", [])
    assert interface["PrivateIpAddress"] == address["PrivateIp"]


@pytest.mark.parametrize("seed", range(5))
def test_no_address_of_a_subnet_is_given_twice(cloud: CloudFormation, seed: int) -> None:
    chance = random.Random(seed)
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for name in ("EnableDnsSupport", "EnableDnsHostnames"):
        ec2().modify_vpc_attribute(VpcId=vpc, **{name: {"Value": True}})
    small = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/28")["Subnet"]["SubnetId"]
    image = ec2().register_image(Name="image")["ImageId"]
    usable = [f"10.0.0.{last}" for last in range(4, 15)]

    def endpoint(service: str) -> None:
        name = f"com.amazonaws.{REGION}.{service}"
        ec2().create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface", SubnetIds=[small])

    def terminate_one() -> None:
        ec2().terminate_instances(InstanceIds=[chance.choice(instances)])

    instances: list[str] = []
    ways: list[Callable[[], Any]] = [
        lambda: ec2().create_network_interface(SubnetId=small),
        lambda: ec2().create_network_interface(SubnetId=small, PrivateIpAddress=chance.choice(usable)),
        lambda: instances.append(
            ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1, SubnetId=small)["Instances"][0]["InstanceId"]
        ),
        lambda: ec2().create_nat_gateway(SubnetId=small, ConnectivityType="private"),
        lambda: endpoint(chance.choice(["sts", "ec2"])),
        terminate_one,
    ]
    for _ in range(25):
        with contextlib.suppress(ClientError, IndexError):  # in use, none is free, there is such an endpoint
            chance.choice(ways)()
        terminated = {
            instance["InstanceId"]
            for reservation in ec2().describe_instances()["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] == "terminated"
        }
        given = [
            interface["PrivateIpAddress"]
            for interface in interfaces()
            if interface["SubnetId"] == small and interface.get("Attachment", {}).get("InstanceId") not in terminated
        ]
        assert len(given) == len(set(given))
        assert set(given) <= set(usable)
    assert len(given) > 6


def test_a_deleted_nat_gateway_leaves_nothing_and_is_shown_for_an_hour(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({**WITH_NAT}))
    identifier = stack.resources["Nat"].physical_id
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"
    assert [gateway["State"] for gateway in nat_gateways(NatGatewayIds=[identifier])] == ["deleted"]
    assert (interfaces(), ec2().describe_addresses()["Addresses"]) == ([], [])
    cloud.advance(HOUR + 1)
    assert nat_gateways() == []


def test_a_failed_nat_gateway_takes_nothing(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({**WITH_NAT, "Nat": nat(after="Gateway"), "Attachment": GATEWAY}))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert (interfaces(), ec2().describe_addresses()["Addresses"]) == ([], [])
    assert nat_gateways(Filter=[{"Name": "state", "Values": ["pending", "available"]}]) == []


def test_tags_of_nat_gateways_and_endpoints_change_in_place(cloud: CloudFormation) -> None:
    others = {key: value for key, value in WITH_NAT.items() if key != "Nat"}
    properties = nat()["Properties"]
    identifier = changed(
        cloud, "AWS::EC2::NatGateway", {**properties, "Tags": tags(a="1", b="1")},
        {**properties, "Tags": tags(a="2", c="1")}, **others, Wait={**GATEWAY, "DependsOn": "Attachment"},
    )  # fmt: skip
    assert tags_of(identifier) == {"a": "2", "c": "1"}


def test_tags_of_an_endpoint_change_in_place(cloud: CloudFormation) -> None:
    properties = gateway_endpoint()["Properties"]
    after = {**properties, "Tags": tags(a="2")}
    identifier = changed(cloud, "AWS::EC2::VPCEndpoint", {**properties, "Tags": tags(a="1")}, after, Vpc=NAMED_VPC)
    assert tags_of(identifier) == {"a": "2"}


def test_a_nat_gateway_in_another_subnet_is_another_one(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({**WITH_NAT}))
    before = stack.resources["Nat"].physical_id
    moved = nat("Other", {"Fn::GetAtt": ["OtherAddress", "AllocationId"]})
    cloud.update_stack("s", body=text({**WITH_NAT, "Other": OTHER_ZONE, "OtherAddress": ADDRESS, "Nat": moved}))
    assert stack.status == "UPDATE_COMPLETE", reasons(stack, "Nat", "UPDATE_FAILED")
    states = {gateway["NatGatewayId"]: gateway["State"] for gateway in nat_gateways()}
    assert states == {before: "deleted", stack.resources["Nat"].physical_id: "available"}


def test_a_route_moves_to_another_nat_gateway_and_is_a_blackhole_without_one(cloud: CloudFormation) -> None:
    second = {
        "Other": OTHER_ZONE,
        "OtherAddress": ADDRESS,
        "OtherNat": nat("Other", {"Fn::GetAtt": ["OtherAddress", "AllocationId"]}),
    }

    def body(gateway: str) -> str:
        route = {"RouteTableId": ref("Table"), "DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": ref(gateway)}
        return text({**WITH_NAT, **second, "Table": table(), "Route": resource("Route", **route)})

    stack = cloud.create_stack("s", body=body("Nat"))
    before = stack.resources["Route"].physical_id
    cloud.update_stack("s", body=body("OtherNat"))
    other = stack.resources["OtherNat"].physical_id
    assert stack.resources["Route"].physical_id == before
    assert routes(cloud)["0.0.0.0/0"] == (other, "active")
    ec2().delete_nat_gateway(NatGatewayId=other)
    assert routes(cloud)["0.0.0.0/0"] == (other, "blackhole")
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"


def test_an_interface_endpoint_has_an_interface_in_each_subnet(cloud: CloudFormation) -> None:
    group = {"Group": security_group()}
    it = interface_endpoint("Subnet", "Other", SecurityGroupIds=[{"Fn::GetAtt": ["Group", "GroupId"]}])
    resources = {"Vpc": NAMED_VPC, "Subnet": subnet(), "Other": OTHER_ZONE, **group, "It": it}
    stack = cloud.create_stack("s", body=text(resources))
    assert stack.status == "CREATE_COMPLETE", reasons(stack, "It", "CREATE_FAILED")
    blocks = {stack.resources["Subnet"].physical_id: "10.0.0.0/24", stack.resources["Other"].physical_id: "10.0.1.0/24"}
    found = interfaces()
    assert {interface["SubnetId"] for interface in found} == set(blocks)
    for interface in found:
        block = ipaddress.ip_network(blocks[interface["SubnetId"]])
        assert ipaddress.ip_address(interface["PrivateIpAddress"]) in block
        assert [item["GroupId"] for item in interface["Groups"]] == [stack.resources["Group"].physical_id]
        assert interface["InterfaceType"] == "vpc_endpoint"
    assert {item["NetworkInterfaceId"] for item in found} == set(endpoint(cloud)["NetworkInterfaceIds"])
    names = [entry["DnsName"] for entry in endpoint(cloud)["DnsEntries"]]
    assert names[-1] == f"ec2.{REGION}.amazonaws.com"
    assert names[0].endswith(f".ec2.{REGION}.vpce.amazonaws.com")
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"
    assert (interfaces(), ec2().describe_vpc_endpoints()["VpcEndpoints"]) == ([], [])


def test_subnets_groups_and_private_dns_of_an_endpoint_change_in_place(cloud: CloudFormation) -> None:
    one, two = ([{"Fn::GetAtt": [group, "GroupId"]}] for group in ("First", "Group"))
    before = interface_endpoint("Subnet", PrivateDnsEnabled=False, SecurityGroupIds=one)["Properties"]
    after = interface_endpoint("Other", SecurityGroupIds=two)["Properties"]
    groups = {"First": security_group(), "Group": security_group()}
    others = {"Vpc": NAMED_VPC, "Subnet": subnet(), "Other": OTHER_ZONE, **groups}
    changed(cloud, "AWS::EC2::VPCEndpoint", before, after, **others)
    stack, found = cloud.stack("s"), endpoint(cloud)
    assert found["SubnetIds"] == [stack.resources["Other"].physical_id]
    assert [item["GroupId"] for item in found["Groups"]] == [stack.resources["Group"].physical_id]
    assert found["PrivateDnsEnabled"] is True
    [interface] = interfaces()
    assert interface["SubnetId"] == stack.resources["Other"].physical_id
    assert [item["GroupId"] for item in interface["Groups"]] == [stack.resources["Group"].physical_id]
    assert stack.resources["It"].attributes["NetworkInterfaceIds"] == [interface["NetworkInterfaceId"]]


def test_routes_follow_a_gateway_endpoint(cloud: CloudFormation) -> None:
    before, after = gateway_endpoint("Table")["Properties"], gateway_endpoint("Other")["Properties"]
    identifier = changed(
        cloud, "AWS::EC2::VPCEndpoint", before, after, Vpc=NAMED_VPC, Table=table(), Other=table()
    )  # fmt: skip
    assert identifier not in [target for target, _ in routes(cloud).values()]
    assert (identifier, "active") in routes(cloud, "Other").values()
    ec2().delete_vpc_endpoints(VpcEndpointIds=[identifier])
    assert list(routes(cloud, "Other")) == ["10.0.0.0/16"]


def test_another_service_replaces_an_endpoint(cloud: CloudFormation) -> None:
    def body(service: str) -> str:
        it = interface_endpoint(service=f"com.amazonaws.{REGION}.{service}")
        return text({"Vpc": NAMED_VPC, "Subnet": subnet(), "It": it})

    stack = cloud.create_stack("s", body=body("ec2"))
    before = stack.resources["It"].physical_id
    cloud.update_stack("s", body=body("sts"))
    assert stack.status == "UPDATE_COMPLETE", reasons(stack, "It", "UPDATE_FAILED")
    assert stack.resources["It"].physical_id != before
    assert [item["ServiceName"] for item in ec2().describe_vpc_endpoints()["VpcEndpoints"]] == [
        f"com.amazonaws.{REGION}.sts"
    ]


def test_inline_rules_of_a_security_group(cloud: CloudFormation) -> None:
    before = security_group(SecurityGroupIngress=[{**HTTPS, "CidrIp": "10.0.0.0/8"}])["Properties"]
    rule = {**HTTPS, "SourceSecurityGroupId": {"Fn::GetAtt": ["Source", "GroupId"]}, "Description": "HTTPS"}
    after = security_group(SecurityGroupIngress=[rule])["Properties"]
    identifier = changed(cloud, "AWS::EC2::SecurityGroup", before, after, Vpc=NAMED_VPC, Source=security_group())
    [found] = ec2().describe_security_groups(GroupIds=[identifier])["SecurityGroups"]
    [permission] = found["IpPermissions"]
    assert permission["IpRanges"] == []
    [pair] = permission["UserIdGroupPairs"]
    assert pair["GroupId"] == cloud.stack("s").resources["Source"].physical_id
    assert pair["Description"] == "HTTPS"
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"


def test_drift(cloud: CloudFormation) -> None:
    group = security_group(SecurityGroupIngress=[{**HTTPS, "CidrIp": "10.0.0.0/8"}])
    it = interface_endpoint(SecurityGroupIds=[{"Fn::GetAtt": ["Group", "GroupId"]}])
    stack = cloud.create_stack("s", body=text({**WITH_NAT, "Group": group, "It": it}))
    assert cloud.drift_detection(cloud.detect_drift("s")).drift == "IN_SYNC"
    ids = {name: resource.physical_id for name, resource in stack.resources.items()}
    ec2().delete_nat_gateway(NatGatewayId=ids["Nat"])
    ec2().modify_vpc_endpoint(VpcEndpointId=ids["It"], PrivateDnsEnabled=False)
    ec2().authorize_security_group_ingress(GroupId=ids["Group"], IpPermissions=[{
        **HTTPS, "IpRanges": [{"CidrIp": "192.0.2.0/24"}]}])  # fmt: skip
    cloud.detect_drift("s")
    found = {drift.logical_id: drift.status for drift in cloud.resource_drifts("s")}
    assert (found["Nat"], found["It"], found["Group"]) == ("DELETED", "MODIFIED", "MODIFIED")


@pytest.mark.parametrize("service", ["autoscaling", "ecr.api", "elasticloadbalancing", "secretsmanager", "ssmmessages"])
def test_services_of_endpoints_are_described(cloud: CloudFormation, service: str) -> None:
    name = f"com.amazonaws.{REGION}.{service}"
    [detail] = ec2().describe_vpc_endpoint_services(ServiceNames=[name])["ServiceDetails"]
    assert [item["ServiceType"] for item in detail["ServiceType"]] == ["Interface"]
    assert f"{REGION}a" in detail["AvailabilityZones"]
