"""The emulator itself: which instances a group with a mixed instances policy launches, and where."""

from __future__ import annotations

from typing import Any

import pytest
from mixed_groups import (
    ZONES,
    described,
    failures,
    group_name,
    instances,
    markets,
    mixed,
    override,
    requiring,
    resized,
    spot,
    types,
    zones_in_use,
)
from small_stacks import REGION, created, reasons, text, updated

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.services import capacity, capacity_reservations
from cfngen.sandbox.services.capacity_reservations import Reservation
from cfngen.sandbox.services.scaling_activities import RETRY

HALF = {"OnDemandPercentageAboveBaseCapacity": 50}


@pytest.mark.parametrize(
    ("size", "distribution", "on_demand"),
    [
        # The examples of the user guide, "Auto Scaling groups with multiple instance types and purchase options".
        (10, {"OnDemandBaseCapacity": 10, **HALF}, 10),
        (20, {"OnDemandBaseCapacity": 10, **HALF}, 15),
        (10, {"OnDemandPercentageAboveBaseCapacity": 0}, 0),
        (10, {"OnDemandPercentageAboveBaseCapacity": 60}, 6),
        (10, {"OnDemandBaseCapacity": 12, "OnDemandPercentageAboveBaseCapacity": 0}, 10),
        (20, {"OnDemandBaseCapacity": 12, "OnDemandPercentageAboveBaseCapacity": 0}, 12),
        (3, HALF, 2),  # "rounds up to the next integer in favor of On-Demand Instances"
        (3, {}, 3),
    ],
)
def test_on_demand_and_spot_have_their_shares(
    cloud: CloudFormation, size: int, distribution: dict[str, Any], on_demand: int
) -> None:
    created(cloud, mixed(size, distribution=distribution))
    counts = markets()
    assert (counts["on-demand"], counts["spot"]) == (on_demand, size - on_demand)


def test_instances_are_spread_over_the_zones(cloud: CloudFormation) -> None:
    created(cloud, mixed(7, distribution=spot("lowest-price")))
    assert sorted(zones_in_use().values()) == [2, 2, 3]


def test_instances_are_in_the_subnet_of_their_zone(cloud: CloudFormation) -> None:
    ec2 = client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)["Subnet"]["SubnetId"]: zone
        for number, zone in enumerate(ZONES)
    }
    resources = mixed(3, VPCZoneIdentifier=list(subnets))
    del resources["Group"]["Properties"]["AvailabilityZones"]
    created(cloud, resources)
    assert {instance["SubnetId"]: instance["Placement"]["AvailabilityZone"] for instance in instances()} == subnets


def test_the_first_type_comes_first_and_falls_to_the_next_where_it_is_sold_out(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "m5.large", "us-west-2b")
    created(cloud, mixed(3))
    by_zone = {instance["Placement"]["AvailabilityZone"]: instance["InstanceType"] for instance in instances()}
    assert by_zone == {"us-west-2a": "m5.large", "us-west-2b": "m5a.large", "us-west-2c": "m5.large"}


def test_a_zone_without_any_of_the_types_falls_to_the_next_zone(cloud: CloudFormation) -> None:
    for name in ("m5.large", "m5a.large", "m6i.large"):
        capacity.remove_capacity(REGION, name, "us-west-2b")
    created(cloud, mixed(4))
    assert zones_in_use() == {"us-west-2a": 2, "us-west-2c": 2}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("lowest-price", {"m5a.large": 2, "m6i.large": 2}),  # two pools by default
        ("price-capacity-optimized", {"m5a.large": 4}),
        ("capacity-optimized", {"m5a.large": 4}),
        ("capacity-optimized-prioritized", {"m5.large": 2, "m5a.large": 2}),
    ],
)
def test_spot_pools_are_chosen_by_the_strategy(cloud: CloudFormation, strategy: str, expected: dict[str, int]) -> None:
    for name, dollars in (("m5.large", 0.04), ("m5a.large", 0.02), ("m6i.large", 0.03)):
        capacity.set_spot_price(REGION, name, dollars)
    capacity.limit_capacity(REGION, "m5.large", 2, "us-west-2a", spot=True)
    created(cloud, mixed(4, zones=["us-west-2a"], distribution=spot(strategy)))
    assert types() == expected


def test_the_number_of_pools_is_that_of_the_distribution(cloud: CloudFormation) -> None:
    created(cloud, mixed(6, zones=["us-west-2a"], distribution=spot("lowest-price", SpotInstancePools=3)))
    assert sorted(types().values()) == [2, 2, 2]


def test_an_empty_spot_pool_leaves_on_demand_capacity_and_other_pools(cloud: CloudFormation) -> None:
    capacity.remove_spot_capacity(REGION, "m5.large")
    created(cloud, mixed(2, distribution={"OnDemandBaseCapacity": 1, **spot("capacity-optimized-prioritized")}))
    assert {(instance["InstanceType"], instance.get("InstanceLifecycle", "")) for instance in instances()} == {
        ("m5.large", ""),
        ("m5a.large", "spot"),
    }


