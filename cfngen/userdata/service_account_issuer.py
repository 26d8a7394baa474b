"""The API server's flags for the issuer of service-account tokens.

kube-apiserver's reference says of `--service-account-issuer`: given several times, "the first is used to generate
tokens and all are used to determine which issuers are accepted". kubeadm keeps the order of `extraArgs`, and leaves out
its own flag of the same name (`ArgumentsToCommand` in cmd/kubeadm/app/util/arguments.go; before 1.34.4 and 1.35.1 it
sorted them, kubernetes/kubeadm#3261). Without `--api-audiences`, tokens for the API server are those whose audience is
any of the issuers (pkg/kubeapiserver/options/authentication.go). So pods' tokens of either issuer stay valid, whichever
comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import KEYS_KEY
from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

_ISSUER_FLAG, _KEYS_FLAG = "service-account-issuer", "service-account-jwks-uri"
# The URL of the issuer, whose host is a reference of user data.
_ISSUER_URL = "https://${issuer}"


def with_flags(cluster: Cluster, cluster_configuration: JsonObject) -> JsonObject:
    """Return kubeadm's ClusterConfiguration with the API server's flags of the issuer, if the cluster has one.

    They are added after the user's settings have been merged: the flag of the issuers is there twice, while settings
    with the same name replace each other when they are merged.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return cluster_configuration
    # kubeadm's own issuer (cmd/kubeadm/app/phases/controlplane/manifests.go), which it leaves out if there is another.
    kubeadm_issuer = f"https://kubernetes.default.svc.{cluster.network.dns_domain}"
    issuers = [_ISSUER_URL, kubeadm_issuer] if issuer.sign_tokens else [kubeadm_issuer, _ISSUER_URL]
    flags = [
        *({"name": _ISSUER_FLAG, "value": url} for url in issuers),
        {"name": _KEYS_FLAG, "value": f"{_ISSUER_URL}/{KEYS_KEY}"},
    ]
    api_server = cluster_configuration["apiServer"]
    return {
        **cluster_configuration,
        "apiServer": {**api_server, "extraArgs": [*api_server["extraArgs"], *flags]},
    }
