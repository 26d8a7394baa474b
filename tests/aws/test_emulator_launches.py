"""What EC2 allows beside what it refuses: room in another zone, later modifications; and what becomes of routes."""

from __future__ import annotations

from typing import Any

import pytest
from ec2_parts import ZONE, ec2, resource, subnet
from mixed_groups import ZONES, instances, resized, zones_in_use
from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from small_stacks import REGION, group, reasons, running, signalling, text, types

from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.cloudformation import CloudFormation, NotModelledError, Stack, client
from cfngen.sandbox.services import capacity, scaling_activities
from cfngen.sandbox.services.scaling_activities import RETRY

ROUTE = "10.244.0.0/24"


def unwatched(**properties: Any) -> dict[str, Any]:
    """A group whose signals nobody waits for."""
    resources = group(1)
    del resources["Group"]["CreationPolicy"]
    resources["Group"]["Properties"].update(properties)
    return resources


def test_a_group_launches_where_there_is_room(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "t3.small", ZONE)
    stack = cloud.wait(cloud.create_stack("s", body=text(unwatched())))
    assert stack.status == "ROLLBACK_COMPLETE"
    stack = cloud.create_stack("t", body=text(unwatched(AvailabilityZones=[ZONE, "us-west-2b"])))
    assert stack.status == "CREATE_COMPLETE", reasons(stack, "Group", "CREATE_FAILED")


def spread(count: int, *, most: int = 7, **rolling: Any) -> dict[str, Any]:
    """A plain group in three zones, with a subnet in each."""
    resources = group(count, most=most, **rolling)
    del resources["Group"]["CreationPolicy"], resources["Group"]["Properties"]["AvailabilityZones"]
    resources["Group"]["UpdatePolicy"]["AutoScalingRollingUpdate"] |= {"WaitOnResourceSignals": False}
    subnets = {f"Subnet{number}": subnet(f"10.0.{number}.0/24", zone=zone) for number, zone in enumerate(ZONES)}
    identifiers = [{"Ref": name} for name in subnets]
    sizes = {"MinSize": "2", "DesiredCapacity": str(count)}
    resources["Group"]["Properties"] |= {"VPCZoneIdentifier": identifiers, **sizes}
    return {"Vpc": resource("VPC", CidrBlock="10.0.0.0/16"), **subnets, **resources}


def test_a_plain_group_keeps_its_zones_even(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text(spread(4, MaxBatchSize=2))))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert sorted(zones_in_use().values()) == [1, 1, 2]
    subnets = {stack.resources[f"Subnet{number}"].physical_id: zone for number, zone in enumerate(ZONES)}
    assert all(subnets[each["SubnetId"]] == each["Placement"]["AvailabilityZone"] for each in instances())

    lost = instances()[0]
    ec2().terminate_instances(InstanceIds=[lost["InstanceId"]])
    cloud.advance(600)
    assert sorted(zones_in_use().values()) == [1, 1, 2]

    updated = spread(4, MaxBatchSize=2)
    updated["Template"]["Properties"]["LaunchTemplateData"]["InstanceType"] = "t3.large"
    cloud.wait(cloud.update_stack("s", body=text(updated)))
    assert (types(), sorted(zones_in_use().values())) == (["t3.large"] * 4, [1, 1, 2])

    for size, counts in ((3, [1, 1, 1]), (7, [2, 2, 3]), (4, [1, 1, 2]), (2, [1, 1])):
        resized(stack, size)
        assert sorted(zones_in_use().values()) == counts


def test_a_plain_group_goes_where_there_is_room_and_loses_one_where_it_has_most(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "t3.small", ZONES[1])
    stack = cloud.wait(cloud.create_stack("s", body=text(spread(4))))
    assert zones_in_use() == {ZONES[0]: 2, ZONES[2]: 2}
    capacity.reset(REGION)
    resized(stack, 5)
    assert zones_in_use() == {ZONES[0]: 2, ZONES[1]: 1, ZONES[2]: 2}
    for each in instances():
        if each["Placement"]["AvailabilityZone"] == ZONES[0]:
            client("autoscaling", REGION).set_instance_protection(
                AutoScalingGroupName=stack.resources["Group"].physical_id,
                InstanceIds=[each["InstanceId"]],
                ProtectedFromScaleIn=True,
            )
    resized(stack, 4)
    assert zones_in_use() == {ZONES[0]: 2, ZONES[1]: 1, ZONES[2]: 1}


