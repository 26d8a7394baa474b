"""The names that CloudFormation generates for resources that the template does not name."""

from __future__ import annotations


def generated_name(stack: str, logical_id: str, random: str, limit: int) -> str:
    """Return `<stack>-<logical id>-<random>`, truncated to the length that the service allows.

    Stack name and logical id share the length that the suffix leaves. Each gets half of it (the stack name gets the odd
    character), plus the characters that the other does not need (`fair_split`,
    aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py; names seen: KensioSoftware/yulin#1113,
    convox/rack#2297).

    Args:
        stack: the stack name; empty for types whose names do not include it.
        logical_id: the resource's logical id.
        random: a suffix that no other resource has.
        limit: the maximum length that the service allows.
    """
    remaining = limit - len(random) - 1
    if not stack:
        return f"{logical_id[:remaining]}-{random}"
    remaining -= 1
    stack_length = min(len(stack), max((remaining + 1) // 2, remaining - len(logical_id)))
    return f"{stack[:stack_length]}-{logical_id[: remaining - stack_length]}-{random}"
