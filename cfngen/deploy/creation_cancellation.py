"""Cancels the creation of a stack by deleting the stack; CloudFormation has no other way to cancel a creation."""

from __future__ import annotations

from dataclasses import replace

from cfngen.deploy import protection
from cfngen.deploy.account import Account
from cfngen.deploy.interaction import Interaction
from cfngen.deploy.messages.message import Question
from cfngen.deploy.stacks import find_stack
from cfngen.deploy.watching.events import read_last_event
from cfngen.deploy.watching.watch import WatchResult, watch


def cancel_creation(account: Account, interaction: Interaction, outcome: WatchResult) -> WatchResult:
    """Delete a stack that is being created, if the user agrees; otherwise continue to watch the creation.

    Args:
        account: account and region of the stack.
        interaction: communicates with the user.
        outcome: outcome of the watch in which the user chose to cancel the creation.

    Returns:
        The outcome of the deletion, marked as failed; or that of the creation, if the user declined.
    """
    question = Question(
        f"Delete {outcome.stack}, which is being created?",
        ("everything it has created so far is deleted, and the cluster with it",),
    )
    if not interaction.consent(question):
        return watch(account, outcome.stack_id, report=interaction.report, on_interrupt=interaction.on_interrupt)
    if stack := find_stack(account, outcome.stack_id):
        protection.disable_termination_protection(account, stack)
    previous_event = read_last_event(account, outcome.stack_id)
    account.client("cloudformation").delete_stack(StackName=outcome.stack_id)
    deletion_outcome = watch(
        account,
        outcome.stack_id,
        since=previous_event,
        report=interaction.report,
        on_interrupt=interaction.on_interrupt,
    )
    # The user requested a creation, which has failed even if the deletion succeeded.
    return replace(deletion_outcome, succeeded=False)
