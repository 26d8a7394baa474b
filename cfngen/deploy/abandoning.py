"""Ending a creation that is under way: CloudFormation has no other way for it than to delete the stack."""

from __future__ import annotations

from dataclasses import replace

from cfngen.deploy import protection
from cfngen.deploy.account import Account
from cfngen.deploy.messages import Question
from cfngen.deploy.recovery import Interaction
from cfngen.deploy.stacks import find
from cfngen.deploy.watching.events import last_event
from cfngen.deploy.watching.watch import Outcome, watch


def abandoned(account: Account, waiting: Interaction, outcome: Outcome) -> Outcome:
    """Delete a stack whose creation the user wants to end, after consent; without it, watch on.

    Args:
        account: where it is.
        waiting: who is told and asked.
        outcome: of the watch that the user has ended with the wish to cancel.

    Returns:
        How the deletion ended, which is no success; or how the creation did, where the user thought better of it.
    """
    question = Question(
        f"Delete {outcome.stack}, which is being created?",
        ("everything it has made so far is deleted, and the cluster with it",),
    )
    if not waiting.consent(question):
        return watch(account, outcome.stack_id, report=waiting.report, interrupted=waiting.interrupted)
    if stack := find(account, outcome.stack_id):
        protection.unprotect(account, stack)
    before = last_event(account, outcome.stack_id)
    account.client("cloudformation").delete_stack(StackName=outcome.stack_id)
    ended = watch(account, outcome.stack_id, since=before, report=waiting.report, interrupted=waiting.interrupted)
    # What was asked for did not come about, however well the way back went.
    return replace(ended, succeeded=False)
