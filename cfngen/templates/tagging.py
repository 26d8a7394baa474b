"""The tags of a cluster's resources."""

from __future__ import annotations

from troposphere import Tags, autoscaling

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import CLUSTER, NAME


def tag_map(cluster: Cluster, name: str, **other_tags: str) -> dict[str, str]:
    """Return the tags of a resource by key.

    The cluster tag has two forms, and each resource gets both. `KubernetesCluster` is for the cloud controller manager
    and for IAM conditions, whose keys cannot contain the cluster's name. `kubernetes.io/cluster/<name>` is for newer
    programs.

    Args:
        other_tags: further tags, by key; pass keys that are not identifiers with `**`.
    """
    of_cluster = {CLUSTER: cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"}
    return {**cluster.tags, **of_cluster, NAME: name, **other_tags}


def tags(cluster: Cluster, name: str, **other_tags: str) -> Tags:
    """Return the tags of a resource as troposphere's `Tags`."""
    return Tags(tag_map(cluster, name, **other_tags))


def tags_without_kubernetes_io_tag(cluster: Cluster, name: str, **other_tags: str) -> Tags:
    """Return a resource's tags without `kubernetes.io/cluster/<name>`, by which controllers would find the resource.

    The tag `KubernetesCluster` is included, since IAM conditions need it.
    """
    return Tags({**cluster.tags, CLUSTER: cluster.name, NAME: name, **other_tags})


def auto_scaling_group_tags(
    cluster: Cluster, name: str, *, discoverable: bool, **other_tags: str
) -> list[autoscaling.Tag]:
    """Return the tags of an Auto Scaling group, which its instances get at launch.

    Args:
        discoverable: whether the group gets the tags by which cluster-autoscaler finds and scales it. Instances do not
            get these tags.
    """
    # The third argument of Tag is PropagateAtLaunch: whether instances get the tag.
    group_tags = [
        autoscaling.Tag(key, value, True) for key, value in sorted(tag_map(cluster, name, **other_tags).items())
    ]
    if discoverable:
        group_tags.append(autoscaling.Tag("k8s.io/cluster-autoscaler/enabled", "true", False))
        group_tags.append(autoscaling.Tag(f"k8s.io/cluster-autoscaler/{cluster.name}", "owned", False))
    return group_tags
