"""The emulator itself: in which order resources come, change and go that do not depend on each other."""

from __future__ import annotations

from typing import Any

import pytest
from clusters import golden, inventory, leftovers, prepared
from small_stacks import BAD, GATEWAY, REGION, nested, since, statuses, tagged, text

from cfngen.sandbox.cloudformation import CloudFormation, Stack
from cfngen.sandbox.cloudformation.simulation import DEFAULT_SEED

SEEDS = range(4)
LETTERS = "ABCDE"


def ended(stack: Stack, status: str) -> str:
    return "".join(key for key, each in statuses(stack, *LETTERS) if each == status)


def lives(resources: dict[str, Any], **order: Any) -> tuple[str, str]:
    """In which order the resources of a stack were complete, and then gone."""
    cloud = CloudFormation(REGION, **order)
    stack = cloud.wait(cloud.create_stack("s", body=text(resources)))
    cloud.wait(cloud.delete_stack("s"))
    assert stack.status == "DELETE_COMPLETE"
    return ended(stack, "CREATE_COMPLETE"), ended(stack, "DELETE_COMPLETE")


@pytest.mark.parametrize("draws_durations", [False, True])
def test_a_seed_draws_an_order_and_always_the_same(draws_durations: bool) -> None:
    independent = dict.fromkeys(LETTERS, GATEWAY)
    drawn = [lives(independent, seed=seed, draws_durations=draws_durations) for seed in SEEDS]
    assert len({created for created, _ in drawn}) == len({gone for _, gone in drawn}) == len(SEEDS)
    assert drawn[3] == lives(independent, seed=3, draws_durations=draws_durations)


def test_without_a_seed_the_order_is_that_of_the_usual_one() -> None:
    independent = dict.fromkeys(LETTERS, GATEWAY)
    assert lives(independent) == lives(independent, seed=DEFAULT_SEED)


def test_what_depends_on_something_comes_after_it_and_goes_before() -> None:
    """C after A, E after C; whatever the seed."""
    chain = {**dict.fromkeys("ABD", GATEWAY), "C": {**GATEWAY, "DependsOn": "A"}, "E": {**GATEWAY, "DependsOn": "C"}}
    drawn = [lives(chain, seed=seed) for seed in SEEDS]
    for created, gone in drawn:
        assert [key for key in created if key in "ACE"] == ["A", "C", "E"]
        assert [key for key in gone if key in "ACE"] == ["E", "C", "A"]
    assert len(set(drawn)) > len(SEEDS) / 2


def test_deletions_overlap_and_what_they_depend_on_waits_for_them() -> None:
    """As creations do."""
    cloud = CloudFormation(REGION, durations={"*": 60})
    resources = {**{key: {**GATEWAY, "DependsOn": "D"} for key in "ABC"}, "D": GATEWAY}
    stack = cloud.wait(cloud.create_stack("s", body=text(resources)))
    cloud.wait(cloud.delete_stack("s"))
    events = [event for event in stack.events if event.status.startswith("DELETE_") and event.logical_id in resources]
    assert sorted(event.logical_id for event in events[:3]) == ["A", "B", "C"]
    assert {event.status for event in events[:3]} == {"DELETE_IN_PROGRESS"}
    assert [event.logical_id for event in events[-2:]] == ["D", "D"]


def test_what_a_resource_depends_on_stays_if_it_cannot_be_deleted() -> None:
    for seed in SEEDS:
        cloud = CloudFormation(REGION, seed=seed)
        resources = {"A": {**GATEWAY, "DependsOn": "B"}, "B": GATEWAY, "C": GATEWAY}
        stack = cloud.wait(cloud.create_stack("s", body=text(resources)))
        cloud.fail("A", "Network error", during="DELETE")
        cloud.wait(cloud.delete_stack("s"))
        assert (stack.status, stack.reason) == (
            "DELETE_FAILED", "The following resource(s) failed to delete: [A]. ",
        )  # fmt: skip
        assert {key: each.status for key, each in stack.resources.items()} == {
            "A": "DELETE_FAILED", "B": "CREATE_COMPLETE", "C": "DELETE_COMPLETE",
        }  # fmt: skip
        assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"


def test_resources_of_nested_stacks_come_between_each_other() -> None:
    drawn = set()
    for seed in SEEDS:
        cloud = CloudFormation(REGION, seed=seed, draws_durations=True)
        children = {key: nested(key.lower(), text({f"{key}{n}": GATEWAY for n in "123"})) for key in "PQ"}
        stack = cloud.wait(cloud.create_stack("s", body=text(children)))
        events = [event for child in stack.children.values() for event in child.events]
        complete = sorted(
            (event for event in events if event.logical_id[1:] in tuple("123")), key=lambda each: each.time
        )
        drawn.add("".join(each.logical_id[0] for each in complete if each.status == "CREATE_COMPLETE"))
        cloud.wait(cloud.delete_stack("s"))
    assert drawn - {"PPPQQQ", "QQQPPP"}


def test_updates_and_rollbacks_are_drawn_as_well() -> None:
    updated, undone = set(), set()
    for seed in SEEDS:
        cloud = CloudFormation(REGION, seed=seed, draws_durations=True)
        stack = cloud.wait(cloud.create_stack("s", body=text({key: tagged(a="1") for key in LETTERS})))
        last = {**BAD, "DependsOn": list(LETTERS)}
        cloud.wait(cloud.update_stack("s", body=text({**{key: tagged(a="2") for key in LETTERS}, "Bad": last})))
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        back = [key for key, status in since(stack, "ROLLBACK") if key in LETTERS and status == "UPDATE_COMPLETE"]
        undone.add("".join(back))
        updated.add(ended(stack, "UPDATE_COMPLETE")[: len(LETTERS)])
        cloud.wait(cloud.delete_stack("s"))
    assert len(updated) > 1
    assert len(undone) > 1


def test_durations_differ_by_seed_and_stay_near_what_they_are() -> None:
    taken = []
    for seed in SEEDS:
        cloud = CloudFormation(REGION, durations={"*": 20}, seed=seed)
        cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
        taken.append(cloud.clock.now)
        cloud.wait(cloud.delete_stack("s"))
    assert len(set(taken)) == len(SEEDS)
    assert all(10 <= seconds <= 30 for seconds in taken)


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_the_default_cluster_comes_and_goes_in_another_order(form: str) -> None:
    """All golden clusters do so for more seeds in the drills."""
    where = prepared(golden("default"), draws_durations=True)
    before = inventory(where.cluster.region)
    stack = where.create(form)
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    assert where.delete(stack).status == "DELETE_COMPLETE"
    assert set(leftovers(where, before)) <= {"snapshots"}
