"""The sandbox's server on loopback: moto's services, our CloudFormation, and simulated time faster than real time.

    python -m cfngen.sandbox.process.server --state FILE [--speed N] [--idle SECONDS] [--answers MODE] [--seed N]

It listens on 127.0.0.1 only, and writes its endpoint and token into the state file. It ends after a time without
requests, or if the state file was deleted or overwritten by another sandbox. The module `running` starts and stops it.
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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from moto import mock_aws
from moto.core.config import DefaultConfig
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cfngen.sandbox.api import serving
from cfngen.sandbox.cloudformation.descriptions import ANSWERS, AWS
from cfngen.sandbox.cloudformation.simulation import DEFAULT_SEED, SIMULATION_START
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.emulated_account import EmulatedAccount
from cfngen.sandbox.existing_parts import make_existing_parts
from cfngen.sandbox.instances.groups import designates_group, scaling_groups
from cfngen.sandbox.instances.machines import Notice, send_notice
from cfngen.sandbox.process.authentication import has_token, is_signed_in, refuse
from cfngen.sandbox.process.control_api import CONTROL_PATH, DEFAULT_SPEED, HOST, STATUS_PATH, SandboxState, write_state
from cfngen.sandbox.process.status import IDLE, LastSandbox, write_last_sandbox
from cfngen.sandbox.untyped import JsonDict, JsonObject

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


TICK_SECONDS = 0.05  # real time between two steps of simulated time
MAX_TICK_SECONDS = 1.0  # limit of real time for one step, so that simulated time does not skip hours after a suspend
STATE_FILE_POLL_SECONDS = 1.0  # between two checks of the state file
IDLE_SECONDS = 3600.0  # the server ends after this time without requests
# A cluster file may name AWS managed policies. moto loads them at the first call of IAM, which takes two seconds.
MOTO_CONFIG: DefaultConfig = {"iam": {"load_aws_managed_policies": True}}


class _RequestHandler(MotoRequestHandler):
    """Sends the application's headers alone: the AWS SDK for JavaScript takes two of `Date` for one that is no time."""

    def send_response(self, code: int, message: str | None = None) -> None:
        self.send_response_only(code, message)


