"""The trust policies of roles: of existing roles of instances, and of those of service accounts and jobs."""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import AUDIENCE, ServiceAccount
from cfngen.cluster.network.endpoints import dns_suffix
from cfngen.permissions.statements import Expression, PolicyDocument


def ec2_principal(region: str) -> str:
    """Return EC2's service principal, which ends in the partition's DNS suffix, e.g. `ec2.amazonaws.com`."""
    return f"ec2.{dns_suffix(region)}"


def trust_policy(region: str) -> PolicyDocument:
    """Return the policy that lets EC2 give an instance the credentials of its role."""
    statement: dict[str, object] = {"Effect": "Allow", "Principal": {"Service": ec2_principal(region)}}
    statement["Action"] = "sts:AssumeRole"
    return {"Version": "2012-10-17", "Statement": [statement]}


def service_account_trust(account: ServiceAccount, *, provider: str, issuer: str) -> PolicyDocument:
    """Return the policy that lets the pods of a service account assume its role, and nobody else.

    The condition compares both audience and subject, for equality. Source: "Create a role for OpenID Connect
    federation", IAM User Guide.

    Args:
        provider: ARN of IAM's OIDC provider.
        issuer: the issuer of the tokens, without `https://`.
    """
    return web_identity_trust(provider=provider, issuer=issuer, audience=AUDIENCE, subject=account.subject)


def web_identity_trust(*, provider: Expression, issuer: str, audience: str, subject: str) -> PolicyDocument:
    """Return the policy that lets bearers of an issuer's tokens assume a role, of one audience and one subject only.

    Args:
        provider: ARN of IAM's OIDC provider.
        issuer: the issuer of the tokens, without `https://`.
        subject: the `sub` of the tokens; an asterisk stands for any characters.
    """
    audience_key, subject_key = f"{issuer}:aud", f"{issuer}:sub"
    condition: dict[str, dict[str, str]] = {"StringEquals": {audience_key: audience, subject_key: subject}}
    if "*" in subject:
        condition = {"StringEquals": {audience_key: audience}, "StringLike": {subject_key: subject}}
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Principal": {"Federated": provider},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": condition,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}
