"""What EC2 allows beside what it refuses: room in another zone, later modifications; and what becomes of routes."""

from __future__ import annotations

from typing import Any

import pytest
from ec2_parts import ZONE, ec2
from small_stacks import REGION, group, reasons, running, text

from cfngen.sandbox.api.gaps import Gaps
from cfngen.sandbox.cloudformation import CloudFormation, NotModelledError
from cfngen.sandbox.services import capacity

ROUTE = "10.244.0.0/24"


def unwatched(**properties: Any) -> dict[str, Any]:
    """A group whose signals nobody waits for."""
    resources = group(1)
    del resources["Group"]["CreationPolicy"]
    resources["Group"]["Properties"].update(properties)
    return resources


def test_a_group_launches_where_there_is_room(cloud: CloudFormation) -> None:
    capacity.exhaust(REGION, "t3.small", ZONE)
    stack = cloud.create_stack("s", body=text(unwatched()))
    assert stack.status == "ROLLBACK_COMPLETE"
    stack = cloud.create_stack("t", body=text(unwatched(AvailabilityZones=[ZONE, "us-west-2b"])))
    assert stack.status == "CREATE_COMPLETE", reasons(stack, "Group", "CREATE_FAILED")


def test_room_that_comes_back_is_used(cloud: CloudFormation) -> None:
    capacity.exhaust(REGION, "t3.small")
    assert cloud.create_stack("s", body=text(unwatched())).status == "ROLLBACK_COMPLETE"
    capacity.restore(REGION)
    assert cloud.create_stack("t", body=text(unwatched())).status == "CREATE_COMPLETE"


def test_a_group_grows_no_further_than_there_is_room(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text(unwatched()))
    capacity.exhaust(REGION, "t3.small")
    cloud.update_stack("s", body=text(unwatched(MinSize="2", MaxSize="2")))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "We currently do not have sufficient t3.small capacity" in reasons(stack, "Group", "UPDATE_FAILED")[0]
    assert len(running()) == 1


def test_the_quotas_are_those_that_service_quotas_answers(cloud: CloudFormation) -> None:
    gaps = Gaps()
    gaps.quota("ec2", "L-1216C47A", 1)
    with gaps.filled():
        stack = cloud.create_stack("s", body=text(unwatched()))
        assert "your current vCPU limit of 1 allows" in reasons(stack, "Group", "CREATE_FAILED")[0]
        gaps.quota("ec2", "L-1216C47A", 2)
        assert cloud.create_stack("t", body=text(unwatched())).status == "CREATE_COMPLETE"


def test_a_launch_template_with_what_no_launch_takes_account_of_is_not_modelled(cloud: CloudFormation) -> None:
    resources = unwatched()
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["MetadataOptions"] = {"HttpTokens": "required", "HttpProtocolIpv6": "enabled"}
    with pytest.raises(NotModelledError, match=r"HttpProtocolIpv6.* in LaunchTemplateData.MetadataOptions"):
        cloud.create_stack("s", body=text(resources))


def test_a_volume_is_modified_four_times_a_day(cloud: CloudFormation) -> None:
    volume = ec2().create_volume(AvailabilityZone=ZONE, Size=1, VolumeType="gp3")["VolumeId"]
    for size in range(2, 12):
        ec2().modify_volume(VolumeId=volume, Size=size)
        cloud.advance(6 * 3600)
    assert ec2().describe_volumes(VolumeIds=[volume])["Volumes"][0]["Size"] == 11


def test_a_route_to_an_instance_that_is_gone_is_a_blackhole(cloud: CloudFormation) -> None:
    image = ec2().register_image(Name="image")["ImageId"]
    [instance] = ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    table = ec2().create_route_table(VpcId=instance["VpcId"])["RouteTable"]["RouteTableId"]
    ec2().create_route(RouteTableId=table, DestinationCidrBlock=ROUTE, InstanceId=instance["InstanceId"])
    assert (_route(table)["State"], _route(table)["InstanceId"]) == ("active", instance["InstanceId"])
    ec2().terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert _route(table)["State"] == "blackhole"
    assert "InstanceId" not in _route(table)


def test_a_route_to_a_gateway_that_is_detached_is_a_blackhole(cloud: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2().create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2().attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    table = ec2().create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2().create_route(RouteTableId=table, DestinationCidrBlock=ROUTE, GatewayId=gateway)
    assert _route(table)["State"] == "active"
    ec2().detach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    assert _route(table)["State"] == "blackhole"


def _route(table: str) -> dict[str, Any]:
    [found] = ec2().describe_route_tables(RouteTableIds=[table])["RouteTables"]
    [route] = [each for each in found["Routes"] if each.get("DestinationCidrBlock") == ROUTE]
    return dict(route)
