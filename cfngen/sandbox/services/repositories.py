"""Repositories of Amazon ECR: what moto does not check (SetRepositoryPolicy, Amazon ECR API Reference)."""

from __future__ import annotations

from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_POLICY_CHARACTERS = 10_240


@rule("ecr", "SetRepositoryPolicy")
def check_policy_length(call: PendingCall) -> None:
    """Refuse a policy that is too long."""
    if len(call.get("policyText") or "") > MAX_POLICY_CHARACTERS:
        raise Refused(
            "InvalidParameterException",
            "Invalid parameter at 'policyText' failed to satisfy constraint: "
            f"'Member must have length less than or equal to {MAX_POLICY_CHARACTERS}'",
        )
