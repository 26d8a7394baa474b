"""Masters whose joining is interrupted or fails: the next attempt leaves the cluster's etcd whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from masters import ADDRESSES, CA_SECRET, MANIFESTS, World
from scripted_machine import PowerCut
from slots import assert_whole, boot, cluster_of_three, master_of, successor

from cfngen.boot.machine import BootError
from cfngen.boot.master import etcd_members
from cfngen.boot.master.certificate_authorities import INITIALISED_AT
from cfngen.boot.master.etcd_data import ADDING, DATA_FOLDER, DATABASE_FILE, JOINING_FILE, MEMBER_ID_FILE


def cut(command: str) -> tuple[int, str]:
    raise PowerCut


def test_join_that_died_with_its_learner_announced_is_begun_anew() -> None:
    world, masters = cluster_of_three()
    masters["c"] = successor(masters["c"], volume=False)
    masters["c"].on("kubeadm init phase etcd local", cut)
    with pytest.raises(PowerCut):
        boot(masters["c"])
    [cluster] = world.etcd.clusters
    assert [each for each in world.etcd.clusters[cluster] if each.get("isLearner")]
    masters["c"].answers.pop(0)
    boot(masters["c"])
    assert_whole(world, *masters.values())


def test_join_that_failed_is_begun_anew_without_a_reboot() -> None:
    """systemd starts the boot program again; the pods of its first attempt are still running."""
    world, masters = cluster_of_three()
    masters["c"] = successor(masters["c"], volume=False)
    masters["c"].on("kubeadm init phase control-plane all", (1, "no space left on device"))
    with pytest.raises(BootError, match="no space left"):
        boot(masters["c"])
    _, identity = world.etcd.running[ADDRESSES["c"]]
    assert masters["c"].files[MEMBER_ID_FILE] == f"{identity:x}", (
        "whoever replaces this member now is noticed at the next boot"
    )
    masters["c"].answers.pop(0)
    boot(masters["c"])
    assert_whole(world, *masters.values())
    masters["b"] = successor(masters["b"], volume=False)
    world.etcd.lagging = 10**6
    with pytest.raises(BootError, match=r"to promote this member: .* in sync with leader"):
        boot(masters["b"])
    world.etcd.lagging = 0
    boot(masters["b"])
    assert_whole(world, *masters.values())


def test_half_written_copy_is_not_taken_for_a_members_data() -> None:
    """The power went while etcd was making its files: it would begin a cluster of its own with what is there."""
    world, masters = cluster_of_three()
    masters["c"] = successor(masters["c"], volume=False)
    masters["c"].files.update({DATABASE_FILE: "", JOINING_FILE: ADDING})
    assert boot(masters["c"])[0].startswith("join: ")
    assert_whole(world, *masters.values())
    assert not masters["c"].glob(DATA_FOLDER + ".*"), "a copy of what the others have is not worth keeping"


def test_etcd_of_an_earlier_attempt_has_ended_before_its_data_goes() -> None:
    _, masters = cluster_of_three()
    blank = masters["c"] = successor(masters["c"], volume=False)
    blank.on("pgrep -x etcd", lambda _: (0 if blank.passed < 40 else 1, ""))
    boot(blank)
    assert blank.passed >= 40


def test_slot_with_data_does_not_wait_for_a_mark_that_somebody_took_away() -> None:
    world, masters = cluster_of_three()
    bundle = json.loads(world.secrets.text(CA_SECRET))
    del bundle[INITIALISED_AT]
    world.secrets.put(CA_SECRET, json.dumps(bundle))
    masters["b"] = successor(masters["b"])
    assert boot(masters["b"])[0].startswith("resume: ")
    assert json.loads(world.secrets.text(CA_SECRET))[INITIALISED_AT]


def test_etcd_that_does_not_come_up_is_announced_anew() -> None:
    world, masters = cluster_of_three()
    masters["c"] = successor(masters["c"], volume=False)
    tries = 0

    def broken(command: str) -> tuple[int, str]:
        nonlocal tries
        tries += 1
        return (1, "no space left on device") if tries == 1 else masters["c"]._etcd(command)

    masters["c"].on("kubeadm init phase etcd local", broken)
    boot(masters["c"])
    assert len(masters["c"].ran("etcdctl .* member add")) == 2
    assert_whole(world, *masters.values())


def test_half_a_copy_of_a_failed_attempt_is_gone_when_the_member_is_announced_anew() -> None:
    world, masters = cluster_of_three()
    blank = masters["c"] = successor(masters["c"], volume=False)
    tries = 0

    def broken(command: str) -> tuple[int, str]:
        nonlocal tries
        tries += 1
        if tries > 1:
            return blank._etcd(command)
        # Of a member that the next attempt removes.
        blank.files[DATABASE_FILE] = json.dumps([next(iter(world.etcd.clusters)), world.etcd.ids])
        return 1, "no space left on device"

    blank.on("kubeadm init phase etcd local", broken)
    boot(blank)
    assert_whole(world, *masters.values())


@pytest.mark.parametrize(
    ("pattern", "answer", "seconds"),
    [("pgrep -x etcd", (0, "811"), 90), ("kubeadm init phase etcd local", (0, ""), 180)],
    ids=["does not stop", "does not start"],
)
def test_etcd_that_neither_stops_nor_starts_is_tried_again_soon(pattern: str, answer: Any, seconds: int) -> None:
    _, masters = cluster_of_three()
    blank = masters["c"] = successor(masters["c"], volume=False)
    begun: list[float] = []

    def health(command: str) -> tuple[int, str]:
        begun.append(blank.passed)
        return blank._health(command)

    blank.on(pattern, answer)
    blank.on("etcdctl .* endpoint health", health)
    with pytest.raises(BootError, match="for etcd to add this member: waited"):
        boot(blank)
    assert seconds < begun[1] - begun[0] < seconds + 3


def test_joining_etcd_is_told_who_the_members_are() -> None:
    world = World()
    first, second = master_of(world, "a"), master_of(world, "b")
    second.config["kubeadm"][1]["etcd"]["local"]["extraArgs"] = [
        {"name": "quota-backend-bytes", "value": "8589934592"},
        {"name": "initial-cluster-state", "value": "of the user's"},
    ]
    boot(first)
    boot(second)
    assert json.loads(second.files[MANIFESTS + "etcd.yaml"]) == {
        "quota-backend-bytes": "8589934592",
        "initial-cluster": "i-a=https://172.20.0.9:2380,i-b=https://172.20.1.9:2380",
        "initial-cluster-state": "existing",
    }
    assert second.modes[etcd_members.JOIN_CONFIG_FILE] == 0o600
    assert "existing" not in second.files["/opt/cfngen/kubeadm.yaml"], "it would reach the cluster's ConfigMap"
