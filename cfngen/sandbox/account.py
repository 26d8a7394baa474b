"""An account in this process, on simulated time: for tests of what talks to AWS and to Kubernetes."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3

from cfngen.sandbox.api import Served, serving
from cfngen.sandbox.emulated_account import EmulatedAccount, opened

OPERATOR = ("operator", "operator")  # any key but the double's own, which passes all faults


class WorldClock:
    """The world's clock as those who wait see it: sleeping lets simulated time pass at once.

    Args:
        world: whose time it is.
    """

    def __init__(self, world: EmulatedAccount) -> None:
        self._world = world

    def now(self) -> datetime.datetime:
        """Return the simulated time."""
        return self._world.cloud.clock.time

    def sleep(self, seconds: float) -> None:
        """Let so many simulated seconds pass, and everything happen that is due in them."""
        self._world.advance(seconds)


@dataclass(frozen=True)
class SandboxAccount:
    """One region of an account that ordinary clients of this process reach.

    Attributes:
        world: CloudFormation, instances, clusters.
        served: faults, permissions and gaps of the API.
        clock: simulated time.
    """

    world: EmulatedAccount
    served: Served
    clock: WorldClock

    def session(self, *keys: str) -> Any:
        """Return a boto3 session of an operator, or of whose keys these are."""
        return boto3.Session(*(keys or OPERATOR), region_name=self.world.region)


@contextlib.contextmanager
def account(region: str, **arguments: Any) -> Iterator[SandboxAccount]:
    """A new account, or the one of moto that is open already; see `World` for the arguments."""
    with opened(region, **arguments) as world, serving(world.cloud) as served:
        world.machines.console = served.gaps.console
        yield SandboxAccount(world, served, WorldClock(world))
