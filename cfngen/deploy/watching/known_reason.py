"""Reasons of AWS that are known: a pattern that finds each, what it means, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cfngen.hints import Hint


@dataclass(frozen=True)
class KnownReason:
    """A reason of AWS with its explanation.

    Attributes:
        pattern: regular expression that finds it; `{name}` in the texts below stands for its group of that name.
        meaning: what it means, one sentence without a full stop; empty where AWS's own text is clear.
        hint: what to do, with commands to copy.
    """

    pattern: re.Pattern[str]
    meaning: str
    hint: Hint


def reason(pattern: str, meaning: str, hint: Hint) -> KnownReason:
    """Return a reason that a regular expression finds, in upper or lower case and over several lines."""
    return KnownReason(re.compile(pattern, re.IGNORECASE | re.DOTALL), meaning, hint)


def quota_reason(pattern: str, resources: str, service: str, code: str) -> KnownReason:
    """Return a reason for an exceeded quota, with the command that requests an increase.

    Args:
        resources: what the quota limits, in the plural.
        service: code of the service in Service Quotas.
        code: code of the quota in Service Quotas.
    """
    return reason(
        pattern,
        f"the account's quota of {resources} in this region is used up",
        f"delete some, or request an increase: `aws service-quotas request-service-quota-increase --region {{region}} "
        f"--service-code {service} --quota-code {code} --desired-value NUMBER`; then repeat.",
    )
