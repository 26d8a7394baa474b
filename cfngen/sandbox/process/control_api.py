"""The client of a sandbox: reads the state file, which names the sandbox's endpoint, and calls its control API.

The sandbox serves the control API under `CONTROL_PATH`, on the same port as AWS's APIs. The command line imports this
module, so it must not import moto.
"""

from __future__ import annotations

import datetime
import http.client
import json
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from cfngen.atomic_files import replace_file
from cfngen.errors import CfngenError
from cfngen.sandbox.untyped import JsonDict, JsonObject

HOST = "127.0.0.1"  # loopback only: the sandbox must not be reachable from other machines
CONTROL_PATH = "/cfngen/sandbox"
STATUS_PATH = CONTROL_PATH + "/status"
# Simulated seconds in a second: a cluster is created in some twenty seconds instead of four minutes.
DEFAULT_SPEED = 12.0
AWS = "aws"  # how a sandbox describes change sets by default: as AWS does
ANSWER_TIMEOUT = 30.0  # seconds; the sandbox may be busy with other requests
CLOCK_REFRESH_SECONDS = 1.0  # real seconds after which `SandboxClock` requests the time again


class SandboxGoneError(CfngenError):
    """The sandbox does not answer any more."""

    code = "sandbox-gone"


@dataclass(frozen=True)
class SandboxState:
    """The content of the state file.

    Attributes:
        endpoint: the endpoint URL of AWS's APIs.
        token: every request of the control API has it, and every answer, which identifies the sandbox; requests to
            services have it as their session token.
        speed: simulated seconds in a second of real time.
        answers: how the sandbox describes change sets: `aws` or `generous`.
        seed: what drew the order of resources that do not depend on each other.
    """

    endpoint: str
    pid: int
    token: str
    speed: float
    answers: str = AWS
    seed: int = 1

    @classmethod
    def read(cls, path: Path) -> SandboxState | None:
        """Return the content of a state file; None if it is missing or not valid."""
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except (OSError, TypeError, ValueError):
            return None


def write_state(path: Path, state: SandboxState) -> None:
    """Write a state file atomically, readable for this user only."""
    replace_file(path, json.dumps(asdict(state)), private=True)


def request_report(
    state: SandboxState, *, timeout: float = ANSWER_TIMEOUT, path: str = CONTROL_PATH, **command: object
) -> JsonDict:
    """Send a request to a sandbox, with a command or without, and return its report.

    The report has the keys `token`, `time`, `speed`, `clusters` and `fault`; that of `STATUS_PATH` has more.

    Args:
        timeout: seconds to wait for the answer.
        **command: fields of the command; see `RunningSandbox.inject_failure`. Without any, the request only asks for
            the report.

    Raises:
        SandboxGoneError: nothing answers at the endpoint, or it is not this sandbox that answers.
    """
    body = json.dumps(command) if command else None
    # http.client ignores the environment's proxies, which cannot reach this machine's loopback address.
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(state.endpoint).netloc, timeout=timeout)
    try:
        connection.request("POST" if command else "GET", path, body, {"Authorization": f"Bearer {state.token}"})
        report = json.loads(connection.getresponse().read())
        is_same_sandbox = isinstance(report, dict) and report.get("token") == state.token
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SandboxGoneError(
            f"the sandbox at {state.endpoint} does not answer: {error}", hint=RESTART_HINT
        ) from error
    finally:
        connection.close()
    if not is_same_sandbox:
        raise SandboxGoneError(f"the sandbox has ended: another program answers at {state.endpoint}", hint=RESTART_HINT)
    return dict(report)


RESTART_HINT = (
    "`cfngen sandbox start` starts a new sandbox with an empty account; a sandbox ends after an hour without requests."
)


class SandboxClock:
    """A clock that shows the simulated time of a sandbox, and sleeps for simulated seconds.

    It requests the time once in a while, and extrapolates in between.

    Args:
        monotonic: returns seconds of real time, like `time.monotonic`.
        wait: waits for seconds of real time, like `time.sleep`.
    """

    def __init__(
        self,
        state: SandboxState,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._state = state
        self._monotonic = monotonic
        self._wait = wait
        self._last_time: datetime.datetime | None = None
        self._last_request_at = 0.0

    def now(self) -> datetime.datetime:
        """Return the simulated time: the sandbox's answer, or extrapolated from its last one."""
        real_now = self._monotonic()
        if self._last_time is None or real_now - self._last_request_at >= CLOCK_REFRESH_SECONDS:
            extrapolated = self._extrapolate(real_now)
            self._last_time = datetime.datetime.fromisoformat(request_report(self._state)["time"])
            if extrapolated and self._last_time < extrapolated:
                # The sandbox was too busy to keep its speed. Time must not go backwards, so the clock waits for it.
                self._last_time = extrapolated
            self._last_request_at = real_now
        return self._extrapolate(real_now) or self._last_time

    def sleep(self, seconds: float) -> None:
        """Wait for a number of simulated seconds."""
        self._wait(seconds / self._state.speed)

    def _extrapolate(self, real_now: float) -> datetime.datetime | None:
        """Return the simulated time now, from the sandbox's last answer and its speed; None before the first answer.

        Args:
            real_now: seconds of real time, as `monotonic` returns them.
        """
        if self._last_time is None:
            return None
        real_seconds = real_now - self._last_request_at
        return self._last_time + datetime.timedelta(seconds=real_seconds * self._state.speed)


def addresses_by_endpoint(report: JsonObject) -> dict[str, str]:
    """Return the URL of each cluster's API on this machine, by the URL in its stack's outputs."""
    return {cluster["apiEndpoint"]: cluster["address"] for cluster in report["clusters"]}
