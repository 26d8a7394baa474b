"""Decides whether a client's call is executed; by default, every call is.

The tests' fault injection is a subclass. The emulator's own calls of moto are not subject to it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from cfngen.sandbox.api.requests import Call
from cfngen.sandbox.cloudformation.clock import SIMULATION_START

PAGE_SIZE = 8  # items on a page of a list; small, so that clients have to follow `NextToken`


class Disconnected(Exception):  # noqa: N818 (what happened, not an error of a service)
    """Raised by a call control to break the connection of a call.

    Attributes:
        kind: `refused` if the connection cannot be opened, `closed` if it breaks before the call is executed, `answer`
            if it breaks after the call was executed, before the response.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class CallControl:
    """Lets every call be executed; subclasses override `before_call`, `after_call` and `stale_at`.

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
            Refusal: the error response to send instead of executing the call
            Disconnected: the connection breaks
        """

    def after_call(self, call: Call) -> None:
        """Called with each call after it was executed, before the response is sent."""

    def stale_at(self, operation: str) -> datetime.datetime | None:
        """Return the past time whose state a stale read of CloudFormation shows; None for the current state."""
        return None
