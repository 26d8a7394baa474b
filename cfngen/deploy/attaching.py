"""Attaching to an operation that somebody has begun, and finishing what its deployment would have done at the end."""

from __future__ import annotations

from cfngen.deploy import at_work, protection, public_addresses
from cfngen.deploy.abandoning import abandoned
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import remains
from cfngen.deploy.messages import Finished, Notice, Report
from cfngen.deploy.next_steps import in_words, next_steps
from cfngen.deploy.ownership import check
from cfngen.deploy.recovery import Interaction
from cfngen.deploy.stacks import StackView, existing, reread
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.watch import Outcome, watch
from cfngen.errors import CfngenError

_DEPLOYED = ("create", "update")


class NothingUnderWayError(CfngenError):
    """The stack is empty: no operation has ever begun in it."""

    def __init__(self, stack: StackView) -> None:
        super().__init__(
            f"the stack {stack.name} is in {stack.status}: it is empty, and nothing is under way in it",
            hint=in_words(next_steps(stack.status, stack.name)),
        )


def attach(account: Account, stack_name: str, cluster: str, waiting: Interaction) -> Finished:
    """Watch a stack's newest operation until it ends; protect the stack as its deployment was asked to.

    Args:
        account: where.
        stack_name: the root.
        cluster: name of the cluster that is meant; of a stack of anything else nothing is changed.
        waiting: who is told and asked.

    Raises:
        NoStackError: there is no such stack.
        NothingUnderWayError: the stack is empty.
        ForeignStackError: the user wants to end the creation of a stack that is not this cluster's.
        WatchEndedError: AWS refuses to answer; the operation goes on.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        stack = existing(account, stack_name)
        if stack.status.standing is StackHealth.EMPTY:
            raise NothingUnderWayError(stack)
        report = waiting.report
        outcome = watch(account, stack.id, report=report, interrupted=waiting.interrupted)
        if outcome.cancelled and outcome.status.name == "CREATE_IN_PROGRESS":
            check(stack, cluster)
            outcome = abandoned(account, waiting, outcome)
        if not outcome.succeeded and not outcome.detached:
            report(diagnose(account, stack.id))
        now = reread(account, stack)
        if not outcome.detached:
            public_addresses.tell(account, now, report)
        if not outcome.detached and now.cluster == cluster:
            _finish(account, now, outcome, report)
            if now.status.standing is StackHealth.DEAD:
                remains.of_creation(account, now, cluster, report)
    return outcome.finished(outcome.action, now)


def _finish(account: Account, stack: StackView, outcome: Outcome, report: Report) -> None:
    if outcome.action not in _DEPLOYED or (outcome.action == "create" and not outcome.succeeded):
        protection.give_up(account, stack, report)
        return
    # An update that failed needs its policies no less: its deployment may have lifted them.
    try:
        begun = at_work.begun(account, stack)
        # Whoever deployed with --no-protect, or not with cfngen, wants the root as it is.
        protection.protect(account, stack, begun is not None and begun.protect is True, report=report)
    except AwsError as error:
        text = f"{stack.name} is as it is wanted, but not protected: {error}"
        report(Notice(text, error.hint or "the next deployment tries again."))
