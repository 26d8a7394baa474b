"""The frame of operations on a cluster's instances, such as pausing and resuming, and of waits for their effects.

    plan -> report -> consent -> steps -> result

The steps find out what is left to do, so the same command continues an operation that was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws import consoles
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import ResourceView, StackView, list_resource_tree
from cfngen.deploy.aws.types import Clock
from cfngen.deploy.messages.message import Consent, Message, Notice, Question, Report
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.errors import CfngenError

_Outcome = TypeVar("_Outcome")


class OperationInterruptedError(CfngenError):
    """The command was interrupted; what it has begun in AWS continues."""

    code = "interrupted"


@dataclass
class Operation:
    """One run of an operation on a cluster; a subclass has its plan and its steps.

    Attributes:
        stack: the root stack, in which no operation of CloudFormation is in progress.
        started: when the run began; once the user has agreed, the time of the consent.
    """

    account: Account
    stack: StackView
    cluster: Cluster
    report: Report
    consent: Consent
    started: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.account.clock.now()

    @cached_property
    def resources(self) -> tuple[ResourceView, ...]:
        """The resources of the stacks; read once, since no operation in progress changes which ones there are."""
        return tuple(resource.view for resource in list_resource_tree(self.account, self.stack.id))

    @property
    def seconds(self) -> float:
        """The seconds since the consent."""
        return (self.account.clock.now() - self.started).total_seconds()

    def carry_out(
        self,
        plan: Message,
        question: Question | None,
        take_steps: Callable[[], _Outcome],
        interrupted: CfngenError,
        *,
        notices: Iterable[Notice] = (),
    ) -> _Outcome:
        """Report the plan and notices about it, ask for consent, and take the steps; return what they return.

        Args:
            question: None if the steps need no consent.
            interrupted: raised if Ctrl-C is pressed during the steps.
            notices: reported between the plan and the question.
        """
        self.report(plan)
        for notice in notices:
            self.report(notice)
        if question and not self.consent(question):
            raise DeclinedError
        self.started = self.account.clock.now()  # without the time the user took to answer
        try:
            return take_steps()
        except (KeyboardInterrupt, OperationInterruptedError):
            raise interrupted from None


def rounds(clock: Clock, timeout: timedelta, interval_seconds: float) -> Iterator[timedelta]:
    """Yield the time since the beginning of a wait, in intervals; the last one is not below the timeout."""
    began = clock.now()
    while True:
        elapsed = clock.now() - began
        yield elapsed
        if elapsed >= timeout:
            return
        clock.sleep(interval_seconds)


@dataclass
class BootFailures:
    """Reports what failed in the boot of instances, each failure once; the boot program retries every minute."""

    account: Account
    report: Report
    reported: set[str] = field(default_factory=set, init=False)

    def report_new(self, title: str, instance_id: str) -> None:
        """Report the last failure in the console output of an instance."""
        console = consoles.read_instance_console(self.account, instance_id)
        if console.failure and console.failure not in self.reported:
            self.reported.add(console.failure)
            self.report(Notice(f"{title} ({instance_id}): {console.failure}", "it retries every minute."))