def test_a_group_launches_what_it_can_and_tries_again(cloud: CloudFormation) -> None:
    """Spot never falls to On-Demand."""
    cloud.durations[RETRY] = 30
    stack = created(cloud, mixed(2, most=9, distribution=HALF))
    for name in ("m5.large", "m5a.large", "m6i.large"):
        capacity.remove_spot_capacity(REGION, name)
    resized(stack, 8)
    assert markets() == {"on-demand": 4, "spot": 1}
    [failure] = failures(stack)
    assert failure == (
        "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
        "configuration. Please adjust your request and try again. Launching EC2 instance failed."
    )
    cloud.advance(60)
    assert len(failures(stack)) == 3
    capacity.restore_capacity(REGION, "m6i.large")
    cloud.advance(30)
    assert markets() == {"on-demand": 4, "spot": 4}
    assert types()["m6i.large"] >= 3
    assert len(failures(stack)) == 3


def test_no_spot_instance_is_launched_before_the_base_is_on_demand(cloud: CloudFormation) -> None:
    for name in ("m5.large", "m5a.large", "m6i.large"):
        capacity.limit_capacity(REGION, name, 1, spot=False)
    stack = created(cloud, mixed(0, most=20, distribution={"OnDemandBaseCapacity": 10, **HALF}))
    resized(stack, 14)
    assert markets() == {"on-demand": 9}
    assert failures(stack)[0].startswith(
        "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
        "m5.large capacity in the Availability Zone you requested ("
    )


def test_a_new_group_that_gets_no_instance_does_not_stabilize(cloud: CloudFormation) -> None:
    capacity.remove_capacity(REGION, "m5.large")
    stack = cloud.wait(cloud.create_stack("s", body=text(mixed(1, override("m5.large"), distribution=spot()))))
    assert stack.status == "ROLLBACK_COMPLETE"
    [reason] = reasons(stack, "Group", "CREATE_FAILED")
    assert reason == (
        "Group did not stabilize. Last scaling activity: Could not launch Spot Instances. InsufficientInstanceCapacity "
        "- There is no Spot capacity available that matches your request. Launching EC2 instance failed."
    )


def test_a_maximum_price_keeps_expensive_pools_out(cloud: CloudFormation) -> None:
    capacity.set_spot_price(REGION, "m5.large", 0.09)
    stack = created(cloud, mixed(1, most=2, distribution=spot("capacity-optimized-prioritized", SpotMaxPrice="0.05")))
    assert types() == {"m5a.large": 1}
    for name in ("m5a.large", "m6i.large"):
        capacity.set_spot_price(REGION, name, 0.06)
    resized(stack, 2)
    assert "SpotMaxPriceTooLow - Your Spot request price of 0.05 is lower than" in failures(stack)[0]


def test_an_image_of_another_architecture_is_refused(cloud: CloudFormation) -> None:
    client("ec2", REGION).register_image(Name="image", Architecture="x86_64")
    resources = mixed(1, override("m5.large"), override("m6g.large"))
    stack = cloud.wait(cloud.create_stack("s", body=text(resources)))
    assert "does not match the architecture 'x86_64'" in reasons(stack, "Group", "CREATE_FAILED")[0]


def test_requirements_select_types_of_the_images_architecture(cloud: CloudFormation) -> None:
    client("ec2", REGION).register_image(Name="image", Architecture="arm64")
    created(cloud, mixed(1, requiring(AllowedInstanceTypes=["m5*", "m6g.*"])))
    assert types() == {"m6g.large": 1}


def test_requirements_fall_to_other_types_that_match(cloud: CloudFormation) -> None:
    resources = mixed(3, requiring(AllowedInstanceTypes=["m5.*", "m5a.*"]), distribution=spot())
    capacity.remove_capacity(REGION, "m5.large")
    created(cloud, resources)
    assert types() == {"m5a.large": 3}


def test_requirements_that_no_type_meets_launch_nothing(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text(mixed(1, requiring(AllowedInstanceTypes=["m5.metal"])))))
    assert "Could not launch On-Demand Instances. UnfulfillableCapacity" in reasons(stack, "Group", "CREATE_FAILED")[0]


def test_a_group_shrinks_by_the_market_that_has_too_much(cloud: CloudFormation) -> None:
    resources = mixed(0, most=8, distribution={"OnDemandBaseCapacity": 2, **spot()})
    stack = created(cloud, resources)
    resized(stack, 6)
    resized(stack, 3)
    assert markets() == {"on-demand": 2, "spot": 1}
    resized(stack, 0)
    assert not instances()


