"""Tells from a resource's tags to whom it belongs: to this cluster, to another cluster, or to a stack.

The resources that Kubernetes creates outside of the stacks can only be recognised by their tags.

Sources: "Tagging" in the documentation of the EBS CSI driver, the tags of the AWS load balancer controller,
`pkg/providers/v1/tags.go` of cloud-provider-aws, and the tags that amazon-vpc-cni-k8s gives to network interfaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cfngen.deploy.aws.stacks import CLUSTER_TAG

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"
LEGACY_CLUSTER_TAG = "KubernetesCluster"
SERVICE_TAG = "kubernetes.io/service-name"
CLUSTER_NAME_TAGS = (
    LEGACY_CLUSTER_TAG,
    "elbv2.k8s.aws/cluster",  # load balancer controller
    "cluster.k8s.amazonaws.com/name",  # VPC CNI, if configured with the name
    "ebs.csi.aws.com/cluster-name",  # EBS CSI driver, if configured with the name
)
"""Tags whose value is a cluster's name."""


def tag_map(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Return the tags of an AWS response as a mapping."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags or ()}


def cluster_tag(cluster: str) -> str:
    """Return the key of the tag whose value says how a resource belongs to a cluster: `owned` or `shared`."""
    return f"{CLUSTER_TAG_PREFIX}{cluster}"


def is_owned_by(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether a resource belongs to this cluster alone.

    A resource with the tags of another cluster does not, even if it has this cluster's tags too; neither does a
    resource whose tag for this cluster is `shared`.
    """
    # The value of a cluster's tag is `owned` or `shared`.
    lifecycle_by_cluster = {
        key.removeprefix(CLUSTER_TAG_PREFIX): value for key, value in tags.items() if key.startswith(CLUSTER_TAG_PREFIX)
    }
    if lifecycle_by_cluster and lifecycle_by_cluster != {cluster: "owned"}:
        return False
    cluster_names = {tags[key] for key in CLUSTER_NAME_TAGS if key in tags}
    return cluster_names <= {cluster} and bool(lifecycle_by_cluster or cluster_names)


def is_created_by_stack(tags: Mapping[str, str]) -> bool:
    """Return whether CloudFormation created a resource: it has the tags of a stack, or those of CloudFormation."""
    return CLUSTER_TAG in tags or "aws:cloudformation:stack-id" in tags


def service_name(tags: Mapping[str, str]) -> str:
    """Return the Service, Ingress or Gateway that an AWS resource was created for; empty if its tags name none."""
    for key in (SERVICE_TAG, "service.k8s.aws/stack", "ingress.k8s.aws/stack", "gateway.k8s.aws/stack"):
        if tags.get(key):
            return tags[key]
    return ""


def claim_name(tags: Mapping[str, str]) -> str:
    """Return the PersistentVolumeClaim of a volume, as `namespace/name`; empty if its tags do not name one."""
    name, namespace = (tags.get(f"kubernetes.io/created-for/pvc/{part}", "") for part in ("name", "namespace"))
    return f"{namespace}/{name}" if namespace and name else name


def is_created_for_claim(tags: Mapping[str, str]) -> bool:
    """Return whether a volume was created for a PersistentVolumeClaim, by the EBS CSI or the former in-tree driver."""
    return bool(
        claim_name(tags)
        or {"CSIVolumeName", "ebs.csi.aws.com/cluster", "kubernetes.io/created-for/pv/name"} & tags.keys()
    )
