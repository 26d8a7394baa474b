"""The sandbox on loopback: moto's services, our CloudFormation, and time that passes faster than the clock on the wall.

    python -m cfngen.sandbox.server --state FILE [--speed N] [--idle SECONDS]

It listens on 127.0.0.1 only, writes where into the state file, and ends after a while without requests, or when the
state file is no longer its own. `process` starts and stops it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import logging
import math
import os
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws
from moto.core.config import DefaultConfig
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cfngen.sandbox.api import serving
from cfngen.sandbox.cloudformation.clock import START
from cfngen.sandbox.control_api import HOST, PATH, SPEED, STATUS, State, write
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.emulated_account import EmulatedAccount
from cfngen.sandbox.groups import groups, meant
from cfngen.sandbox.last_sandbox import Last, remember

TICK_SECONDS = 0.05  # seconds of real time between two looks at the clock
MAX_TICK_SECONDS = 1.0  # seconds of real time that may pass at once: a machine that was suspended must not skip hours
STATE_FILE_POLL_SECONDS = 1.0  # seconds between two looks at the state file
IDLE_SECONDS = 3600.0
# Policies that AWS manages may be named in a cluster file. moto reads them at the first call of IAM, in two seconds.
MOTO_CONFIG: DefaultConfig = {"iam": {"load_aws_managed_policies": True}}

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Sandbox:
    """An account that is served; a world for each region.

    Args:
        worlds: by region; they share one lock.
        application: moto's services.
        speed: simulated seconds in a second.
    """

    def __init__(self, worlds: Mapping[str, EmulatedAccount], application: Application, speed: float) -> None:
        self.worlds = worlds
        self.speed = speed
        self.token = secrets.token_hex(16)
        self.fault = ""
        self.stopped = threading.Event()
        self.used = time.monotonic()
        self.started = datetime.datetime.now(datetime.timezone.utc)
        self._application = application
        [self._first, *_] = worlds.values()
        self._server = make_server(HOST, 0, self.answer, threaded=True, request_handler=MotoRequestHandler)
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": TICK_SECONDS}, daemon=True),
            threading.Thread(target=self._run_clock, daemon=True),
        ]

    @property
    def endpoint(self) -> str:
        """Where it answers, as a URL."""
        return f"http://{HOST}:{self._server.server_port}"

    @property
    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """Held by whoever looks at the worlds."""
        return self._first.lock

    def start(self) -> None:
        """Answer, and let time pass."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End both, and the clusters' APIs."""
        self.stopped.set()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()
        for world in self.worlds.values():
            world.close()

    def answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request; no two at once, as moto does not expect it."""
        if environ["PATH_INFO"] == STATUS:
            # To look at it is no work: it ends all the same when there is none.
            with self._first.lock:
                return _json_response("200 OK", self.status(), start_response)
        self.used = time.monotonic()
        with self._first.lock:
            if environ["PATH_INFO"] == PATH:
                return self._handle_control_request(environ, start_response)
            return list(self._application(environ, start_response))

    def report(self) -> dict[str, Any]:
        """Return what clients of the sandbox want to know beside AWS' API."""
        clusters = [
            {
                "stack": endpoint.stack,
                "region": region,
                "apiEndpoint": endpoint.api_endpoint,
                "address": endpoint.address,
            }
            for region, world in self.worlds.items()
            if world.machines.instances
            for endpoint in world.kubernetes_endpoints()
        ]
        now = self._first.cloud.clock.time.isoformat()
        return {"token": self.token, "clusters": clusters, "time": now, "speed": self.speed, "fault": self.fault}

    def _handle_control_request(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, result = "200 OK", {}
        if environ["REQUEST_METHOD"] == "POST":
            command = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
            if command.get("token") == self.token:
                self._set_faults(command)
                result = {"known": self._has_group(command["region"], command.get("resource", ""))}
            else:
                status = "403 Forbidden"
        return _json_response(status, {**self.report(), **result}, start_response)

    def status(self) -> dict[str, Any]:
        """Return what `cfngen sandbox status` shows."""
        clock = self._first.cloud.clock
        addresses = {
            (region, endpoint.stack): endpoint.address
            for region, world in self.worlds.items()
            if world.machines.instances
            for endpoint in world.kubernetes_endpoints()
        }
        faults = [
            {"region": region, **dataclasses.asdict(fault)}
            for region, world in self.worlds.items()
            for fault in world.machines.faults
        ]
        scaling_groups = [
            {"region": region, "stack": group.stack, "name": group.name, "logicalId": group.logical_id}
            for region, world in self.worlds.items()
            for group in groups(world.cloud)
        ]
        stacks = [{**stack, "address": addresses.get((stack["region"], stack["name"]), "")} for stack in self.stacks()]
        return {
            "token": self.token,
            "started": self.started.isoformat(),
            "begin": START.isoformat(),
            "time": clock.time.isoformat(),
            "stacks": stacks,
            "groups": scaling_groups,
            "faults": faults,
            "fault": self.fault,
        }

    def stacks(self) -> list[dict[str, str]]:
        """Return the stacks that are there, but nested ones."""
        return [
            {"region": region, "name": stack.name, "status": stack.status}
            for region, world in self.worlds.items()
            for stack in world.cloud.stacks()
            if stack.root is stack and stack.status not in ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS")
        ]

    def _set_faults(self, command: Mapping[str, Any]) -> None:
        """Let instances of a group that are launched from now on fail to boot, hang, or boot again."""
        machines = self.worlds[command["region"]].machines
        times = command.get("times") or math.inf
        if not command.get("step"):
            machines.heal()
        elif command.get("message"):
            machines.fail(
                command["resource"], command["step"], command["message"], hint=command.get("hint", ""), times=times
            )
        else:
            machines.hang(command["resource"], command["step"], times=times)

    def _has_group(self, region: str, text: str) -> bool:
        """Return whether a stack has such an Auto Scaling group now."""
        return any(meant(text, group.name, group.logical_id) for group in groups(self.worlds[region].cloud))

    def _run_clock(self) -> None:
        previous = time.monotonic()
        while not self.stopped.wait(TICK_SECONDS):
            now = time.monotonic()
            elapsed = min(now - previous, MAX_TICK_SECONDS) * self.speed
            previous = now
            for world in self.worlds.values():
                self._advance_account(world, elapsed)

    def _advance_account(self, world: EmulatedAccount, seconds: float) -> None:
        try:
            world.advance(seconds)
        except Exception as error:  # noqa: BLE001 - time must go on for the other stacks; clients are told
            self.fault = f"{type(error).__name__}: {error}"
            sys.stderr.write(traceback.format_exc())


def _json_response(status: str, content: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = json.dumps(content).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


@contextlib.contextmanager
def sandbox(speed: float = SPEED) -> Iterator[Sandbox]:
    """A new account in this process, answering on loopback until the end of the block."""
    lock = threading.RLock()
    regions = boto3.Session().get_available_regions("cloudformation")
    with mock_aws(config=MOTO_CONFIG):
        worlds = {region: EmulatedAccount(region, lock=lock, durations=DURATIONS, speed=speed) for region in regions}
        with serving({region: world.cloud for region, world in worlds.items()}) as served:
            for world in worlds.values():
                world.machines.console = served.gaps.console
            application = served.wsgi(DomainDispatcherApplication(create_backend_app))
            server = Sandbox(worlds, application, speed)
            server.start()
            try:
                yield server
            finally:
                server.close()


def main(arguments: list[str]) -> int:
    """Serve until there is nobody left to serve."""
    parser = argparse.ArgumentParser(prog="python -m cfngen.sandbox.server")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--speed", type=float, default=SPEED)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    options = parser.parse_args(arguments)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with sandbox(options.speed) as served:
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda *_: served.stopped.set())
        own_state = State(served.endpoint, os.getpid(), served.token, served.speed)
        write(options.state, own_state)
        last = Last(served.token)
        remember(options.state, last)
        while not served.stopped.wait(STATE_FILE_POLL_SECONDS):
            last = _remember_stacks(options.state, last, served)
            if State.read(options.state) != own_state:
                break
            if time.monotonic() - served.used > options.idle:
                last = dataclasses.replace(last, end="idle")
                break
        if State.read(options.state) == own_state:
            remember(
                options.state, dataclasses.replace(last, ended=datetime.datetime.now(datetime.timezone.utc).isoformat())
            )
            options.state.unlink(missing_ok=True)
    return 0


def _remember_stacks(state: Path, last: Last, served: Sandbox) -> Last:
    """Write down which stacks there are: a process that is killed can say nothing any more."""
    with served.lock:
        stacks = tuple(f"{stack['name']} in {stack['region']}" for stack in served.stacks())
    if stacks != last.stacks:
        last = dataclasses.replace(last, stacks=stacks)
        remember(state, last)
    return last


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # Python would take moto apart piece by piece, which takes seconds and helps nobody
