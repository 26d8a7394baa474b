"""An AWS account for the tests of deployment: engine, API, instances that boot, and a clock that jumps."""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from clusters import Account, Machines, golden, in_memory, prepared
from fault_injection import Faults
from identity_policies import Credentials, Permissions
from served_api import Served, serving

from cfngen.cluster.model import Cluster
from cfngen.sandbox.api import MotoExtensions
from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.cloudformation.simulation import Clock

ACCESS_KEY = "AKIAOPERATOROPERATOR"
LONGEST = datetime.timedelta(days=14)
LONGEST_SLEEP = 60.0
SEEN_AFTER = 15.0  # seconds, which are several looks


class Sleeps:
    """How often whoever waits sleeps until something happens, for a minute at most.

    Whoever sleeps looks again afterwards. Most looks would find nothing new, and they are what takes the time of the
    longest tests. What has happened is seen as soon as ever, since the sleeps after it are as short as they are.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen_by = 0.0  # the time by which what happened last has been looked at

    def until_next_action(self, seconds: float) -> int:
        """Return how many sleeps of this length pass until the next action."""
        now, due = self._clock.now, self._clock.next_action_time
        if due is None or not seconds:
            return 1
        number = (
            1 if now < self._seen_by else max(1, min(math.ceil((due - now) / seconds), int(LONGEST_SLEEP / seconds)))
        )
        if due <= now + number * seconds:
            self._seen_by = now + number * seconds + SEEN_AFTER
        return number


class SimulatedClock:
    """The time of the engine; to sleep is to let it work.

    Args:
        engine: whose time it is.
        looks_for_nothing: whether a sleep ends even if nothing has happened; see `Sleeps`.

    Attributes:
        slept: how long each sleep was, in order.
    """

    def __init__(self, engine: CloudFormation, *, looks_for_nothing: bool = True) -> None:
        self._engine = engine
        self._looks_for_nothing = looks_for_nothing
        self._sleeps = Sleeps(engine.clock)
        self._start = self.now()
        self.slept: list[float] = []

    def now(self) -> datetime.datetime:
        return self._engine.clock.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        times = 1 if self._looks_for_nothing else self._sleeps.until_next_action(seconds)
        self._engine.advance(times * seconds)
        assert self.now() - self._start < LONGEST, "something is awaited that never happens"


@dataclass(frozen=True)
class Cloud:
    """An account that is ready for a cluster.

    Attributes:
        account: templates and images, as `tests/aws` has them.
        served: the API.
        clock: the time, for whatever waits.
        session: of an operator who may do everything.
    """

    account: Account
    served: Served
    clock: SimulatedClock
    session: Any

    @property
    def cluster(self) -> Cluster:
        return self.account.cluster

    @property
    def engine(self) -> CloudFormation:
        return self.account.cloud

    @property
    def machines(self) -> Machines:
        return self.account.machines

    @property
    def faults(self) -> Faults:
        return self.served.faults

    @property
    def moto_extensions(self) -> MotoExtensions:
        return self.served.moto_extensions

    @property
    def permissions(self) -> Permissions:
        return self.served.permissions

    def client(self, service: str) -> Any:
        """A client of the operator's session, made as boto3 makes it."""
        return self.session.client(service, region_name=self.cluster.region)

    def session_of(self, credentials: Credentials) -> Any:
        """A session of a user that `permissions.enforcing` has made."""
        return boto3.Session(credentials.access_key, credentials.secret_key, region_name=self.cluster.region)


@contextlib.contextmanager
def cloud_of(cluster: Cluster, **outcomes: str | None) -> Iterator[Cloud]:
    """An account ready for a cluster; whatever waits within botocore waits by the simulated clock.

    Args:
        cluster: whose templates, images and region it has.
        outcomes: how instances of a group end booting, by its logical id (see `clusters.Machines`).
    """
    state = random.getstate()
    random.seed(0)  # the jitter of botocore's retries, which is simulated time here
    with in_memory(), pytest.MonkeyPatch.context() as patch:
        account = prepared(cluster, **outcomes)
        clock = SimulatedClock(account.cloud, looks_for_nothing=False)
        for module in ("botocore.endpoint", "botocore.waiter"):
            patch.setattr(f"{module}.time", SimpleNamespace(sleep=clock.sleep))
        with serving(account.cloud) as served:
            yield Cloud(account, served, clock, _session(cluster.region))
    random.setstate(state)


@contextlib.contextmanager
def default_cloud(**outcomes: str | None) -> Iterator[Cloud]:
    """An account ready for the golden default cluster."""
    with cloud_of(golden("default"), **outcomes) as cloud:
        yield cloud


@functools.cache
def _session(region: str) -> Any:
    return boto3.Session(ACCESS_KEY, "secret", region_name=region)
