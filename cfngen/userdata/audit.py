"""The API server's audit log: who did what, in a file on each master that is rotated.

Fields after https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/ and
https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

POLICY_FILE = "/etc/kubernetes/audit-policy.json"
LOG_FOLDER = "/var/log/kubernetes/audit"
# Users and groups of Kubernetes' components, which read often. Their reads are not logged, but their changes are.
_COMPONENT_USERS = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy")
_COMPONENT_GROUPS = ("system:nodes", "system:serviceaccounts:kube-system")
_READ_VERBS = ("get", "list", "watch")


def policy(cluster: Cluster) -> JsonObject:
    """Return the audit policy of the cluster file or, if it has none, cfngen's default policy.

    To each request the first rule that matches it applies. The default policy logs only metadata (who, when, from
    where, which object, result), not the bodies of requests and responses: these would put Secrets into the log and
    make it many times larger.
    """
    if cluster.control_plane.audit_log.policy:
        # The API server refuses a policy without these two.
        return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **cluster.control_plane.audit_log.policy}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        # One entry for each request, when it is answered; no second entry when the request is received.
        "omitStages": ["RequestReceived"],
        "rules": _default_rules(),
    }


def _default_rules() -> list[JsonObject]:
    return [
        # Health checks and versions, which load balancers and clients request often.
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version*", "/openapi*"]},
        # Heartbeats and events, written every few seconds.
        {
            "level": "None",
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "", "resources": ["events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
            ],
        },
        {"level": "None", "users": list(_COMPONENT_USERS), "verbs": list(_READ_VERBS)},
        {"level": "None", "userGroups": list(_COMPONENT_GROUPS), "verbs": list(_READ_VERBS)},
        # Status reports of the kubelets and controllers.
        {
            "level": "None",
            "userGroups": list(_COMPONENT_GROUPS),
            "verbs": ["patch", "update"],
            "resources": [{"group": "", "resources": ["nodes/status", "pods/status"]}],
        },
        # These reads are logged: `kubectl exec` is a GET (of a web socket), and Secrets are confidential.
        {
            "level": "Metadata",
            "resources": [
                {"group": "", "resources": ["secrets", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy"]},
                {"group": "", "resources": ["nodes/proxy", "services/proxy"]},
            ],
        },
        {"level": "None", "verbs": list(_READ_VERBS)},
        {"level": "Metadata"},
    ]


def files(cluster: Cluster) -> dict[str, str]:
    """Return the file with the audit policy, by path; empty if the audit log is disabled."""
    if not cluster.control_plane.audit_log.enabled:
        return {}
    return {POLICY_FILE: json.dumps(policy(cluster), indent=1) + "\n"}


def api_server_flags(cluster: Cluster) -> Mapping[str, str]:
    """Return the API server's flags for the audit log; empty if the audit log is disabled."""
    log = cluster.control_plane.audit_log
    if not log.enabled:
        return {}
    return {
        "audit-log-maxage": str(log.max_age),
        "audit-log-maxbackup": str(log.max_backups),
        "audit-log-maxsize": str(log.max_size),
        "audit-log-path": f"{LOG_FOLDER}/audit.log",
        "audit-policy-file": POLICY_FILE,
    }


def api_server_volumes(cluster: Cluster) -> list[JsonObject]:
    """Return the host paths to mount into the API server's container; empty if the audit log is disabled."""
    if not cluster.control_plane.audit_log.enabled:
        return []
    return [
        {
            "name": "audit-policy",
            "hostPath": POLICY_FILE,
            "mountPath": POLICY_FILE,
            "readOnly": True,
            "pathType": "File",
        },
        {"name": "audit-log", "hostPath": LOG_FOLDER, "mountPath": LOG_FOLDER, "pathType": "DirectoryOrCreate"},
    ]