class Sandbox:
    """An emulated account that is served on loopback, with all its regions.

    Args:
        accounts: the emulated accounts by region; they share one lock, and their clocks advance together.
        speed: simulated seconds in a second of real time.

    Attributes:
        token: what every request must bear, as only who may read the state file can; answers of the control API have
            it too, and so identify the sandbox.
        fault: an internal error of the sandbox; empty if there was none.
        stopped: set to end the sandbox.
        last_request_at: when the last request was answered, as `time.monotonic` shows it.
        started: when the sandbox was started, by this machine's clock.
    """

    def __init__(self, accounts: Mapping[str, EmulatedAccount], application: WSGIApplication, speed: float) -> None:
        self.accounts = accounts
        self.speed = speed
        self.token = secrets.token_hex(16)
        self.fault = ""
        self.stopped = threading.Event()
        self.last_request_at = time.monotonic()
        self.started = datetime.datetime.now(datetime.UTC)
        self._application = application
        self._any_account = next(iter(accounts.values()))  # its lock and its time are those of all accounts
        self._server = make_server(HOST, 0, self.answer, threaded=True, request_handler=_RequestHandler)
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": TICK_SECONDS}, daemon=True),
            threading.Thread(target=self._run_clock, daemon=True),
        ]

    @property
    def endpoint(self) -> str:
        """The endpoint URL of AWS's APIs."""
        return f"http://{HOST}:{self._server.server_port}"

    @property
    def lock(self) -> contextlib.AbstractContextManager[object]:
        """The lock to hold during every access to the emulated accounts."""
        return self._any_account.lock

    def start(self) -> None:
        """Start the server and the simulated clock."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the server, the simulated clock and the clusters' APIs."""
        self.stopped.set()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()
        for account in self.accounts.values():
            account.close()

    def answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request to the control API or to a service; one at a time, as moto is not thread-safe.

        Requests without the token are refused, and neither a status request nor they reset the idle time.
        """
        path = environ["PATH_INFO"]
        is_control = path in (CONTROL_PATH, STATUS_PATH)
        with self._any_account.lock:
            if is_control and not has_token(environ, self.token):
                return _json_response("403 Forbidden", {}, start_response)
            if not is_control and not is_signed_in(environ, self.token):
                return refuse(environ, start_response)
            if path == STATUS_PATH:
                return _json_response("200 OK", self.status(), start_response)
            self.last_request_at = time.monotonic()
            if is_control:
                return self._handle_control_request(environ, start_response)
            return list(self._application(environ, start_response))

    def report(self) -> JsonDict:
        """Return the report of the control API: token, the clusters' APIs, simulated time, speed, internal error."""
        clusters = [
            {
                "stack": endpoint.stack,
                "region": region,
                "apiEndpoint": endpoint.api_endpoint,
                "address": endpoint.address,
            }
            for region, account in self.accounts.items()
            if account.machines.instances
            for endpoint in account.kubernetes_endpoints()
        ]
        now = self._any_account.cloud.clock.time.isoformat()
        return {"token": self.token, "clusters": clusters, "time": now, "speed": self.speed, "fault": self.fault}

    def _handle_control_request(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request of the control API: carry out its command, if it has one, and report."""
        result: JsonDict = {}
        if environ["REQUEST_METHOD"] == "POST":
            result = self._carry_out(json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))))
        return _json_response("200 OK", {**self.report(), **result}, start_response)

    def status(self) -> JsonDict:
        """Return the data of `cfngen sandbox status`.

        `begin` and `time` are simulated times, `started` is real time; `faults` are the injected boot faults, `fault`
        is an internal error of the sandbox.
        """
        clock = self._any_account.cloud.clock
        api_addresses = {  # by region and name of the root stack
            (region, endpoint.stack): endpoint.address
            for region, account in self.accounts.items()
            if account.machines.instances
            for endpoint in account.kubernetes_endpoints()
        }
        faults = [
            {"region": region, **dataclasses.asdict(fault)}
            for region, account in self.accounts.items()
            for fault in account.machines.faults
        ]
        groups = [
            {"region": region, "stack": group.stack, "name": group.name, "logicalId": group.logical_id}
            for region, account in self.accounts.items()
            for group in scaling_groups(account.cloud)
        ]
        stacks = [
            {**stack, "address": api_addresses.get((stack["region"], stack["name"]), "")} for stack in self.stacks()
        ]
        return {
            "token": self.token,
            "started": self.started.isoformat(),
            "begin": SIMULATION_START.isoformat(),
            "time": clock.time.isoformat(),
            "stacks": stacks,
            "groups": groups,
            "faults": faults,
            "fault": self.fault,
        }

    def stacks(self) -> list[dict[str, str]]:
        """Return the existing root stacks: region, name and status."""
        return [
            {"region": region, "name": stack.name, "status": stack.status}
            for region, account in self.accounts.items()
            for stack in account.cloud.stacks()
            if stack.root is stack and stack.status not in ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS")
        ]

    def _carry_out(self, command: JsonObject) -> JsonDict:
        """Carry out a command; return what the methods of `RunningSandbox` read in the answer."""
        region = command["region"]
        if "parts" in command:
            return {"made": make_existing_parts(region, command["parts"])}
        if command.get("notice"):
            spot, on_demand = send_notice(
                self.accounts[region].machines, command["resource"], Notice(command["notice"]), command.get("times", 0)
            )
            return {"spot": spot, "onDemand": on_demand}
        if not command.get("step"):
            regions = [region] if region else list(self.accounts)
            return {"healed": [name for name in regions if self.accounts[name].machines.remove_faults()]}
        self._set_fault(command)
        return {"known": self._has_group(region, command["resource"])}

    def _set_fault(self, command: JsonObject) -> None:
        """Make instances that are launched from now on fail to boot, or hang."""
        machines = self.accounts[command["region"]].machines
        times = command.get("times") or math.inf  # 0 means all instances
        group, step, message = command["resource"], command["step"], command.get("message")
        if message:
            machines.inject_failure(group, step, message, hint=command.get("hint", ""), times=times)
        else:
            machines.inject_hang(group, step, times=times)

    def _has_group(self, region: str, text: str) -> bool:
        groups = scaling_groups(self.accounts[region].cloud)
        return any(designates_group(text, name=group.name, logical_id=group.logical_id) for group in groups)

    def _run_clock(self) -> None:
        """Advance simulated time step by step until the sandbox is closed."""
        previous = time.monotonic()
        while not self.stopped.wait(TICK_SECONDS):
            now = time.monotonic()
            simulated_seconds = min(now - previous, MAX_TICK_SECONDS) * self.speed
            previous = now
            for account in self.accounts.values():
                self._advance_account(account, simulated_seconds)

    def _advance_account(self, account: EmulatedAccount, seconds: float) -> None:
        """Advance the time of one region; record an internal error instead of ending the clock."""
        try:
            account.advance(seconds)
        except Exception as error:  # noqa: BLE001 - time must go on for the other stacks; clients see `fault`
            self.fault = f"{type(error).__name__}: {error}"
            sys.stderr.write(traceback.format_exc())


def _json_response(status: str, content: object, start_response: StartResponse) -> Iterable[bytes]:
    body = json.dumps(content).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


@contextlib.contextmanager
def sandbox(speed: float = DEFAULT_SPEED, answers: str = AWS, seed: int = DEFAULT_SEED) -> Iterator[Sandbox]:
    """Serve a new account from this process, on loopback, until the end of the block."""
    lock = threading.RLock()
    session = boto3.Session()
    regions = [
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("cloudformation", partition_name=partition)
        if region in RegionsAndZonesBackend.zones
    ]
    with mock_aws(config=MOTO_CONFIG):
        accounts = {
            region: EmulatedAccount(region, lock=lock, durations=DURATIONS, seed=seed, speed=speed)
            for region in regions
        }
        for account in accounts.values():
            account.cloud.answers.mode = answers
        with serving({region: account.cloud for region, account in accounts.items()}) as served:
            for account in accounts.values():
                account.machines.console = served.moto_extensions.set_console_output
            application = served.gate.wsgi(DomainDispatcherApplication(create_backend_app))
            server = Sandbox(accounts, application, speed)
            for account in accounts.values():
                account.cloud.endpoint = server.endpoint
                account.cloud.resource_errors = (Exception,)
            server.start()
            try:
                yield server
            finally:
                server.close()


def main(arguments: list[str]) -> int:
    """Serve until a signal, the idle time, or a changed state file ends the sandbox."""
    parser = argparse.ArgumentParser(prog="python -m cfngen.sandbox.process.server")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--speed", type=float, default=DEFAULT_SPEED)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    parser.add_argument("--answers", choices=ANSWERS, default=AWS)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    options = parser.parse_args(arguments)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with sandbox(options.speed, options.answers, options.seed) as served:
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda *_: served.stopped.set())
        own_state = SandboxState(
            served.endpoint, os.getpid(), served.token, served.speed, options.answers, options.seed
        )
        write_state(options.state, own_state)
        last = LastSandbox(served.token)
        write_last_sandbox(options.state, last)
        while not served.stopped.wait(STATE_FILE_POLL_SECONDS):
            last = _record_stacks(options.state, last, served)
            if SandboxState.read(options.state) != own_state:
                break
            if time.monotonic() - served.last_request_at > options.idle:
                last = dataclasses.replace(last, end=IDLE)
                break
        if SandboxState.read(options.state) == own_state:
            write_last_sandbox(
                options.state, dataclasses.replace(last, ended=datetime.datetime.now(datetime.UTC).isoformat())
            )
            options.state.unlink(missing_ok=True)
    return 0


def _record_stacks(state: Path, last: LastSandbox, served: Sandbox) -> LastSandbox:
    """Record the current stacks in the file of the last sandbox, in case this process is killed.

    Returns:
        The record with the current stacks.
    """
    with served.lock:
        stacks = tuple(f"{stack['name']} in {stack['region']}" for stack in served.stacks())
    if stacks != last.stacks:
        last = dataclasses.replace(last, stacks=stacks)
        write_last_sandbox(state, last)
    return last


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # skip Python's clean-up of moto's objects, which takes seconds
