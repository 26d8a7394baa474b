"""Fault injection for AWS calls: throttling, expired credentials, lost connections, stale reads.

A test sets faults in a `Faults`, which the API's gate asks before each client request to any service. The emulator's
own calls are never affected.

Operations are named `DescribeStacks`, or with their service `cloudformation:DescribeStacks`; `*` stands for any text.
"""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import service_errors
from authorized_requests import action_of
from identity_policies import requests_of

from cfngen.sandbox.api.requests import Call, CallControl, Disconnected, Refusal

USER = "arn:aws:iam::123456789012:user/operator"
SMALL_PAGE = 8  # items, so that clients have to follow `NextToken`
READS = ("DescribeStacks", "ListStacks", "DescribeStackEvents", "DescribeEvents")

Refuse = Callable[[Call], Refusal]


@dataclass
class _Fault:
    """Refuses calls of an operation: the next `times`, or every `every`-th one, while `since` returns true."""

    operation: str
    refuse: Refuse
    times: float = float("inf")
    every: int = 1
    since: Callable[[], bool] = lambda: True
    skip: int = 0
    seen: int = 0

    def hits(self, call: Call) -> bool:
        if not matches(self.operation, call) or not self.since() or self.times <= 0:
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.seen - self.skip) % self.every:
            return False
        self.times -= 1
        return True


@dataclass
class _Hook:
    operation: str
    nth: int
    action: Callable[[], object]
    before: bool
    seen: int = 0


class Faults(CallControl):
    """Faults of one account.

    Attributes:
        calls: every call of a client in order, including refused ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._faults: list[_Fault] = []
        self._hooks: list[_Hook] = []
        self._stale: list[tuple[tuple[str, ...], float, float]] = []

    def throttle(
        self, operation: str = "*", *, times: float = float("inf"), every: int = 1, seconds: float = float("inf")
    ) -> None:
        """Throttle calls: refuse the next `times`, every `every`-th, or all for some simulated seconds."""
        self._add(operation, service_errors.throttled, times=times, every=every, seconds=seconds)

    def fail(self, operation: str = "*", *, times: float = 1, seconds: float = float("inf")) -> None:
        """Answer with an internal error of the service (status 500)."""
        self._add(operation, service_errors.failing, times=times, seconds=seconds)

    def refuse(self, operation: str, code: str, message: str, *, status: int = 400, times: float = 1) -> None:
        """Answer with a given error."""
        self._add(operation, lambda _: Refusal(code, message, status), times=times)

    def expire_credentials(self, *, after: int = 0, at: datetime.datetime | None = None) -> None:
        """Let the credentials expire after so many more calls, or at a simulated time, until `renew_credentials`."""
        self._faults.append(
            _Fault("*", service_errors.expired, skip=after, since=lambda: at is None or self.time >= at),
        )

    def invalidate_credentials(self) -> None:
        """Refuse every call as if AWS did not know the access key."""
        self._faults.append(_Fault("*", service_errors.invalid))

    def renew_credentials(self) -> None:
        """Accept the credentials again."""
        ended = (service_errors.expired, service_errors.invalid)
        self._faults = [fault for fault in self._faults if fault.refuse not in ended]

    def deny(self, *actions: str, user: str = USER) -> None:
        """Deny actions, e.g. `cloudformation:CreateChangeSet`, with the errors of IAM."""

        def refuse(call: Call) -> Refusal:
            request = next(requests_of(call))
            return service_errors.denied(call, request.action, user, request.resource)

        self._faults += [_Denied(action, refuse) for action in actions]

    def allow(self, *actions: str) -> None:
        """Allow these actions again after `deny`."""
        self._faults = [
            fault for fault in self._faults if not (isinstance(fault, _Denied) and fault.operation in actions)
        ]

    def disconnect(self, operation: str = "*", *, times: float = 1, kind: str = "closed") -> None:
        """Break the connection of calls.

        Args:
            operation: the operation of the calls.
            times: how many calls.
            kind: `closed`: broken before the call is executed; `answer`: broken after the call is executed, before
                its answer; `refused`: no connection can be opened.
        """

        def lose(_: Call) -> Refusal:
            raise Disconnected(kind)

        self._add(operation, lose, times=times)

    def stale(self, age: float, lasting: float, operations: tuple[str, ...] = READS) -> None:
        """Answer reads as of `age` simulated seconds ago, from now on for `lasting` seconds (eventual consistency)."""
        self._stale.append((operations, age, self.now() + lasting))

    def before(self, operation: str, action: Callable[[], object], *, nth: int = 1) -> None:
        """Run an action before the n-th call of an operation from now is executed."""
        self._hooks.append(_Hook(operation, nth, action, before=True))

    def after(self, operation: str, action: Callable[[], object], *, nth: int = 1) -> None:
        """Run an action after the n-th call of an operation from now is executed, before it is answered.

        In process, an exception of the action reaches the caller of the client: `KeyboardInterrupt` emulates Ctrl-C.
        """
        self._hooks.append(_Hook(operation, nth, action, before=False))

    def lift(self) -> None:
        """Remove all faults; keep hooks and recorded calls."""
        self._faults.clear()
        self._stale.clear()

    def clear(self) -> None:
        """Remove all faults, hooks and recorded calls."""
        self.lift()
        self._hooks.clear()
        self.calls.clear()
        self.page_size = SMALL_PAGE

    def called(self, operation: str, **parameters: Any) -> list[Call]:
        """Return the recorded calls of an operation that have these parameters."""
        return [call for call in self.calls if matches(operation, call) and _has(call.parameters, parameters)]

    def stale_at(self, operation: str) -> datetime.datetime | None:
        """Return the past time whose state a stale read of CloudFormation shows; None for the current state."""
        ages = [age for operations, age, end in self._stale if operation in operations and self.now() < end]
        return self.time - datetime.timedelta(seconds=max(ages)) if ages else None

    def before_call(self, call: Call) -> None:
        """Record a call, and check it before it is executed.

        Raises:
            Refusal: the error to answer instead
            Disconnected: the connection is to be broken
        """
        self._run(call, before=True)
        for fault in self._faults:
            if fault.hits(call):
                try:
                    refusal = fault.refuse(call)
                except Disconnected as lost:
                    self._record(call, lost.kind)
                    raise
                self._record(call, refusal.code)
                raise refusal
        self._record(call, "")

    def after_call(self, call: Call) -> None:
        """Run the hooks of a call that was executed."""
        self._run(call, before=False)

    def _add(self, operation: str, refuse: Refuse, *, seconds: float = float("inf"), **limits: Any) -> None:
        end = self.now() + seconds
        self._faults.append(_Fault(operation, refuse, since=lambda: self.now() < end, **limits))

    def _record(self, call: Call, refusal: str) -> None:
        self.calls.append(dataclasses.replace(call, refusal=refusal))

    def _run(self, call: Call, *, before: bool) -> None:
        for hook in list(self._hooks):
            if hook.before is before and matches(hook.operation, call):
                hook.seen += 1
                if hook.seen == hook.nth:
                    self._hooks.remove(hook)
                    hook.action()


class _Denied(_Fault):
    """Refuses calls by their IAM action, whose name may differ from the operation's."""

    def hits(self, call: Call) -> bool:
        return fnmatch.fnmatchcase(action_of(call.service, call.operation), self.operation)


def matches(operation: str, call: Call) -> bool:
    """Return whether a call matches an operation, which is named with or without its service."""
    return fnmatch.fnmatchcase(call.action, operation if ":" in operation else f"*:{operation}")


def _has(parameters: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(parameters.get(key) == value for key, value in expected.items())
