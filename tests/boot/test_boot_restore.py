"""Restoring etcd from a snapshot: who does it, once, and what becomes of the data that was there."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

import pytest
from masters import ADDRESSES, CA_SECRET, Master, World
from scripted_machine import PowerCut, refusal
from slots import assert_whole, boot, cluster_of_three, master_of, request, successor, together

from cfngen.boot.machine import BootError
from cfngen.boot.master import restore
from cfngen.boot.master.certificate_authorities import RESTORED_REQUEST_ID
from cfngen.boot.master.etcd_data import ADDING, DATA_FOLDER, DATABASE_FILE, JOINING_FILE

SHA256 = hashlib.sha256(b"a snapshot").hexdigest()
BEFORE = DATA_FOLDER + ".before-first/member/snap/db"


def restore_together(masters: dict[str, Master]) -> None:
    """Reboot all masters at once; each restores its part."""
    for each in masters.values():
        each.reboot()
    for way, _ in together(*masters.values()):
        assert way.startswith("restore: ")


def test_only_master_restores_with_its_old_data_kept_aside() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    old = master.files[DATABASE_FILE]
    request(world, "first", sha256=SHA256)
    master.reboot()
    way, done = boot(master)
    assert way.startswith("restore: ")
    assert done == (
        "restored the cluster: restored kubernetes/etcd/hourly/2026-09-01T110000Z.db for request first; the previous "
        "data is in /mnt/master/etcd.before-first"
    )
    assert master.files[BEFORE] == old != master.files[DATABASE_FILE]
    assert world.etcd.running[ADDRESSES["a"]][0] == "first"
    assert json.loads(world.secrets.text(CA_SECRET))[RESTORED_REQUEST_ID] == "first"
    assert not [path for path in master.files if path.endswith("snapshot.db")], "the copy is of no use any more"


def test_restore_tells_etcd_all_that_makes_a_new_cluster_of_it() -> None:
    world, masters = cluster_of_three()
    request(world, "first")
    restore_together(masters)
    [command] = masters["a"].ran("etcdutl snapshot restore")
    assert command == (
        "etcdutl snapshot restore /mnt/master/snapshot.db --data-dir=/mnt/master/etcd.new --name=a "
        "--initial-cluster=a=https://172.20.0.9:2380,b=https://172.20.1.9:2380,c=https://172.20.2.9:2380 "
        "--initial-cluster-token=first --initial-advertise-peer-urls=https://172.20.0.9:2380 "
        "--bump-revision=1000000000 --mark-compacted"
    )


def test_restore_is_done_once() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    request(world, "first")
    master.reboot()
    boot(master)
    after = master.files[DATABASE_FILE]
    master.reboot()
    assert boot(master)[0].startswith("steady: ")
    master = successor(master)
    assert boot(master)[0].startswith("resume: ")
    assert master.files[DATABASE_FILE] == after
    request(world, "second")
    master.reboot()
    assert boot(master)[0].startswith("restore: ")
    assert master.files[DATA_FOLDER + ".before-second/member/snap/db"] == after
    assert BEFORE in master.files


def test_lost_volume_of_the_only_master_is_restored() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    master = successor(master, volume=False)
    with pytest.raises(BootError, match="is blank, but the cluster exists"):
        boot(master)
    request(world, "first")
    assert boot(master)[0].startswith("restore: ")
    assert world.etcd.running[ADDRESSES["a"]][0] == "first"


def test_three_masters_restore_the_same_cluster() -> None:
    world, masters = cluster_of_three()
    request(world, "first")
    restore_together(masters)
    assert {world.etcd.running[each][0] for each in ADDRESSES.values()} == {"first"}
    assert_whole(world, *masters.values())


def test_lost_volumes_of_most_masters_are_restored() -> None:
    world, masters = cluster_of_three()
    masters = {slot: successor(each, volume=slot == "c") for slot, each in masters.items()}
    request(world, "first")
    restore_together(masters)
    assert_whole(world, *masters.values())


@pytest.mark.parametrize("volume", [True, False], ids=["old data", "blank volume"])
def test_slot_that_missed_the_restore_joins_the_restored_cluster(volume: bool) -> None:
    """Its old data, or the snapshot again, would be a member that the others have gone on without."""
    world, masters = cluster_of_three()
    late = masters.pop("c")
    request(world, "first")
    late.lose()
    restore_together(masters)
    assert json.loads(world.secrets.text(CA_SECRET))[RESTORED_REQUEST_ID] == "first"
    late = successor(late, volume=volume)
    old = late.files.get(DATABASE_FILE)
    assert boot(late)[0].startswith("join: ")
    assert late.ran("etcdutl") == []
    assert late.files.get(BEFORE) == old
    assert_whole(world, *masters.values(), late)
    late.reboot()
    assert boot(late)[0].startswith("steady: ")


def test_volume_lost_long_after_a_restore_is_not_restored_again() -> None:
    world, masters = cluster_of_three()
    request(world, "first")
    restore_together(masters)
    masters["b"] = successor(masters["b"], volume=False)
    assert boot(masters["b"])[0].startswith("join: ")
    assert_whole(world, *masters.values())


@pytest.mark.parametrize("several", [True, False])
def test_request_to_an_earlier_cluster_of_the_same_name_means_nothing_to_a_new_one(several: bool) -> None:
    """The bucket outlives the stack."""
    world = World()
    request(world, "first")
    masters = [master_of(world, slot, several=several) for slot in ("abc" if several else "a")]
    for each in masters:
        boot(each)
        assert each.ran("etcdutl") == []
    assert_whole(world, *masters)
    for each in masters:
        each.reboot()
    for each in masters:
        assert boot(each)[0].startswith("steady: ")


def test_snapshot_with_another_digest_changes_nothing() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    before = dict(master.volume())
    request(world, "first", sha256="0" * 64)
    master.reboot()
    with pytest.raises(BootError, match=r"has SHA-256 .*, not 0000") as caught:
        boot(master)
    assert "aws s3 rm s3://backups/kubernetes/etcd/restore.json" in caught.value.hint
    master.remove("/mnt/master/snapshot.db")
    assert master.volume() == before


@pytest.mark.parametrize("command", ["etcdutl snapshot status", "etcdutl snapshot restore"])
def test_damaged_snapshot_changes_nothing(command: str) -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    old = master.files[DATABASE_FILE]
    request(world, "first")
    master.reboot()
    master.on(command, (1, "snapshot file integrity check failed"))
    with pytest.raises(BootError, match="integrity check failed"):
        boot(master)
    assert master.files[DATABASE_FILE] == old
    assert restore.DONE_FILE not in master.files


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"id": "first"},
        {"snapshot": "a.db"},
        {"id": "../../etc", "snapshot": "a.db"},
        {"id": "first", "snapshot": ""},
        {"id": "a b", "snapshot": "a.db"},
    ],
)
def test_request_that_is_none_is_refused(document: dict[str, Any]) -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    world.objects["kubernetes/etcd/restore.json"] = json.dumps({"created": "now", **document})
    master.reboot()
    with pytest.raises(BootError, match="lacks a valid id or snapshot"):
        boot(master)
    assert world.etcd.running == {ADDRESSES["a"]: ("begun-0", 0xA1)}


def test_restore_takes_the_place_of_a_join_that_was_under_way() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    request(world, "first")
    master.reboot()
    master.files[JOINING_FILE] = ADDING
    boot(master)
    master.reboot()
    assert boot(master)[0].startswith("steady: ")


@pytest.mark.parametrize("cut", range(90))
def test_power_cut_of_one_of_three_that_restore(cut: int) -> None:
    world, masters = cluster_of_three()
    request(world, "first")
    for each in masters.values():
        each.reboot()
    masters["b"].fuse = cut
    with contextlib.suppress(PowerCut):
        together(*masters.values(), seed=cut)
    masters["b"].reboot()
    boot(masters["b"])
    assert {world.etcd.running[each][0] for each in ADDRESSES.values()} == {"first"}
    assert_whole(world, *masters.values())
    assert not [path for path in masters["b"].files if ".removed-" in path], "what was restored is of use"


def test_master_with_its_data_comes_back_while_the_bucket_is_away() -> None:
    world = World()
    master = master_of(world, several=False)
    boot(master)
    request(world, "first")
    master.reboot()
    listed = master.cloud["s3.list_objects_v2"]
    master.cloud["s3.list_objects_v2"] = lambda **_: refusal("ServiceUnavailable", "please try again")
    assert boot(master)[0].startswith("steady: ")
    assert "could not check whether a restore was requested" in master.said[-1]
    blank = successor(master, volume=False)
    blank.cloud["s3.list_objects_v2"] = master.cloud["s3.list_objects_v2"]
    with pytest.raises(BootError, match="please try again"):
        boot(blank)
    blank.cloud["s3.list_objects_v2"] = listed
    assert boot(blank)[0].startswith("restore: ")


def test_cluster_without_backups_never_looks_for_a_request() -> None:
    world = World()
    master = master_of(world, several=False)
    del master.config["facts"]["bucket"]
    boot(master)
    assert not [name for name, _ in master.calls if name.startswith("s3.")]
