"""Kubernetes taking its load balancers down: each Service asked once, waited for, named where it does not go."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import TestClock

from cfngen.deploy.access.kubernetes_objects import LoadBalancer
from cfngen.deploy.messages.message import Message, Step
from cfngen.deploy.operations.deletion.kubernetes import delete_load_balancer_services


class Services:
    """A Kubernetes whose Services go some seconds after they were told to.

    Attributes:
        deleted: which were told, in order.
    """

    def __init__(self, clock: TestClock, *names: str, takes: float = 0.0, leaving: tuple[str, ...] = ()) -> None:
        self.clock, self.takes = clock, takes
        self.ends: dict[str, float] = {name: clock.now().timestamp() + takes for name in leaving}
        self.names = [*names, *leaving]
        self.deleted: list[str] = []

    def load_balancers(self) -> tuple[LoadBalancer, ...]:
        now = self.clock.now().timestamp()
        return tuple(
            LoadBalancer("default", name, being_deleted=name in self.ends)
            for name in self.names
            if name not in self.ends or self.ends[name] > now
        )

    def delete_service(self, namespace: str, name: str) -> None:
        self.deleted.append(f"{namespace}/{name}")
        self.ends[name] = self.clock.now().timestamp() + self.takes


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


def drained(kubernetes: Any, clock: TestClock, **more: Any) -> tuple[tuple[str, ...], list[Message]]:
    said: list[Message] = []
    return delete_load_balancer_services(kubernetes, clock, said.append, **more), said


def test_without_load_balancers_nothing_is_said(clock: TestClock) -> None:
    assert drained(Services(clock), clock) == ((), [])


def test_each_service_is_told_once_and_waited_for(clock: TestClock) -> None:
    services, began = Services(clock, "web", "api", takes=60, leaving=("old",)), clock.now()
    left, said = drained(services, clock)
    assert (left, services.deleted) == ((), ["default/web", "default/api"])
    text = "waiting for Kubernetes to delete the load balancers of default/web, default/api, default/old"
    assert said == [Step(text)]
    assert 60 <= (clock.now() - began).total_seconds() <= 70


@pytest.mark.parametrize(
    ("takes", "timeout", "left"),
    [(300, {}, ()), (301, {}, ("default/web",)), (10, {"timeout": 10}, ()), (11, {"timeout": 10}, ("default/web",))],
)
def test_what_does_not_go_in_time_is_named(
    clock: TestClock, takes: float, timeout: dict[str, float], left: tuple[str, ...]
) -> None:
    services, began = Services(clock, "web", takes=takes), clock.now()
    assert drained(services, clock, **timeout)[0] == left
    assert (clock.now() - began).total_seconds() <= timeout.get("timeout", 300) + 5
