"""A plan says of the pods on instances that go whether they are moved first; the instances that run now decide that."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import default_cluster

from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement
from cfngen.deploy.watching.expectations import DRAIN_SECONDS, expect_operation

GROUP = "NodeGroupNodesAutoScalingGroup"
ASG = "AWS::AutoScaling::AutoScalingGroup"
HOOKS = "LifecycleHookSpecificationList"
ROLLING = {"AutoScalingRollingUpdate": {"WaitOnResourceSignals": True}}
HOOK = {HOOKS: [{"LifecycleHookName": "cfngen-drain"}]}


def meaning(
    before: dict[str, Any],
    after: dict[str, Any],
    *paths: tuple[str, str | None, str | None],
    action: str = "update",
    group: str = GROUP,
) -> Impact:
    properties = tuple(PropertyChange(f"/Properties/{path}", old, new) for path, old, new in paths)
    change = Change(group, "id", ASG, action, Replacement.NO, "", properties)
    entry = ResourceChange("Modify", group, "id", ASG, before={"Properties": before}, after={"Properties": after})
    found = ImpactAssessment(default_cluster()).of_resource(change, entry)
    assert found is not None
    return found


@pytest.mark.parametrize(("before", "words"), [(HOOK, "pods are drained first"), ({}, "pods are not drained first")])
def test_instances_that_are_replaced_drain_if_they_were_made_to(before: dict[str, Any], words: str) -> None:
    impact = meaning(before, HOOK, ("LaunchTemplate/Version", "1", "2"))
    assert words in impact.text
    assert impact.danger is Danger.DISRUPTIVE


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, HOOK, "waits up to 5 minutes before it is terminated"),
        (HOOK, {}, "no longer waits before it is terminated"),
    ],
)
def test_master_that_waits_for_the_others_from_now_on(
    before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    impact = meaning(before, after, (f"{HOOKS}/0", None, None), group="MasterAAutoScalingGroup")
    assert words in impact.text
    assert impact.danger is Danger.NONE


@pytest.mark.parametrize(("before", "words"), [(HOOK, "pods are drained first"), ({}, "pods are not drained first")])
def test_group_that_shrinks(before: dict[str, Any], words: str) -> None:
    sizes = {"MinSize": "2", "MaxSize": "4"}
    fewer = {"MinSize": "1", "MaxSize": "2"}
    impact = meaning({**sizes, **before}, {**fewer, **before}, ("MinSize", "2", "1"), ("MaxSize", "4", "2"))
    assert "instances above 2 are terminated" in impact.text
    assert words in impact.text


@pytest.mark.parametrize(("before", "words"), [(HOOK, "pods are drained first"), ({}, "pods are not drained first")])
def test_group_that_is_removed(before: dict[str, Any], words: str) -> None:
    impact = meaning(before, {}, action="remove")
    assert "is removed with its instances, all at once" in impact.text
    assert words in impact.text


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [({}, HOOK, "pods of node group `nodes` are drained before"), (HOOK, {}, "are no longer drained before")],
)
def test_hook_that_comes_or_goes(before: dict[str, Any], after: dict[str, Any], words: str) -> None:
    impact = meaning(before, after, (HOOKS + "/0/LifecycleHookName", None, None))
    assert words in impact.text
    assert impact.danger is Danger.NONE


def test_stack_of_a_group_that_goes() -> None:
    found = ImpactAssessment(default_cluster()).of_stack(("NodeGroupNodesStack",), "delete")
    assert found is not None
    assert "drained first if the group has a drainTimeout" in found.text


def test_draining_is_part_of_how_long_groups_usually_take() -> None:
    def seconds(action: str, **properties: Any) -> int:
        group = {"Type": ASG, "Properties": {"MinSize": 3, **properties}, "UpdatePolicy": ROLLING}
        return expect_operation({(): {"Resources": {"Group": group}}}, {((), "Group"): action}).seconds  # type: ignore[dict-item]

    assert seconds("create", **HOOK) == seconds("create")
    assert seconds("update", **HOOK) == seconds("update") + 3 * DRAIN_SECONDS
    assert seconds("delete", **HOOK) == seconds("delete") + DRAIN_SECONDS
