"""Three masters in the sandbox later on: they are replaced one by one, outlive the loss of one, and follow a first."""

from __future__ import annotations

import pytest
from sandboxed import Place, place, said
from several_masters import LETTERS, group, masters, three, three_masters, variant

from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.cloudformation.stack import StackEvent
from cfngen.sandbox.instances.instance import Instance

pytestmark = pytest.mark.drill


def moments(stack: Stack, status: str, *, beginning: int = 0) -> dict[str, StackEvent]:
    """The last event of a status of each slot's group, after so many events."""
    found = {event.logical_id: event for event in stack.events[beginning:] if event.status == status}
    return {letter: found[group(letter)] for letter in LETTERS if group(letter) in found}


def terminate(where: Place, instance: Instance) -> None:
    client("ec2", where.account.region).terminate_instances(InstanceIds=[instance.id])
    where.account.machines.refresh()


def test_an_update_replaces_one_at_a_time_and_the_api_never_goes() -> None:
    with three_masters() as where:
        stack = where.create()
        before, beginning = masters(where), len(stack.events)
        answered: list[bool] = []

        def watch() -> None:
            answered.append(bool(where.account.clusters))
            if stack.status == "UPDATE_IN_PROGRESS":
                where.account.cloud.clock.schedule(5.0, watch)

        where.account.cloud.clock.schedule(60.0, watch)
        where.update(three("controlPlane.instanceType=t3.large"))
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        assert len(answered) > 30
        assert all(answered)
        after = masters(where)
        assert not {each.id for each in before} & {each.id for each in after[1::2]}
        done = moments(stack, "UPDATE_COMPLETE", beginning=beginning)
        rolling = [event for event in stack.events[beginning:] if "Terminating instance" in event.reason]
        begun = [each.time for each in rolling if each.logical_id.startswith("Master")]
        assert [each.logical_id for each in rolling if each.logical_id.startswith("Master")] == list(
            map(group, LETTERS)
        )
        assert done["A"].time <= begun[1]
        assert done["B"].time <= begun[2]


def test_losing_one_master_leaves_the_api_and_losing_two_takes_it() -> None:
    with three_masters() as where:
        where.create()
        first, second, _ = masters(where)
        terminate(where, second)
        assert where.account.clusters
        terminate(where, first)
        assert not where.account.clusters


def test_a_master_that_fails_in_an_update_stops_it_before_the_next() -> None:
    with three_masters() as where:
        stack = where.create()
        third = where.instances(group("C"))
        where.account.machines.inject_failure(group("B"), "volume", "the volume does not come", times=1)
        where.update(three("controlPlane.instanceType=t3.large"))
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert where.instances(group("C")) == third
        assert where.account.clusters


def test_a_master_that_fails_at_creation_fails_its_condition_at_once() -> None:
    with three_masters() as where:
        where.account.machines.inject_failure(group("C"), "downloads", "mirror down")
        stack = where.create()
        assert stack.status == "ROLLBACK_COMPLETE"
        [instance] = where.instances(group("C"))
        failed = {event.logical_id: event.reason for event in stack.events if event.status == "CREATE_FAILED"}
        assert failed["MasterCWaitCondition"] == f"Received FAILURE signal with UniqueId {instance.id}"


def test_a_first_master_that_hangs_lets_the_others_wait_and_the_stack_fail() -> None:
    with three_masters() as where:
        where.account.machines.inject_hang(group("A"), "downloads")
        stack = where.create()
        assert stack.status == "ROLLBACK_COMPLETE"
        for letter in "BC":
            [instance] = where.instances(group(letter))
            assert any("waiting for the first master" in each for each in said(instance))


def test_one_master_becomes_three() -> None:
    with place() as where:
        where = Place(where.account, variant())
        stack = where.create()
        [first] = where.instances(group("A"))
        old = stack.outputs["ApiEndpoint"]
        state = where.account.cluster("kubernetes").state
        where.update(three())
        assert stack.status == "UPDATE_COMPLETE", [(event.logical_id, event.reason) for event in stack.events][-8:]
        replaced, *others = masters(where)[1:]
        assert replaced.id != first.id
        cluster = where.account.cluster("kubernetes")
        assert cluster.state is state, "the cluster is the same one"
        assert set(cluster.members.values()) == {replaced.id, *(other.id for other in others)}
        assert stack.outputs["ApiEndpoint"] != old
        assert stack.outputs["ApiEndpoint"].removeprefix("https://") in cluster.server_names()
        complete = [event.logical_id for event in stack.events if event.status == "CREATE_COMPLETE"]
        assert {f"Master{letter}WaitCondition" for letter in LETTERS} <= set(complete)


def test_a_cluster_of_three_goes_without_a_trace() -> None:
    with three_masters() as where:
        stack = where.create()
        where.account.cloud.wait(where.account.cloud.delete_stack(stack.name))
        assert stack.status == "DELETE_COMPLETE"
        assert client("elbv2", where.account.region).describe_load_balancers()["LoadBalancers"] == []
        assert client("elbv2", where.account.region).describe_target_groups()["TargetGroups"] == []
        gone = [event.logical_id for event in stack.events if event.status == "DELETE_COMPLETE"]
        assert [each for each in gone if each in map(group, LETTERS)] == [group(each) for each in "CBA"]
