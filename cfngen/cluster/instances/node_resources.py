"""What pods can have on a node of a group, and what cluster-autoscaler is told of it by tags.

cluster-autoscaler takes what EC2 says about an instance type for what pods can have (`buildNodeFromTemplate` sets the
node's allocatable resources to its capacity). A node has less: the kernel, the kubelet's reservations and its eviction
thresholds take their part. So what cfngen tells it are allocatable resources; otherwise a large pod would make it
launch nodes on which the pod does not fit.

It reads the tags from the Auto Scaling group (`extractLabelsFromAsg`, `extractTaintsFromAsg`,
`extractAllocatableResourcesFromAsg` and `GetAsgOptions` of its cloudprovider/aws/aws_manager.go, the same in 1.34.5,
1.35.2 and 1.36.1). Labels, taints and resources count only while the group has no node; after that it looks at a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cfngen.cluster.instances.group_types import types_of
from cfngen.cluster.instances.instance_types import InstanceTypeFacts, facts_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import delegates_prefixes, network_plugin
from cfngen.cluster.sections.instances import NodeGroup

# Suffixes and their factors: apimachinery, pkg/api/resource/suffix.go.
_FACTORS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("MGTPE", start=2)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zA-Z]*)")
# The kubelet's default of `maxPods`.
KUBELET_MAX_PODS = 110
# Addresses of a /28 prefix, which takes the place of an address if the Amazon VPC plug-in delegates prefixes.
_ADDRESSES_PER_PREFIX = 16
# Pods of every node that use the host's network and need no address: kube-proxy's and the plug-in's.
_HOST_NETWORK_PODS = 2
# The resource that pods request to get an NVIDIA GPU. cluster-autoscaler takes every type's GPUs for such ones.
_NVIDIA_GPU = "nvidia.com/gpu"
# Share of the memory that the hypervisor and the kernel keep. Karpenter assumes the same (aws/karpenter#1953).
_MEMORY_OVERHEAD = Decimal("0.075")
# Share of a disk that partitions for the boot and the file system itself take; assumed.
_DISK_OVERHEAD = Decimal("0.05")
# Folder whose disk the kubelet calls `ephemeral-storage`.
_KUBELET_FOLDER = "/var/lib/kubelet"
_MIB = Decimal(2**20)
_GIB = Decimal(2**30)
NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


def parse_quantity(value: object) -> Decimal | None:
    """Return the number that a quantity stands for, e.g. 0.5 for `500m`, or None if it has another form."""
    match = _QUANTITY.fullmatch(str(value))
    factor = _FACTORS.get(match[2]) if match else None
    return Decimal(match[1]) * factor if match and factor is not None else None


def parse_threshold(value: object, capacity: Decimal) -> Decimal | None:
    """Return the number that an eviction threshold stands for: a quantity, or a percentage of the capacity."""
    percentage = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", str(value))
    return capacity * Decimal(percentage[1]) / 100 if percentage else parse_quantity(value)


@dataclass(frozen=True)
class SmallestResources:
    """The least of each resource that one of several instance types has.

    Attributes:
        nvidia_gpus: number of NVIDIA's GPUs; None if no type has any GPU.
    """

    vcpus: int
    memory_mib: int
    nvidia_gpus: int | None


def smallest_resources(types: Sequence[str]) -> SmallestResources | None:
    """Return the least of each resource of some instance types, or None if the table of types lacks one of them."""
    facts = _all_facts(types)
    if not facts:
        return None
    return SmallestResources(
        vcpus=min(fact.vcpus for fact in facts),
        memory_mib=min(fact.memory_mib for fact in facts),
        nvidia_gpus=min(fact.gpu_count if fact.gpu_manufacturer == "NVIDIA" else 0 for fact in facts)
        if any(fact.gpu_count for fact in facts)
        else None,
    )


def pod_limit(cluster: Cluster, types: Sequence[str]) -> int | None:
    """Return for how many pods each of some instance types has addresses, with the Amazon VPC plug-in.

    The boot program computes the same on the instance (boot/host/pod_network.py). The result is None with another
    plug-in, and if the table lacks one of the types.
    """
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        return None
    facts = _all_facts(types)
    if not facts:
        return None
    factor = _ADDRESSES_PER_PREFIX if delegates_prefixes(cluster) else 1
    addresses = min(fact.network_interfaces * (fact.addresses_per_interface - 1) for fact in facts)
    return addresses * factor + _HOST_NETWORK_PODS


def allocatable(cluster: Cluster, node_group: NodeGroup) -> dict[str, str] | None:
    """Return what pods can have on the smallest node of a group, as quantities by resource.

    The result is None if the table lacks one of the group's types.
    """
    types = types_of(cluster, node_group)
    smallest = smallest_resources(types)
    if smallest is None:
        return None
    cpu = Decimal(smallest.vcpus)
    memory = smallest.memory_mib * _MIB * (1 - _MEMORY_OVERHEAD)
    disk = min(_disk_size(node_group, fact) for fact in _all_facts(types)) * (1 - _DISK_OVERHEAD)
    reserved = _reserved(cluster, node_group, cpu, memory)
    memory_threshold = _eviction_threshold(cluster, node_group, "memory.available", "100Mi", memory)
    disk_threshold = _eviction_threshold(cluster, node_group, "nodefs.available", "10%", disk)
    resources = {
        "cpu": f"{max(int((cpu - reserved['cpu']) * 1000), 0)}m",
        "memory": f"{max(int((memory - reserved['memory'] - memory_threshold) / _MIB), 0)}Mi",
        "ephemeral-storage": f"{max(int((disk - reserved['ephemeral-storage'] - disk_threshold) / _MIB), 0)}Mi",
    }
    if smallest.nvidia_gpus is not None:
        resources[_NVIDIA_GPU] = str(smallest.nvidia_gpus)
    pods = pod_limit(cluster, types)
    if pods is not None:
        resources["pods"] = str(min(pods, KUBELET_MAX_PODS))
    return resources


def _all_facts(types: Sequence[str]) -> list[InstanceTypeFacts]:
    """Return the facts about some instance types; empty if the table lacks one of them."""
    facts = [fact for instance_type in types if (fact := facts_of(instance_type))]
    return facts if len(facts) == len(types) else []


def _disk_size(node_group: NodeGroup, fact: InstanceTypeFacts) -> Decimal:
    """Return the size of the disk that holds what pods write: their own volume, the local disks, or the root volume."""
    for volume in node_group.volumes:
        if volume.mount_path == _KUBELET_FOLDER:
            return volume.size * _GIB
    if node_group.instance_storage == "raid0" and fact.local_disk_gb:
        return Decimal(fact.local_disk_gb) * 10**9
    return node_group.root_volume.size * _GIB


def _kubelet_section(cluster: Cluster, node_group: NodeGroup, key: str) -> dict[str, object]:
    """Return a section of the kubelet's configuration as the cluster file has it: the group's over the cluster's."""
    merged: dict[str, object] = {}
    for configuration in (cluster.kubernetes.kubelet_configuration, node_group.kubelet_configuration):
        section = configuration.get(key)
        if isinstance(section, Mapping):
            merged |= section
    return merged


