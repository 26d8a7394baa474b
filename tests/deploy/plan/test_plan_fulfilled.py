"""What a plan says of each group of instances, compared with what then happens to it in the emulator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cloud import default_cloud
from test_plan_on_emulator import GPU, NODES, TWO, Operator, text_of

from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, list_resource_tree
from cfngen.deploy.plan.plan import Plan, Replacement

pytestmark = pytest.mark.drill


def instances_of(operator: Operator) -> dict[str, tuple[str, frozenset[str]]]:
    """The Auto Scaling groups that there are: the physical id and the instances of each, by logical id."""
    account = operator.account
    groups = {
        resource.view.logical_id: resource.view.physical_id
        for resource in list_resource_tree(account, "kubernetes")
        if resource.view.type == AUTO_SCALING_GROUP and resource.exists
    }
    answered = account.items("autoscaling.describe_auto_scaling_groups", "AutoScalingGroups")
    instances = {group["AutoScalingGroupName"]: group["Instances"] for group in answered}
    return {
        logical_id: (
            name,
            # An old instance may still be draining.
            frozenset(each["InstanceId"] for each in instances[name] if each["LifecycleState"] == "InService"),
        )
        for logical_id, name in groups.items()
    }


def outcome(before: tuple[str, frozenset[str]] | None, after: tuple[str, frozenset[str]] | None) -> str:
    if before is None or after is None:
        return "removed" if before else "added"
    if before[0] != after[0]:
        return "replaced"
    return "kept" if before[1] & after[1] else "rolled"


def foreseen(plan: Plan, logical_id: str) -> str:
    """What a plan says of the instances of a group."""
    changes = [change for change in plan.changes if change.logical_id == logical_id]
    if not changes:
        return "kept"
    [change] = changes
    if change.action != "update":
        return {"add": "added", "remove": "removed"}[change.action]
    if change.replacement is not Replacement.NO:
        return "replaced"
    first = change.impact.text.split("; ")[0].replace("no instance is replaced", "") if change.impact else ""
    return "rolled" if "replaced" in first else "kept"


# What an operator may change in the cluster file, in any combination.
DRAWN: tuple[dict[str, Any], ...] = (
    {"nodes": {"instanceType": "m6i.large"}},
    {"nodes": {"maxSize": 6}},
    {"nodes": {"labels": {"team": "blue"}}},
    {"nodes": {"rootVolume": {"size": 40}}},
    {"gpu": {**GPU, "instanceType": "m5.large"}},
    {"gpu": {**GPU, "update": {"maxSurge": 1}, "maxSize": 4}},
    {"gpu": None},
    {"more": {"minSize": 1}},
    {"tags": {"team": "blue"}},
    {"controlPlane": {"volume": {"size": 40}}},
    {"controlPlane": {"instanceType": "t3.large"}},
    {"kubernetes": {"kubeletConfiguration": {"maxPods": 50}}},
)


def drawn_file(drawn: list[dict[str, Any]]) -> dict[str, Any]:
    file: dict[str, Any] = {}
    groups: dict[str, dict[str, Any] | None] = {"nodes": NODES, "gpu": GPU}
    for changes in drawn:
        for key, value in changes.items():
            if key in ("nodes", "gpu", "more"):
                groups[key] = {"name": key, **(groups.get(key) or {}), **value} if value is not None else None
            else:
                file[key] = value
    return {**file, "nodeGroups": [group for group in groups.values() if group]}


def test_what_a_plan_says_of_each_group_is_what_happens_to_it() -> None:
    chosen = random.Random(26)
    with default_cloud() as cloud:
        operator = Operator(cloud)
        operator.deploy(TWO)
        for _ in range(12):
            file = drawn_file(chosen.sample(DRAWN, k=chosen.randint(0, 3)))
            plan, before = operator.plan(file), instances_of(operator)
            if not plan.is_empty:
                operator.deploy(file)
            after = instances_of(operator)
            happened = {group: outcome(before.get(group), after.get(group)) for group in before | after}
            assert {group: foreseen(plan, group) for group in happened} == happened, (file, text_of(plan))
