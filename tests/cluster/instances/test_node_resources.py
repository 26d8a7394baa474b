"""What pods can have on a node, as cluster-autoscaler is told: of the smallest type, and without what a node keeps."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.instances.node_resources import (
    allocatable,
    parse_quantity,
    parse_threshold,
    pod_limit,
    smallest_resources,
)
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster


def of(**group: Any) -> dict[str, str] | None:
    """What a node of a group has for pods."""
    cluster = parse({"nodeGroups": [{"name": "n", **group}]})
    return allocatable(cluster, cluster.node_groups[0])


def with_plugin(plugin: str, **network: Any) -> Cluster:
    return parse({"network": {"plugin": plugin, **network}})


def test_the_smallest_of_several_types_counts_resource_by_resource() -> None:
    smallest = smallest_resources(("r6i.large", "c6id.xlarge", "m6i.xlarge"))
    assert smallest is not None
    assert (smallest.vcpus, smallest.memory_mib, smallest.nvidia_gpus) == (2, 8192, None)


@pytest.mark.parametrize(
    ("types", "gpus"),
    [(("g5.xlarge", "g5.12xlarge"), 1), (("g5.xlarge", "m6i.xlarge"), 0), (("m6i.xlarge",), None)],
)
def test_gpus_that_only_some_types_have_do_not_count(types: tuple[str, ...], gpus: int | None) -> None:
    smallest = smallest_resources(types)
    assert smallest is not None
    assert smallest.nvidia_gpus == gpus


def test_a_node_with_gpus() -> None:
    resources = of(instanceType="g5.12xlarge")
    assert resources is not None
    assert resources["nvidia.com/gpu"] == "4"


@pytest.mark.parametrize("types", [("m6i.large", "m99.large"), ("m99.large",), ()])
def test_of_unknown_types_nothing_is_said(types: tuple[str, ...]) -> None:
    assert smallest_resources(types) is None


# 2 vCPU less 80m + 1 %; 8192 MiB less 7.5 % for the machine, 330 MiB + 5 % reserved and 100 MiB that are kept free;
# 32 GiB less 5 % for the file system, 1 GiB reserved and 10 % that are kept free.
def test_a_node_keeps_some_of_what_its_type_has() -> None:
    assert of(instanceType="m6i.large") == {"cpu": "1900m", "memory": "6768Mi", "ephemeral-storage": "26992Mi"}


def test_local_disks_hold_what_pods_write_if_they_are_used() -> None:
    used = of(instanceType="c6id.large", rootVolume={"size": 200})
    unused = of(instanceType="c6id.large", rootVolume={"size": 200}, instanceStorage="none")
    assert used is not None
    assert unused is not None
    assert (used["ephemeral-storage"], unused["ephemeral-storage"]) == ("95192Mi", "174080Mi")


def test_a_volume_of_the_kubelet_holds_what_pods_write() -> None:
    volumes = [{"size": 500, "mountPath": "/var/lib/kubelet"}, {"size": 50, "mountPath": "/cache"}]
    with_volume, with_root_volume = of(volumes=volumes), of(rootVolume={"size": 500})
    assert with_volume["ephemeral-storage"] == with_root_volume["ephemeral-storage"]


def test_reservations_of_the_cluster_file_take_the_place_of_the_usual_ones() -> None:
    configuration = {
        "kubeReserved": {"cpu": "200m", "memory": "1Gi"},
        "systemReserved": {"cpu": "0.1"},
        "evictionHard": {"memory.available": "10%", "nodefs.available": "2Gi"},
    }
    # 8192 MiB less 7.5 % are 7577.6 MiB; a tenth of that and 1 GiB are kept. 32 GiB less 5 % and 2 GiB.
    assert of(instanceType="m6i.large", kubeletConfiguration=configuration) == {
        "cpu": "1700m",
        "memory": "5795Mi",
        "ephemeral-storage": "29081Mi",
    }


def test_a_groups_reservations_lie_over_the_clusters() -> None:
    cluster = parse(
        {
            "kubernetes": {"kubeletConfiguration": {"kubeReserved": {"cpu": "1", "memory": "1Gi"}}},
            "nodeGroups": [{"name": "n", "kubeletConfiguration": {"kubeReserved": {"cpu": "500m"}}}],
        }
    )
    resources = allocatable(cluster, cluster.node_groups[0])
    assert resources is not None
    assert resources["cpu"] == "1500m"
    assert resources["memory"] == "2664Mi"


# Interfaces times addresses but their own, and two pods of the host's network: EKS's table of ENI limits has the same.
@pytest.mark.parametrize(("instance_type", "pods"), [("t3.medium", 17), ("m7i.large", 29), ("m5.4xlarge", 234)])
def test_with_the_amazon_vpc_plugin_addresses_limit_pods(instance_type: str, pods: int) -> None:
    assert pod_limit(with_plugin("amazon-vpc"), (instance_type,)) == pods
    assert pod_limit(with_plugin("amazon-vpc"), (instance_type, "t3.medium")) == 17
    assert pod_limit(with_plugin("cilium"), (instance_type,)) is None
    assert pod_limit(with_plugin("amazon-vpc"), ("m99.large",)) is None


def test_prefixes_hold_more_pods() -> None:
    prefixes = with_plugin("amazon-vpc", pluginValues={"env": {"ENABLE_PREFIX_DELEGATION": "true"}})
    assert pod_limit(prefixes, ("t3.medium",)) == 3 * 5 * 16 + 2


def test_pods_are_told_if_addresses_limit_them() -> None:
    for plugin, pods in (("amazon-vpc", "17"), ("cilium", None)):
        cluster = with_plugin(plugin)
        resources = allocatable(cluster, cluster.node_groups[0])
        assert resources is not None
        assert resources.get("pods") == pods


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("2", "2"), (3, "3"), ("1.5Gi", "1610612736"), ("1k", "1000"), ("2M", "2000000"), ("1Ei", 2**60)],
)
def test_quantities_are_numbers(text: object, number: object) -> None:
    assert parse_quantity(text) == type(parse_quantity("1"))(number)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "1GB", "-1", "10%", "1e3", None, {}])
def test_what_is_no_quantity(text: object) -> None:
    assert parse_quantity(text) is None


def test_a_threshold_may_be_a_percentage() -> None:
    capacity = parse_quantity("1000")
    assert capacity is not None
    assert parse_threshold("2.5%", capacity) == 25
    assert parse_threshold("100", capacity) == 100
    assert parse_threshold("all", capacity) is None