def _reserved(cluster: Cluster, node_group: NodeGroup, cpu: Decimal, memory: Decimal) -> dict[str, Decimal]:
    """Return what `kubeReserved` and `systemReserved` take from pods, by resource.

    Without either in the cluster file they are what the boot program reserves (boot/host/kubelet.py).
    """
    sections = [_kubelet_section(cluster, node_group, key) for key in ("kubeReserved", "systemReserved")]
    if not any(sections):
        return {"cpu": (80 + 10 * cpu) / 1000, "memory": 330 * _MIB + memory / 20, "ephemeral-storage": _GIB}
    return {
        resource: sum((parse_quantity(section.get(resource, 0)) or Decimal(0) for section in sections), Decimal(0))
        for resource in ("cpu", "memory", "ephemeral-storage")
    }


def _eviction_threshold(
    cluster: Cluster, node_group: NodeGroup, signal: str, default: str, capacity: Decimal
) -> Decimal:
    threshold = _kubelet_section(cluster, node_group, "evictionHard").get(signal, default)
    return parse_threshold(threshold, capacity) or Decimal(0)


def node_template_tags(cluster: Cluster, node_group: NodeGroup) -> dict[str, str]:
    """Return the tags of a node group's Auto Scaling group, as values by key, in the order of the keys.

    A group that cluster-autoscaler is not to find has none.
    """
    if not node_group.autoscaler.enabled:
        return {}
    node_tags = {f"{NODE_TEMPLATE}/label/{key}": value for key, value in node_group.labels.items()}
    for taint in node_group.taints:
        # A tag key contains only the taint's key, so of several taints with the same key only the first gets a tag.
        node_tags.setdefault(f"{NODE_TEMPLATE}/taint/{taint.key}", f"{taint.value}:{taint.effect}")
    for resource, quantity in node_template_resources(cluster, node_group).items():
        node_tags[f"{NODE_TEMPLATE}/resources/{resource}"] = quantity
    for option, value in _options(node_group).items():
        node_tags[f"{NODE_TEMPLATE}/autoscaling-options/{option}"] = value
    return dict(sorted(node_tags.items()))


def node_template_resources(cluster: Cluster, node_group: NodeGroup) -> dict[str, str]:
    """Return the resources that cluster-autoscaler is told of a node, as quantities by resource.

    By itself it takes the first of several instance types, or the first that meets requirements, so such a group gets
    the least of all its types. Of a group with one type it knows enough: it is told only what the cluster file says.
    """
    resources = (allocatable(cluster, node_group) or {}) if is_guessed(node_group) else {}
    if node_group.max_pods is not None:
        resources["pods"] = str(node_group.max_pods)
    return resources | node_group.autoscaler.resources


def is_guessed(node_group: NodeGroup) -> bool:
    """Return whether cluster-autoscaler would guess the size of a group's nodes: whether it has several types."""
    return node_group.instance_requirements is not None or len(node_group.instance_types) > 1


def _options(node_group: NodeGroup) -> dict[str, str]:
    """Return the group's own settings of cluster-autoscaler, by the names that it knows (its config/const.go).

    There is none for the time that a node may take to start: the AWS provider does not read such a tag.
    """
    settings = node_group.autoscaler
    options = {
        "scaledownutilizationthreshold": settings.scale_down_utilization_threshold,
        "scaledowngpuutilizationthreshold": settings.scale_down_gpu_utilization_threshold,
        "scaledownunneededtime": settings.scale_down_unneeded_time,
        "scaledownunreadytime": settings.scale_down_unready_time,
    }
    if settings.ignore_daemon_sets_utilization is not None:
        options["ignoredaemonsetsutilization"] = str(settings.ignore_daemon_sets_utilization).lower()
    return {name: value for name, value in options.items() if value is not None}
