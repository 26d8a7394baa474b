"""From the status a stack is found in to where a deployment can begin, and out of a failed one again.

What each status allows is CloudFormation's; see `status`. Whatever destroys something is asked for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cfngen.deploy import at_work, name_conflicts, public_addresses
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import remains
from cfngen.deploy.messages import Consent, Event, Notice, Question, Report, Step
from cfngen.deploy.next_steps import in_words, next_steps
from cfngen.deploy.ownership import check
from cfngen.deploy.protection import unprotect
from cfngen.deploy.rollback_blockers import rollback_blockers
from cfngen.deploy.stacks import StackView, existing, find, reread, resources, tree
from cfngen.deploy.stale_groups import stale_groups
from cfngen.deploy.status import StackHealth, StackStatus
from cfngen.deploy.watching.events import last_event
from cfngen.deploy.watching.watch import Choice, Outcome, watch
from cfngen.errors import CfngenError

LONGEST_ROLLBACK = 10
"""Rounds of continuing a rollback before giving up; each skips at least one resource more."""


class BusyError(CfngenError):
    """Another operation is under way in the stack.

    Attributes:
        stack: the stack.
        since: since when and by whom, as far as it is known, e.g. `since 12:03 UTC (4 minutes ago), begun by arn:…`.
    """

    exit_code = 6

    def __init__(self, stack: StackView, since: str = "") -> None:
        super().__init__(
            f"another operation is under way: the stack {stack.name} is in {stack.status}{since and f' {since}'}",
            hint=f"`cfngen watch --stack-name {stack.name}` shows it; repeat the command when it has ended.",
        )
        self.stack = stack
        self.since = since


def busy(account: Account, stack: StackView) -> BusyError:
    """Return the error that says who is at work on a stack and since when, as far as CloudFormation tells."""
    try:
        begun = at_work.begun(account, stack)
    except AwsError:
        return BusyError(stack)
    if begun is None:
        return BusyError(stack)
    who = f"begun by {begun.caller}" if begun.caller else "and not begun by a deployment of cfngen"
    return BusyError(stack, f"since {at_work.moment(account, begun.time)}, {who}")


class BlockedError(CfngenError):
    """The stack is in a status that must be left by another command first."""

    def __init__(self, stack: StackView, why: str) -> None:
        super().__init__(f"the stack {stack.name} is in {stack.status}: {why}", hint=_ways(stack))
        self.stack = stack


class LostError(CfngenError):
    """The rollback of an import failed, out of which no command leads."""

    def __init__(self, stack: StackView) -> None:
        super().__init__(
            f"the stack {stack.name} is in {stack.status}: an import into it failed, and so did taking it back; "
            "CloudFormation continues only the rollback of an update",
            hint=_ways(stack),
        )
        self.stack = stack


class DeclinedError(CfngenError):
    """The user said no."""

    def __init__(self) -> None:
        super().__init__("nothing was changed: you did not agree")


class RemainsError(CfngenError):
    """A plan was asked for where only the remains of a failed creation are; deploying would delete them first."""

    exit_code = 4  # as a plan with changes

    def __init__(self, stack: StackView, remains: tuple[str, ...]) -> None:
        left = f"what is left of it ({', '.join(remains)})" if remains else "the empty stack"
        super().__init__(
            f"the stack {stack.name} is in {stack.status}: its creation failed, and CloudFormation plans nothing in "
            f"it. A deployment asks, deletes {left} and creates the cluster anew; nothing was changed now",
            hint=f"`cfngen deploy --stack-name {stack.name}` shows the plan of the creation once the stack is gone, "
            f"and `cfngen delete --stack-name {stack.name}` only deletes.",
        )
        self.stack = stack
        self.remains = remains


class NothingToRollBackError(CfngenError):
    """The stack is in no status that can be rolled back."""

    def __init__(self, stack: StackView) -> None:
        earlier = "to return to earlier templates, check out the earlier cluster file and run `cfngen deploy`."
        super().__init__(
            f"the stack {stack.name} is in {stack.status}, from which nothing is rolled back",
            hint=_ways(stack) or earlier,
        )
        self.stack = stack


@dataclass(frozen=True)
class Interaction:
    """What every wait of a command needs.

    Attributes:
        report: takes the messages.
        consent: asks the user.
        interrupted: asks what to do after Ctrl-C.
    """

    report: Report
    consent: Consent
    interrupted: Callable[[], Choice]


def ensure_deployable(account: Account, stack_name: str, cluster: str, waiting: Interaction) -> StackView | None:
    """Bring a stack to where a change set can be made.

    Returns:
        The stack; None if there is none, or none any more, so that it is created.

    Raises:
        ForeignStackError: the stack is not this cluster's.
        BusyError: another operation is under way.
        BlockedError: another command must be used first.
        LostError: nothing leads out of its status.
        NamesakeError: it would be created, and another stack has a cluster of this name.
        DeclinedError: the stack would have to be deleted first, and the user said no.
        RemainsError: it would have to be deleted first, and this is for a plan.
    """
    stack = find(account, stack_name)
    if stack is None or stack.status.standing is StackHealth.EMPTY:
        # CloudFormation shows no tags before the first change set is executed; and there is nothing to lose.
        name_conflicts.check(account, cluster, stack_name)
        if stack is not None:
            at_work.tell_of_others(account, stack, waiting.report)
        return None
    check(stack, cluster)
    if stack.status.cleaning_up:
        waiting.report(Step(f"waiting for {stack.name} to finish {stack.status}"))
        watch(account, stack.id, report=waiting.report, interrupted=waiting.interrupted)
        stack = reread(account, stack)
    standing = stack.status.standing
    if standing is StackHealth.BUSY:
        raise busy(account, stack)
    if standing is StackHealth.STUCK:
        raise BlockedError(stack, "the rollback of its last update failed")
    if standing is StackHealth.LOST:
        raise LostError(stack)
    if standing is StackHealth.UNDELETED:
        raise BlockedError(stack, "its deletion failed half-way")
    if standing is StackHealth.DEAD:
        name_conflicts.check(account, cluster, stack_name)
        _delete_failed_creation(account, stack, waiting)
        return None
    if standing is StackHealth.ABSENT:
        return None
    if stack.status.name == "UPDATE_ROLLBACK_COMPLETE":
        waiting.report(Notice(f"the last update of {stack.name} was taken back; this is the next one"))
    if standing is StackHealth.PAUSED:
        text = f"{stack.name} is in {stack.status}: this goes on where the last operation failed, with rollback off"
        waiting.report(Notice(text, f"`cfngen rollback --stack-name {stack.name}` would take it back instead."))
    at_work.tell_of_others(account, stack, waiting.report)
    return stack


def rollback(
    account: Account,
    stack_name: str,
    cluster: str,
    waiting: Interaction,
    *,
    skip: tuple[str, ...] = (),
    force: bool = False,
) -> Outcome:
    """Take a stack back to its last good state.

    Args:
        account: where.
        stack_name: the root.
        cluster: name of the cluster it must belong to.
        waiting: who is told and asked.
        skip: resources to leave as they are, each `LogicalId` or `NestedStackName.LogicalId`.
        force: leave whatever fails to roll back, computed anew in each round.

    Raises:
        NoStackError: there is no such stack.
        NothingToRollBackError: there is nothing to take back.
        LostError: CloudFormation cannot take it back.
        BusyError: another operation is under way.
        DeclinedError: the user said no.
    """
    outcome = _taken_back(account, stack_name, cluster, waiting, skip, force=force)
    if not outcome.detached and (now := find(account, outcome.stack_id)) is not None:
        public_addresses.tell(account, now, waiting.report)
    return outcome


def _taken_back(
    account: Account, stack_name: str, cluster: str, waiting: Interaction, skip: tuple[str, ...], *, force: bool
) -> Outcome:
    stack = existing(account, stack_name)
    if stack.status.standing is StackHealth.EMPTY:
        # Whose it is shows only once something has been created in it.
        raise NothingToRollBackError(stack)
    check(stack, cluster)
    cloudformation = account.client("cloudformation")
    if stack.status.in_progress:
        raise busy(account, stack)
    if stack.status.standing is StackHealth.PAUSED:
        created = _never_succeeded(account, stack)
        consequences = (
            ("the creation never succeeded, so rolling back deletes everything the stack has made",)
            if created
            else ("the stack returns to the templates and values of its last success",)
        )
        _agreed(waiting, Question(f"Roll back {stack.name}?", consequences, dangerous=created))
        if created:
            unprotect(account, stack)
        began = last_event(account, stack.id)
        cloudformation.rollback_stack(StackName=stack.id, ClientRequestToken=_token(stack, began))
        outcome = watch(account, stack.id, since=began, report=waiting.report, interrupted=waiting.interrupted)
        if created and not outcome.detached:
            remains.of_creation(account, reread(account, stack), cluster, waiting.report)
        return outcome
    if stack.status.standing is StackHealth.LOST:
        raise LostError(stack)
    if stack.status.standing is not StackHealth.STUCK:
        raise NothingToRollBackError(stack)
    return _continued(account, stack, waiting, skip, force=force)


def _continued(
    account: Account, stack: StackView, waiting: Interaction, skip: tuple[str, ...], *, force: bool
) -> Outcome:
    for _ in range(LONGEST_ROLLBACK):
        skipped = skip
        if force:
            failed = rollback_blockers(account, stack)
            skipped = tuple(dict.fromkeys((*skip, *failed)))
        consequences = tuple(
            f"{name} stays as it is, and CloudFormation believes it was rolled back: put it right by hand"
            for name in skipped
        ) or ("the rollback is tried once more; fix first what made it fail",)
        _agreed(waiting, Question(f"Continue the rollback of {stack.name}?", consequences, dangerous=bool(skipped)))
        began = last_event(account, stack.id)
        arguments: dict[str, Any] = {"ResourcesToSkip": list(skipped)} if skipped else {}
        account.client("cloudformation").continue_update_rollback(
            StackName=stack.id, ClientRequestToken=_token(stack, began), **arguments
        )
        outcome = watch(account, stack.id, since=began, report=waiting.report, interrupted=waiting.interrupted)
        if skipped and outcome.status.taken_back:
            _tell_left_behind(account, stack, waiting)
        if not force or outcome.detached or outcome.status.standing is not StackHealth.STUCK:
            return outcome
        if set(rollback_blockers(account, stack)) <= set(skipped):
            return outcome
    return outcome


def _tell_left_behind(account: Account, stack: StackView, waiting: Interaction) -> None:
    """Say which groups launch from another version than CloudFormation believes, since their rollback was skipped."""
    try:
        with translate_aws_errors():
            views = [each.view for each in tree(account, stack.id)]
        found = stale_groups(account, views)
    except AwsError:
        return  # `status`, `plan` and `deploy` look again
    for each in found:
        hint = f"`cfngen deploy --stack-name {stack.name}` puts back the program that its instances boot from."
        waiting.report(Notice(each.text, hint))


def _delete_failed_creation(account: Account, stack: StackView, waiting: Interaction) -> None:
    """Delete what a failed creation has left, so that the stack can be created anew."""
    kept = [resource for resource in resources(account, stack.id) if not resource.status.startswith("DELETE_COMPLETE")]
    if account.only_planning:
        raise RemainsError(stack, tuple(each.logical_id for each in kept))
    consequences = (
        f"{stack.name} is in {stack.status}: its creation failed, and CloudFormation lets it only be deleted",
        f"left in it: {', '.join(each.logical_id for each in kept)}" if kept else "nothing is left in it",
    )
    # A bucket with a snapshot in it is no reason for caution: only the rollback wants to delete it, and S3 refuses.
    failed = stack.status.name == "ROLLBACK_FAILED" and not remains.only_buckets(account, stack)
    _agreed(
        waiting, Question(f"Delete the remains of {stack.name} and create it anew?", consequences, dangerous=failed)
    )
    unprotect(account, stack)
    waiting.report(Step(f"deleting the remains of {stack.name}"))
    began = last_event(account, stack.id)
    account.client("cloudformation").delete_stack(StackName=stack.id, ClientRequestToken=_token(stack, began))
    outcome = watch(account, stack.id, since=began, report=waiting.report, interrupted=waiting.interrupted)
    if outcome.detached:
        raise busy(account, reread(account, stack))
    if outcome.status.exists:
        now = reread(account, stack)
        raise BlockedError(now, "what its failed creation left could not be removed")


def _never_succeeded(account: Account, stack: StackView) -> bool:
    """Return whether a stack that failed with rollback off has no state to return to, so that rolling back deletes it.

    A creation that failed and was gone on with is in UPDATE_FAILED, as any update that fails is. "This operation will
    delete a stack if it doesn't contain a last known stable state", which is any *_COMPLETE (API: RollbackStack).
    Events are kept for 90 days: of a stack whose beginning is forgotten, nothing of the kind is believed.
    """
    if stack.status.name == "CREATE_FAILED":
        return True
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    own = [
        StackStatus(event["ResourceStatus"])
        for page in pages
        for event in page["StackEvents"]
        if event.get("PhysicalResourceId") == stack.id
    ]
    begun = any(status.name in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS") for status in own)
    return begun and not any(status.standing is StackHealth.HEALTHY for status in own)


def _ways(stack: StackView) -> str:
    return in_words(next_steps(stack.status, stack.name))


def _agreed(waiting: Interaction, question: Question) -> None:
    if not waiting.consent(question):
        raise DeclinedError


def _token(stack: StackView, before: Event | None) -> str:
    """One token for each call that is meant, so that a repetition by boto3 is not taken for a second one."""
    moment = before.id if before else ""
    return f"cfngen-{uuid.uuid5(uuid.NAMESPACE_URL, stack.id + moment)}"
