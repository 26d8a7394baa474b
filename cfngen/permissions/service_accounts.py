"""IAM statements of the roles of service accounts: of cfngen's own components, and of the cluster file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cfngen.cluster.iam.service_accounts import (
    AMAZON_VPC_PLUGIN,
    CERT_MANAGER,
    CLOUD_CONTROLLER_MANAGER,
    CLUSTER_AUTOSCALER,
    EBS_CSI_DRIVER,
    EXTERNAL_DNS,
    LOAD_BALANCER_CONTROLLER,
    ServiceAccount,
    addon_accounts,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.service_accounts import PolicyStatement
from cfngen.permissions.addons import (
    cert_manager_statements,
    cluster_autoscaler_statements,
    ebs_csi_driver_statements,
    external_dns_statements,
)
from cfngen.permissions.cloud_controller import cloud_controller_statements
from cfngen.permissions.instance_roles import volume_key_statements
from cfngen.permissions.load_balancer_controller import controller_role_statements
from cfngen.permissions.node_groups import statements_of_cluster_file
from cfngen.permissions.pod_network import pod_address_statements
from cfngen.permissions.references import References
from cfngen.permissions.statements import Statement

_STATEMENTS: Mapping[ServiceAccount, Callable[[Cluster, References], list[Statement]]] = {
    CLOUD_CONTROLLER_MANAGER: cloud_controller_statements,
    AMAZON_VPC_PLUGIN: lambda cluster, references: pod_address_statements(cluster, references, "pods"),
    EBS_CSI_DRIVER: lambda cluster, references: [
        *volume_key_statements(cluster, references, key=None, sid_prefix="Ebs"),
        *ebs_csi_driver_statements(cluster, references),
    ],
    CLUSTER_AUTOSCALER: lambda cluster, references: cluster_autoscaler_statements(cluster),
    LOAD_BALANCER_CONTROLLER: controller_role_statements,
    EXTERNAL_DNS: external_dns_statements,
    CERT_MANAGER: cert_manager_statements,
}


class MadeRole(NamedTuple):
    """A role that the IAM stack makes for a service account.

    Attributes:
        statements: statements of the role's inline policy; may be empty.
        permissions_boundary: ARN of its permissions boundary, or None.
    """

    account: ServiceAccount
    statements: list[Statement]
    managed_policies: tuple[str, ...] = ()
    permissions_boundary: str | None = None
    tags: Mapping[str, str] = {}


def made_roles(cluster: Cluster, references: References) -> Iterator[MadeRole]:
    """Yield the roles that are made: of cfngen's own components first, then those of the cluster file.

    A service account for which the cluster file names an existing role is not among them.
    """
    for account in addon_accounts(cluster):
        statements = _STATEMENTS[account](cluster, references)
        yield MadeRole(account, statements, permissions_boundary=cluster.iam.permissions_boundary)
    for service_account in cluster.iam.service_accounts:
        if service_account.role:
            continue
        policy_statements: tuple[PolicyStatement, ...] = service_account.policy_statements
        yield MadeRole(
            ServiceAccount(service_account.namespace, service_account.name),
            statements_of_cluster_file(policy_statements),
            managed_policies=service_account.additional_policies,
            permissions_boundary=service_account.permissions_boundary or cluster.iam.permissions_boundary,
            tags=service_account.tags,
        )


def grantee_name(cluster: Cluster, account: ServiceAccount) -> str:
    """Return the name of a service account's role among the grantees, e.g. `pod-shop-web`.

    Hyphens may be part of both names, so those of two accounts may be the same; then they end in their digests.
    """
    accounts = {
        *addon_accounts(cluster),
        *(ServiceAccount(entry.namespace, entry.name) for entry in cluster.iam.service_accounts),
    }
    names = [_joined_name(other) for other in accounts]
    name = _joined_name(account)
    return f"{name}-{account.digest}" if names.count(name) > 1 else name


def _joined_name(account: ServiceAccount) -> str:
    return f"pod-{account.namespace}-{account.name}"
