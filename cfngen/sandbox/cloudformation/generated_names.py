"""Names that CloudFormation makes up for what its template does not name."""

from __future__ import annotations


def generated(stack: str, logical_id: str, random: str, limit: int) -> str:
    """Return `<stack>-<logical id>-<random>`, cut to what the service takes.

    Stack and logical id share the room that the random part leaves: each keeps half of it, the stack the odd character,
    and takes what the other one does not need (`fair_split`, aws-cloudformation/cloudformation-cli-python-plugin,
    identifier_utils.py; names seen: KensioSoftware/yulin#1113, convox/rack#2297).

    Args:
        stack: name of the stack; empty where the service's names do without.
        logical_id: the resource's.
        random: what no other resource has.
        limit: most characters that the service takes.
    """
    room = limit - len(random) - 1
    if not stack:
        return f"{logical_id[:room]}-{random}"
    room -= 1
    of_stack = min(len(stack), max((room + 1) // 2, room - len(logical_id)))
    return f"{stack[:of_stack]}-{logical_id[: room - of_stack]}-{random}"
