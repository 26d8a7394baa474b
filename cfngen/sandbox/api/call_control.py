"""What decides over each call of a client before it is executed: by default every call is executed.

Fault injection is a subclass. Calls of the emulator itself never pass it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from cfngen.sandbox.api.requests import Call
from cfngen.sandbox.cloudformation.clock import SIMULATION_START

PAGE_SIZE = 8  # small, so that clients have to follow `NextToken`


class Disconnected(Exception):  # noqa: N818 (what happened, not an error of a service)
    """The connection fails, or is closed without an answer.

    Attributes:
        kind: `closed`: broken before the call is executed; `answer`: broken after the call is executed, before its
            answer; `refused`: no connection can be opened.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class CallControl:
    """Lets every call pass.

    Attributes:
        now: returns the seconds of the simulated clock; `serving` sets it.
        page_size: items on a page of CloudFormation's lists.
    """

    def __init__(self) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        self.page_size = PAGE_SIZE

    @property
    def time(self) -> datetime.datetime:
        """The simulated time."""
        return SIMULATION_START + datetime.timedelta(seconds=self.now())

    def before_call(self, call: Call) -> None:
        """Called with each call before it is executed.

        Raises:
            Refusal: the error to answer instead
            Disconnected: the connection is to be broken
        """

    def after_call(self, call: Call) -> None:
        """Called with each call after it was executed, before it is answered."""

    def as_of(self, operation: str) -> datetime.datetime | None:
        """Return the past time whose state a read of CloudFormation shows; None for the current state."""
        return None
