"""The tags from which cluster-autoscaler learns what nodes a group makes, and how to treat the group.

It reads them from the Auto Scaling group (`extractLabelsFromAsg`, `extractTaintsFromAsg`,
`extractAllocatableResourcesFromAsg` and `GetAsgOptions` of its cloudprovider/aws/aws_manager.go, the same in 1.34.5,
1.35.2 and 1.36.1). Labels, taints and resources count only while the group has no node; after that it looks at a node.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.node_resources import allocatable

NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


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
