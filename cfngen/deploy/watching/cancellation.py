"""Cancels the operation in progress on a stack after Ctrl-C, if CloudFormation can cancel it."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import as_aws_error, is_transient
from cfngen.deploy.aws.stacks import StackView, find_stack
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus


class Cancellation(NamedTuple):
    """The result of an attempt to cancel an operation.

    Attributes:
        notice: what was cancelled, or why nothing was; None for a creation.
        is_update_cancelled: whether CloudFormation has accepted to cancel an update, and now rolls it back.
        creation: the stack that is being created; the caller cancels the creation by deleting the stack. None if the
            operation is not a creation.
    """

    notice: Notice | None
    is_update_cancelled: bool = False
    creation: StackView | None = None


def cancel_operation(account: Account, stack_id: str, *, started_at: datetime | None) -> Cancellation:
    """Cancel an update; of another operation, only find out whether the caller can cancel it.

    Args:
        started_at: when the operation started; None if that is not known.

    Raises:
        ClientError: AWS refuses to answer, and another attempt would not help.
        BotoCoreError: AWS cannot be called, and another attempt would not help.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        stack = find_stack(account, stack_id)
        status = stack.status if stack else StackStatus("")
        if status.cancellable:
            # boto3's retries of this call send the same token.
            token = f"cfngen-{uuid.uuid5(uuid.NAMESPACE_URL, f'cancel {stack_id} {started_at}')}"
            account.client("cloudformation").cancel_update_stack(StackName=stack_id, ClientRequestToken=token)
            notice = Notice("the update is being cancelled: its changes so far are rolled back")
            return Cancellation(notice, is_update_cancelled=True)
    except (ClientError, BotoCoreError) as error:
        if is_transient(error):
            return Cancellation(Notice(f"not cancelled: {as_aws_error(error)}", "press Ctrl-C to try again."))
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == "ValidationError":
            # Between the two calls, the stack has left UPDATE_IN_PROGRESS, the only status that can be cancelled.
            return Cancellation(Notice(f"not cancelled: {error.response['Error']['Message']}"))
        raise
    if status.name == "CREATE_IN_PROGRESS" or status.health is StackHealth.EMPTY:
        return Cancellation(notice=None, creation=stack)
    return Cancellation(Notice(f"not cancelled: {_not_cancellable_reason(status)}"))


def _not_cancellable_reason(status: StackStatus) -> str:
    if status.cleaning_up:
        return "the changes are complete; only replaced resources are still being deleted"
    if status.rolling_back:
        return "the operation is already being rolled back"
    if status.name == "DELETE_IN_PROGRESS":
        return "a deletion cannot be cancelled"
    if not status.in_progress:
        return f"the operation has ended; the stack is in {status}"
    return f"CloudFormation cannot cancel an operation while the stack is in {status}"
