"""Judges the tags of existing subnets, by which controllers choose subnets for load balancers of services."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.topology import is_private
from cfngen.deploy.deletion.kubernetes_tags import CLUSTER_TAG_PREFIX, cluster_tag, tag_map
from cfngen.deploy.network_check.findings import Finding, warning
from cfngen.deploy.network_check.situation import Situation


def find_tag_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a warning for each existing subnet in which controllers would not create load balancers of services.

    The cloud controller manager leaves out subnets with another cluster's tag and without this cluster's, and prefers
    those with a role (`findSubnets` and `findELBSubnets` in pkg/providers/v1/aws.go of cloud-provider-aws). The AWS
    load balancer controller finds subnets by their role ("Subnet Auto Discovery" in its documentation).
    """
    own_tag = cluster_tag(situation.cluster.name)
    for subnet, described in situation.existing_subnets:
        tags = tag_map(described.get("Tags"))
        others = sorted(
            key.removeprefix(CLUSTER_TAG_PREFIX)
            for key in tags
            if key.startswith(CLUSTER_TAG_PREFIX) and key != own_tag
        )
        if others and own_tag not in tags:
            yield warning(
                subnet.id_key,
                f"{subnet.id} has the tag of the cluster {', '.join(others)} and not that of {situation.cluster.name}, "
                "so it gets no load balancers of services",
                "share it with this cluster",
                f"aws ec2 create-tags --resources {subnet.id} --tags Key={own_tag},Value=shared "
                f"--region {situation.region}",
            )
        is_internal = is_private(situation.cluster) and not subnet.is_public
        role = "kubernetes.io/role/internal-elb" if is_internal else "kubernetes.io/role/elb"
        if role not in tags:
            kind = "internal" if is_internal else "internet-facing"
            yield warning(
                subnet.id_key,
                f"{subnet.id} has no tag {role}, by which controllers find subnets for {kind} load balancers",
                "add it, or name the subnets in each service's annotations",
                f"aws ec2 create-tags --region {situation.region} --resources {subnet.id} --tags Key={role},Value=1",
            )
