"""A learner gets its vote from a quorum alone; without one nothing is noted, and the way out is named."""

from __future__ import annotations

import pytest
from etcd_cluster import RefusedError
from masters import Master
from slots import assert_whole, boot, cluster_of_three, successor

from cfngen.boot.machine import BootError
from cfngen.boot.master.etcd_data import JOINING_FILE, MEMBER_ID_FILE, PROMOTING


def left_alone(masters: dict[str, Master]) -> Master:
    """A new master with a blank volume: its etcd has started as a learner when the others' quorum goes."""
    blank = masters["c"] = successor(masters["c"], volume=False)

    def too_late(command: str) -> tuple[int, str]:
        masters["a"].lose()
        try:
            return 0, blank.world.etcd.ask(blank._endpoints(command), *command.partition(" member ")[2].split())
        except RefusedError as refused:
            return 1, str(refused)

    blank.on("etcdctl .* member promote", too_late)
    return blank


def test_learner_is_not_taken_for_a_member_when_nobody_can_give_it_a_vote() -> None:
    world, masters = cluster_of_three()
    blank = left_alone(masters)
    with pytest.raises(
        BootError,
        match=r"to promote this member: etcd has no quorum: none of https://172\.20\.0\.9:2379, .* is healthy",
    ) as end:
        boot(blank)
    assert "`cfngen etcd restore latest`" in end.value.hint
    assert MEMBER_ID_FILE not in blank.files
    assert blank.files[JOINING_FILE] == PROMOTING, "the next attempt continues with the promotion"
    member = world.etcd.member(*world.etcd.running[blank.address])
    assert member
    assert member["isLearner"]


def test_learner_gets_its_vote_once_the_quorum_is_back() -> None:
    world, masters = cluster_of_three()
    blank = left_alone(masters)
    with pytest.raises(BootError, match="etcd has no quorum"):
        boot(blank)
    blank.answers.pop(0)
    masters["a"] = successor(masters["a"])
    boot(masters["a"])
    _, identity = world.etcd.running[blank.address]
    assert boot(blank)[1] == f"continued with the etcd data on the volume: etcd has promoted this member, {identity:x}"
    assert_whole(world, *masters.values())


def test_learner_that_somebody_has_removed_meanwhile_is_announced_anew() -> None:
    world, masters = cluster_of_three()
    blank = masters["c"] = successor(masters["c"], volume=False)

    def removed(command: str) -> tuple[int, str]:
        world.etcd.ask([masters["a"].address], "remove", command.split()[-1])
        return 1, "etcdserver: member not found"

    blank.on("etcdctl .* member promote", removed)
    with pytest.raises(BootError, match="for etcd to promote this member: the other members no longer list this one"):
        boot(blank)
    assert MEMBER_ID_FILE not in blank.files
    blank.answers.pop(0)
    boot(blank)
    assert_whole(world, *masters.values())
