"""The emulator itself: mixed groups whose instances are replaced, by rolling updates, by Auto Scaling, or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mixed_groups import described, failures, group_name, ids, instances, markets, mixed, override, resized, spot, types
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from small_stacks import REGION, created, updated

from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.cloudformation import CloudFormation, LaunchedInstance, Stack, client
from cfngen.sandbox.services import capacity, replacements
from cfngen.sandbox.services.scaling_activities import REPLACEMENT, RETRY

TERMINATING_HOOK = {
    "LifecycleHookName": "drain",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "HeartbeatTimeout": "120",
    "DefaultResult": "CONTINUE",
}
DAY = 86_400
OTHER_DATA = "b3RoZXI="
M5 = override("m5.large")


def booting(seconds: float = 30, silent: range = range(0)) -> CloudFormation:
    """CloudFormation whose instances signal success after so many seconds, but for the silent ones, by their number."""

    def boot(launched: LaunchedInstance) -> None:
        if len(cloud.launched) - 1 not in silent:
            cloud.clock.schedule(seconds, lambda: signal(launched.instance_id))

    def signal(instance_id: str) -> None:
        if ec2_backends[DEFAULT_ACCOUNT_ID][REGION].get_instance(instance_id).state == "running":
            cloud.signal_resource("s", "Group", instance_id, "SUCCESS")

    cloud = CloudFormation(REGION, on_launch=boot)
    return cloud


@pytest.fixture
def room_for_hundreds() -> Iterator[None]:
    """Quotas of vCPUs for hundreds of instances."""
    extensions = MotoExtensions()
    for quota in ("L-34B43A08", "L-1216C47A"):  # of Spot and of On-Demand Instances
        extensions.set_quota("ec2", quota, 1000)
    with extensions.patched():
        yield


def states(stack: Stack) -> dict[str, str]:
    """The lifecycle states of a group's instances, by id."""
    return {member["InstanceId"]: member["LifecycleState"] for member in described(stack)["Instances"]}


def suspend(stack: Stack, *processes: str) -> None:
    client("autoscaling", REGION).suspend_processes(
        AutoScalingGroupName=group_name(stack), ScalingProcesses=list(processes)
    )


def resume(stack: Stack) -> None:
    client("autoscaling", REGION).resume_processes(AutoScalingGroupName=group_name(stack))


