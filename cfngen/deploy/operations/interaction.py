"""How an operation communicates with the user: messages, questions, and the choice after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cfngen.deploy.messages.message import Consent, Question, Report
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.errors import CfngenError


class DeclinedError(CfngenError):
    """The user declined."""

    code = "declined"

    def __init__(self) -> None:
        super().__init__("nothing was changed: you declined")


@dataclass(frozen=True)
class Interaction:
    """How an operation communicates with the user.

    Attributes:
        on_interrupt: called after Ctrl-C; asks whether to continue watching, detach, or cancel the operation.
    """

    report: Report
    consent: Consent
    on_interrupt: Callable[[], InterruptChoice]

    def require_consent(self, question: Question) -> None:
        """Ask for consent.

        Raises:
            DeclinedError: the user declined.
        """
        if not self.consent(question):
            raise DeclinedError
