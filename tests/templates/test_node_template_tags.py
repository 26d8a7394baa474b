"""What a group's tags tell cluster-autoscaler, read by its own rules: what nodes register with, and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from autoscaler_reading import Reading, read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfngen.cluster.instances.node_resources import node_template_tags
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import ClusterFileError
from cfngen.text_limits import TAG_KEY, TAG_VALUE
from cfngen.userdata.kubeadm import join_configuration

GROUP = "NodeGroupNAutoScalingGroup"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
KEYS = st.from_regex(
    r"([a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", fullmatch=True
)
VALUES = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", fullmatch=True)
QUICK = settings(
    derandomize=True, deadline=None, database=None, max_examples=40, suppress_health_check=list(HealthCheck)
)
# A tag's key has 128 characters, of which `k8s.io/cluster-autoscaler/node-template/resources/` takes 50.
LONGEST_RESOURCE = 78
ENABLED = "k8s.io/cluster-autoscaler/enabled"


def group_tags(templates: Any, cluster: dict[str, Any] | None = None, **group: Any) -> dict[str, str]:
    """The tags of a node group's Auto Scaling group, from the template."""
    configuration = {"nodeGroups": [{"name": "n", **group}], **(cluster or {})}
    tags = templates(configuration).properties(GROUP)["Tags"]
    assert len({tag["Key"] for tag in tags}) == len(tags)
    return {tag["Key"]: tag["Value"] for tag in tags}


def reading(templates: Any, cluster: dict[str, Any] | None = None, **group: Any) -> Reading:
    return read(group_tags(templates, cluster, **group))


@cache
def base() -> Cluster:
    return parse({"nodeGroups": [{"name": "n"}]})


def registration(cluster: Cluster) -> tuple[dict[str, str], set[tuple[str, str, str]]]:
    """The labels and taints that a node registers with, as kubeadm hands them to the kubelet."""
    node = join_configuration(cluster.node_groups[0])["nodeRegistration"]
    flags = {flag["name"]: flag["value"] for flag in node["kubeletExtraArgs"]}
    pairs = [pair.partition("=") for pair in flags.get("node-labels", "").split(",") if pair]
    labels = {key: value for key, _, value in pairs}
    return labels, {(taint["key"], taint["value"], taint["effect"]) for taint in node.get("taints", ())}


@QUICK
@given(
    labels=st.dictionaries(KEYS, VALUES, max_size=5),
    taints=st.lists(st.tuples(KEYS, VALUES, st.sampled_from(EFFECTS)), max_size=4, unique_by=lambda taint: taint[0]),
)
def test_labels_and_taints_of_tags_are_those_that_nodes_register_with(
    labels: dict[str, str], taints: list[tuple[str, str, str]]
) -> None:
    listed = [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]
    try:
        cluster = parse({"nodeGroups": [{"name": "n", "labels": labels, "taints": listed}]})
    except ClusterFileError:
        return  # what is refused makes no tag
    tags = node_template_tags(cluster, cluster.node_groups[0])
    known = read(tags)
    assert (known.labels, set(known.taints)) == registration(cluster)
    assert known.ignored == []
    assert [fault for key, value in tags.items() if (fault := TAG_KEY.fault(key) or TAG_VALUE.fault(value))] == []


@QUICK
@given(
    resources=st.dictionaries(
        KEYS.filter(lambda key: len(key) <= LONGEST_RESOURCE),
        st.from_regex(r"[0-9]{1,9}(\.[0-9]{1,3})?(m|k|[MGTPE]|[KMGTPE]i)?", fullmatch=True),
        max_size=4,
    ),
    threshold=st.from_regex(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?", fullmatch=True),
    time=st.from_regex(r"([0-9]{1,6}[hms]){1,3}", fullmatch=True),
    ignores=st.booleans(),
)
def test_every_resource_and_setting_that_is_accepted_can_be_read(
    resources: dict[str, str], threshold: str, time: str, ignores: bool
) -> None:
    autoscaler = {
        "resources": resources,
        "scaleDownUtilizationThreshold": threshold,
        "scaleDownGpuUtilizationThreshold": threshold,
        "scaleDownUnneededTime": time,
        "scaleDownUnreadyTime": time,
        "ignoreDaemonSetsUtilization": ignores,
    }
    cluster = parse({"nodeGroups": [{"name": "n", "autoscaler": autoscaler}]})
    known = read(node_template_tags(cluster, cluster.node_groups[0]))
    assert known.ignored == []
    assert known.resources == resources
    assert known.options == {
        "scaledownutilizationthreshold": threshold,
        "scaledowngpuutilizationthreshold": threshold,
        "scaledownunneededtime": time,
        "scaledownunreadytime": time,
        "ignoredaemonsetsutilization": str(ignores).lower(),
    }


def test_a_group_of_one_type_is_told_no_resources(templates: Any) -> None:
    known = reading(templates, minSize=0, labels={"tier": "front"})
    assert (known.resources, known.options) == ({}, {})


def test_resources_of_the_cluster_file_are_told(templates: Any) -> None:
    known = reading(templates, autoscaler={"resources": {"cpu": 2, "memory": "6.5Gi", "example.com/fpga": 1}})
    assert known.resources == {"cpu": "2", "memory": "6.5Gi", "example.com/fpga": "1"}


def test_the_number_of_pods_is_told(templates: Any) -> None:
    assert reading(templates, maxPods=58).resources == {"pods": "58"}


def test_a_group_that_is_left_alone_is_not_found(templates: Any) -> None:
    left_alone = group_tags(templates, labels={"tier": "front"}, autoscaler={"enabled": False})
    assert not [key for key in left_alone if key.startswith("k8s.io/cluster-autoscaler")]
    assert group_tags(templates)[ENABLED] == "true"


def test_tags_of_the_cluster_tell_nothing_of_nodes(templates: Any) -> None:
    assert reading(templates, {"tags": {"team": "web", "stage": "a:NoSchedule"}}) == Reading({}, [], {}, {}, [])


# What cannot be read is refused, since cluster-autoscaler would ignore it without a word.
@pytest.mark.parametrize(
    ("autoscaler", "reason"),
    [
        ({"resources": {"cpu": "two"}}, "'two' is not a quantity such as 3900m, 14Gi or 1"),
        ({"resources": {"cpu": -1}}, "'-1' is not a quantity"),
        ({"resources": {"memory": "14GB"}}, "'14GB' is not a quantity"),
        ({"resources": {"memory": ""}}, "'' is not a quantity"),
        ({"scaleDownUtilizationThreshold": "50%"}, "'50%' is not a share from 0 to 1 such as 0.5"),
        ({"scaleDownGpuUtilizationThreshold": "1.5"}, "'1.5' is not a share from 0 to 1"),
        ({"scaleDownUnneededTime": "10"}, "'10' is not a duration such as 10m, 1h30m or 90s"),
        ({"scaleDownUnreadyTime": "10 min"}, "'10 min' is not a duration"),
        ({"scaleDownUnneededTime": 10}, "10 is not a duration"),
    ],
)
def test_what_cluster_autoscaler_could_not_read_is_refused(autoscaler: dict[str, Any], reason: str) -> None:
    with pytest.raises(ClusterFileError, match=r"nodeGroups\[0\]\.autoscaler") as refused:
        parse({"nodeGroups": [{"name": "n", "autoscaler": autoscaler}]})
    assert reason in str(refused.value)
