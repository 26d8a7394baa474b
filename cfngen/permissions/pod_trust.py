"""The trust policies of service accounts' roles, as policies to print."""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import ServiceAccount, addon_accounts
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.permissions.grants import Policy
from cfngen.permissions.service_accounts import grantee_name
from cfngen.permissions.statements import PolicyDocument, policy_size
from cfngen.permissions.trust import service_account_trust

ISSUER_NOTE = "ISSUER stands for the stack's output ServiceAccountIssuer"
"""What the purpose of a policy says whose issuer is not known yet."""


def pod_trust_policy(cluster: Cluster, name: str, account: str) -> Policy | None:
    """Return the trust policy of a service account's role, also of an existing one; None if the name is another's.

    IAM's OIDC provider must be in the account of the role. Unless the cluster file has the issuer's URL, the issuer is
    known only after the deployment: the text ISSUER stands for it.
    """
    role_by_account = dict.fromkeys(addon_accounts(cluster), "")
    for entry in cluster.iam.service_accounts:
        role_by_account[ServiceAccount(entry.namespace, entry.name)] = entry.role or ""
    for service_account, role in role_by_account.items():
        grantee = grantee_name(cluster, service_account)
        if grantee != name:
            continue
        url = cluster.service_account_issuer.url if cluster.service_account_issuer else None
        issuer = (url or "https://ISSUER").removeprefix("https://")
        role_account = role.split(":")[4] if role else account or "ACCOUNT"
        provider = f"arn:{aws_partition(cluster.region)}:iam::{role_account}:oidc-provider/{issuer}"
        document = service_account_trust(service_account, provider=provider, issuer=issuer)
        note = "" if url else f"; {ISSUER_NOTE}"
        pods = f"pods of the service account {service_account.name} in {service_account.namespace}"
        return printed_trust_policy(grantee, f"the trust policy of the role of {pods}{note}", document)
    return None


def printed_trust_policy(grantee: str, purpose: str, document: PolicyDocument) -> Policy:
    """Return the trust policy of a grantee's role as a policy to print."""
    return Policy(
        name=f"{grantee}-trust",
        grantee=grantee,
        purpose=purpose,
        managed_policies=(),
        characters=policy_size(document),
        document=document,
    )
