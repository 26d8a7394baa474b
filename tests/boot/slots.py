"""Scenes with masters: new instances of slots, their successors, boots one after another or at the same time."""

from __future__ import annotations

import copy
import functools
import json
import random
import threading
from typing import Any

from boots import boot_of
from masters import ADDRESSES, CONFIG, Master, World, configuration

from cfngen.boot.master import bucket, control_plane
from cfngen.boot.master.etcd_data import JOINING_FILE, MEMBER_ID_FILE


def master_of(world: World, slot: str = "a", instance: str = "", several: bool = True, **more: Any) -> Master:
    """Return a new instance of a slot, with a blank volume.

    Args:
        world: what the masters share.
        slot: the slot's letter.
        instance: its id; one of its own by default.
        several: whether the cluster has three masters, or one.
        more: keys of the configuration that differ.
    """
    config = configuration()
    if several:
        # The order of a configuration's keys means nothing.
        config["masters"] = dict(reversed(ADDRESSES.items()))
    config.update(more)
    address = (config["masters"] | ADDRESSES)[slot]
    config["facts"].update(instanceId=instance or f"i-{slot}", slot=slot, privateAddress=address, bucket="backups")
    config["facts"].update(volumeId=f"vol-{slot}")
    return Master(world, config)


def successor(master: Master, volume: bool = True, **more: Any) -> Master:
    """Return the instance that takes over a slot: with its volume, or with a blank one; the old one is gone."""
    master.lose()
    config = copy.deepcopy(master.config)
    config["facts"]["instanceId"] += "+"
    config.update(more)
    found = Master(master.world, config)
    found.files.update(master.volume() if volume else {})
    return found


def request(world: World, identity: str, **more: str) -> None:
    """Ask for a restore as `cfngen etcd restore` does."""
    snapshot = "kubernetes/etcd/hourly/2026-09-01T110000Z.db"
    world.objects[snapshot] = "a snapshot"
    document = {"id": identity, "snapshot": snapshot, "created": "2026-09-01T11:30:00Z", **more}
    world.objects[bucket.key(boot_of(CONFIG), "restore.json")] = json.dumps(document)


def boot(master: Master) -> list[str]:
    """Run what a master does before its add-ons; return what the two steps report."""
    run = boot_of({**copy.deepcopy(master.config), "deadline": master.clock() + 1080})
    return [control_plane.prepare(master, run), control_plane.start(master, run)]


def together(*masters: Master, seed: int = 0) -> list[list[str]]:
    """Boot masters at the same time; return what each reports.

    Args:
        masters: the masters; between any two of their calls another one may come in.
        seed: which of all the orders it is.
    """
    order, turn = random.Random(seed), threading.Condition()
    running, reports, failures = list(masters), {}, []
    current = [running[0]]

    def hand_over(master: Master) -> None:
        with turn:
            current[0] = order.choice(running)
            turn.notify_all()
            turn.wait_for(lambda: current[0] is master)

    def live(master: Master) -> None:
        with turn:
            turn.wait_for(lambda: current[0] is master)
        try:
            reports[master.name] = boot(master)
        except BaseException as failure:  # noqa: BLE001 - it belongs to the test, not to this thread
            failures.append(failure)
        with turn:
            running.remove(master)
            if running:
                current[0] = order.choice(running)
            turn.notify_all()

    threads = [threading.Thread(target=live, args=(each,)) for each in masters]
    for each in masters:
        each.between = functools.partial(hand_over, each)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in masters:
        each.between = lambda: None
    if failures:
        raise failures[0]
    return [reports[each.name] for each in masters]


def cluster_of_three() -> tuple[World, dict[str, Master]]:
    """Return a cluster of three masters that works."""
    return cluster_of("abc")


def cluster_of(slots: str) -> tuple[World, dict[str, Master]]:
    """Return a cluster with masters in these slots that works."""
    world = World()
    addresses = {slot: f"172.20.{number}.9" for number, slot in enumerate(slots)}
    masters = {slot: master_of(world, slot, masters=dict(reversed(addresses.items()))) for slot in slots}
    for each in masters.values():
        boot(each)
    return world, masters


def assert_whole(world: World, *masters: Master) -> None:
    """All these masters, and no others, are members with a vote of one cluster, which was begun only once."""
    clusters = {world.etcd.running[each.address][0] for each in masters}
    assert len(clusters) == 1
    members = world.etcd.clusters[clusters.pop()]
    urls = sorted(f"https://{each.address}:2380" for each in masters)
    assert sorted(url for each in members for url in each["peerURLs"]) == urls
    assert not [each for each in members if each.get("isLearner")]
    assert len(world.etcd.begun) == 1, "a second, empty cluster was begun"
    for each in masters:
        assert world.etcd.healthy(each.address)
        assert JOINING_FILE not in each.files
        member = world.etcd.member(*world.etcd.running[each.address])
        assert member
        assert each.files[MEMBER_ID_FILE] == f"{member['ID']:x}"
