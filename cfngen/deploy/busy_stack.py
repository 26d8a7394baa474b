"""Stacks in which another operation is in progress: since when, and who started it."""

from __future__ import annotations

from cfngen.deploy import operation_origin
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError
from cfngen.deploy.ownership import check_stack_owner
from cfngen.deploy.stacks import StackView, require_stack
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest


class BusyError(CfngenError):
    """Another operation is in progress in the stack.

    Attributes:
        stack: the stack.
        since: when and by whom it was started, e.g. `since 12:03 UTC (4 minutes ago), started by arn:…`; may be empty.
    """

    code = "operation-in-progress"

    def __init__(self, stack: StackView, since: str = "") -> None:
        suffix = f" {since}" if since else ""
        super().__init__(
            f"another operation is in progress: the stack {stack.name} is in {stack.status}{suffix}",
            hint=CommandText(suggest("watch", stack=stack.name), " shows it; run the command again when it has ended."),
        )
        self.stack = stack
        self.since = since


def busy_error(account: Account, stack: StackView) -> BusyError:
    """Return the error for a stack with an operation in progress; it says who started it and when, if that is known."""
    try:
        origin = operation_origin.read_origin(account, stack)
    except AwsError:
        return BusyError(stack)
    if origin is None:
        return BusyError(stack)
    author = f"started by {origin.caller}" if origin.caller else "not started by a deployment of cfngen"
    return BusyError(stack, f"since {operation_origin.describe_time(account, origin.time)}, {author}")


def require_idle_stack(account: Account, stack_name: str, cluster: str) -> StackView:
    """Return the root stack of a cluster, in which no operation is in progress.

    Args:
        account: the account and region.
        stack_name: name of the root stack.
        cluster: name of the cluster that it belongs to.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
    """
    stack = require_stack(account, stack_name)
    check_stack_owner(stack, cluster)
    if stack.status.in_progress:
        raise busy_error(account, stack)
    return stack
