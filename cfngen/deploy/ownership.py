"""The tag that marks a stack as this cluster's; stacks without it are neither changed nor deleted."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.deploy.stacks import CLUSTER_TAG, StackView
from cfngen.errors import CfngenError
from cfngen.hints import suggest


class ForeignStackError(CfngenError):
    """The stack of that name does not belong to this cluster."""

    code = "foreign-stack"


def root_stack_tags(cluster: str, chosen: Mapping[str, str], stack: StackView | None) -> dict[str, str]:
    """Return the tags of a root stack; CloudFormation propagates them to every resource.

    An update removes every tag that it does not list, so the stack's current tags are included.

    Args:
        cluster: name of the cluster.
        chosen: the tags that the operator chose.
        stack: the existing stack; None if it does not exist yet.
    """
    return {**(stack.tags if stack else {}), **chosen, CLUSTER_TAG: cluster}


def check_stack_owner(stack: StackView, cluster: str) -> None:
    """Raise an error unless the stack was created by `cfngen deploy` for this cluster.

    A stack that was created in the console from cfngen's templates lacks the tag, and is updated in the console.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was not created by `cfngen deploy`.
    """
    if stack.cluster == cluster:
        return
    if stack.cluster:
        message = f"the stack {stack.name} belongs to the cluster {stack.cluster}, not to {cluster}"
    else:
        message = (
            f"the stack {stack.name} was not created by `{suggest('deploy')}`: it does not have the tag "
            f"{CLUSTER_TAG}={cluster}"
        )
    hint = "choose another name with --stack-name; update a stack that was created in the console there."
    raise ForeignStackError(message, hint=hint)
