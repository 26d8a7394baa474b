"""Several masters: who begins, who joins, what a lost volume means, and what is never done."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from boots import boot_of
from masters import ADDRESSES, CA_SECRET, Master, World
from scripted_machine import refusal
from slots import assert_whole, boot, cluster_of_three, master_of, successor, together

from cfngen.boot.machine import BootError
from cfngen.boot.master import control_plane, etcd_members
from cfngen.boot.master.certificate_authorities import INITIALISED_AT
from cfngen.boot.master.etcd_data import DATA_FOLDER, DATABASE_FILE, MEMBER_ID_FILE


def test_first_slot_begins_and_the_others_join_it() -> None:
    world = World()
    masters = {slot: master_of(world, slot) for slot in "abc"}
    assert boot(masters["a"])[1] == "initialised a new cluster"
    assert boot(masters["b"]) == [
        "join: installed the certificate authorities of the secret",
        "joined the cluster: etcd has promoted this member, a2",
    ]
    assert boot(masters["c"])[1] == "joined the cluster: etcd has promoted this member, a3"
    assert_whole(world, *masters.values())
    assert masters["b"].files[DATABASE_FILE] != masters["a"].files[DATABASE_FILE]


@pytest.mark.parametrize("slot", ["b", "c"])
def test_other_slots_never_begin_a_cluster_but_wait_for_the_first(slot: str) -> None:
    world = World()
    master = master_of(world, slot)
    with pytest.raises(BootError, match="slot a has not initialised the cluster yet") as caught:
        boot(master)
    assert "check the console of master a" in caught.value.hint
    assert master.passed >= 1080
    assert world.etcd.begun == []
    assert master.ran("kubeadm") == []


def test_other_slots_are_patient_while_the_first_one_begins() -> None:
    world = World()
    first, second = master_of(world, "a"), master_of(world, "b")
    read = world.secrets.get

    def later(SecretId: str) -> dict[str, str]:  # noqa: N803
        if second.passed > 300 and first.files.get(DATABASE_FILE) is None:
            boot(first)
        return read(SecretId)

    second.cloud["secretsmanager.get_secret_value"] = later
    assert boot(second)[1].startswith("joined the cluster")
    assert_whole(world, first, second)


def test_two_slots_that_join_at_once_are_taken_one_after_the_other() -> None:
    world = World()
    masters = {slot: master_of(world, slot) for slot in "abc"}
    boot(masters["a"])
    # Slot c has announced itself and is about to start.
    [cluster] = world.etcd.clusters
    world.etcd.announce(cluster, ADDRESSES["c"], learner=True)

    def finished(command: str) -> tuple[int, str]:
        if masters["b"].passed > 20 and ADDRESSES["c"] not in world.etcd.running:
            boot(masters["c"])
        return masters["b"]._members(command)

    masters["b"].on("etcdctl .* member add", finished)
    assert boot(masters["b"])[1].startswith("joined the cluster")
    assert_whole(world, *masters.values())


def test_learner_that_has_not_caught_up_yet_is_promoted_later() -> None:
    world = World()
    first, second = master_of(world, "a"), master_of(world, "b")
    boot(first)
    world.etcd.lagging = 7
    boot(second)
    assert len(second.ran("etcdctl .* member promote")) == 8
    assert_whole(world, first, second)


@pytest.mark.parametrize("slot", ["a", "b", "c"])
def test_replaced_instance_resumes_with_its_volume(slot: str) -> None:
    world, masters = cluster_of_three()
    before = masters[slot].files[DATABASE_FILE]
    masters[slot] = successor(masters[slot])
    assert boot(masters[slot])[1] == "continued with the etcd data on the volume"
    assert masters[slot].files[DATABASE_FILE] == before
    assert masters[slot].ran("etcdctl .* member (add|remove|promote)") == []
    assert_whole(world, *masters.values())


@pytest.mark.parametrize("slot", ["a", "b", "c"])
def test_slot_that_lost_its_volume_takes_the_place_of_its_former_self(slot: str) -> None:
    world, masters = cluster_of_three()
    masters[slot] = successor(masters[slot], volume=False)
    assert boot(masters[slot])[0] == "join: installed the certificate authorities of the secret"
    assert len(masters[slot].ran("etcdctl .* member remove")) == 1
    assert_whole(world, *masters.values())


@pytest.mark.parametrize("slot", ["a", "b"])
def test_reboot_of_one_of_several_only_looks(slot: str) -> None:
    _, masters = cluster_of_three()
    masters[slot].reboot()
    masters[slot].commands.clear()
    assert boot(masters[slot])[1] == "the API server and etcd are healthy"
    assert masters[slot].ran("kubeadm init") == []


@pytest.mark.parametrize("seed", range(20))
def test_masters_that_start_together_become_one_cluster(seed: int) -> None:
    world = World()
    masters = [master_of(world, slot) for slot in "abc"]
    done = [report[1].partition(":")[0] for report in together(*masters, seed=seed)]
    assert done == ["initialised a new cluster", "joined the cluster", "joined the cluster"]
    assert_whole(world, *masters)


@pytest.mark.parametrize("seed", range(10))
def test_all_masters_at_once_come_back_with_their_volumes(seed: int) -> None:
    """Nobody has a quorum to ask before two of them run, so nobody may insist on asking."""
    world, masters = cluster_of_three()
    after = [successor(each) for each in masters.values()]
    for report in together(*after, seed=seed):
        assert report[1] == "continued with the etcd data on the volume"
    assert_whole(world, *after)


@pytest.mark.parametrize("seed", range(10))
def test_two_of_five_that_lost_their_volumes_come_back_at_once(seed: int) -> None:
    addresses = {**ADDRESSES, "d": "172.20.0.10", "e": "172.20.1.10"}
    world = World()
    masters = {slot: master_of(world, slot, masters=addresses) for slot in addresses}
    for each in masters.values():
        boot(each)
    for slot in "be":
        masters[slot] = successor(masters[slot], volume=False)
    together(masters["b"], masters["e"], seed=seed)
    assert_whole(world, *masters.values())


def test_blank_volume_without_a_quorum_stops_with_the_command_that_helps() -> None:
    world, masters = cluster_of_three()
    masters["b"].lose()
    blank = successor(masters["c"], volume=False)
    with pytest.raises(BootError, match="etcd has no quorum") as caught:
        boot(blank)
    assert "cfngen etcd restore latest" in caught.value.hint
    assert "start the other masters" in caught.value.hint
    assert blank.ran("etcdctl .* member (add|remove)") == []
    assert DATABASE_FILE not in blank.files
    assert len(world.etcd.begun) == 1


def test_quorum_that_comes_back_is_waited_for() -> None:
    world, masters = cluster_of_three()
    second = successor(masters["b"])
    blank = successor(masters["c"], volume=False)

    def health(command: str) -> tuple[int, str]:
        if blank.passed > 200 and ADDRESSES["b"] not in world.etcd.running:
            world.etcd.start(ADDRESSES["b"], "i-b+", second.files[DATABASE_FILE], {})
        return blank._health(command)

    blank.on("etcdctl .* endpoint health", health)
    boot(blank)
    boot(second)
    assert_whole(world, masters["a"], second, blank)


@pytest.mark.parametrize("same_instance", [True, False], ids=["reboot", "new instance"])
def test_member_that_the_others_removed_sets_its_data_aside_and_joins(same_instance: bool) -> None:
    world, masters = cluster_of_three()
    old = masters["c"].files[DATABASE_FILE]
    _, identity = world.etcd.running[ADDRESSES["c"]]
    masters["c"].lose()
    world.etcd.ask([ADDRESSES["a"]], "remove", f"{identity:x}")
    if same_instance:
        masters["c"].reboot()
    else:
        masters["c"] = successor(masters["c"])
    run = boot_of({**masters["c"].config, "deadline": 1080})
    assert control_plane.prepare(masters["c"], run).startswith("join: ")
    assert MEMBER_ID_FILE not in masters["c"].files
    boot(masters["c"])
    assert masters["c"].files[DATA_FOLDER + ".removed-2026-09-01T120000Z/member/snap/db"] == old
    [said] = [line for line in masters["c"].said if "no longer be used" in line]
    assert "the other members of etcd have removed this one" in said
    assert_whole(world, *masters.values())


def test_data_of_an_older_member_of_the_same_slot_is_not_brought_back() -> None:
    """Somebody put back an old snapshot of the volume; the cluster has had another member here since."""
    world, masters = cluster_of_three()
    old = masters["c"].volume()
    masters["c"] = successor(masters["c"], volume=False)
    boot(masters["c"])
    masters["c"] = successor(masters["c"], volume=False)
    masters["c"].files.update(old)
    assert boot(masters["c"])[0].startswith("join: ")
    assert_whole(world, *masters.values())


def test_growing_from_one_master_to_three_keeps_the_first_ones_data() -> None:
    world = World()
    alone = master_of(world, several=False)
    boot(alone)
    first = successor(alone, masters=dict(ADDRESSES))
    assert boot(first)[1] == "continued with the etcd data on the volume"
    others = [master_of(world, slot) for slot in "bc"]
    for each in others:
        member = f"etcd has promoted this member, {world.etcd.ids + 1:x}"
        assert boot(each)[1] == f"joined the cluster: {member}"
    assert_whole(world, first, *others)


def test_master_without_the_api_server_of_its_own_is_not_ready_though_another_one_answers() -> None:
    _, masters = cluster_of_three()
    masters["b"] = successor(masters["b"])
    masters["b"].on("kubectl .* get --server=https://172.20.1.9:443", (1, "connection refused"))
    with pytest.raises(BootError, match="for the API server: not available yet"):
        boot(masters["b"])


def test_master_whose_etcd_is_not_healthy_is_not_ready() -> None:
    master = Master()
    boot(master)
    master.on("etcdctl .* endpoint health", (1, '[{"endpoint": "https://127.0.0.1:2379", "health": false}]'))
    with pytest.raises(BootError, match="for etcd on this master: it does not answer") as caught:
        boot(master)
    assert "cfngen etcd restore latest" in caught.value.hint


@pytest.mark.parametrize("wait", [True, False], ids=["terminated", "running"])
def test_nodes_of_former_instances_are_deleted_once_they_are_gone(wait: bool) -> None:
    world, masters = cluster_of_three()
    masters["b"] = successor(masters["b"])
    if not wait:
        world.ended["i-b"] = "shutting-down"
    boot(masters["b"])
    assert ("i-b" in world.nodes) is not wait
    assert masters["b"].said == (["deleted the Nodes of this slot's former instances: i-b"] if wait else [])
    assert {"i-a", "i-b+", "i-c"} <= set(world.nodes)


def test_api_server_that_has_a_bad_moment_fails_no_boot() -> None:
    _, masters = cluster_of_three()
    master = masters["b"] = successor(masters["b"])
    for pattern, answer in (
        ("kubectl .* get nodes -l", master._get_masters),
        ("kubectl .* get configmap kubeadm-config", master._get_configuration),
        ("etcdctl --endpoints=https://127.0.0.1:2379 .* member list", master._members),
    ):
        tries: list[str] = []

        def moody(command: str, tries: list[str] = tries, answer: Callable[..., Any] = answer) -> Any:
            tries.append(command)
            return (1, "etcdserver: leader changed") if len(tries) < 3 else answer(command)

        master.on(pattern, moody)
    assert boot(master)[1] == "continued with the etcd data on the volume"


def test_api_server_whose_bad_moment_does_not_end_is_given_up_after_two_minutes() -> None:
    _, masters = cluster_of_three()
    master = masters["b"] = successor(masters["b"])
    master.on("etcdctl --endpoints=https://127.0.0.1:2379 .* member list", (1, "etcdserver: leader changed"))
    with pytest.raises(BootError, match=r"^waited 121 s for etcd's list of members: .* leader changed") as caught:
        boot(master)
    assert caught.value.hint == "check that the API server is healthy"


@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_etcdctl_that_lists_nobody_means_that_nobody_is_healthy(text: str) -> None:
    _, masters = cluster_of_three()
    masters["c"].on("etcdctl .* endpoint health", (1, text))
    assert etcd_members.healthy_endpoints(masters["c"], ["https://172.20.0.9:2379"]) == []


def test_node_that_cannot_be_deleted_fails_no_boot() -> None:
    world, masters = cluster_of_three()
    masters["b"] = successor(masters["b"])
    masters["b"].cloud["ec2.describe_instances"] = lambda **_: refusal("UnauthorizedOperation", "not authorized")
    boot(masters["b"])
    assert "i-b" in world.nodes
    assert "former instances: waited 61 s for describe_instances: An error occurred (Unauth" in masters["b"].said[-1]


def test_no_secret_is_an_argument_or_is_said() -> None:
    world, masters = cluster_of_three()
    bundle = json.loads(world.secrets.text(CA_SECRET))
    secret = [text for name, text in bundle.items() if name.endswith(".key")]
    for each in masters.values():
        written = " ".join([*each.commands, *each.said])
        assert not [text for text in secret if text in written]


def test_cluster_that_exists_is_marked_only_once() -> None:
    world, masters = cluster_of_three()
    since = json.loads(world.secrets.text(CA_SECRET))[INITIALISED_AT]
    masters["a"] = successor(masters["a"])
    masters["a"].passed = 5000.0
    boot(masters["a"])
    assert json.loads(world.secrets.text(CA_SECRET))[INITIALISED_AT] == since


def test_steps_are_repeated_without_harm() -> None:
    world, masters = cluster_of_three()
    prepare: Callable[..., str] = control_plane.prepare
    for each in masters.values():
        run = boot_of({**each.config, "deadline": 1080})
        prepare(each, run)
        prepare(each, run)
        control_plane.start(each, run)
        control_plane.start(each, run)
    assert_whole(world, *masters.values())
