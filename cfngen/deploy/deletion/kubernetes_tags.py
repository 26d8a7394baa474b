"""Whose something in AWS is, by its tags: the cluster's, another's, a stack's.

What Kubernetes makes outside of the stack is known by nothing but tags. Sources: "Tagging" in the documentation of the
EBS CSI driver, the tags of the AWS load balancer controller, `pkg/providers/v1/tags.go` of cloud-provider-aws, and the
tags that amazon-vpc-cni-k8s gives to network interfaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cfngen.deploy.stacks import CLUSTER_TAG

CLUSTER_PREFIX = "kubernetes.io/cluster/"
LEGACY_CLUSTER = "KubernetesCluster"
SERVICE = "kubernetes.io/service-name"
NAMED_BY_CLUSTER = (
    LEGACY_CLUSTER,
    "elbv2.k8s.aws/cluster",  # load balancer controller
    "cluster.k8s.amazonaws.com/name",  # VPC CNI, if it was told the name
    "ebs.csi.aws.com/cluster-name",  # EBS CSI driver, if it was told the name
)
"""Tags whose value is a cluster's name."""


def tag_map(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Return AWS's list of keys and values as a mapping."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags or ()}


def cluster_tag(cluster: str) -> str:
    """Return the key of the tag that says how something belongs to a cluster: `owned` or `shared`."""
    return f"{CLUSTER_PREFIX}{cluster}"


def owned(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether something belongs to this cluster alone.

    What bears the tag of any other cluster does not, nor what is merely shared with this one.
    """
    lifecycles = {
        key.removeprefix(CLUSTER_PREFIX): value for key, value in tags.items() if key.startswith(CLUSTER_PREFIX)
    }
    if lifecycles and lifecycles != {cluster: "owned"}:
        return False
    named = {tags[key] for key in NAMED_BY_CLUSTER if key in tags}
    return named <= {cluster} and bool(lifecycles or named)


def of_a_stack(tags: Mapping[str, str]) -> bool:
    """Return whether a CloudFormation stack made it: the tags of a stack, and those of CloudFormation, are on it."""
    return CLUSTER_TAG in tags or "aws:cloudformation:stack-id" in tags


def service(tags: Mapping[str, str]) -> str:
    """Return the Service, Ingress or Gateway that a load balancer, target group or security group was made for."""
    for key in (SERVICE, "service.k8s.aws/stack", "ingress.k8s.aws/stack", "gateway.k8s.aws/stack"):
        if tags.get(key):
            return tags[key]
    return ""


def claim(tags: Mapping[str, str]) -> str:
    """Return the claim, as `namespace/name`, that a volume was made for; empty if its maker did not say."""
    name, namespace = (tags.get(f"kubernetes.io/created-for/pvc/{part}", "") for part in ("name", "namespace"))
    return f"{namespace}/{name}" if namespace and name else name


def of_a_claim(tags: Mapping[str, str]) -> bool:
    """Return whether a volume was made for a claim: by the EBS CSI driver, or by Kubernetes itself before it."""
    return bool(
        claim(tags) or {"CSIVolumeName", "ebs.csi.aws.com/cluster", "kubernetes.io/created-for/pv/name"} & tags.keys()
    )
