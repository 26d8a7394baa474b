"""Rolling updates of large node groups: how long they take, and how many nodes are missing meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sandboxed import NODES, Place, failures
from simulated_account import open_account

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.durations import DURATIONS

pytestmark = pytest.mark.drill

REGION = "us-west-2"
OLD, NEW = 32, 40  # GiB of the root volumes, whose change replaces nodes and nothing else


def cluster(root_volume: int = OLD, *names: str, **group: Any) -> Cluster:
    """A cluster with a group of nodes, or several alike, in a subnet with room for hundreds."""
    groups = [{"name": name, "rootVolume": {"size": root_volume}, **group} for name in names or ("nodes",)]
    subnets = [{"zone": f"{REGION}a", "cidr": "172.20.0.0/22"}]
    return parse({"network": {"plugin": "cilium", "subnets": subnets}, "nodeGroups": groups})


@contextlib.contextmanager
def created(*names: str, **group: Any) -> Iterator[Place]:
    with open_account(REGION, durations=DURATIONS) as where:
        where.served.moto_extensions.set_quota("ec2", "L-1216C47A", 500)  # vCPUs
        place = Place(where.account, cluster(OLD, *names, **group))
        stack = place.create()
        assert stack.status == "CREATE_COMPLETE", failures(stack)
        yield place


def group_of(stack: Stack, logical_id: str = NODES) -> Any:
    name = stack.resources[logical_id].physical_id
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return found


def working_nodes(place: Place) -> int:
    """How many nodes are Ready and take pods."""
    [kubernetes] = place.account.machines.clusters.values()
    return sum(map(is_working, kubernetes.state.list("nodes")))


def is_working(node: Any) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    is_master = "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
    return conditions["Ready"] == "True" and not node["spec"].get("unschedulable") and not is_master


def watched(place: Place, changed: Cluster, then: Callable[[float], None] = lambda minutes: None) -> tuple[float, int]:
    """Update the cluster and return the minutes that took, and the least number of nodes that worked meanwhile."""
    clock = place.account.cloud.clock
    begin, least = clock.now, working_nodes(place)
    stack = place.begin_update(changed)
    while stack.status.endswith("_IN_PROGRESS"):
        place.account.advance(10)
        least = min(least, working_nodes(place))
        then((clock.now - begin) / 60)
    return (clock.now - begin) / 60, least


@pytest.mark.parametrize(
    ("update", "minutes", "least"),
    [
        ({}, 158, 99),
        ({"maxUnavailable": 10}, 17, 90),
        ({"maxUnavailable": 0, "maxSurge": 10}, 17, 100),
    ],
)
def test_a_hundred_nodes(update: dict[str, int], minutes: int, least: int) -> None:
    """The durations stand in docs/build/nodes.md."""
    group = {"minSize": 100, "maxSize": 110, "update": update}
    with created(**group) as place:
        assert working_nodes(place) == 100
        assert watched(place, cluster(NEW, **group)) == (pytest.approx(minutes, abs=1), least)
        place.account.cloud.advance(60)  # the nodes of the last batch are cordoned some seconds later
        assert working_nodes(place) == 100


def test_a_node_that_fails_in_the_middle_puts_the_group_back_batch_by_batch() -> None:
    group = {"minSize": 12, "maxSize": 15, "update": {"maxUnavailable": 0, "maxSurge": 3}}
    with created(**group) as place:
        failing = False

        def fail_once(minutes: float) -> None:
            nonlocal failing
            if len(place.instances(NODES)) == 12 + 6 and not failing:
                failing = True
                place.account.machines.inject_failure(NODES, "first pod", "it does not run", times=1)

        _, least = watched(place, cluster(NEW, **group), fail_once)
        stack = place.account.cloud.stack("k8s")
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert least == 12
        found = group_of(stack)
        # CloudFormation leaves the surge, as the template has no DesiredCapacity.
        assert (found["MinSize"], found["DesiredCapacity"], working_nodes(place)) == (12, 15, 15)


def test_a_size_that_an_autoscaler_has_changed_is_kept_and_so_is_the_size_of_batches() -> None:
    """Of 2 nodes in the file there are 20: no surge is needed to keep 2, but no more than 3 go at a time."""
    group = {"minSize": 2, "maxSize": 40, "update": {"maxUnavailable": 1, "maxSurge": 2}}
    with created(**group) as place:
        stack = place.account.cloud.stack("k8s")
        autoscaling = client("autoscaling", REGION)
        autoscaling.set_desired_capacity(
            AutoScalingGroupName=group_of(stack)["AutoScalingGroupName"], DesiredCapacity=20
        )
        for _ in range(2):  # instances that are launched outside of an operation boot from the next look at them on
            place.account.advance(300)
        assert working_nodes(place) == 20
        _, least = watched(place, cluster(NEW, **group))
        assert (stack.status, group_of(stack)["DesiredCapacity"], least) == ("UPDATE_COMPLETE", 20, 17)


def test_what_an_autoscaler_adds_during_an_update_without_a_surge_is_kept() -> None:
    group = {"minSize": 4, "maxSize": 40, "update": {"maxUnavailable": 2}}
    with created(**group) as place:
        stack = place.account.cloud.stack("k8s")
        name = group_of(stack)["AutoScalingGroupName"]

        def scale_out(minutes: float) -> None:
            if group_of(stack)["DesiredCapacity"] == 4 and minutes > 1:
                client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=6)

        watched(place, cluster(NEW, **group), scale_out)
        assert (stack.status, group_of(stack)["DesiredCapacity"]) == ("UPDATE_COMPLETE", 6)
        place.account.advance(300)
        assert working_nodes(place) == 6
        volumes = {each["LaunchTemplate"]["Version"] for each in group_of(stack)["Instances"]}
        assert volumes == {"2"}


def test_groups_are_updated_at_the_same_time() -> None:
    group: dict[str, Any] = {"minSize": 3}
    with created("one", **group) as place:
        alone, _ = watched(place, cluster(NEW, "one", **group))
    with created("one", "two", "three", **group) as place:
        together, _ = watched(place, cluster(NEW, "one", "two", "three", **group))
    assert together == pytest.approx(alone, abs=1)


def test_budgets_that_hold_pods_for_long_take_no_further_nodes() -> None:
    """CloudFormation does not wait for the end of a drain: several nodes drain, but the new ones are there already."""
    group: dict[str, Any] = {"minSize": 6}
    with created(**group) as place:
        place.account.machines.drain_seconds = 290
        draining: list[int] = []

        def count(minutes: float) -> None:
            states = [each["LifecycleState"] for each in group_of(place.account.cloud.stack("k8s"))["Instances"]]
            draining.append(states.count("Terminating:Wait"))

        minutes, least = watched(place, cluster(NEW, **group), count)
        assert place.account.cloud.stack("k8s").status == "UPDATE_COMPLETE"
        assert (least, max(draining), minutes < 15) == (5, 4, True)


def test_a_pause_prolongs_updates_and_no_creation() -> None:
    group: dict[str, Any] = {"minSize": 2, "update": {"pause": 10}}
    with created(**group) as place:
        assert place.account.cloud.clock.now < 10 * 60
        minutes, _ = watched(place, cluster(NEW, **group))
        assert 20 < minutes < 30
        paused = [line for instance in place.instances(NODES) for line in instance.console if "] pause: " in line]
        assert ["is not being updated" in line for line in paused] == [True, True, False, False]
