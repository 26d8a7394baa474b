"""The clock that deployment uses: passed in, so that tests and the sandbox can simulate waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and sleeps."""

    def now(self) -> datetime:
        """Return the time in UTC, as an aware `datetime`."""

    def sleep(self, seconds: float) -> None:
        """Wait for this number of seconds."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time in UTC, as an aware `datetime`."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait for this number of seconds."""
        time.sleep(seconds)
