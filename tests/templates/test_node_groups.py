"""Node groups that scale from nothing and let go of their instances with care."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.boot.node import drain

GROUP = "NodeGroupNAutoScalingGroup"
HOOKS = "LifecycleHookSpecificationList"
PREFIX = "k8s.io/cluster-autoscaler/node-template"


def of(templates: Any, **group: Any) -> Any:
    return templates({"nodeGroups": [{"name": "n", **group}]})


def test_terminated_instances_wait_until_their_pods_have_moved(templates: Any) -> None:
    [hook] = of(templates).properties(GROUP)[HOOKS]
    assert hook["LifecycleHookName"] == "cfngen-drain"
    assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    assert hook["DefaultResult"] == "CONTINUE", "what gives no sign of life is terminated all the same"
    assert 60 <= hook["HeartbeatTimeout"] <= 300


def test_hook_is_the_one_that_instances_answer_and_waits_longer_than_they_are_silent(templates: Any) -> None:
    [hook] = of(templates).properties(GROUP)[HOOKS]
    assert hook["LifecycleHookName"] == drain.LIFECYCLE_HOOK
    assert hook["HeartbeatTimeout"] >= 3 * drain.HEARTBEAT_SECONDS


def test_hook_goes_with_the_group_and_not_before_it(templates: Any) -> None:
    assert of(templates).of_type("AWS::AutoScaling::LifecycleHook") == {}


def test_groups_that_are_not_drained_wait_for_nothing(templates: Any) -> None:
    found = of(templates, drainTimeout=0)
    assert HOOKS not in found.properties(GROUP)
    assert all(HOOKS not in each["Properties"] for each in found.of_type("AWS::AutoScaling::AutoScalingGroup").values())


def test_masters_are_not_drained(templates: Any) -> None:
    assert HOOKS not in of(templates).properties("MasterAAutoScalingGroup")


@pytest.mark.parametrize(
    ("drain", "creation", "pause"), [(0, 20, "PT40M"), (5, 20, "PT45M"), (15, 30, "PT60M"), (30, 50, "PT60M")]
)
def test_update_has_the_time_to_drain_and_boot_and_wait_for_masters(
    templates: Any, drain: int, creation: int, pause: str
) -> None:
    found = of(templates, drainTimeout=drain, creationTimeout=creation)
    group = found["standalone"]["Resources"][GROUP]
    assert group["UpdatePolicy"]["AutoScalingRollingUpdate"]["PauseTime"] == pause


def statements(templates: Any, group: str = "Node", **more: Any) -> dict[str, dict[str, Any]]:
    [policy] = of(templates, **more).properties(f"{group}Role")["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


@pytest.mark.parametrize(
    ("role", "more"), [("Node", {}), ("NodeGroupN", {"additionalPolicies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]})]
)
def test_nodes_may_end_the_wait_in_their_clusters_node_groups_only(
    templates: Any, role: str, more: dict[str, Any]
) -> None:
    found = statements(templates, role, **more)["Drain"]
    assert set(found["Action"]) == {
        "autoscaling:CompleteLifecycleAction",
        "autoscaling:RecordLifecycleActionHeartbeat",
    }
    assert found["Condition"]["StringEquals"] == {"aws:ResourceTag/KubernetesCluster": "kubernetes"}
    assert found["Condition"]["StringNotEquals"] == {"aws:ResourceTag/k8s.io/role/master": "1"}


def test_nodes_that_are_not_drained_may_not(templates: Any) -> None:
    assert "Drain" not in statements(templates, drainTimeout=0)


def tags(templates: Any, **more: Any) -> dict[str, tuple[str, bool]]:
    found = of(templates, **more).properties(GROUP)["Tags"]
    assert len({each["Key"] for each in found}) == len(found)
    return {each["Key"]: (each["Value"], each["PropagateAtLaunch"]) for each in found}


def test_autoscaler_knows_labels_and_taints_of_a_group_without_nodes(templates: Any) -> None:
    found = tags(
        templates,
        minSize=0,
        labels={"example.com/team": "web", "tier": "front"},
        taints=[{"key": "gpu", "effect": "NoSchedule"}, {"key": "spot", "value": "yes", "effect": "NoExecute"}],
    )
    told = {key.removeprefix(PREFIX): value for key, value in found.items() if key.startswith(PREFIX)}
    assert told == {
        "/label/example.com/team": ("web", False),
        "/label/tier": ("front", False),
        "/taint/gpu": (":NoSchedule", False),
        "/taint/spot": ("yes:NoExecute", False),
    }


def test_two_taints_of_one_key_make_one_tag(templates: Any) -> None:
    both = [{"key": "gpu", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    assert tags(templates, taints=both)[f"{PREFIX}/taint/gpu"] == (":NoSchedule", False)


def test_groups_without_labels_and_taints_have_no_such_tags(templates: Any) -> None:
    assert not [key for key in tags(templates) if key.startswith(PREFIX)]


def test_autoscaler_knows_gpu_nodes_of_a_group_without_nodes(templates: Any) -> None:
    found = tags(templates, minSize=0, instanceType="g6.xlarge", gpu="nvidia", labels={"tier": "models"})
    told = {key.removeprefix(PREFIX): value for key, (value, _) in found.items() if key.startswith(PREFIX)}
    assert told == {
        "/label/k8s.amazonaws.com/accelerator": "nvidia-l4",
        "/label/nvidia.com/gpu.present": "true",
        "/label/tier": "models",
        "/taint/nvidia.com/gpu": "present:NoSchedule",
    }


@pytest.mark.parametrize(("image", "least"), [({}, 75), ({"id": "ami-0123456789abcdef0"}, 8)])
def test_the_console_takes_no_root_volume_that_awss_image_does_not_fit_on(
    templates: Any, image: dict[str, str], least: int
) -> None:
    found = of(templates, instanceType="g6.xlarge", gpu="nvidia", image=image)
    assert found["nodes-n"]["Parameters"]["NodeGroupNRootVolumeSize"]["MinValue"] == least


def rolling(templates: Any, **group: Any) -> tuple[int, int, str]:
    """MaxBatchSize, MinInstancesInService and PauseTime of a group."""
    policy = of(templates, **group)["standalone"]["Resources"][GROUP]["UpdatePolicy"]["AutoScalingRollingUpdate"]
    return policy["MaxBatchSize"], policy["MinInstancesInService"], policy["PauseTime"]


@pytest.mark.parametrize(
    ("group", "policy"),
    [
        ({}, (1, 0, "PT45M")),
        ({"update": {"maxUnavailable": 3}}, (3, 0, "PT45M")),
        ({"minSize": 4, "maxSize": 5, "update": {"maxUnavailable": 0, "maxSurge": 1}}, (1, 4, "PT45M")),
        (
            {"minSize": 4, "maxSize": 9, "desiredSize": 6, "update": {"maxUnavailable": 2, "maxSurge": 3}},
            (5, 4, "PT45M"),
        ),
        ({"minSize": 0, "maxSize": 9, "update": {"maxSurge": 2}}, (3, 0, "PT45M")),
        ({"update": {"pause": 15}}, (1, 0, "PT60M")),
        # A long pause takes the time in which nodes wait for masters of their version.
        ({"update": {"pause": 25}}, (1, 0, "PT60M")),
    ],
)
def test_updates_take_as_many_nodes_at_a_time_as_the_file_says(
    templates: Any, group: dict[str, Any], policy: tuple[int, int, str]
) -> None:
    assert rolling(templates, **group) == policy


def test_nobody_can_lower_the_greatest_size_below_a_surge(templates: Any) -> None:
    sizes = {"minSize": 4, "maxSize": 9, "desiredSize": 6}
    found = of(templates, **sizes, update={"maxUnavailable": 0, "maxSurge": 2})["standalone"]["Parameters"]
    assert found["NodeGroupNMaxSize"]["MinValue"] == 8
    assert found["NodeGroupNMaxSize"]["ConstraintDescription"] == (
        "must be from 8, the initial size with maxSurge of the cluster file, to 5000; pass NodeGroupNMaxSize=9, or "
        "change minSize or maxSize of the group there and generate the templates again"
    )


def test_a_group_for_each_zone_keeps_its_resources_when_zones_come_and_go(templates: Any) -> None:
    def of_zones(*zones: str) -> dict[str, Any]:
        network = {"subnets": [{"zone": f"us-west-2{zone}"} for zone in ("a", "b", "-lax-1a")]}
        group = {"name": "n", "oneGroupPerZone": True, "zones": [f"us-west-2{zone}" for zone in zones]}
        resources: dict[str, Any] = templates({"network": network, "nodeGroups": [group]})["standalone"]["Resources"]
        return {key: value for key, value in resources.items() if key.startswith("NodeGroup")}

    two = of_zones("a", "-lax-1a")
    assert two["NodeGroupNAAutoScalingGroup"]["Properties"]["VPCZoneIdentifier"] == [
        {"Fn::GetAtt": ["SubnetA", "SubnetId"]}
    ]
    three = of_zones("-lax-1a", "b", "a")
    assert {key: three[key] for key in two} == two
    assert {key.removeprefix("NodeGroupNB") for key in three if key not in two} >= {"AutoScalingGroup"}
