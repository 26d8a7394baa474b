"""The manifests of the AWS cloud controller manager.

The manager removes the "uninitialized" taint of new nodes, writes their addresses and zones, and creates the pods' VPC
routes and the load balancers of services. Flags and permissions follow the cloud provider's documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import CLOUD_CONTROLLER_MANAGER, has_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.releases import CLOUD_CONTROLLER_MANAGER_IMAGE
from cfngen.userdata import pod_role, proxy
from cfngen.userdata.files import CLOUD_CONFIG_FILE

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

NAME = "cloud-controller-manager"
NAMESPACE = "kube-system"
RBAC = "rbac.authorization.k8s.io"
# What the manager may do: (API group, resources, verbs); several resources or verbs are separated by spaces.
CLUSTER_ROLE_RULES = (
    ("", "events", "create patch update"),
    ("", "nodes", "*"),
    ("", "nodes/status", "patch"),
    ("", "services services/status", "get list patch update watch"),
    ("", "serviceaccounts", "create get list watch"),
    ("", "serviceaccounts/token", "create"),
    ("coordination.k8s.io", "leases", "create get list update watch"),
)


def manifests(cluster: Cluster) -> list[JsonObject]:
    """Return the Kubernetes objects of the cloud controller manager, in the order in which masters apply them."""
    service_account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    rules = [
        {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
        for group, resources, verbs in CLUSTER_ROLE_RULES
    ]
    return [
        _object("v1", "ServiceAccount", NAME, NAMESPACE),
        _object(f"{RBAC}/v1", "ClusterRole", f"system:{NAME}", rules=rules),
        _object(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            f"system:{NAME}",
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": f"system:{NAME}"},
            subjects=[service_account],
        ),
        # Lets the manager's metrics endpoint read how API servers authenticate requests.
        _object(
            f"{RBAC}/v1",
            "RoleBinding",
            f"{NAME}:apiserver-authentication-reader",
            NAMESPACE,
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
            subjects=[service_account],
        ),
        _object("apps/v1", "DaemonSet", NAME, NAMESPACE, spec=_daemon_set(cluster)),
    ]


def _object(version: str, kind: str, name: str, namespace: str = "", **fields: object) -> JsonObject:
    """Return a Kubernetes object; `fields` are its top-level fields besides the common ones."""
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _daemon_set(cluster: Cluster) -> JsonObject:
    container: JsonObject = {
        "name": NAME,
        "image": CLOUD_CONTROLLER_MANAGER_IMAGE,
        "args": [f"--{flag}={value}" for flag, value in _flags(cluster).items()],
        # The pod connects to the API server on the same master, since service addresses do not work before kube-proxy
        # runs.
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(cluster.api.port)},
            *proxy.as_list(cluster),
        ],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "volumeMounts": [{"name": "cloud-config", "mountPath": CLOUD_CONFIG_FILE, "readOnly": True}],
    }
    pod: JsonObject = {
        "hostNetwork": True,
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        # The pod tolerates all taints, also the "uninitialized" taint, which only this manager removes.
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "cloud-config", "hostPath": {"path": CLOUD_CONFIG_FILE, "type": "File"}}],
    }
    if has_role(cluster, CLOUD_CONTROLLER_MANAGER):
        # It stays in the masters' network: it also reads the instance's metadata (`newAWSCloud2` in
        # pkg/providers/v1/aws.go of the cloud provider), and pods get addresses only once it has initialized the node.
        container["env"] += pod_role.variables(cluster, CLOUD_CONTROLLER_MANAGER)
        container["volumeMounts"] += [pod_role.token_mount()]
        pod["volumes"] += [pod_role.token_volume()]
    labels = {"k8s-app": NAME}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}


def _flags(cluster: Cluster) -> dict[str, str]:
    if network_plugin(cluster).uses_vpc_routes:
        route_flags = {
            "cluster-cidr": str(cluster.network.pod_cidr),
            "allocate-node-cidrs": "true",
            "configure-cloud-routes": "true",
        }
    else:
        # The route controller runs by default, and stops the manager if there is no cluster CIDR.
        route_flags = {"configure-cloud-routes": "false"}
    return {
        "cloud-provider": "aws",
        "cloud-config": CLOUD_CONFIG_FILE,
        "cluster-name": cluster.name,
        **route_flags,
        "use-service-account-credentials": "true",
        "leader-elect": "true",
        "v": "2",
    }