def test_the_policy_is_kept_by_updates_that_do_not_name_it(cloud: CloudFormation) -> None:
    stack = created(cloud, mixed(1, most=5, distribution=spot()))
    client("autoscaling", REGION).update_auto_scaling_group(
        AutoScalingGroupName=group_name(stack), MaxSize=6, CapacityRebalance=True
    )
    resized(stack, 5)
    assert markets() == {"spot": 5}
    group = described(stack)
    assert "LaunchTemplate" not in group
    assert group["CapacityRebalance"] is True
    assert group["MixedInstancesPolicy"]["InstancesDistribution"] == {
        "OnDemandAllocationStrategy": "prioritized",
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }


def test_another_distribution_replaces_instances_gradually(cloud: CloudFormation) -> None:
    stack = created(cloud, mixed(6))
    updated(cloud, mixed(6, distribution=HALF))
    assert (stack.status, markets()) == ("UPDATE_COMPLETE", {"on-demand": 3, "spot": 3})


def test_a_group_without_a_policy_becomes_a_mixed_one_and_back(cloud: CloudFormation) -> None:
    resources = mixed(2, distribution=spot())
    plain = {**resources, "Group": {**resources["Group"], "Properties": dict(resources["Group"]["Properties"])}}
    policy = plain["Group"]["Properties"].pop("MixedInstancesPolicy")
    plain["Group"]["Properties"]["LaunchTemplate"] = policy["LaunchTemplate"]["LaunchTemplateSpecification"]
    stack = created(cloud, plain)
    assert markets() == {"on-demand": 2}
    updated(cloud, resources)
    assert (stack.status, markets()) == ("UPDATE_COMPLETE", {"spot": 2})
    updated(cloud, plain)
    assert (stack.status, markets(), types()) == ("UPDATE_COMPLETE", {"on-demand": 2}, {"t3.small": 2})


def test_settings_of_a_group_follow_the_template(cloud: CloudFormation) -> None:
    stack = created(cloud, mixed(1, MaxInstanceLifetime=86400, CapacityRebalance=True))
    group = described(stack)
    assert group["MaxInstanceLifetime"] == 86400
    assert group["CapacityRebalance"] is True
    updated(cloud, mixed(1))
    group = described(stack)
    assert group["MaxInstanceLifetime"] == 0
    assert group["CapacityRebalance"] is False


def test_target_groups_follow_the_template(cloud: CloudFormation) -> None:
    elb, vpc = client("elbv2", REGION), client("ec2", REGION).describe_vpcs()["Vpcs"][0]["VpcId"]
    first, second = (
        elb.create_target_group(Name=name, Protocol="TCP", Port=80, VpcId=vpc)["TargetGroups"][0]["TargetGroupArn"]
        for name in ("first", "second")
    )
    stack = created(cloud, mixed(2, TargetGroupARNs=[first]))

    def targets(arn: str) -> set[str]:
        health = elb.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
        return {description["Target"]["Id"] for description in health}

    members = {member["InstanceId"] for member in described(stack)["Instances"]}
    assert targets(first) == members
    updated(cloud, mixed(2, TargetGroupARNs=[second]))
    assert (targets(first), targets(second)) == (set(), members)


def test_a_reservation_is_used_and_a_full_one_refuses_the_launch(cloud: CloudFormation) -> None:
    capacity_reservations.add(REGION, Reservation("cr-0123456789abcdef0", "t3.small", "us-west-2a", count=1))
    capacity.remove_capacity(REGION, "t3.small")
    resources = mixed(1, override("t3.small"), most=2, zones=["us-west-2a"])
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["CapacityReservationSpecification"] = {
        "CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}
    }
    stack = created(cloud, resources)
    resized(stack, 2)
    assert len(instances()) == 1
    assert "ReservationCapacityExceeded - The requested reservation" in failures(stack)[0]


@pytest.mark.parametrize(
    ("preference", "launched"), [("capacity-reservations-only", 1), ("capacity-reservations-first", 2)]
)
@pytest.mark.parametrize("match_criteria", ["open", "targeted"])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_group_prefers_reservations_or_has_nothing_else(
    cloud: CloudFormation, preference: str, launched: int, match_criteria: str, is_mixed: bool
) -> None:
    reservation = Reservation("cr-0123456789abcdef0", "m5.large", "us-west-2a", 1, match_criteria)
    capacity_reservations.add(REGION, reservation)
    target = {"CapacityReservationIds": ["cr-0123456789abcdef0"]}
    specification = {"CapacityReservationPreference": preference, "CapacityReservationTarget": target}
    resources = mixed(1, override("m5.large"), most=2, zones=["us-west-2a"])
    if not is_mixed:
        group = resources["Group"]["Properties"]
        group["LaunchTemplate"] = group.pop("MixedInstancesPolicy")["LaunchTemplate"]["LaunchTemplateSpecification"]
        resources["Template"]["Properties"]["LaunchTemplateData"]["InstanceType"] = "m5.large"
    resources["Group"]["Properties"]["CapacityReservationSpecification"] = specification
    stack = created(cloud, resources)
    resized(stack, 2)
    assert len(instances()) == launched