def test_room_that_comes_back_is_used(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "t3.small")
    assert cloud.wait(cloud.create_stack("s", body=text(unwatched()))).status == "ROLLBACK_COMPLETE"
    capacity.reset(REGION)
    assert cloud.create_stack("t", body=text(unwatched())).status == "CREATE_COMPLETE"


def test_a_group_grows_no_further_than_there_is_room(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text(unwatched()))
    capacity.remove_capacity(REGION, "t3.small")
    cloud.update_stack("s", body=text(unwatched(MinSize="2", MaxSize="2")))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "We currently do not have sufficient t3.small capacity" in reasons(stack, "Group", "UPDATE_FAILED")[0]
    assert len(running()) == 1


NO_ROOM = "We currently do not have sufficient t3.small capacity in the Availability Zone you requested"


def launches(stack: Stack) -> list[tuple[str, str]]:
    """How launches of the stack's group ended, the first one first, and why they failed."""
    found = autoscaling_backends[DEFAULT_ACCOUNT_ID][REGION]
    activities = scaling_activities.recorded_activities(found, stack.resources["Group"].physical_id)
    return [(activity["StatusCode"], activity.get("StatusMessage", "")) for activity in reversed(activities)]


def failed_for_room(activity: tuple[str, str]) -> bool:
    return (
        activity[0] == "Failed" and NO_ROOM in activity[1] and activity[1].endswith(". Launching EC2 instance failed.")
    )


def test_a_group_that_cannot_launch_at_all_is_made_and_does_not_stabilize(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "t3.small")
    stack = cloud.wait(cloud.create_stack("s", body=text(unwatched())))
    assert [failed_for_room(launch) for launch in launches(stack)] == [True]
    [reason] = reasons(stack, "Group", "CREATE_FAILED")
    assert reason == f"Group did not stabilize. Last scaling activity: {launches(stack)[0][1]}"
    assert stack.resources["Group"].status == "DELETE_COMPLETE"


@pytest.mark.parametrize("seconds", [200, 2000])
def test_a_batch_waits_on_for_signals_while_its_launches_fail(seconds: int) -> None:
    """The group tries again until there is room; within the ten minutes of the rolling update, or too late for it."""
    cloud = signalling(*[(10, "SUCCESS")] * (2 if seconds == 200 else 1))
    cloud.durations[RETRY] = 30
    stack = cloud.wait(cloud.create_stack("s", body=text(group(1))))
    capacity.remove_capacity(REGION, "t3.large")
    cloud.clock.schedule(seconds, lambda: capacity.reset(REGION))
    begin = cloud.clock.now
    cloud.wait(cloud.update_stack("s", body=text(group(1, size="t3.large"))))
    first, *failed = launches(stack)
    assert first[0] == "Successful"
    if seconds == 200:
        assert (stack.status, cloud.clock.now - begin) == ("UPDATE_COMPLETE", 210 + 10)
        assert failed.pop()[0] == "Successful"
        assert len(failed) == 7
    else:
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert reasons(stack, "Group", "UPDATE_FAILED")[0].startswith("Received 0 SUCCESS signal(s) out of 1.")
        cloud.advance(30)
        assert types() == ["t3.small"]
    assert all(status == "Failed" and "t3.large capacity" in message for status, message in failed)


def test_a_group_that_is_grown_by_hand_launches_what_it_can_and_tries_again(cloud: CloudFormation) -> None:
    cloud.durations[RETRY] = 30
    stack = cloud.create_stack("s", body=text(unwatched(MaxSize="4")))
    extensions = MotoExtensions()
    extensions.set_quota("ec2", "L-1216C47A", 4)  # of which an instance has two
    with extensions.patched():
        _grow(stack, 3)
        assert [launch[0] for launch in launches(stack)] == ["Successful", "Successful", "Failed"]
        assert "your current vCPU limit of 4 allows" in launches(stack)[-1][1]
        assert (len(running()), stack.status) == (2, "CREATE_COMPLETE")
        extensions.set_quota("ec2", "L-1216C47A", 6)
        cloud.advance(30)
    assert launches(stack)[-1][0] == "Successful"
    assert len(running()) == 3


