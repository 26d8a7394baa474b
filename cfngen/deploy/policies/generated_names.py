"""What is certain of a name that CloudFormation makes up, for policies that must match it before it exists.

A resource that its template does not name is called `<stack>-<logical id>-<random>`. Where that is too long for the
service, CloudFormation keeps the random part, twelve or thirteen characters, and shares the rest between stack and
logical id: neither loses anything as long as the other one leaves it room, and each keeps half of it in any case. The
rule is not documented. It is that of the library for resource types that CloudFormation's team publishes
(`fair_split`, aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py), and reproduces names that were
seen: `chineseboostanalyticsstac-rainlyticslogsbucket8df4-hdst4ohfvdif` (KensioSoftware/yulin#1113), and
`mylongerapp-playground-ne-InstancesLifecycleHandle-1GRP3N0TVA1LD` (convox/rack#2297).
"""

from __future__ import annotations

_RANDOM = 13


def beginning(stack: str, max_length: int) -> str:
    """Return a pattern for the beginning of names that are generated in stacks that a root nests.

    Args:
        stack: name of the root; the nested stacks' names begin with it and a hyphen.
        longest: most characters that the service takes.
    """
    half = (max_length - len("-") - len("-") - _RANDOM) // 2
    return f"{stack}-*" if len(stack) < half else f"{stack[:half]}*"
