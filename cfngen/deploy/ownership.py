"""Whose a stack is: nothing is changed or destroyed in a stack that cfngen did not make for this cluster."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.deploy.stacks import CLUSTER_TAG, StackView
from cfngen.errors import CfngenError


class ForeignStackError(CfngenError):
    """The stack of that name is not this cluster's."""


def tags(cluster: str, chosen: Mapping[str, str], stack: StackView | None) -> dict[str, str]:
    """Return the tags of a root stack; CloudFormation passes them on to every resource.

    A tag that is left out of an update is taken away, from every resource: so those that the stack has stay.

    Args:
        cluster: name of the cluster.
        chosen: the operator's own tags.
        stack: the stack as it is; None if it is still to be created.
    """
    return {**(stack.tags if stack else {}), **chosen, CLUSTER_TAG: cluster}


def check(stack: StackView, cluster: str) -> None:
    """Refuse a stack of another maker or cluster.

    A stack that somebody created in the console from our templates lacks the tag; its operator has it updated there.

    Raises:
        ForeignStackError: it is not this cluster's.
    """
    if stack.cluster == cluster:
        return
    if stack.cluster:
        message = f"the stack {stack.name} belongs to the cluster {stack.cluster}, not to {cluster}"
    else:
        message = f"the stack {stack.name} was not made by `cfngen deploy`: it lacks the tag {CLUSTER_TAG}={cluster}"
    hint = "choose another name with --stack-name; a stack made in the console is updated in the console."
    raise ForeignStackError(message, hint=hint)
