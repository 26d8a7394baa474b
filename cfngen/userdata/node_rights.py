"""Allows nodes to list nodes: before a drain, a node checks whether another node can run its pods.

The node authorizer lets a kubelet read only its own Node (`AuthorizeNodeWithSelectors`, since 1.32). An attacker who
takes over a node gains nothing by this permission: with its credentials they get tokens for the service accounts of its
pods, and those of kube-proxy and of the network plug-ins may list nodes already (`system:node-proxier`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

NAME = "cfngen:list-nodes"
RBAC = "rbac.authorization.k8s.io"


def manifests(cluster: Cluster) -> list[JsonObject]:
    """Return the ClusterRole and ClusterRoleBinding that let nodes list nodes; none if no node group is drained."""
    if not any(group.drain_timeout for group in cluster.node_groups):
        return []
    common_fields = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": NAME}}
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    return [
        {**common_fields, "kind": "ClusterRole", "rules": [rule]},
        {
            **common_fields,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:nodes"}],
        },
    ]
