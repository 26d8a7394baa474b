"""Why a cluster's root template has no parameter of some name, although others have it: the cluster file decides it."""

from __future__ import annotations

from cfngen.cluster.instances.group_types import types_key
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.network.existing_parts import GroupRole, existing_group, group_key, stack_outputs
from cfngen.cluster.network.topology import has_api_load_balancer

API_CIDR_PARAMETER = "ApiAllowedCidr"
"""Parameter with the address range from which the Kubernetes API can be reached."""


def left_out_parameters(cluster: Cluster) -> dict[str, str]:
    """Return the reason for each parameter that the root template lacks because of the cluster file, by its name."""
    reasons = {
        str(NodeGroupId(group.name, "InstanceType")): f"`nodeGroups[{index}].{types_key(group)}` in the cluster file "
        "says which types the group has"
        for index, group in enumerate(cluster.node_groups)
        if group.instance_types or group.instance_requirements
    }
    for name, output in stack_outputs(cluster).items():
        reasons[name] = f"the cluster file takes it from another stack ({output})"
    api_reason = _api_range_reason(cluster)
    if api_reason:
        reasons[API_CIDR_PARAMETER] = api_reason
    return reasons


def _api_range_reason(cluster: Cluster) -> str:
    """Return why there is no parameter for who may reach the API; empty if there is one."""
    if cluster.api.allowed_cidrs:
        return "`api.allowedCidrs` in the cluster file sets it"
    if cluster.api.allowed_prefix_lists:
        return "`api.allowedPrefixLists` in the cluster file says who may reach the API"
    role: GroupRole = "ApiLoadBalancer" if has_api_load_balancer(cluster) else "Master"
    if existing_group(cluster, role):
        return (
            f"the rules of your own security group ({group_key(role)}) say who may reach the API, and cfngen changes "
            "none of them"
        )
    return ""
