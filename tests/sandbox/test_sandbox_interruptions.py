"""EC2 interrupts Spot Instances of an emulated cluster: notices, two minutes, and what the group does then."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sandboxed import Place, golden
from simulated_account import open_account

from cfngen.boot.host import lifecycle
from cfngen.boot.machine import BootError, Machine
from cfngen.boot.node import drain, rebalancing
from cfngen.boot.state import Boot
from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.instances.machines import Notice, send_notice
from cfngen.sandbox.services import spot_interruptions
from cfngen.sandbox.services.rules import Refused

REGION = "us-west-2"
GROUP = "NodeGroupBatchAutoScalingGroup"
ON_DEMAND = "NodeGroupGeneralAutoScalingGroup"


def cluster(tmp_path_factory: pytest.TempPathFactory, *spot: str) -> Cluster:
    """A cluster with nodes on demand and three Spot Instances, as these keys say."""
    file = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
    group = ", ".join(("name: batch, minSize: 3, maxSize: 3, spotPrice: 0.04", *spot))
    file.write_text(f"nodeGroups: [{{name: general, minSize: 1, maxSize: 1}}, {{{group}}}]")
    return load(file, environ={}).cluster


@pytest.fixture(scope="module", params=["ignore", "drain"])
def spot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return cluster(tmp_path_factory, f"rebalanceRecommendation: {request.param}")


@contextlib.contextmanager
def created(of: Cluster) -> Iterator[Place]:
    with open_account(REGION, durations=DURATIONS) as where:
        place = Place(where.account, of)
        assert place.create().status == "CREATE_COMPLETE"
        # The last of a group is created when the first nodes have signalled.
        where.account.advance(600)
        yield place


def is_cordoned(place: Place, instance: Instance) -> bool:
    nodes = place.account.cluster("kubernetes").state.list("nodes")
    return any(node["metadata"]["name"] == instance.id and node["spec"].get("unschedulable") for node in nodes)


def states(place: Place, group: str) -> dict[str, str]:
    """Lifecycle state of each instance of a group, by id."""
    answer = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
    [found] = [each for each in answer if group in each["AutoScalingGroupName"]]
    return {instance["InstanceId"]: instance["LifecycleState"] for instance in found["Instances"]}


def ec2_state(instance: Instance) -> str:
    answer = client("ec2", REGION).describe_instances(InstanceIds=[instance.id])
    return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])


def told(instance: Instance, path: str) -> str | None:
    return spot_interruptions.metadata(REGION, instance.id, path)


def test_interrupted_instance_ends_after_two_minutes_and_is_replaced(spot: Cluster) -> None:
    with created(spot) as place:
        first, *others = place.instances(GROUP)
        assert told(first, drain.SPOT_ACTION_PATH) is None
        machines = place.account.machines
        assert send_notice(machines, "batch", Notice.INTERRUPTION, 1) == ([first.id], [])
        assert json.loads(told(first, drain.SPOT_ACTION_PATH) or "")["action"] == "terminate"
        assert told(first, rebalancing.RECOMMENDATION_PATH) is None
        place.account.advance(119)
        assert (ec2_state(first), is_cordoned(place, first)) == ("running", True)
        place.account.advance(2)
        assert ec2_state(first) == "terminated"
        place.account.advance(900)
        left = states(place, GROUP)
        assert first.id not in left
        assert {each.id for each in others} < left.keys()
        assert (len(left), set(left.values())) == (3, {"InService"})


def test_hook_does_not_hold_an_interrupted_instance(spot: Cluster) -> None:
    with created(spot) as place:
        first = place.instances(GROUP)[0]
        # Its drain service is stuck, as if a disruption budget allowed no eviction.
        first.runs_termination_service = False
        send_notice(place.account.machines, GROUP, Notice.BOTH, 1)
        client("autoscaling", REGION).terminate_instance_in_auto_scaling_group(
            InstanceId=first.id, ShouldDecrementDesiredCapacity=False
        )
        assert told(first, lifecycle.TARGET_STATE_PATH) == "Terminated"
        hook = {
            "LifecycleHookName": "cfngen-drain",
            "AutoScalingGroupName": first.group,
            "InstanceId": first.id,
        }
        for _ in range(4):
            place.account.advance(29)
            client("autoscaling", REGION).record_lifecycle_action_heartbeat(**hook)
        assert (ec2_state(first), states(place, GROUP)[first.id]) == ("running", "Terminating:Wait")
        place.account.advance(5)
        # EC2 does not ask the hook; but somebody has to complete its action, or its time has to run out.
        assert (ec2_state(first), states(place, GROUP)[first.id]) == ("terminated", "Terminating:Wait")
        place.account.advance(120)
        assert first.id not in states(place, GROUP)
        assert ec2_state(first) == "terminated"


def test_storm_over_a_whole_group_replaces_all_of_it(spot: Cluster) -> None:
    with created(spot) as place:
        instances = place.instances(GROUP)
        assert len(send_notice(place.account.machines, "batch", Notice.BOTH).spot) == 3
        place.account.advance(125)
        assert {ec2_state(instance) for instance in instances} == {"terminated"}
        assert {ec2_state(instance) for instance in place.instances(ON_DEMAND)} == {"running"}
        place.account.advance(1200)
        left = states(place, GROUP)
        assert (len(left), set(left.values())) == (3, {"InService"})
        assert not left.keys() & {instance.id for instance in instances}


def test_recommendation_interrupts_nothing_and_is_acted_on_only_if_the_group_says_so(spot: Cluster) -> None:
    with created(spot) as place:
        first = place.instances(GROUP)[0]
        send_notice(place.account.machines, "batch", Notice.REBALANCE, 1)
        assert "noticeTime" in json.loads(told(first, rebalancing.RECOMMENDATION_PATH) or "")
        place.account.advance(3600)
        assert ec2_state(first) == "running"
        action = spot.node_groups[1].rebalance_recommendation
        assert is_cordoned(place, first) == (action == "drain")


@pytest.mark.parametrize(("group", "resource"), [("general", ON_DEMAND), ("master-a", "MasterAAutoScalingGroup")])
def test_an_instance_on_demand_ends_without_a_notice_and_is_replaced(spot: Cluster, group: str, resource: str) -> None:
    with created(spot) as place:
        [instance] = place.instances(resource)
        assert send_notice(place.account.machines, group, Notice.BOTH) == ([], [instance.id])
        assert (ec2_state(instance), told(instance, drain.SPOT_ACTION_PATH)) == ("terminated", None)
        place.account.advance(1500)
        [(identifier, state)] = states(place, resource).items()
        assert identifier != instance.id
        assert state == "InService"
        nodes = place.account.cluster("kubernetes").state.list("nodes")
        assert {node["metadata"]["name"] for node in nodes} >= {identifier}


def test_instances_on_demand_are_told_nothing(spot: Cluster) -> None:
    with created(spot) as place:
        machines = place.account.machines
        assert send_notice(machines, "general", Notice.REBALANCE) == ([], [])
        [instance] = place.instances(ON_DEMAND)
        with pytest.raises(Refused, match="is not a running Spot Instance"):
            spot_interruptions.recommend_rebalancing(REGION, instance.id, machines.cloud.clock.time)
        with pytest.raises(Refused, match="is not a running Spot Instance"):
            spot_interruptions.interrupt(REGION, instance.id, machines.cloud.clock.time, lambda: None)


class EmulatedInstance(Machine):
    """An instance of the emulated account, as the boot program sees it; no pod ever leaves its node.

    Attributes:
        said: the lines that the boot program said.
    """

    def __init__(self, place: Place, instance: Instance) -> None:
        super().__init__()
        self.region = REGION
        self.said: list[str] = []
        self._place, self._instance = place, instance

    def say(self, text: str) -> None:
        self.said.append(text)

    def log(self, text: str) -> None:
        return

    def exists(self, path: str) -> bool:
        return True

    def clock(self) -> float:
        return self._place.account.cloud.clock.now

    def sleep(self, seconds: float) -> None:
        self._place.account.advance(seconds)
        if not self._place.account.machines.is_running(self._instance):
            raise EndedError

    def metadata(self, path: str, default: str | None = None) -> str:
        return told(self._instance, path) or default or ""

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        text = " ".join(command)
        if "/api/v1/nodes" in text:
            nodes = self._place.account.cluster("kubernetes").state.list("nodes")
            return 0, json.dumps({"metadata": {}, "items": [*nodes]})
        if " get pods " in text:
            return 0, json.dumps({"items": [{"metadata": {"namespace": "default", "name": "stays"}}]})
        if "/eviction" in text:
            raise BootError("Cannot evict pod as it would violate the pod's disruption budget.")
        return 0, ""

    def _client(self, service: str) -> Any:
        return client(service, REGION)


class EndedError(Exception):
    """EC2 has terminated the instance."""


@pytest.mark.parametrize("terminated", [False, True])
def test_drain_service_meets_notice_and_termination_in_the_emulated_account(spot: Cluster, terminated: bool) -> None:
    """The service itself, with the metadata and the lifecycle hook of the emulated account."""
    with created(spot) as place:
        first = place.instances(GROUP)[0]
        machine = EmulatedInstance(place, first)
        # The service runs here and not by the emulator's estimate.
        first.runs_termination_service = False
        references = first.boot_data.references
        facts = {"instanceId": first.id, "stack": references["stack"], "resource": references["resource"]}
        boot = Boot({"drain": 5}, facts)
        send_notice(place.account.machines, "batch", Notice.INTERRUPTION, 1)
        begin = place.account.cloud.clock.now
        if terminated:
            client("autoscaling", REGION).terminate_instance_in_auto_scaling_group(
                InstanceId=first.id, ShouldDecrementDesiredCapacity=False
            )
        with pytest.raises(EndedError):
            drain.watch(machine, boot)
        # Neither the hook nor the pod that a budget keeps delays EC2.
        assert place.account.cloud.clock.now - begin == 120
        told_by_service = "EC2 is about to interrupt this Spot Instance: 1 pods remain after 100 s: default/stays"
        assert machine.said == ([] if terminated else [told_by_service])
        # Its heartbeats held the hook until then; now its time runs out.
        assert states(place, GROUP)[first.id] == ("Terminating:Wait" if terminated else "InService")
        place.account.advance(1200)
        left = states(place, GROUP)
        assert first.id not in left
        assert (len(left), set(left.values())) == (3, {"InService"})


def test_golden_case_is_created() -> None:
    with created(golden("interruptions")) as place:
        assert place.instances(GROUP) == []
