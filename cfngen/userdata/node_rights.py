"""What nodes may do beyond Kubernetes' own rules for them: list nodes, to see whether pods have anywhere to go.

The node authorizer lets a kubelet read no Node but its own (`AuthorizeNodeWithSelectors`, since 1.32). Whoever takes
over a node gains nothing by this: with its credentials they get tokens for the service accounts of its pods, and those
of kube-proxy and of the network plug-ins may list nodes already (`system:node-proxier`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

NAME = "cfngen:list-nodes"
RBAC = "rbac.authorization.k8s.io"


def manifests(cluster: Cluster) -> list[JsonObject]:
    """Return the objects to apply, in order; none if no node is drained."""
    if not any(group.drain_timeout for group in cluster.node_groups):
        return []
    head = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": NAME}}
    return [
        {**head, "kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]},
        {
            **head,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:nodes"}],
        },
    ]
