"""Other roots of a cluster of the same name in the same region.

Tags are all that says whose the things are that Kubernetes makes, and the folder in the bucket is named after the
cluster: what two clusters of one name have cannot be told apart by either.
"""

from __future__ import annotations

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.stacks import StackView, view
from cfngen.deploy.status import StackHealth
from cfngen.errors import CfngenError

NOTHING_LIVES = frozenset({"ROLLBACK_COMPLETE"})
"""A creation that was taken back whole: the stack is left, and nothing in it."""


class NameConflictError(CfngenError):
    """Another stack of the region has a cluster of this name.

    Attributes:
        stacks: names of those stacks.
    """

    def __init__(self, cluster: str, stack: str, stacks: tuple[str, ...]) -> None:
        super().__init__(
            f"the cluster {cluster} lives in the stack {', '.join(stacks)} already: a second one of its name in the "
            f"stack {stack} would share its tags, by which Kubernetes knows its load balancers and volumes, and its "
            "folder in the bucket",
            hint="choose another `name` in the cluster file, or with --set name=…; or name the stack there is with "
            "--stack-name.",
        )
        self.stacks = stacks


def live_stacks(account: Account, cluster: str, *, besides: str = "") -> tuple[str, ...]:
    """Return the names of the roots that have something of a cluster of this name; none if the caller may not look.

    Args:
        account: where.
        cluster: name of the cluster.
        besides: name or ARN of the root that is not meant.
    """
    from botocore.exceptions import ClientError

    pages = account.client("cloudformation").get_paginator("describe_stacks").paginate()
    try:
        roots = [view(stack) for page in pages for stack in page["Stacks"] if not stack.get("ParentId")]
    except ClientError as error:
        # Without a name the call is on no stack, and who may only use certain stacks may not make it.
        if error_code(error) not in DENIED:
            raise
        return ()
    return tuple(sorted(root.name for root in roots if root.cluster == cluster and _lives(root, besides)))


def check(account: Account, cluster: str, stack: str) -> None:
    """Refuse to create a cluster beside a living one of the same name.

    Args:
        account: where.
        cluster: name of the cluster.
        stack: name of the root that is to be created.

    Raises:
        NamesakeError: there is such a cluster.
    """
    if others := live_stacks(account, cluster, besides=stack):
        raise NameConflictError(cluster, stack, others)


def _lives(stack: StackView, besides: str) -> bool:
    known = stack.status.exists and stack.status.standing is not StackHealth.EMPTY
    return known and stack.status.name not in NOTHING_LIVES and besides not in (stack.name, stack.id)
