"""A master that is to be terminated: it stays while etcd needs it, for a while; then etcd learns to do without it."""

from __future__ import annotations

from typing import Any

import pytest
from boots import boot_of
from masters import Master, World
from scripted_machine import stack_resource
from slots import assert_whole, boot, cluster_of, request, successor

from cfngen.boot.host.lifecycle import TARGET_STATE_PATH
from cfngen.boot.master import termination
from cfngen.boot.master.etcd_data import MEMBER_ID_FILE

GROUP = "k8s-MasterStack-MasterAAutoScalingGroup-ABC"
WAIT_SECONDS = 300  # five minutes


class Hook:
    """The lifecycle hook of a master's group, and what the group hears of it.

    Attributes:
        status: CloudFormation's status of the group.
        heartbeats: when there was one, in seconds.
        completed: what completed the action.
    """

    def __init__(self, master: Master, status: str = "UPDATE_IN_PROGRESS") -> None:
        self.master = master
        self.status = status
        self.heartbeats: list[float] = []
        self.completed: list[dict[str, Any]] = []
        master.told[TARGET_STATE_PATH] = "InService"
        master.cloud["cloudformation.describe_stack_resource"] = self._group
        master.cloud["autoscaling.record_lifecycle_action_heartbeat"] = self._beat
        master.cloud["autoscaling.complete_lifecycle_action"] = self._complete

    def _group(self, StackName: str, LogicalResourceId: str) -> dict[str, Any]:  # noqa: N803
        found = stack_resource(GROUP, LogicalResourceId)
        found["StackResourceDetail"]["ResourceStatus"] = self.status
        return found

    def _beat(self, **arguments: Any) -> dict[str, Any]:
        self.heartbeats.append(self.master.passed)
        return {}

    def _complete(self, **arguments: Any) -> dict[str, Any]:
        self.completed.append(arguments)
        return {}

    def terminate(self) -> str:
        """Let Auto Scaling terminate the master twenty seconds from now; return what its service says in the end."""
        start = self.master.passed

        def go_on() -> None:
            if self.master.passed >= start + 20:
                self.master.told[TARGET_STATE_PATH] = "Terminated"

        self.master.between = go_on
        self.begun = start + 20
        facts = {**self.master.config["facts"], "stack": "k8s-MasterStack", "resource": "MasterAAutoScalingGroup"}
        return termination.watch(self.master, boot_of({**self.master.config, "facts": facts, "quorumWait": 5}))

    @property
    def waited(self) -> float:
        return self.master.passed - self.begun


def members(world: World) -> int:
    [cluster] = world.etcd.clusters.values()
    return len(cluster)


@pytest.mark.parametrize(
    ("slots", "failed", "waited", "remaining"),
    [
        ("abc", "", 0, 3),
        ("abcde", "", 0, 5),
        ("abcde", "b", 0, 5),
        # Two members cannot lose one of them, so it is one that is left.
        ("abc", "b", WAIT_SECONDS, 1),
        ("abc", "c", WAIT_SECONDS, 1),
        # Three members can.
        ("abcde", "bd", WAIT_SECONDS, 3),
    ],
)
def test_etcd_has_a_quorum_when_a_master_has_gone_and_gets_all_its_members_back(
    slots: str, failed: str, waited: int, remaining: int
) -> None:
    world, masters = cluster_of(slots)
    for slot in failed:
        masters[slot].lose()
    hook = Hook(masters["a"])
    said = hook.terminate()
    assert waited <= hook.waited <= waited + 15
    assert [each["LifecycleActionResult"] for each in hook.completed] == ["CONTINUE"]
    assert {each["LifecycleHookName"] for each in hook.completed} == {"cfngen-quorum"}
    assert members(world) == remaining
    if waited:
        assert f"etcd has no quorum without it while these masters do not work: {', '.join(failed)}" in said
        assert [said for said in masters["a"].said if f"do not work: {', '.join(failed)}; it waits up to 5 min" in said]
        # Auto Scaling waits 30 seconds for the next one.
        assert max(late - early for early, late in zip(hook.heartbeats, hook.heartbeats[1:], strict=False)) <= 20
    else:
        assert hook.heartbeats == []
    masters["a"].lose()
    survivors = [master for slot, master in masters.items() if slot not in failed + "a"]
    assert all(world.etcd.healthy(master.address) for master in survivors)
    for slot in "a" + failed:
        masters[slot] = successor(masters[slot])
        boot(masters[slot])
    assert_whole(world, *masters.values())


