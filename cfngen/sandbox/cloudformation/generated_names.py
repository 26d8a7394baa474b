"""The names that CloudFormation generates for resources that the template does not name."""

from __future__ import annotations


def generated_name(stack_name: str, logical_id: str, random_suffix: str, max_length: int) -> str:
    """Return `<stack name>-<logical id>-<random suffix>`, truncated to the length that the service allows.

    Stack name and logical id share the length that the suffix leaves. Each gets half of it (the stack name gets the odd
    character), plus the characters that the other does not need (`fair_split`,
    aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py; names seen: KensioSoftware/yulin#1113,
    convox/rack#2297).

    Args:
        stack_name: the stack's name; empty for resource types whose names do not include it.
        random_suffix: a suffix that no other resource has.
        max_length: the maximum length that the service allows.
    """
    remaining_length = max_length - len(f"-{random_suffix}")
    if not stack_name:
        return f"{logical_id[:remaining_length]}-{random_suffix}"
    remaining_length -= len("-")  # between stack name and logical id
    half_length = (remaining_length + 1) // 2
    stack_length = min(len(stack_name), max(half_length, remaining_length - len(logical_id)))
    logical_id_length = remaining_length - stack_length
    return f"{stack_name[:stack_length]}-{logical_id[:logical_id_length]}-{random_suffix}"
