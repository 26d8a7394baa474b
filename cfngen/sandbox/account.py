"""An emulated account in this process, on simulated time: for tests of code that calls AWS and Kubernetes."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3

from cfngen.sandbox.api import Served, serving
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account

OPERATOR = ("operator", "operator")  # any key but the emulator's own, to which no fault applies


class SimulatedClock:
    """The clock of an emulated account, for code that waits: `sleep` advances simulated time at once.

    Args:
        world: the emulated account.
    """

    def __init__(self, world: EmulatedAccount) -> None:
        self._world = world

    def now(self) -> datetime.datetime:
        """Return the simulated time."""
        return self._world.cloud.clock.time

    def sleep(self, seconds: float) -> None:
        """Advance simulated time by so many seconds, and do everything that is due in them."""
        self._world.advance(seconds)


@dataclass(frozen=True)
class SandboxAccount:
    """One region of an emulated account, which ordinary boto3 clients of this process reach.

    Attributes:
        world: its CloudFormation, instances and clusters.
        served: the API's faults and permissions, and the extensions of moto.
        clock: its simulated time.
    """

    world: EmulatedAccount
    served: Served
    clock: SimulatedClock

    def session(self, *keys: str) -> Any:
        """Return a boto3 session with these keys (access key, secret key); by default those of an operator."""
        return boto3.Session(*(keys or OPERATOR), region_name=self.world.region)


@contextlib.contextmanager
def open_account(region: str, **arguments: Any) -> Iterator[SandboxAccount]:
    """Open a new account, or use moto's if one is open already; see `EmulatedAccount` for the arguments."""
    with open_emulated_account(region, **arguments) as world, serving(world.cloud) as served:
        world.machines.console = served.gaps.console
        yield SandboxAccount(world, served, SimulatedClock(world))
