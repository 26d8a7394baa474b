"""The clock that deployment uses: passed in, so that tests and the sandbox can simulate waiting."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and sleeps."""

    def now(self) -> datetime:
        """Return the time, in UTC and aware of it."""

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, in UTC and aware of it."""
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)
