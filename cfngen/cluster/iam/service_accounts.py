"""The service accounts that have IAM roles, the names of these roles, and the documents of the tokens' issuer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.paths import dotted
from cfngen.cluster.sections.service_accounts import ServiceAccountIssuer

AUDIENCE = "sts.amazonaws.com"
"""Audience of the tokens that pods send to AWS STS; the same in every partition, as only the OIDC provider names it."""
DISCOVERY_KEY = ".well-known/openid-configuration"
"""Path of the issuer's discovery document below its URL (OpenID Connect Discovery 1.0, section 4)."""
KEYS_KEY = "openid/v1/jwks"
"""Path of the document with the issuer's public keys below its URL, as the API server names it."""
# CreateRole, IAM API Reference.
_MAX_ROLE_NAME = 64
_DIGEST_LENGTH = 8


class ServiceAccount(NamedTuple):
    """A service account of the cluster."""

    namespace: str
    name: str

    @property
    def subject(self) -> str:
        """The `sub` of its tokens."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that keep names apart that are cut or joined."""
        return hashlib.sha256(f"{self.namespace}/{self.name}".encode()).hexdigest()[:_DIGEST_LENGTH]


CLOUD_CONTROLLER_MANAGER = ServiceAccount("kube-system", "cloud-controller-manager")
EBS_CSI_DRIVER = ServiceAccount("kube-system", "ebs-csi-controller-sa")
CLUSTER_AUTOSCALER = ServiceAccount("kube-system", "cluster-autoscaler")
LOAD_BALANCER_CONTROLLER = ServiceAccount("kube-system", "aws-load-balancer-controller")
EXTERNAL_DNS = ServiceAccount("kube-system", "external-dns")
CERT_MANAGER = ServiceAccount("cert-manager", "cert-manager")
AMAZON_VPC_PLUGIN = ServiceAccount("kube-system", "aws-node")

_IS_INSTALLED: Mapping[ServiceAccount, Callable[[Cluster], bool]] = {
    CLOUD_CONTROLLER_MANAGER: lambda cluster: True,
    AMAZON_VPC_PLUGIN: lambda cluster: network_plugin(cluster).gives_pods_vpc_addresses,
    EBS_CSI_DRIVER: lambda cluster: cluster.addons.aws_ebs_csi_driver.enabled,
    CLUSTER_AUTOSCALER: lambda cluster: cluster.addons.cluster_autoscaler.enabled,
    LOAD_BALANCER_CONTROLLER: lambda cluster: cluster.addons.aws_load_balancer_controller.enabled,
    EXTERNAL_DNS: lambda cluster: cluster.addons.external_dns.enabled,
    CERT_MANAGER: lambda cluster: cluster.addons.cert_manager.enabled and bool(cluster.addons.cert_manager.zones),
}
ACCOUNTS_OF_COMPONENTS = frozenset(_IS_INSTALLED)
"""The service accounts of all of cfngen's own components that call AWS, installed or not."""


def component_accounts(cluster: Cluster) -> Iterator[ServiceAccount]:
    """Yield the service accounts of cfngen's own components that call AWS, with or without a role."""
    yield from (account for account, is_installed in _IS_INSTALLED.items() if is_installed(cluster))


def addon_accounts(cluster: Cluster) -> Iterator[ServiceAccount]:
    """Yield the service accounts of cfngen's own components that have roles; none unless `iam.addonRoles` is true."""
    if cluster.iam.addon_roles:
        yield from component_accounts(cluster)


def accounts_with_made_roles(cluster: Cluster) -> Iterator[tuple[str, ServiceAccount]]:
    """Yield the service accounts whose roles cfngen makes, each after the key of the cluster file that asks for it."""
    for account in addon_accounts(cluster):
        yield "iam.addonRoles", account
    for index, entry in enumerate(cluster.iam.service_accounts):
        if entry.role is None:
            yield dotted(("iam", "serviceAccounts", index)), ServiceAccount(entry.namespace, entry.name)


def has_role(cluster: Cluster, account: ServiceAccount) -> bool:
    """Return whether a component of cfngen's own has a role, so that it uses that and not the instance's."""
    return account in addon_accounts(cluster)


def keeps_statements_in_policies(cluster: Cluster) -> bool:
    """Return whether instances' roles have managed policies that repeat what their components need.

    That is the state before and after `iam.addonRoles`. In the update that gives components roles of their own,
    CloudFormation shortens the roles of instances at first, but deletes these policies at last, when everything uses
    the new roles.
    """
    return cluster.service_account_issuer is not None and not cluster.iam.addon_roles


def role_name(cluster: Cluster, account: ServiceAccount) -> str:
    """Return the name of a service account's role, e.g. `kubernetes.us-west-2.shop.web`.

    It is known before the role exists, so that instances need not be told its ARN, and policies of other accounts can
    name it. It contains the region since IAM's names are the same in all regions. A name that would be longer than IAM
    allows is cut, and ends in a digest.
    """
    name = f"{cluster.name}.{cluster.region}.{account.namespace}.{account.name}"
    if len(name) <= _MAX_ROLE_NAME:
        return name
    return f"{name[: _MAX_ROLE_NAME - _DIGEST_LENGTH - 1]}.{account.digest}"


def role_arn(cluster: Cluster, account: ServiceAccount, *, account_number: str) -> str:
    """Return the ARN of a service account's role that is made, in the account with this number."""
    partition = aws_partition(cluster.region)
    return f"arn:{partition}:iam::{account_number}:role{cluster.iam.path}{role_name(cluster, account)}"


def masters_publish_documents(cluster: Cluster) -> bool:
    """Return whether masters write the documents into a bucket: the cluster's own, or a web server's."""
    issuer = cluster.service_account_issuer
    return issuer is not None and (issuer.discovery != "url" or bool(issuer.bucket))


def document_keys(issuer: ServiceAccountIssuer) -> tuple[str, str]:
    """Return the keys in the bucket of the discovery document and of the document with the public keys.

    In the bucket of a web server, they are under the path of the URL.
    """
    path = urlsplit(issuer.url).path.strip("/") if issuer.url else ""
    prefix = f"{path}/" if path else ""
    return f"{prefix}{DISCOVERY_KEY}", f"{prefix}{KEYS_KEY}"
