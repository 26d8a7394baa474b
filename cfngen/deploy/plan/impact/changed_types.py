"""What follows for pods from another instance type: architecture, GPUs, local disks, and room for pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cfngen.cluster.instances.instance_types import InstanceTypeFacts, architecture, facts_of
from cfngen.cluster.instances.node_resources import KUBELET_MAX_PODS, pod_limit
from cfngen.cluster.model import Cluster


def consequences_of_types(cluster: Cluster, owner: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield what instances of other types no longer do for pods, one sentence each; nothing of types that are unknown.

    Args:
        cluster: the cluster as it is to be deployed.
        owner: the master or node group, in words.
        old: the types of the instances that are replaced, the first of which counts; none if they are not known.
        new: the types of the new instances, likewise.
    """
    if not old or not new:
        return
    if architecture(old[0]) != architecture(new[0]):
        yield consequence_of_architecture(owner, architecture(old[0]), architecture(new[0]))
    old_facts, new_facts = facts_of(old[0]), facts_of(new[0])
    if old_facts and new_facts:
        for compare in (_lost_gpus, _lost_disks):
            if text := compare(old_facts, new_facts):
                yield f"{owner}: {text}"
    if cluster.kubernetes.kubelet_configuration.get("maxPods"):
        return
    old_pods, new_pods = (min(pod_limit(cluster, types) or KUBELET_MAX_PODS, KUBELET_MAX_PODS) for types in (old, new))
    if new_pods < old_pods:
        yield f"{owner}: {new_pods} pods at most on an instance instead of {old_pods}; others wait for further nodes"


def consequence_of_architecture(owner: str, old: str, new: str) -> str:
    """Return what another CPU architecture, `amd64` or `arm64`, means for pods."""
    return (
        f"{owner}: CPU architecture {old} becomes {new}; pods whose images are not built for {new} do not start on the "
        "new instances: look for such images first, or add a node group beside this one and move pods to it by the "
        "node label kubernetes.io/arch"
    )


def _lost_gpus(old: InstanceTypeFacts, new: InstanceTypeFacts) -> str:
    if not old.gpu_count or (old.gpu, old.gpu_count) == (new.gpu, new.gpu_count):
        return ""
    before = f"{old.gpu_count} {old.gpu}"
    if not new.gpu_count:
        return f"no GPUs any more ({before} before); pods that request them stay pending"
    return f"GPUs: {new.gpu_count} {new.gpu} instead of {before}"


def _lost_disks(old: InstanceTypeFacts, new: InstanceTypeFacts) -> str:
    if new.local_disk_gb >= old.local_disk_gb:
        return ""
    if not new.local_disk_gb:
        return f"no local disks any more ({old.local_disk_gb} GB before)"
    return f"local disks of {new.local_disk_gb} GB instead of {old.local_disk_gb} GB"
