"""Keys of tags: which a user may choose, and which are cfngen's, Kubernetes' or AWS's own.

IAM does not tell upper from lower case in keys ("Rules for tagging in IAM and AWS STS", IAM User Guide), and tags of a
cluster go to its roles as well: so keys are compared without case.
"""

from __future__ import annotations

import re

from cfngen.text_limits import TAG_KEY

NAME, CLUSTER = "Name", "KubernetesCluster"
# Beside the two: what templates give to subnets, masters' volumes and groups; and what the cloud controller manager,
# the EBS CSI driver, the load balancer controller and the Amazon VPC plug-in know their own by.
_TAKEN = re.compile(
    r"kubernetes\.io/(cluster/.*|role/.*|created-for/.*|service-name)"
    r"|k8s\.io/(role/.*|cluster-autoscaler/(?!node-template/).*)"
    r"|cfngen:.*"
    r"|(ebs\.csi\.aws\.com|elbv2\.k8s\.aws|(service|ingress)\.k8s\.aws|(cluster|node)\.k8s\.amazonaws\.com)/.*",
    re.IGNORECASE,
)


def key_fault(key: str) -> str:
    """Say why a user may not choose a key, or nothing."""
    if key.lower().startswith("aws:"):
        return "keys that begin with aws: belong to AWS; choose another"
    for own in (NAME, CLUSTER):
        if key == own:
            return "cfngen sets this tag itself; remove it"
        if key.casefold() == own.casefold():
            return f"cfngen sets {own} itself, and IAM takes both for one; choose another key"
    if _TAKEN.fullmatch(key):
        return "cfngen or Kubernetes sets such tags; remove it, or choose another key"
    fault = TAG_KEY.fault(key)
    return f"the key {fault}" if fault else ""
