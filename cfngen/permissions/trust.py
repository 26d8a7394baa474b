"""The trust policies of roles: of existing roles of instances, and of roles of service accounts."""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import AUDIENCE, ServiceAccount
from cfngen.cluster.network.endpoints import dns_suffix
from cfngen.permissions.statements import PolicyDocument


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
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Principal": {"Federated": provider},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {f"{issuer}:aud": AUDIENCE, f"{issuer}:sub": account.subject}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}