def buys_on_demand(stack: Stack) -> None:
    """Let the group have On-Demand Instances only: it replaces each of its Spot Instances."""
    client("autoscaling", REGION).update_auto_scaling_group(
        AutoScalingGroupName=group_name(stack),
        MixedInstancesPolicy={"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100}},
    )


def on_spot(count: int, **properties: Any) -> dict[str, Any]:
    return mixed(count, distribution=spot(), **properties)


def obsolete_after(cloud: CloudFormation, before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many instances an update replaces."""
    stack = created(cloud, before)
    old = ids()
    updated(cloud, after)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    return len(old - ids())


def test_another_launch_template_version_replaces_all(cloud: CloudFormation) -> None:
    assert obsolete_after(cloud, mixed(3, M5), mixed(3, M5, user_data=OTHER_DATA)) == 3
    assert types() == {"m5.large": 3}


def test_another_list_of_types_replaces_all(cloud: CloudFormation) -> None:
    assert obsolete_after(cloud, mixed(3, M5), mixed(3, M5, override("m5a.large"))) == 3


def test_another_strategy_replaces_none(cloud: CloudFormation) -> None:
    before = mixed(3, distribution=spot("capacity-optimized"))
    assert obsolete_after(cloud, before, mixed(3, distribution=spot("price-capacity-optimized"))) == 0


def test_another_lifetime_or_rebalancing_replaces_none(cloud: CloudFormation) -> None:
    assert obsolete_after(cloud, mixed(3), mixed(3, MaxInstanceLifetime=DAY, CapacityRebalance=True)) == 0


def test_a_surge_launches_first() -> None:
    cloud = booting()
    surge = {"MaxBatchSize": 2, "MinInstancesInService": 4}
    arguments: dict[str, Any] = {"most": 6, "signals": True, "rolling": surge, "distribution": spot()}
    stack = created(cloud, mixed(4, M5, **arguments))
    begin, least = cloud.clock.now, [4]
    for second in range(10, 300, 10):
        cloud.clock.schedule(second, lambda: least.append(len(instances())))
    updated(cloud, mixed(4, M5, user_data=OTHER_DATA, **arguments))
    assert (stack.status, len(instances()), min(least), max(least)) == ("UPDATE_COMPLETE", 4, 4, 6)
    assert cloud.clock.now - begin == 60


def test_a_surge_that_fails_is_rolled_back_and_stays() -> None:
    cloud = booting(silent=range(2, 4))
    arguments: dict[str, Any] = {"most": 4, "signals": True, "rolling": {"MaxBatchSize": 2, "MinInstancesInService": 2}}
    stack = created(cloud, mixed(2, M5, **arguments))
    updated(cloud, mixed(2, M5, user_data=OTHER_DATA, **arguments))
    # CloudFormation puts DesiredCapacity back only if the template has it (see `cloudformation.modification`).
    assert (stack.status, types()) == ("UPDATE_ROLLBACK_COMPLETE", {"m5.large": 4})


@pytest.mark.drill
@pytest.mark.usefixtures("room_for_hundreds")
@pytest.mark.parametrize("kept", [0, 90, 100])
def test_a_hundred_instances_in_large_batches(kept: int) -> None:
    cloud = booting()
    policy = {"MaxBatchSize": 100, "MinInstancesInService": kept}
    arguments: dict[str, Any] = {"most": 200, "signals": True, "rolling": policy, "distribution": spot()}
    stack = created(cloud, mixed(100, **arguments))
    old, begin = ids(), cloud.clock.now
    updated(cloud, mixed(100, user_data=OTHER_DATA, **arguments))
    assert (stack.status, len(ids()), ids() & old) == ("UPDATE_COMPLETE", 100, set())
    assert cloud.clock.now - begin == (60 if kept == 90 else 30)


@pytest.mark.drill
@pytest.mark.usefixtures("room_for_hundreds")
def test_a_hundred_instances_of_the_wrong_market_are_replaced_within_the_margin(cloud: CloudFormation) -> None:
    cloud.durations[replacements.PASSED_HEALTH_CHECK] = 60
    stack = created(cloud, on_spot(100))
    cloud.advance(60)
    old = ids()
    buys_on_demand(stack)
    assert len(ids()) == 110
    cloud.advance(600)
    assert (len(ids()), ids() & old) == (100, set())


def test_a_rolling_update_under_a_shortage_waits_and_succeeds_when_it_ends() -> None:
    cloud = booting()
    cloud.durations[RETRY] = 30
    arguments: dict[str, Any] = {"signals": True, "distribution": spot()}
    stack = created(cloud, mixed(2, M5, **arguments))
    capacity.remove_spot_capacity(REGION, "m5.large")
    cloud.clock.schedule(100, lambda: capacity.restore_capacity(REGION, "m5.large"))
    updated(cloud, mixed(2, M5, user_data=OTHER_DATA, **arguments))
    assert (stack.status, types()) == ("UPDATE_COMPLETE", {"m5.large": 2})
    assert failures(stack)


def test_an_instance_is_terminated_once_its_replacement_is_healthy(cloud: CloudFormation) -> None:
    """The group has its maximum size, and exceeds it meanwhile."""
    cloud.durations[replacements.PASSED_HEALTH_CHECK] = 60
    stack = created(cloud, on_spot(1, LifecycleHookSpecificationList=[TERMINATING_HOOK]))
    cloud.advance(60)
    [replaced] = states(stack)
    buys_on_demand(stack)
    assert list(states(stack).values()) == ["InService"] * 2
    cloud.advance(60)
    assert states(stack)[replaced] == "Terminating:Wait"
    cloud.advance(120)
    assert len(states(stack)) == 1
    assert replaced not in ids()


def test_an_instance_stays_while_there_is_no_room_for_another(cloud: CloudFormation) -> None:
    cloud.durations[RETRY] = 30
    stack = created(cloud, mixed(1, M5, distribution=spot()))
    [replaced] = ids()
    capacity.remove_capacity(REGION, "m5.large")
    buys_on_demand(stack)
    cloud.advance(60)
    assert ids() == {replaced}
    capacity.restore_capacity(REGION, "m5.large")
    cloud.advance(30)
    assert markets() == {"on-demand": 1}


@pytest.mark.parametrize("process", ["Launch", "Terminate"])
def test_a_replacement_needs_both_processes_and_goes_on_when_they_are_resumed(
    cloud: CloudFormation, process: str
) -> None:
    stack = created(cloud, on_spot(1))
    [replaced] = ids()
    suspend(stack, process)
    buys_on_demand(stack)
    assert replaced in ids()
    assert len(ids()) == (1 if process == "Launch" else 2)
    resume(stack)
    assert len(ids()) == 1
    assert replaced not in ids()


@pytest.mark.parametrize("process", ["HealthCheck", "ReplaceUnhealthy"])
def test_a_terminated_instance_is_replaced_when_health_is_looked_at_again(cloud: CloudFormation, process: str) -> None:
    stack = created(cloud, mixed(1, distribution=spot()))
    suspend(stack, process)
    ec2_backends[DEFAULT_ACCOUNT_ID][REGION].terminate_instances([*ids()])
    cloud.advance(600)
    assert ids() == set()
    resume(stack)
    assert markets() == {"spot": 1}


def test_an_unhealthy_instance_is_terminated_first(cloud: CloudFormation) -> None:
    cloud.durations[REPLACEMENT] = 14
    created(cloud, mixed(1))
    [unhealthy] = ids()
    client("autoscaling", REGION).set_instance_health(InstanceId=unhealthy, HealthStatus="Unhealthy")
    assert ids() == set()
    cloud.advance(14)
    assert len(ids() - {unhealthy}) == 1


def test_instances_are_replaced_when_they_are_too_old_a_tenth_at_a_time(cloud: CloudFormation) -> None:
    cloud.durations[REPLACEMENT] = 14
    stack = created(cloud, mixed(20, MaxInstanceLifetime=DAY))
    old = ids()
    cloud.advance(DAY - 1)
    assert ids() == old
    cloud.advance(1)
    assert len(ids()) == 18
    cloud.advance(14)
    assert len(ids() & old) == 16
    cloud.advance(14 * 10)
    assert ids() & old == set()
    assert len(states(stack)) == 20


def test_a_lifetime_that_is_set_later_applies_to_instances_that_run(cloud: CloudFormation) -> None:
    created(cloud, mixed(1))
    old = ids()
    cloud.advance(DAY)
    updated(cloud, mixed(1, MaxInstanceLifetime=2 * DAY))
    cloud.advance(DAY - 60)
    assert ids() == old
    cloud.advance(120)
    assert ids() & old == set()
    assert len(ids()) == 1


def test_a_group_in_the_middle_of_a_replacement_is_deleted(cloud: CloudFormation) -> None:
    cloud.durations[replacements.PASSED_HEALTH_CHECK] = 60
    stack = created(cloud, on_spot(1))
    buys_on_demand(stack)
    assert len(ids()) == 2
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert ids() == set()


def test_a_group_shrinks_in_the_middle_of_a_replacement(cloud: CloudFormation) -> None:
    cloud.durations[replacements.PASSED_HEALTH_CHECK] = 60
    stack = created(cloud, mixed(0, most=4, distribution=spot()))
    resized(stack, 3)
    cloud.advance(60)
    old = ids()
    buys_on_demand(stack)
    resized(stack, 1)
    cloud.advance(60)
    assert len(ids()) == 1
    assert not ids() & old
