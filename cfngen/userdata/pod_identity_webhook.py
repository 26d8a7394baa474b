"""The manifests of AWS's pod identity webhook, which gives pods the role of their service account.

It runs on every master beside its API server, which calls it at the loopback address, as in EKS. So it needs neither
the pod network nor the cluster's DNS nor another master. Flags, ports and the ConfigMap's format are from
aws/amazon-eks-pod-identity-webhook (main.go, pkg/cache/cache.go, README.md).

Masters apply all of it with their other manifests except the MutatingWebhookConfiguration, which
`cfngen.boot.master.pod_identity_webhook` adds once the webhook works.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import AUDIENCE, ServiceAccount, role_arn
from cfngen.cluster.model import Cluster
from cfngen.cluster.security_groups.addon_ports import POD_IDENTITY_METRICS_PORT, POD_IDENTITY_PORT
from cfngen.releases import POD_IDENTITY_WEBHOOK_IMAGE

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

# The webhook knows its ConfigMap by this name.
NAME = "pod-identity-webhook"
NAMESPACE = "kube-system"
# Objects outside namespaces have another name than those of a webhook that the user installs from AWS's manifests.
CLUSTER_ROLE = f"cfngen:{NAME}"
CONFIGURATION_NAME = f"cfngen-{NAME}"
RBAC = "rbac.authorization.k8s.io"
# By these labels masters delete the objects when the webhook is turned off.
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "cfngen"}
# Annotation of the DaemonSet and the MutatingWebhookConfiguration: a digest of the latter. By it masters of an earlier
# configuration find out that theirs has been superseded.
CONFIGURATION_ANNOTATION = "cfngen/configuration"
CERTIFICATE_FOLDER = "/etc/webhook/certs"
_UNPRIVILEGED_ID = 65534
# Seconds that a token is valid; the webhook's own default, and the longest that AWS's SDKs make use of.
_TOKEN_SECONDS = 86400
# Seconds that the API server waits for the webhook. Waiting for a new service account's annotations takes one of them.
_SECONDS_FOR_LISTED, _SECONDS_FOR_OTHERS = 5, 3
# The API server sends the first that it knows. To v1 this version of the webhook answers without the kind that v1 asks
# for (pkg/handler/handler.go); later ones answer to both (aws/amazon-eks-pod-identity-webhook#310).
_REVIEW_VERSIONS = ["v1beta1", "v1"]
_SKIP_LABEL = "eks.amazonaws.com/skip-pod-identity-webhook"


def manifests(cluster: Cluster) -> list[JsonObject]:
    """Return the Kubernetes objects of the webhook, in the order in which masters apply them; none without it."""
    if not cluster.addons.pod_identity_webhook.enabled:
        return []
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]
    read = ["get", "list", "watch"]
    return [
        _object("v1", "ServiceAccount", NAME),
        # The webhook watches all ConfigMaps of its namespace, and uses one.
        _object(f"{RBAC}/v1", "Role", NAME, rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": read}]),
        _object(
            f"{RBAC}/v1",
            "RoleBinding",
            NAME,
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": NAME},
            subjects=subjects,
        ),
        _object(
            f"{RBAC}/v1",
            "ClusterRole",
            CLUSTER_ROLE,
            namespace="",
            rules=[{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": read}],
        ),
        _object(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            CLUSTER_ROLE,
            namespace="",
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": CLUSTER_ROLE},
            subjects=subjects,
        ),
        _object("v1", "ConfigMap", NAME, data={"config": json.dumps(_roles(cluster), indent=1)}),
        _object(
            "apps/v1",
            "DaemonSet",
            NAME,
            annotations=configuration(cluster)["metadata"]["annotations"],
            spec=_spec(cluster),
        ),
    ]


def configuration(cluster: Cluster) -> JsonObject:
    """Return the MutatingWebhookConfiguration, without the certificate authority, which masters add.

    A pod whose service account is in the cluster file is refused while the webhook is away: without its role it would
    run, and fail later where nobody looks for the reason. Controllers create it again. Every other pod is let through.
    In kube-system nothing is ever refused, so that the cluster heals without the webhook. Mirror pods of static pods
    have no service account, so they match nothing.
    """
    listed = [f"{account.namespace}/{account.name}" for account in _accounts(cluster)]
    required = [account for account in listed if not account.startswith(f"{NAMESPACE}/")]
    in_own_namespace = [account for account in listed if account not in required]
    outside = f'request.namespace != "{NAMESPACE}"'
    optional = [
        {"name": "has-service-account", "expression": "has(object.spec.serviceAccountName)"},
        {
            "name": f"outside-{NAMESPACE}",
            "expression": f"{outside} || {_is_one_of(in_own_namespace)}" if in_own_namespace else outside,
        },
    ]
    webhooks = []
    if required:
        optional.append({"name": "not-in-cluster-file", "expression": f"!({_is_one_of(required)})"})
        condition = {
            "name": "in-cluster-file",
            "expression": f"has(object.spec.serviceAccountName) && {_is_one_of(required)}",
        }
        webhooks.append(_webhook("listed", "Fail", seconds=_SECONDS_FOR_LISTED, conditions=[condition]))
    webhooks.append(_webhook("annotated", "Ignore", seconds=_SECONDS_FOR_OTHERS, conditions=optional))
    digest = hashlib.sha256(json.dumps(webhooks, sort_keys=True).encode()).hexdigest()
    return _object(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        CONFIGURATION_NAME,
        namespace="",
        annotations={CONFIGURATION_ANNOTATION: digest},
        webhooks=webhooks,
    )


def _accounts(cluster: Cluster) -> list[ServiceAccount]:
    """Return the service accounts of the cluster file that have roles."""
    return [ServiceAccount(account.namespace, account.name) for account in cluster.iam.service_accounts]


def _roles(cluster: Cluster) -> JsonObject:
    """Return the role of each service account of the cluster file, as the webhook reads it from its ConfigMap."""
    return {
        f"{described.namespace}/{described.name}": {
            "RoleARN": described.role or role_arn(cluster, account, account_number="${accountId}"),
            "Audience": AUDIENCE,
            "UseRegionalSTS": True,
            "TokenExpiration": _TOKEN_SECONDS,
        }
        for described, account in zip(cluster.iam.service_accounts, _accounts(cluster), strict=True)
    }


def _is_one_of(accounts: list[str]) -> str:
    """Return a CEL expression that is true for pods of service accounts, each given as `namespace/name`."""
    return f'request.namespace + "/" + object.spec.serviceAccountName in {json.dumps(accounts)}'


def _webhook(name: str, failure_policy: str, *, seconds: int, conditions: list[JsonObject]) -> JsonObject:
    """Return one webhook of the configuration.

    Args:
        failure_policy: `Fail` or `Ignore`: whether a pod is refused if the webhook does not answer.
        conditions: the CEL expressions that must all be true of a pod.
    """
    return {
        "name": f"{name}.iam-for-pods.amazonaws.com",
        "clientConfig": {"url": f"https://127.0.0.1:{POD_IDENTITY_PORT}/mutate"},
        "failurePolicy": failure_policy,
        "timeoutSeconds": seconds,
        "matchConditions": conditions,
        "objectSelector": {"matchExpressions": [{"key": _SKIP_LABEL, "operator": "DoesNotExist"}]},
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        "matchPolicy": "Equivalent",
        # Again for containers that another webhook adds afterwards; what it finds already there it leaves alone.
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "admissionReviewVersions": _REVIEW_VERSIONS,
    }


def _spec(cluster: Cluster) -> JsonObject:
    pod = {
        "hostNetwork": True,
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _UNPRIVILEGED_ID,
            "runAsGroup": _UNPRIVILEGED_ID,
            "fsGroup": _UNPRIVILEGED_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(cluster)],
        # The pods wait until a master has made the certificate. A renewed one reaches them within two minutes.
        "volumes": [{"name": "certificate", "secret": {"secretName": NAME, "defaultMode": 0o440}}],
    }
    labels = {"k8s-app": NAME}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}


def _container(cluster: Cluster) -> JsonObject:
    flags = {
        "in-cluster": "false",
        "port": str(POD_IDENTITY_PORT),
        "metrics-port": str(POD_IDENTITY_METRICS_PORT),
        "tls-cert": f"{CERTIFICATE_FOLDER}/tls.crt",
        "tls-key": f"{CERTIFICATE_FOLDER}/tls.key",
        "tls-min-version": "1.2",
        "namespace": NAMESPACE,
        "watch-config-map": "true",
        "annotation-prefix": "eks.amazonaws.com",
        "token-audience": AUDIENCE,
        "token-expiration": str(_TOKEN_SECONDS),
        "aws-default-region": cluster.region,
        "sts-regional-endpoint": "true",
        # A pod often follows its service account at once, before the webhook has heard of that.
        "service-account-lookup-grace-period": "1s",
        "v": "2",
    }
    probe = {"httpGet": {"path": "/healthz", "port": POD_IDENTITY_PORT, "scheme": "HTTPS"}, "timeoutSeconds": 3}
    return {
        "name": NAME,
        "image": POD_IDENTITY_WEBHOOK_IMAGE,
        "command": ["/webhook"],
        "args": [f"--{flag}={value}" for flag, value in flags.items()],
        # The API server on the same master, since service addresses do not work before kube-proxy runs.
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(cluster.api.port)},
        ],
        "readinessProbe": {**probe, "periodSeconds": 5},
        "livenessProbe": {**probe, "periodSeconds": 10, "initialDelaySeconds": 15},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": True}],
    }


def _object(
    version: str,
    kind: str,
    name: str,
    *,
    namespace: str = NAMESPACE,
    annotations: dict[str, str] | None = None,
    **fields: object,
) -> JsonObject:
    """Return a Kubernetes object with the webhook's labels; `fields` are its other top-level fields."""
    metadata: JsonObject = {"name": name, "labels": LABELS}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
