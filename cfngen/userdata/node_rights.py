"""What nodes may do in Kubernetes besides what every kubelet may: join with masters' tokens, and list nodes.

**Joining.** The tokens that masters publish are in a group of their own, which gets the rights that kubeadm gives to
the group of its own tokens, with one exception: nothing approves its certificate requests but masters
(`boot/master/csr_approval.py`). The roles are Kubernetes' and kubeadm's.

**Listing nodes.** Before a drain, a node checks whether another node can run its pods. The node authorizer lets a
kubelet read only its own Node (`AuthorizeNodeWithSelectors`, since 1.32). An attacker who takes over a node gains
nothing by this permission: with its credentials they get tokens for the service accounts of its pods, and those of
kube-proxy and of the network plug-ins may list nodes already (`system:node-proxier`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

NAME = "cfngen:list-nodes"
RBAC = "rbac.authorization.k8s.io"
# As in the boot program (`boot/master/join_information.py`).
TOKEN_GROUP = "system:bootstrappers:cfngen:nodes"
# By the name of a binding, the kind and name of its role, which kubeadm binds to the group of its own tokens: in
# phases/bootstraptoken/node/tlsbootstrap.go, phases/uploadconfig/uploadconfig.go, phases/kubelet/config.go and
# phases/addons/proxy/proxy.go below cmd/kubeadm/app. `kubeadm join` asks whether a Node of its name is Ready, and reads
# the three ConfigMaps, that of kube-proxy only if it may.
JOIN_ROLES = {
    "cfngen:join-request-certificates": ("ClusterRole", "system:node-bootstrapper"),
    "cfngen:join-get-nodes": ("ClusterRole", "kubeadm:get-nodes"),
    "cfngen:join-kubeadm-config": ("Role", "kubeadm:nodes-kubeadm-config"),
    "cfngen:join-kubelet-config": ("Role", "kubeadm:kubelet-config"),
    "cfngen:join-kube-proxy": ("Role", "kube-proxy"),
}


def manifests(cluster: Cluster) -> list[JsonObject]:
    """Return the bindings that let nodes join, and the ClusterRole and binding that let drained nodes list nodes."""
    bindings = [_binding(name, kind, role, TOKEN_GROUP) for name, (kind, role) in JOIN_ROLES.items()]
    if not any(group.drain_timeout for group in cluster.node_groups):
        return bindings
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    return [
        *bindings,
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": [rule]},
        _binding(NAME, "ClusterRole", NAME, "system:nodes"),
    ]


def _binding(name: str, role_kind: str, role: str, group: str) -> JsonObject:
    """Return the object that gives a group a ClusterRole, or a Role of the namespace kube-system."""
    namespace = {"namespace": "kube-system"} if role_kind == "Role" else {}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{role_kind}Binding",
        "metadata": {"name": name, **namespace},
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
    }
