"""Tag keys: which a user may choose, and which are reserved for cfngen, Kubernetes or AWS.

IAM ignores case in keys ("Rules for tagging in IAM and AWS STS", IAM User Guide), and roles get the cluster's tags too,
so keys are compared without case.
"""

from __future__ import annotations

import re

from cfngen.text_limits import TAG_KEY

NAME = "Name"
CLUSTER = "KubernetesCluster"
# Tag of an Auto Scaling group while the cluster is paused: the sizes that the group had before.
PAUSED = "cfngen:paused"
# Roles of subnets: controllers find in them where load balancers of services go, internet-facing and internal ones.
PUBLIC_SUBNET_ROLE = "kubernetes.io/role/elb"
INTERNAL_SUBNET_ROLE = "kubernetes.io/role/internal-elb"
SUBNET_ROLES = (PUBLIC_SUBNET_ROLE, INTERNAL_SUBNET_ROLE)
# Reserved besides Name and KubernetesCluster: the tags that templates give to subnets, masters' volumes and groups, and
# the tags on which the cloud controller manager, the EBS CSI driver, the load balancer controller and the VPC CNI
# recognise their resources.
_RESERVED_KEYS = re.compile(
    r"kubernetes\.io/(cluster/.*|role/.*|created-for/.*|service-name)"
    r"|k8s\.io/(role/.*|cluster-autoscaler/(?!node-template/).*)"
    r"|cfngen:.*"
    r"|(ebs\.csi\.aws\.com|elbv2\.k8s\.aws|(service|ingress)\.k8s\.aws|(cluster|node)\.k8s\.amazonaws\.com)/.*",
    re.IGNORECASE,
)


def shared_with(cluster: str) -> str:
    """Return the key of the tag that says how a resource belongs to a cluster: `owned` or `shared`."""
    return f"kubernetes.io/cluster/{cluster}"


def added_tags_note(cluster: str) -> str:
    """Return the key of the tag whose value names the tags that cfngen has added to a subnet for a cluster."""
    return f"cfngen:added-tags/{cluster}"


def why_key_refused(key: str) -> str:
    """Return why a user may not choose a tag key, or an empty string if the key is allowed."""
    if key.lower().startswith("aws:"):
        return "keys that begin with aws: belong to AWS; choose another"
    for cfngen_key in (NAME, CLUSTER):
        if key == cfngen_key:
            return "cfngen sets this tag itself; remove it"
        if key.casefold() == cfngen_key.casefold():
            return f"cfngen sets {cfngen_key} itself, and IAM takes both for one; choose another key"
    if _RESERVED_KEYS.fullmatch(key):
        return "cfngen or Kubernetes sets such tags; remove it, or choose another key"
    reason = TAG_KEY.fault(key)
    return f"the key {reason}" if reason else ""
