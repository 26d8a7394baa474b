"""Another Kubernetes version: what is refused before anything is changed, and in which order the rest happens."""

from __future__ import annotations

import json

import pytest
from boots import boot_of
from masters import Master, World
from slots import assert_whole, boot, cluster_of_three, master_of, successor

from cfngen.boot.host import versions
from cfngen.boot.machine import BootError, Pending
from cfngen.boot.master import join_information, peers, upgrade
from cfngen.boot.master.etcd_data import DATABASE_FILE


def upgraded(master: Master, version: str, volume: bool = True) -> Master:
    return successor(master, volume, kubernetesVersion=version)


def only_master(version: str) -> Master:
    master = master_of(World(), several=False, kubernetesVersion=version)
    boot(master)
    return master


@pytest.mark.parametrize(("before", "after"), [("v1.35.7", "v1.36.3"), ("v1.36.2", "v1.36.3"), ("v1.36.3", "v1.36.2")])
def test_next_minor_version_and_any_patch_resume(before: str, after: str) -> None:
    master = upgraded(only_master(before), after)
    assert boot(master)[1] == "continued with the etcd data on the volume"
    assert master.files[upgrade.VERSION_FILE] == after
    assert master.world.version == master.world.proxy == after


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        ("v1.36.3", "v1.35.7", "a downgrade to v1.35.7 is not supported", "set kubernetesVersion to v1.36.3 or newer"),
        ("v1.34.9", "v1.36.3", "v1.36.3 is more than one minor version away", "to 1.35 first"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_changed(
    before: str, after: str, message: str, hint: str
) -> None:
    master = upgraded(only_master(before), after)
    volume = master.volume()
    with pytest.raises(BootError, match=message) as caught:
        boot(master)
    assert hint in caught.value.hint
    assert master.volume() == volume
    assert master.ran("kubeadm init phase (etcd|control-plane|kubelet-start|upload)") == []
    assert master.world.etcd.running == {}


def test_version_that_never_worked_does_not_bar_the_way_back() -> None:
    """A rollback of the stack launches the old version again."""
    master = upgraded(only_master("v1.35.7"), "v1.36.3")
    master.on("kubectl .* get --server", (1, ""))
    with pytest.raises(BootError, match="for the API server"):
        boot(master)
    assert boot(upgraded(master, "v1.35.7"))[1] == "continued with the etcd data on the volume"


def test_kube_proxy_follows_with_the_last_master() -> None:
    world, masters = cluster_of_three()
    for slot in "abc":
        masters[slot] = upgraded(masters[slot], "v1.37.0")
        boot(masters[slot])
        assert world.version == "v1.37.0", "the ConfigMaps come with the first"
        assert world.proxy == ("v1.37.0" if slot == "c" else "v1.36.3")
    assert_whole(world, *masters.values())


def test_master_of_the_older_version_leaves_the_newer_configuration_alone() -> None:
    """An instance of a slot whose turn has not come yet is replaced in the middle of an upgrade."""
    world, masters = cluster_of_three()
    masters["a"] = upgraded(masters["a"], "v1.37.0")
    boot(masters["a"])
    masters["b"] = successor(masters["b"])
    boot(masters["b"])
    assert masters["b"].ran("kubeadm init phase (upload-config|addon)") == []
    assert world.version == "v1.37.0"
    assert_whole(world, *masters.values())


def test_oldest_version_is_this_masters_own_before_its_node_is_there() -> None:
    world = World()
    masters = master_of(world), master_of(world, "b", kubernetesVersion="v1.35.9")
    boot(masters[0])
    assert upgrade.oldest_version(masters[0], boot_of(masters[0].config)) == "v1.36.3"
    assert upgrade.oldest_version(masters[1], boot_of(masters[1].config)) == "v1.35.9"


def test_masters_whose_addresses_nobody_knows_yet_are_told_apart_by_name() -> None:
    master = only_master("v1.36.3")
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": f"2026-09-01T12:0{minute}:00Z"},
            "status": {"nodeInfo": {"kubeletVersion": version}, **addresses},
        }
        for minute, (name, version, addresses) in enumerate(
            (
                ("i-1", "v1.36.1", {}),
                ("i-2", "v1.36.2", {"addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}]}),
                ("i-3", "v1.36.3", {"addresses": [{"type": "InternalIP", "address": "10.0.0.3"}]}),
                ("i-4", "v1.36.4", {"addresses": [{"type": "InternalIP", "address": "10.0.0.3"}]}),
            )
        )
    ]
    master.on("kubectl .* get nodes -l", (0, json.dumps({"items": items[::-1]})))
    assert peers.master_versions(master, boot_of(master.config)) == {
        "i-1": "v1.36.1",
        "i-2": "v1.36.2",
        "i-4": "v1.36.4",
    }


@pytest.mark.parametrize(("others", "way"), [("v1.38.0", "1.37"), ("v1.34.0", "1.35")])
def test_way_to_a_version_that_is_too_far_away_leads_through_the_one_next_to_it(others: str, way: str) -> None:
    world, masters = cluster_of_three()
    for name, (address, _) in world.nodes.items():
        world.nodes[name] = (address, others)
    masters["c"] = successor(masters["c"], volume=False)
    with pytest.raises(BootError, match="more than one minor version away") as caught:
        boot(masters["c"])
    assert caught.value.hint == (f"update to {way} first (https://kubernetes.io/releases/version-skew-policy/)")


def test_slot_without_a_volume_is_compared_with_the_other_masters() -> None:
    world, masters = cluster_of_three()
    masters["c"] = upgraded(masters["c"], "v1.38.0", volume=False)
    with pytest.raises(BootError, match=r"master i-a has Kubernetes v1.36.3; v1.38.0 is more than one minor"):
        boot(masters["c"])
    assert masters["c"].ran("kubeadm init phase kubeconfig") == [
        "kubeadm init phase kubeconfig admin --config /opt/cfngen/kubeadm.yaml"
    ]
    assert DATABASE_FILE not in masters["c"].files
    [cluster] = world.etcd.clusters
    assert len(world.etcd.clusters[cluster]) == 3
    masters["c"] = upgraded(masters["c"], "v1.37.0", volume=False)
    assert boot(masters["c"])[1].startswith("joined the cluster")
    assert_whole(world, *masters.values())


def test_upgrade_waits_for_the_slowest_master() -> None:
    """Two minor versions may not meet a third: one slot was left behind when an update was given up."""
    _, masters = cluster_of_three()
    for slot in "ab":
        masters[slot] = upgraded(masters[slot], "v1.37.0")
        boot(masters[slot])
    masters["a"] = upgraded(masters["a"], "v1.38.0")
    with pytest.raises(BootError, match=r"master i-c has Kubernetes v1.36.3"):
        boot(masters["a"])


def test_join_information_names_the_oldest_master() -> None:
    _, masters = cluster_of_three()
    for slot in "abc":
        masters[slot] = upgraded(masters[slot], "v1.37.0")
        boot(masters[slot])
        join_information.publish(masters[slot], boot_of(masters[slot].config))
        published = masters[slot].secrets.text("arn:join")
        assert f'"kubernetesVersion": "{"v1.37.0" if slot == "c" else "v1.36.3"}"' in published


def test_nodes_of_instances_that_are_still_ending_are_not_taken_for_masters() -> None:
    world, masters = cluster_of_three()
    for slot in "abc":
        masters[slot] = upgraded(masters[slot], "v1.37.0")
        world.ended[f"i-{slot}"] = "shutting-down"
        boot(masters[slot])
    assert {"i-a", "i-b", "i-c"} <= set(world.nodes)
    assert upgrade.oldest_version(masters["c"], boot_of(masters["c"].config)) == "v1.37.0"
    assert world.proxy == "v1.37.0"


@pytest.mark.parametrize(
    ("own", "oldest", "waits"),
    [
        ("v1.36.3", "v1.36.3", False),
        ("v1.36.3", "v1.37.0", False),
        ("v1.36.4", "v1.36.3", False),
        ("v1.37.0", "v1.36.3", True),
        ("v1.37.0", "", False),
    ],
)
def test_nodes_wait_for_masters_as_new_as_they_are(own: str, oldest: str, waits: bool) -> None:
    boot, information = boot_of({"kubernetesVersion": own}), {"kubernetesVersion": oldest} if oldest else {}
    if not waits:
        versions.check_masters_version(boot, information)
        return
    with pytest.raises(Pending, match=r"this node's kubelet is v1.37.0 and a master is still v1.36.3"):
        versions.check_masters_version(boot, information)


def test_what_is_no_version_is_said() -> None:
    with pytest.raises(BootError, match="'newest' is not a Kubernetes version"):
        versions.version_numbers("newest")
    assert versions.version_numbers("1.36.3-rc.0") == (1, 36, 3)
