"""An emulated account in this process, on simulated time: for tests of code that calls AWS and Kubernetes."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from served_api import Served, serving

from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account

OPERATOR = ("operator", "operator")  # any key but the emulator's own, to which no fault applies


class SimulatedClock:
    """The clock of an emulated account, for code that waits: `sleep` advances simulated time at once.

    Args:
        account: the emulated account.
    """

    def __init__(self, account: EmulatedAccount) -> None:
        self._account = account

    def now(self) -> datetime.datetime:
        """Return the simulated time."""
        return self._account.cloud.clock.time

    def sleep(self, seconds: float) -> None:
        """Advance simulated time by so many seconds, and do everything that is due in them."""
        self._account.advance(seconds)


@dataclass(frozen=True)
class SandboxAccount:
    """One region of an emulated account, which ordinary boto3 clients of this process reach.

    Attributes:
        account: its CloudFormation, instances and clusters.
        served: the API's faults and permissions, and the extensions of moto.
        clock: its simulated time.
    """

    account: EmulatedAccount
    served: Served
    clock: SimulatedClock

    def session(self, *keys: str) -> Any:
        """Return a boto3 session with these keys (access key, secret key); by default those of an operator."""
        return boto3.Session(*(keys or OPERATOR), region_name=self.account.region)


@contextlib.contextmanager
def open_account(region: str, **arguments: Any) -> Iterator[SandboxAccount]:
    """Open a new account, or use moto's if one is open already; see `EmulatedAccount` for the arguments."""
    with open_emulated_account(region, **arguments) as account, serving(account.cloud) as served:
        account.machines.console = served.moto_extensions.set_console_output
        yield SandboxAccount(account, served, SimulatedClock(account))
