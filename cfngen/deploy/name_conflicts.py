"""Finds other root stacks in the region that contain a cluster of the same name.

Resources that Kubernetes creates are found only by their tags, and the folder in the bucket is named after the cluster.
Two clusters of one name in a region would share the tags and the folder, so cfngen does not create the second one.
"""

from __future__ import annotations

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.stacks import StackView, parse_stack
from cfngen.errors import CfngenError

EMPTY_STACK_STATUSES = frozenset({"ROLLBACK_COMPLETE"})
"""Statuses of a stack that still exists but has no resources: its creation was rolled back completely."""


class NameConflictError(CfngenError):
    """Another stack in the region contains a cluster of this name.

    Attributes:
        stacks: names of those stacks.
    """

    code = "cluster-name-conflict"

    def __init__(self, cluster: str, stack: str, stacks: tuple[str, ...]) -> None:
        super().__init__(
            f"the cluster {cluster} already exists in the stack {', '.join(stacks)}: a second cluster of this name "
            f"in the stack {stack} would share its tags, by which Kubernetes finds its load balancers and volumes, "
            "and its folder in the bucket",
            hint="choose another `name` in the cluster file, or with --set name=…; or name the existing stack with "
            "--stack-name.",
        )
        self.stacks = stacks


def find_live_stacks(account: Account, cluster: str, *, besides: str = "") -> tuple[str, ...]:
    """Return the names of the root stacks that contain a cluster of this name.

    Empty if the caller has no permission to list stacks.

    Args:
        account: account and region to search.
        cluster: name of the cluster.
        besides: name or ARN of a root stack that is ignored: the one that the cluster itself uses.
    """
    from botocore.exceptions import ClientError

    pages = account.client("cloudformation").get_paginator("describe_stacks").paginate()
    try:
        roots = [parse_stack(stack) for page in pages for stack in page["Stacks"] if not stack.get("ParentId")]
    except ClientError as error:
        # A caller who is only allowed to use certain stacks may not describe all stacks.
        if error_code(error) not in ACCESS_DENIED_CODES:
            raise
        return ()
    return tuple(sorted(root.name for root in roots if root.cluster == cluster and _conflicts(root, besides)))


def require_unique_name(account: Account, cluster: str, stack: str) -> None:
    """Raise an error if another stack contains a cluster of the same name.

    Args:
        account: account and region to search.
        cluster: name of the cluster.
        stack: name of the root stack that is to be created.

    Raises:
        NameConflictError: another stack contains a cluster of this name.
    """
    if conflicting_stacks := find_live_stacks(account, cluster, besides=stack):
        raise NameConflictError(cluster, stack, conflicting_stacks)


def _conflicts(stack: StackView, besides: str) -> bool:
    """Return whether a stack may have resources of its cluster, and is not the stack with the name or ARN `besides`."""
    is_in_use = stack.status.exists and stack.status.health is not StackHealth.EMPTY
    return is_in_use and stack.status.name not in EMPTY_STACK_STATUSES and besides not in (stack.name, stack.id)
