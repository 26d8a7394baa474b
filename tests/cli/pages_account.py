"""The accounts in which a page's commands are run: one that stands for AWS, and the one behind `--sandbox`.

Both are in this process, and their clock jumps. Only one of them is there at a time: to go from the one to the other
ends the one before with all that was in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from deployed import WorldClock
from deployed_cluster import session
from served_api import serving

from cfngen.cli.input.target import Target
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account
from cfngen.sandbox.existing_parts import make_existing_parts
from cfngen.sandbox.process.control_api import AWS, DEFAULT_SPEED
from cfngen.sandbox.untyped import JsonObject

REGIONS = ("us-west-2", "eu-central-1")  # of the default cluster, and of the README's
LONGER = 12  # times that a sleep takes


class Clock:
    """The time of an account: what sleeps lets all regions go on, and sleeps long, so that it looks less often."""

    def __init__(self, account: PagesAccount) -> None:
        self._account = account

    def now(self) -> datetime:
        [first, *_] = self._account.clocks.values()
        return first.now()

    def sleep(self, seconds: float) -> None:
        for clock in self._account.clocks.values():
            clock.advance(LONGER * seconds)


class PagesAccount:
    """What `cfngen` meets instead of AWS and of the sandbox's process.

    Args:
        patch: puts it in their place.
        regions: of the account.

    Attributes:
        worlds: of the account that is there, by region.
        clocks: the same.
    """

    endpoint = "http://127.0.0.1:1"
    pid = 1
    state = SimpleNamespace(speed=DEFAULT_SPEED, answers=AWS, seed=1, token="token")

    def __init__(self, patch: pytest.MonkeyPatch, regions: Sequence[str] = REGIONS) -> None:
        self._regions = regions
        self.worlds: dict[str, EmulatedAccount] = {}
        self.clocks: dict[str, WorldClock] = {}
        self._opened = ExitStack()
        self._sandbox: bool | None = None
        clock = Clock(self)
        for module in ("botocore.endpoint", "botocore.waiter"):
            patch.setattr(f"{module}.time", SimpleNamespace(sleep=clock.sleep))
        patch.setattr("cfngen.deploy.aws.types.SystemClock", lambda: clock)
        patch.setattr(Target, "_session", lambda target, region: session())
        patch.setattr(Target, "kubernetes_override", lambda target, endpoint: self.kubernetes.get(endpoint, ""))
        patch.setattr("cfngen.sandbox.process.running.start", lambda environ, **options: self)
        patch.setattr(
            "cfngen.sandbox.process.running.find_running_sandbox", lambda environ: self if self._sandbox else None
        )
        patch.setattr("cfngen.sandbox.process.running.stop", lambda environ: self.close())

    def use(self, *, sandbox: bool) -> None:
        """Be the sandbox, or AWS; new and empty, if it was the other one before."""
        if self._sandbox == sandbox:
            return
        self.close()
        self._sandbox = sandbox
        [first, *others] = self._regions
        self.worlds[first] = self._opened.enter_context(open_emulated_account(first))
        lock = self.worlds[first].lock
        self.worlds |= {
            region: self._opened.enter_context(open_emulated_account(region, lock=lock)) for region in others
        }
        self.clocks = {region: WorldClock(world) for region, world in self.worlds.items()}
        served = self._opened.enter_context(serving({region: world.cloud for region, world in self.worlds.items()}))
        for world in self.worlds.values():
            world.machines.console = served.moto_extensions.set_console_output

    def close(self) -> bool:
        """End the account that is there."""
        was_there = self._sandbox is not None
        self._opened.close()
        self._sandbox = None
        self.worlds, self.clocks = {}, {}
        return was_there

    def sleep(self, seconds: float) -> None:
        """Let time pass, no longer than it says."""
        for clock in self.clocks.values():
            clock.advance(seconds)

    def stacks(self, region: str) -> list[str]:
        """Names of the root stacks of a region."""
        listed = self.client("cloudformation", region).describe_stacks()["Stacks"]
        return [stack["StackName"] for stack in listed if "RootId" not in stack]

    def client(self, service: str, region: str) -> Any:
        """A client of the account."""
        return session().client(service, region_name=region)

    # What `--sandbox` asks of the sandbox's process.

    make_existing_parts = staticmethod(make_existing_parts)

    @property
    def kubernetes(self) -> Mapping[str, str]:
        return {
            kubernetes_endpoint.api_endpoint: kubernetes_endpoint.address
            for world in self.worlds.values()
            for kubernetes_endpoint in world.kubernetes_endpoints()
        }

    def status(self) -> JsonObject:
        return {"stacks": [], "groups": []}

    def clock(self) -> Clock:
        return Clock(self)

    def session(self, region: str) -> boto3.Session:
        return session()