def test_an_instance_that_is_gone_is_replaced_once_there_is_room(cloud: CloudFormation) -> None:
    cloud.durations[RETRY] = 30
    stack = cloud.create_stack("s", body=text(unwatched()))
    capacity.remove_capacity(REGION, "t3.small")
    ec2().terminate_instances(InstanceIds=list(running()))
    assert (running(), failed_for_room(launches(stack)[-1])) == ({}, True)
    cloud.advance(29)
    capacity.reset(REGION)
    cloud.advance(1)
    assert [launch[0] for launch in launches(stack)] == ["Successful", "Failed", "Successful"]
    assert set(running()) < set(cloud.launched)


@pytest.mark.parametrize("missing", ["image", "key pair"])
def test_what_was_there_when_the_group_was_made_may_be_missing_later(cloud: CloudFormation, missing: str) -> None:
    resources = unwatched(MaxSize="2")
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["KeyName"] = ec2().create_key_pair(KeyName="mine")["KeyName"]
    stack = cloud.create_stack("s", body=text(resources))
    assert stack.status == "CREATE_COMPLETE", reasons(stack, "Group", "CREATE_FAILED")
    if missing == "image":
        ec2().deregister_image(ImageId=data["ImageId"])
    else:
        ec2().delete_key_pair(KeyName="mine")
    _grow(stack, 2)
    said = {"image": "is no longer available", "key pair": "The key pair 'mine' does not exist"}
    assert f"{said[missing]}. Launching EC2 instance failed." in launches(stack)[-1][1]


def _grow(stack: Stack, size: int) -> None:
    name = stack.resources["Group"].physical_id
    client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=size)


def test_the_quotas_are_those_that_service_quotas_answers(cloud: CloudFormation) -> None:
    extensions = MotoExtensions()
    extensions.set_quota("ec2", "L-1216C47A", 1)
    with extensions.patched():
        stack = cloud.wait(cloud.create_stack("s", body=text(unwatched())))
        assert "your current vCPU limit of 1 allows" in reasons(stack, "Group", "CREATE_FAILED")[0]
        extensions.set_quota("ec2", "L-1216C47A", 2)
        assert cloud.create_stack("t", body=text(unwatched())).status == "CREATE_COMPLETE"


def test_a_launch_template_with_what_no_launch_takes_account_of_is_not_modelled(cloud: CloudFormation) -> None:
    resources = unwatched()
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["MetadataOptions"] = {"HttpTokens": "required", "HttpProtocolIpv6": "enabled"}
    with pytest.raises(NotModelledError, match=r"LaunchTemplateData\.MetadataOptions\.HttpProtocolIpv6"):
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
    [route] = [route for route in found["Routes"] if route.get("DestinationCidrBlock") == ROUTE]
    return dict(route)


def test_an_instance_has_the_volumes_of_the_template_that_its_group_uses(cloud: CloudFormation) -> None:
    def with_volumes(**sizes: int) -> str:
        resources = unwatched(MaxSize="2")
        del resources["Group"]["UpdatePolicy"]
        data = resources["Template"]["Properties"]["LaunchTemplateData"]
        data["BlockDeviceMappings"] = [
            {"DeviceName": f"/dev/{name}", "Ebs": {"VolumeSize": size, "DeleteOnTermination": name != "sdg"}}
            for name, size in sizes.items()
        ]
        data["TagSpecifications"] = [{"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "blue"}]}]
        return text(resources)

    def volumes(state: str) -> list[tuple[str, int]]:
        tagged = [{"Name": "tag:team", "Values": ["blue"]}, {"Name": "status", "Values": [state]}]
        described = ec2().describe_volumes(Filters=tagged)["Volumes"]
        return sorted((next((a["Device"] for a in each["Attachments"]), ""), each["Size"]) for each in described)

    stack = cloud.wait(cloud.create_stack("s", body=with_volumes(sdf=5, sdg=6)))
    assert stack.status == "CREATE_COMPLETE"
    assert volumes("in-use") == [("/dev/sda1", 8), ("/dev/sdf", 5), ("/dev/sdg", 6)]
    [first] = running()
    cloud.wait(cloud.update_stack("s", body=with_volumes(sdf=7)))
    _grow(stack, 2)
    ec2().terminate_instances(InstanceIds=[first])
    assert set(volumes("in-use")) == {("/dev/sda1", 8), ("/dev/sdf", 7)}
    assert volumes("available") == [("", 6)]
