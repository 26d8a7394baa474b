"""The power goes at any moment of a boot: the next boot finishes it, on the same instance or on the one after it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from boots import boot_of
from masters import CA_SECRET, Master, World
from scripted_machine import PowerCut
from slots import assert_whole, boot, cluster_of_three, master_of, request, successor, together

from cfngen.boot.machine import BootError
from cfngen.boot.master import certificates, join_information
from cfngen.boot.master.etcd_data import DATA_FOLDER

pytestmark = pytest.mark.drill

# Each returns the master to cut off and the others, which go on running.
Scene = Callable[[], "tuple[Master, list[Master]]"]


def init_alone() -> tuple[Master, list[Master]]:
    return master_of(World(), several=False), []


def init_first_of_three() -> tuple[Master, list[Master]]:
    return master_of(World()), []


def second_joins_the_first() -> tuple[Master, list[Master]]:
    world = World()
    first = master_of(world, "a")
    boot(first)
    return master_of(world, "b"), [first]


def third_joins() -> tuple[Master, list[Master]]:
    world = World()
    others = [master_of(world, slot) for slot in "ab"]
    for each in others:
        boot(each)
    return master_of(world, "c"), others


def resume_alone() -> tuple[Master, list[Master]]:
    master = master_of(World(), several=False)
    boot(master)
    return successor(master), []


def resume_of_three() -> tuple[Master, list[Master]]:
    _, masters = cluster_of_three()
    return successor(masters["b"]), [masters["a"], masters["c"]]


def blank_of_three() -> tuple[Master, list[Master]]:
    _, masters = cluster_of_three()
    return successor(masters["b"], volume=False), [masters["a"], masters["c"]]


def removed_of_three() -> tuple[Master, list[Master]]:
    world, masters = cluster_of_three()
    _, identity = world.etcd.running[masters["c"].address]
    masters["c"].lose()
    world.etcd.ask([masters["a"].address], "remove", f"{identity:x}")
    return successor(masters["c"]), [masters["a"], masters["b"]]


def missed_a_restore() -> tuple[Master, list[Master]]:
    world, masters = cluster_of_three()
    masters["c"].lose()
    request(world, "first")
    for slot in "ab":
        masters[slot].reboot()
    together(masters["a"], masters["b"])
    return successor(masters["c"]), [masters["a"], masters["b"]]


def upgrade_alone() -> tuple[Master, list[Master]]:
    master, _ = resume_alone()
    return successor(master, kubernetesVersion="v1.37.0"), []


def restore_alone() -> tuple[Master, list[Master]]:
    master, _ = resume_alone()
    request(master.world, "first")
    return master, []


def restore_without_a_new_instance() -> tuple[Master, list[Master]]:
    master, _ = init_alone()
    boot(master)
    request(master.world, "first")
    master.reboot()
    return master, []


def changed_authorities() -> tuple[Master, list[Master]]:
    master, _ = init_alone()
    boot(master)
    bundle = json.loads(master.secrets.text(CA_SECRET))
    master.secrets.put(CA_SECRET, json.dumps({**bundle, "front-proxy-ca.key": "another"}))
    master.reboot()
    return master, []


def off_for_a_year() -> tuple[Master, list[Master]]:
    master, _ = init_alone()
    all_steps(master)
    master.reboot()
    master.passed += 400 * 24 * 3600
    return master, []


def restore_blank() -> tuple[Master, list[Master]]:
    master, _ = resume_alone()
    request(master.world, "first")
    return successor(master, volume=False), []


def all_steps(master: Master) -> None:
    boot(master)
    join_information.publish(master, boot_of(master.config))
    certificates.schedule(master, boot_of(master.config))


SCENES: tuple[Scene, ...] = (
    init_alone,
    init_first_of_three,
    second_joins_the_first,
    third_joins,
    resume_alone,
    resume_of_three,
    blank_of_three,
    removed_of_three,
    missed_a_restore,
    upgrade_alone,
    restore_alone,
    restore_blank,
    restore_without_a_new_instance,
    changed_authorities,
    off_for_a_year,
)


@pytest.mark.parametrize("same_instance", [True, False], ids=["same instance", "next instance"])
@pytest.mark.parametrize(
    "scene",
    SCENES,
    ids=lambda scene: scene.__name__.replace("_", " "),
)
def test_boot_cut_off_anywhere_is_finished_by_the_next(scene: Scene, same_instance: bool) -> None:
    for cut in range(1000):
        master, others = scene()
        kept = {path: text for path, text in master.volume().items() if path.startswith(DATA_FOLDER + "/")}
        master.fuse = cut
        try:
            all_steps(master)
        except PowerCut:
            pass
        else:
            break
        if same_instance:
            master.reboot()
        else:
            master = successor(master)
        all_steps(master)
        assert_whole(master.world, master, *others)
        # Whatever data of etcd was there is there still, in its place or set aside.
        there = set(master.volume().values())
        assert set(kept.values()) <= there, f"data was lost after a cut at call {cut}"
        master.reboot()
        assert boot(master)[0].startswith("steady: "), f"cut at call {cut}"
    assert 30 < cut < 999


def test_power_cut_twice_in_a_row() -> None:
    for cut in range(0, 60, 7):
        for again in range(0, 60, 5):
            master, others = second_joins_the_first()
            for fuse in (cut, again):
                master.fuse = fuse
                with contextlib.suppress(PowerCut):
                    all_steps(master)
                master.reboot()
            all_steps(master)
            assert_whole(master.world, master, *others)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__.replace("_", " "))
def test_any_call_may_fail_and_systemd_begins_anew(scene: Scene) -> None:
    """The boot program ends, and a minute later it is started again: no reboot, pods of the first attempt still run."""
    for number in range(1000):
        master, others = scene()
        master.fault = number
        with contextlib.suppress(BootError):
            all_steps(master)
            if master.fault is not None:
                break
        all_steps(master)
        assert_whole(master.world, master, *others)
        master.reboot()
        assert boot(master)[0].startswith("steady: "), f"failed at call {number}"
    assert 30 < number < 999
