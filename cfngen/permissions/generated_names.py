"""Patterns for names that CloudFormation generates, for policies that must match them before the resources exist.

A resource without a name in its template is named `<stack>-<logical id>-<random>`. If that is too long for the service,
CloudFormation keeps the random part, twelve or thirteen characters, and divides the remaining length between stack and
logical id: each keeps at least half of it, and more if the other is shorter. The rule is not documented. It is that of
the library for resource types that CloudFormation's team publishes (`fair_split`,
aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py), and reproduces observed names:
`chineseboostanalyticsstac-rainlyticslogsbucket8df4-hdst4ohfvdif` (KensioSoftware/yulin#1113), and
`mylongerapp-playground-ne-InstancesLifecycleHandle-1GRP3N0TVA1LD` (convox/rack#2297).
"""

from __future__ import annotations

_RANDOM_LENGTH = 13


def generated_name_pattern(root_stack_name: str, max_length: int) -> str:
    """Return a pattern, ending in `*`, for names that CloudFormation generates in the nested stacks of a root stack.

    Args:
        root_stack_name: name of the root stack; the nested stacks' names begin with it and a hyphen.
    """
    min_stack_name_length = (max_length - len("-") - len("-") - _RANDOM_LENGTH) // 2
    if len(root_stack_name) < min_stack_name_length:
        return f"{root_stack_name}-*"
    return f"{root_stack_name[:min_stack_name_length]}*"
