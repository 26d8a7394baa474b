"""The tags of a cluster's resources."""

from __future__ import annotations

from troposphere import Tags, autoscaling

from cfngen.cluster.model import Cluster
from cfngen.cluster.tag_keys import CLUSTER, NAME


def tag_map(cluster: Cluster, name: str, **more: str) -> dict[str, str]:
    """Return the tags of a resource by key.

    Both forms of the cluster tag are among them: the cloud controller manager and IAM conditions use
    `KubernetesCluster` (a condition key cannot contain the cluster's name), newer programs
    `kubernetes.io/cluster/<name>`.

    Args:
        cluster: the cluster.
        name: value of the Name tag.
        more: further tags, by key; pass keys that are not identifiers with `**`.
    """
    return {
        **cluster.tags,
        **cluster_tags(cluster),
        NAME: name,
        **more,
    }


def cluster_tags(cluster: Cluster) -> dict[str, str]:
    """Return the two tags that mark a resource as the cluster's own."""
    return {CLUSTER: cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"}


def tags(cluster: Cluster, name: str, **more: str) -> Tags:
    """Return the tags of a resource as troposphere's `Tags`."""
    return Tags(tag_map(cluster, name, **more))


def private_tags(cluster: Cluster, name: str) -> Tags:
    """Return the tags of a resource that controllers must not find by `kubernetes.io/cluster/<name>`.

    `KubernetesCluster` is among them, for IAM conditions.
    """
    return Tags({**cluster.tags, CLUSTER: cluster.name, NAME: name})


def group_tags(cluster: Cluster, name: str, *, discoverable: bool, **more: str) -> list[autoscaling.Tag]:
    """Return the tags of an Auto Scaling group, which its instances get at launch.

    Args:
        cluster: the cluster.
        name: value of the Name tag.
        discoverable: whether cluster-autoscaler may find and scale the group; those tags stay with the group.
        more: further tags.
    """
    result = [autoscaling.Tag(key, value, True) for key, value in sorted(tag_map(cluster, name, **more).items())]
    if discoverable:
        result.append(autoscaling.Tag("k8s.io/cluster-autoscaler/enabled", "true", False))
        result.append(autoscaling.Tag(f"k8s.io/cluster-autoscaler/{cluster.name}", "owned", False))
    return result