def test_the_wait_ends_as_soon_as_the_other_master_is_back() -> None:
    world, masters = cluster_of("abc")
    masters["b"].lose()
    hook = Hook(masters["a"])
    new = successor(masters["b"])
    sleep = masters["a"].sleep

    def come_back(seconds: float) -> None:
        sleep(seconds)
        if masters["a"].passed > 140 and not new.kubelet:
            boot(new)

    masters["a"].sleep = come_back  # type: ignore[method-assign]
    assert "etcd has a quorum without it; the lifecycle action was completed" in hook.terminate()
    assert 100 < hook.waited < 150
    assert members(world) == 3


def test_nothing_is_removed_where_no_other_master_works() -> None:
    world, masters = cluster_of("abc")
    masters["b"].lose()
    masters["c"].lose()
    hook = Hook(masters["a"])
    said = hook.terminate()
    assert hook.waited >= WAIT_SECONDS
    assert "no other master works, so the API does not answer until this one's successor does" in said
    assert (members(world), len(hook.completed)) == (3, 1)


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "DELETE_FAILED"])
def test_a_group_that_is_deleted_does_not_wait(status: str) -> None:
    world, masters = cluster_of("abc")
    masters["b"].lose()
    hook = Hook(masters["a"], status)
    assert "its group is being deleted" in hook.terminate()
    assert (members(world), hook.heartbeats, len(hook.completed)) == (3, [], 1)


def test_masters_that_a_restore_replaces_do_not_wait_for_each_other() -> None:
    world, masters = cluster_of("abc")
    request(world, "r-1", instances=["i-a", "i-b", "i-c"])  # type: ignore[arg-type]
    masters["b"].lose()
    hook = Hook(masters["a"])
    assert "all masters are replaced, to restore etcd from a snapshot" in hook.terminate()
    assert (members(world), hook.heartbeats, len(hook.completed)) == (3, [], 1)


@pytest.mark.parametrize("others", ["work", "fail"])
def test_a_master_without_a_vote_does_not_wait(others: str) -> None:
    world, masters = cluster_of("abc")
    hook = Hook(masters["a"])
    # Its boot failed before it joined: its volume is blank, and the others have removed its predecessor.
    [cluster] = world.etcd.clusters.values()
    cluster[:] = [each for each in cluster if masters["a"].address not in each["peerURLs"][0]]
    del masters["a"].files[MEMBER_ID_FILE]
    world.etcd.stop(masters["a"].address)
    masters["b"].lose()
    if others == "fail":
        masters["c"].lose()
    hook.terminate()
    assert (hook.heartbeats, len(hook.completed)) == ([], 1)


def test_etcd_that_refuses_or_does_not_answer_delays_the_termination_and_no_more() -> None:
    _, masters = cluster_of("abc")
    hook = Hook(masters["a"])
    masters["a"].on("etcdctl .* endpoint health", (1, "not JSON"))
    masters["a"].on("etcdctl .* member list", (1, "context deadline exceeded"))
    masters["a"].on(
        "etcdctl .* endpoint health", lambda _: (0, '[{"endpoint": "https://172.20.1.9:2379", "health": true}]')
    )
    said = hook.terminate()
    assert "etcd's members are unknown" in said
    assert WAIT_SECONDS <= hook.waited <= WAIT_SECONDS + 15
    assert len(hook.completed) == 1
