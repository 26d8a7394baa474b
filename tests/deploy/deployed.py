"""A whole cluster in this process: stacks, instances that boot, a Kubernetes API on loopback, a clock that jumps."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from cloud import Sleeps
from clusters import ALLOWED, BUCKET, PREFIX, golden, templates_of, upload
from served_api import Served, serving

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account, connect
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster

LONGEST = timedelta(days=2)
STACK = "k8s"


class WorldClock:
    """The time of a world; to sleep is to let everything in it happen that is due.

    Attributes:
        sleeps: how many there were; one that went on until something happened counts as those that it stands for.
        meanwhile: what else happens, by the number of the sleep, from 1.
    """

    def __init__(self, world: EmulatedAccount) -> None:
        self._world = world
        self._until = Sleeps(world.cloud.clock)
        self._start = self.now()
        self.sleeps = 0
        self.meanwhile: dict[int, Callable[[], None]] = {}

    def now(self) -> datetime:
        return self._world.cloud.clock.time

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.meanwhile.pop(self.sleeps, lambda: None)()
        until_meanwhile = [number - self.sleeps for number in self.meanwhile if number > self.sleeps]
        times = min([self._until.until_next_action(seconds), *until_meanwhile])
        self.sleeps += times - 1
        self.advance(times * seconds)

    def advance(self, seconds: float) -> None:
        """Let everything happen that is due in so many seconds, no more and no less."""
        self._world.advance(seconds)
        assert self.now() - self._start < LONGEST, "something is awaited that never happens"


@dataclass(frozen=True)
class Place:
    """An account, and the cluster that is or will be in it."""

    world: EmulatedAccount
    served: Served
    cluster: Cluster
    clock: WorldClock
    name: str = STACK
    _made: list[Account] = field(default_factory=list)

    @property
    def account(self) -> Account:
        """The account, as its operator."""
        if not self._made:
            self._made.append(self.connected(boto3.Session("AKIAOPERATOROPERATOR", "secret")))
        return self._made[0]

    def connected(self, session: Any) -> Account:
        return connect(session, self.cluster.region, clock=self.clock)

    def session_of(self, credentials: Any) -> Any:
        return boto3.Session(credentials.access_key, credentials.secret_key)

    def begin(self, form: str = "cluster", **parameters: str) -> Stack:
        """Begin to create the cluster, as nested stacks."""
        usual = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        return self.world.cloud.create_stack(
            self.name,
            url=f"https://{BUCKET}.s3.{self.cluster.region}.amazonaws.com/{PREFIX}{form}.json",
            parameters={key: value for key, value in usual.items() if form == "cluster" or key == "ApiAllowedCidr"}
            | parameters,
            capabilities=["CAPABILITY_IAM"],
        )

    def create(self, form: str = "cluster") -> Stack:
        """Create the cluster and wait for the end."""
        return self.world.cloud.wait(self.begin(form))

    @property
    def kubernetes(self) -> KubernetesCluster:
        """What the cluster's API serves."""
        return self.world.cluster(self.cluster.name)

    def override(self, url: str) -> str:
        """Where an API of this account really listens."""
        return {
            kubernetes_endpoint.api_endpoint: kubernetes_endpoint.address
            for kubernetes_endpoint in self.world.kubernetes_endpoints()
        }.get(url, "")

    def instances(self, resource: str) -> list[str]:
        """Ids of a group's instances, by its logical id."""
        found = self.world.machines.instances.values()
        return [each.id for each in found if each.boot_data.references["resource"] == resource]


@contextlib.contextmanager
def place(cluster: Cluster | None = None, durations: Mapping[str, float] | None = None) -> Iterator[Place]:
    """An account without a cluster; operations take no time unless durations say so."""
    cluster = cluster or golden("default")
    with ExitStack() as opening:
        world = opening.enter_context(open_emulated_account(cluster.region, durations=durations))
        s3 = client("s3", cluster.region)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": cluster.region})
        upload({each.name: each.body for each in templates_of(cluster)})
        patch = opening.enter_context(pytest.MonkeyPatch.context())
        served = opening.enter_context(serving(world.cloud))
        world.machines.console = served.moto_extensions.set_console_output
        clock = WorldClock(world)
        # Whoever repeats a call does so after exactly the time that it waits.
        for module, sleep in (("botocore.endpoint", clock.advance), ("botocore.waiter", clock.sleep)):
            patch.setattr(f"{module}.time", SimpleNamespace(sleep=sleep))
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
            patch.delenv(name, raising=False)
        yield Place(world, served, cluster, clock)


@functools.cache
def allow_everything_but(*actions: str) -> dict[str, Any]:
    """A policy."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": list(actions), "Resource": "*"},
        ],
    }
