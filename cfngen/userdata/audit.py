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

POLICY = "/etc/kubernetes/audit-policy.json"
FOLDER = "/var/log/kubernetes/audit"
# Kubernetes' own components, which read all the time. Their changes are logged like everybody's.
_OWN_USERS = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy")
_OWN_GROUPS = ("system:nodes", "system:serviceaccounts:kube-system")
_READ_VERBS = ("get", "list", "watch")


def policy(cluster: Cluster) -> JsonObject:
    """Return the audit policy: the user's, or a short default. The first rule that matches a request applies.

    No rule logs more than metadata (who, when, from where, which object, result): bodies would put Secrets into the log
    and make it many times larger.
    """
    if cluster.control_plane.audit_log.policy:
        return dict(cluster.control_plane.audit_log.policy)
    rules: list[JsonObject] = [
        # Health checks and versions, of which each load balancer and client asks.
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
        {"level": "None", "users": list(_OWN_USERS), "verbs": list(_READ_VERBS)},
        {"level": "None", "userGroups": list(_OWN_GROUPS), "verbs": list(_READ_VERBS)},
        # A kubelet and the controllers report what they see.
        {
            "level": "None",
            "userGroups": list(_OWN_GROUPS),
            "verbs": ["patch", "update"],
            "resources": [{"group": "", "resources": ["nodes/status", "pods/status"]}],
        },
        # Logged although they are reads: `kubectl exec` is a GET (of a web socket), and Secrets are confidential.
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
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        # One entry per request, when it is answered, and none when it is received.
        "omitStages": ["RequestReceived"],
        "rules": rules,
    }


def files(cluster: Cluster) -> dict[str, str]:
    """Return the policy's file, by path, if requests are logged."""
    return {POLICY: json.dumps(policy(cluster), indent=1) + "\n"} if cluster.control_plane.audit_log.enabled else {}


def arguments(cluster: Cluster) -> Mapping[str, str]:
    """Return the API server's flags, if requests are logged."""
    log = cluster.control_plane.audit_log
    if not log.enabled:
        return {}
    return {
        "audit-log-maxage": str(log.max_age),
        "audit-log-maxbackup": str(log.max_backups),
        "audit-log-maxsize": str(log.max_size),
        "audit-log-path": f"{FOLDER}/audit.log",
        "audit-policy-file": POLICY,
    }


def volumes(cluster: Cluster) -> list[JsonObject]:
    """Return what the API server's container needs of the host, if requests are logged."""
    if not cluster.control_plane.audit_log.enabled:
        return []
    return [
        {"name": "audit-policy", "hostPath": POLICY, "mountPath": POLICY, "readOnly": True, "pathType": "File"},
        {"name": "audit-log", "hostPath": FOLDER, "mountPath": FOLDER, "pathType": "DirectoryOrCreate"},
    ]
