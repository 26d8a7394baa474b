"""The trust policy that an existing role of instances must have."""

from __future__ import annotations

from cfngen.cluster.endpoints import dns_suffix
from cfngen.permissions.statements import PolicyDocument


def ec2_principal(region: str) -> str:
    """Return EC2's service principal, which ends in the partition's DNS suffix, e.g. `ec2.amazonaws.com`."""
    return f"ec2.{dns_suffix(region)}"


def trust_policy(region: str) -> PolicyDocument:
    """Return the policy that lets EC2 give an instance the credentials of its role."""
    statement: dict[str, object] = {"Effect": "Allow", "Principal": {"Service": ec2_principal(region)}}
    statement["Action"] = "sts:AssumeRole"
    return {"Version": "2012-10-17", "Statement": [statement]}
