"""What the pods of a component need to use its IAM role: a token for AWS STS, and the variables that name it.

AWS's SDKs take a role's credentials in exchange for the token in a file (`AWS_ROLE_ARN` and
`AWS_WEB_IDENTITY_TOKEN_FILE`, AWS SDKs and Tools Reference Guide, "Assume role credential provider"), before they ask
the instance's metadata. Components of cfngen's own get both without a webhook, since some run before any webhook can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cfngen.cluster.iam.service_accounts import AUDIENCE, ServiceAccount, has_role, role_arn
from cfngen.cluster.model import Cluster

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

_VOLUME = "aws-token"
_FOLDER = "/var/run/secrets/sts.amazonaws.com/serviceaccount"
_FILE = "token"
# A day; the kubelet renews a token after 80 % of its time, or a day at the latest.
_TOKEN_SECONDS = 86400


def variables(cluster: Cluster, account: ServiceAccount) -> list[JsonObject]:
    """Return the environment variables of a container that uses the role of its service account.

    The region is one of them, since pods with addresses of their own do not reach the instance's metadata. Older SDKs
    would otherwise ask the global endpoint of AWS STS, which is in another region.
    """
    values = {
        # The boot program replaces the account's id, a reference of user data.
        "AWS_ROLE_ARN": role_arn(cluster, account, account_number="${accountId}"),
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{_FOLDER}/{_FILE}",
        "AWS_REGION": cluster.region,
        "AWS_STS_REGIONAL_ENDPOINTS": "regional",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def token_volume() -> JsonObject:
    """Return the volume in which the kubelet keeps a valid token of the pod's service account for AWS STS."""
    token = {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    return {"name": _VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}


def token_mount() -> JsonObject:
    """Return the mount of `token_volume` in a container."""
    return {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}


def patches(
    cluster: Cluster,
    account: ServiceAccount,
    *,
    kind: Literal["Deployment", "DaemonSet"] = "Deployment",
    name: str,
    container: str,
    further_variables: tuple[JsonObject, ...] = (),
) -> tuple[JsonObject, ...]:
    """Return the patches of a chart's object that let its pods use the role of their service account.

    Without a role, but with an issuer, it is a patch without fields: server-side apply then removes those of a role
    that the cluster file no longer asks for. A cluster without an issuer has had no role.

    The object, of this name, is in the service account's namespace; the container is the one that calls AWS.
    """
    if cluster.service_account_issuer is None:
        return ()
    patch: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": account.namespace},
    }
    if has_role(cluster, account):
        patched_container = {
            "name": container,
            "env": [*variables(cluster, account), *further_variables],
            "volumeMounts": [token_mount()],
        }
        patch["spec"] = {"template": {"spec": {"containers": [patched_container], "volumes": [token_volume()]}}}
    return (patch,)
