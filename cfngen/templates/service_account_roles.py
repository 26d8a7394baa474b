"""The roles of service accounts, and the OIDC provider by which AWS STS accepts the tokens of their pods.

The roles have fixed names, so that instances can tell the ARN of each without having been told.
"""

from __future__ import annotations

import json

from troposphere import Ref, Sub, Tags, iam

from cfngen.cluster.iam.service_accounts import AUDIENCE, ServiceAccount, role_name
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.identity_ids import ServiceAccountRoleId
from cfngen.cluster.naming.logical_ids import OIDC_PROVIDER
from cfngen.permissions.references import References
from cfngen.permissions.service_accounts import MadeRole, made_roles
from cfngen.permissions.trust import service_account_trust
from cfngen.templates.iam_properties import iam_path, permissions_boundary
from cfngen.templates.issuer import issuer_without_scheme
from cfngen.templates.references import named_arn
from cfngen.templates.stack import PropertyValue, Stack
from cfngen.templates.tagging import tag_map, tags

NAMESPACE_TAG, NAME_TAG = "kubernetes-namespace", "kubernetes-service-account"
"""Tags by which IAM conditions recognize a role's service account (`aws:PrincipalTag`): those of EKS Pod Identity."""

# SHA-1 thumbprint of Starfield Services Root Certificate Authority - G2, which signs Amazon's authorities, and so the
# certificates of CloudFront and S3.
UNUSED_THUMBPRINT = "9e99a48a9960b14926bb7f3b02e22da2b0ab7280"
"""The thumbprint of every OIDC provider that is made, which IAM compares for no certificate of a known authority."""


def add_service_account_roles(stack: Stack, cluster: Cluster, references: References) -> None:
    """Add the OIDC provider and the roles to the IAM stack; nothing if the file has no `serviceAccountIssuer`."""
    if cluster.service_account_issuer is None:
        return
    url = cluster.service_account_issuer.url
    issuer: PropertyValue = "" if url else issuer_without_scheme(stack)
    roles = tuple(made_roles(cluster, references))
    if url and roles:
        # Only roles need the parameter then, and lint refuses one that nothing uses.
        issuer = issuer_without_scheme(stack)
    provider = _add_provider(stack, cluster, url or Sub("https://${Issuer}", Issuer=issuer))
    for made_role in roles:
        _add_role(stack, cluster, made_role, provider, issuer)


def _add_provider(stack: Stack, cluster: Cluster, url: PropertyValue) -> iam.OIDCProvider:
    """Add the provider and return it.

    IAM verifies the issuer's certificate with its library of certificate authorities, and compares the thumbprint only
    for a certificate that none of them signed (CreateOpenIDConnectProvider, IAM API Reference). A thumbprint is set
    nevertheless: without it every update fails, also one of tags (aws-cloudformation/cloudformation-coverage-roadmap
    #2092).
    """
    return stack.add(
        iam.OIDCProvider(
            OIDC_PROVIDER,
            ClientIdList=[AUDIENCE],
            Tags=tags(cluster, f"{cluster.name}-issuer"),
            ThumbprintList=[UNUSED_THUMBPRINT],
            Url=url,
        )
    )


def _add_role(
    stack: Stack, cluster: Cluster, made_role: MadeRole, provider: iam.OIDCProvider, issuer: PropertyValue
) -> None:
    """Add a role that only the pods of its service account may assume."""
    account = made_role.account
    optional_properties: dict[str, object] = {}
    if made_role.statements:
        document = {"Version": "2012-10-17", "Statement": made_role.statements}
        optional_properties["Policies"] = [iam.Policy(PolicyName="kubernetes", PolicyDocument=document)]
    if made_role.managed_policies:
        optional_properties["ManagedPolicyArns"] = [named_arn(arn) for arn in made_role.managed_policies]
    stack.add(
        iam.Role(
            str(ServiceAccountRoleId.of(*account, account.digest)),
            AssumeRolePolicyDocument=_trust(account, provider, issuer),
            Description=f"service account {account.name} in {account.namespace} of the Kubernetes cluster "
            f"{cluster.name}",
            RoleName=role_name(cluster, account),
            Tags=_tags(cluster, made_role),
            **iam_path(cluster),
            **optional_properties,
            **permissions_boundary(made_role.permissions_boundary),
        )
    )


def _tags(cluster: Cluster, made_role: MadeRole) -> Tags:
    """Return a role's tags: the cluster's, its own of the cluster file, and the two that name its service account."""
    account = made_role.account
    name = role_name(cluster, account)
    return Tags({**tag_map(cluster, name), **made_role.tags, NAMESPACE_TAG: account.namespace, NAME_TAG: account.name})


def _trust(account: ServiceAccount, provider: iam.OIDCProvider, issuer: PropertyValue) -> Sub:
    """Return the trust policy as one text: the keys of its condition contain the issuer.

    CloudFormation replaces placeholders in values only, never in the keys of a map (lint rule E9024).
    """
    document = service_account_trust(account, provider="${Provider}", issuer="${Issuer}")
    return Sub(json.dumps(document, separators=(",", ":")), Provider=Ref(provider), Issuer=issuer)
