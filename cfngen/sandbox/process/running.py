"""The sandbox as a background process: starts it, finds a running one, and stops it.

The state file, and the log beside it, are in `$XDG_STATE_HOME/cfngen` or `~/.local/state/cfngen`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cfngen.errors import CfngenError
from cfngen.sandbox.process.control_api import (
    DEFAULT_SPEED,
    STATUS_PATH,
    SandboxClock,
    SandboxGoneError,
    SandboxState,
    addresses_by_endpoint,
    request_report,
)
from cfngen.sandbox.process.status import (
    STOPPED,
    LastSandbox,
    SandboxStatus,
    read_last_sandbox,
    status_of_running,
    status_without_sandbox,
    write_last_sandbox,
)
from cfngen.sandbox.untyped import AwsClient, JsonDict, JsonObject

REQUIRED_PACKAGES = ("moto", "flask", "flask_cors", "werkzeug")
POLL_SECONDS = 0.05  # between two checks whether the process answers, or has ended
START_TIMEOUT = 60.0  # seconds until a new sandbox must answer
ANSWER_TIMEOUT = 10.0  # seconds until a running sandbox must answer
STOP_TIMEOUT = 5.0  # seconds until the process must have ended, after SIGTERM and after SIGKILL
LOG_LINES = 12  # how many last lines of the log an error message shows
IDLE_SECONDS = 3600.0  # a sandbox ends after this time without requests
# Prefixes of environment variables that the process must not inherit: it needs no AWS configuration and no proxy.
REMOVED_VARIABLE_PREFIXES = (
    "AWS_", "BOTO", "MOTO_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
    "all_proxy",
)  # fmt: skip


class SandboxMissingError(CfngenError):
    """The packages that the sandbox needs are not installed."""

    code = "sandbox-not-installed"


class SandboxEndedError(CfngenError):
    """The last sandbox has ended, and the stacks in it are lost."""

    code = "sandbox-ended"

    def __init__(self, last: LastSandbox) -> None:
        super().__init__(
            f"{last.how_it_ended}; its stacks are lost: {', '.join(last.stacks)}",
            hint="`cfngen sandbox start` starts a new sandbox with an empty account.",
        )


class SandboxStartError(CfngenError):
    """The sandbox did not start."""

    code = "sandbox-not-started"


@dataclass(frozen=True)
class RunningSandbox:
    """A running sandbox; `file` is the path of its state file."""

    state: SandboxState
    file: Path

    @property
    def endpoint(self) -> str:
        """The endpoint URL of AWS's APIs."""
        return self.state.endpoint

    @property
    def pid(self) -> int:
        """Id of the sandbox's process."""
        return self.state.pid

    @property
    def log(self) -> Path:
        """Path of the sandbox's log file."""
        return self.file.with_suffix(".log")

    @property
    def kubernetes(self) -> Mapping[str, str]:
        """The current URL of each cluster's API, by the URL in its stack's outputs."""
        return addresses_by_endpoint(request_report(self.state))

    def status(self) -> JsonObject:
        """Return the sandbox's detailed status; unlike other requests, this one does not reset the idle time."""
        return request_report(self.state, path=STATUS_PATH)

    @property
    def fault(self) -> str:
        """An internal error of the sandbox, e.g. about a template feature that it does not emulate; empty if none."""
        return str(request_report(self.state)["fault"])

    def clock(self) -> SandboxClock:
        """Return a clock that shows simulated time."""
        return SandboxClock(self.state)

    def session(self, region: str) -> AwsClient:
        """Return a boto3 session whose clients call the sandbox."""
        from cfngen.sandbox.process.session import SandboxSession

        return SandboxSession(self.endpoint, self.state.token, region)

    def make_existing_parts(self, region: str, parts: JsonObject) -> list[str]:
        """Make what a cluster file names as existing and is missing; see `cfngen.sandbox.existing_parts`."""
        return list(request_report(self.state, region=region, parts=parts)["made"])

    def inject_failure(self, region: str, group: str, step: str, message: str, hint: str = "", times: int = 0) -> bool:
        """Make instances that are launched from now on fail to boot.

        Args:
            group: the node group's name, `master`, or the logical id of the Auto Scaling group.
            step: the step of the boot program that fails, e.g. `downloads`.
            message: the reason that is logged; if empty, the instances hang in the step.
            hint: advice that is logged with the reason.
            times: how many instances fail; 0 means all.

        Returns:
            Whether a stack of the region has such a group now. If not, it may be created later, or be misspelt.
        """
        command: JsonDict = {"region": region, "resource": group, "step": step, "message": message, "hint": hint}
        return bool(request_report(self.state, **command, times=times).get("known", True))

    def send_notice(self, region: str, group: str, notice: str, times: int = 0) -> tuple[list[str], list[str]]:
        """Send EC2's notices to running Spot Instances of a group, interrupt them if these say so, and end others.

        Args:
            notice: a value of `cfngen.sandbox.instances.machines.Notice`.
            times: how many instances it is about, those launched first; 0 means all.

        Returns:
            The ids of the Spot Instances that got it, and those of the On-Demand Instances that ended.
        """
        command: JsonDict = {"region": region, "resource": group, "notice": notice, "times": times}
        report = request_report(self.state, **command)
        return list(report["spot"]), list(report["onDemand"])

    def remove_faults(self, region: str = "") -> list[str]:
        """Remove all faults: new instances boot normally, and those that failed try again.

        Args:
            region: the region; empty means all.

        Returns:
            The regions that had faults, or instances that had failed.
        """
        return list(request_report(self.state, region=region, step="")["healed"])


def start(
    environ: Mapping[str, str],
    speed: float = DEFAULT_SPEED,
    idle: float = IDLE_SECONDS,
    *,
    answers: str = "aws",
    seed: int | None = None,
    accept_lost_stacks: bool = False,
) -> RunningSandbox:
    """Return the running sandbox, or start one.

    Args:
        environ: environment variables; they determine the path of the state file, and the process inherits them.
        speed: simulated seconds in a second of real time, for a new sandbox.
        idle: seconds without a request after which a new sandbox ends.
        answers: how a new sandbox describes change sets: `aws` or `generous`.
        seed: draws the order of resources that do not depend on each other in a new sandbox; None for the usual one.
        accept_lost_stacks: start a new sandbox even if stacks were lost with the last one; otherwise that is an error,
            as the user may not have noticed.

    Raises:
        SandboxEndedError: the last sandbox ended without being stopped by its user, and stacks were lost with it.
        SandboxMissingError: packages that the sandbox needs are not installed.
        SandboxStartError: the process ended, or did not answer in time.
    """
    file = state_file(environ)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _start_lock(file.with_suffix(".lock")):
        if sandbox := find_running_sandbox(environ):
            return sandbox
        last = read_last_sandbox(file)
        if last and last.stacks and last.end != STOPPED and not accept_lost_stacks:
            raise SandboxEndedError(last)
        _check_packages()
        file.unlink(missing_ok=True)
        settings = ["--speed", str(speed), "--idle", str(idle), "--answers", answers]
        pid = _spawn_server(environ, file, settings + (["--seed", str(seed)] if seed is not None else []))
        return _await_answer(pid, file)


def find_running_sandbox(environ: Mapping[str, str]) -> RunningSandbox | None:
    """Return the running sandbox; None if there is no state file, or the sandbox in it does not answer."""
    file = state_file(environ)
    state = SandboxState.read(file)
    if state is None or not _is_alive(state.pid):
        return None
    try:
        request_report(state, timeout=ANSWER_TIMEOUT)
    except SandboxGoneError:
        return None
    return RunningSandbox(state, file)


def stop(environ: Mapping[str, str]) -> bool:
    """Stop the sandbox, which deletes everything in it; return whether one was running."""
    sandbox, file = find_running_sandbox(environ), state_file(environ)
    last = read_last_sandbox(file)
    file.unlink(missing_ok=True)
    if sandbox is not None:
        _terminate(sandbox.pid)
    if last is not None and last.end != STOPPED:
        ended = last.ended or datetime.datetime.now(datetime.UTC).isoformat()
        write_last_sandbox(file, dataclasses.replace(last, end=STOPPED, ended=ended))
    return sandbox is not None


def status(environ: Mapping[str, str]) -> SandboxStatus:
    """Return the status of the running sandbox, or of the last one."""
    sandbox = find_running_sandbox(environ)
    if sandbox is None:
        return status_without_sandbox(lost_sandbox(environ))
    return status_of_running(sandbox.endpoint, sandbox.pid, sandbox.state.speed, sandbox.status())


def lost_sandbox(environ: Mapping[str, str]) -> LastSandbox | None:
    """Return the record of the last sandbox if stacks were lost with it and none runs now."""
    last = read_last_sandbox(state_file(environ))
    return last if last and last.stacks and find_running_sandbox(environ) is None else None


def state_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the state file."""
    # Relative paths are ignored, as the XDG Base Directory Specification says.
    configured_folder = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME") or str(Path("~").expanduser())
    folder = Path(configured_folder) if configured_folder.startswith("/") else Path(home) / ".local" / "state"
    return folder / "cfngen" / "sandbox.json"


def _check_packages() -> None:
    if missing := [name for name in REQUIRED_PACKAGES if find_spec(name) is None]:
        raise SandboxMissingError(
            f"the sandbox needs packages that are not installed: {', '.join(missing)}",
            hint="in a checkout of cfngen, run: make sandbox, or pip install '.[sandbox]'; to install the command: "
            "pipx install --force '.[sandbox]', or uv tool install --force '.[sandbox]'",
        )


def _spawn_server(environ: Mapping[str, str], state_path: Path, options: list[str]) -> int:
    """Start the sandbox's server as a process detached from this one and its terminal; return its id.

    The server writes the state file; its log is beside it. The options are further ones of the module `server`.
    """
    project_root = Path(__file__).parents[3]
    python_path = [str(project_root), *filter(None, [environ.get("PYTHONPATH", "")])]
    inherited = {name: value for name, value in environ.items() if not name.startswith(REMOVED_VARIABLE_PREFIXES)}
    variables = {
        **inherited,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "PYTHONPATH": os.pathsep.join(python_path),
    }
    log = os.open(state_path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "cfngen.sandbox.process.server", "--state", str(state_path), *options],
            variables,
            file_actions=[  # no standard input; standard output and error go to the log
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(log)


def _await_answer(pid: int, file: Path) -> RunningSandbox:
    deadline = time.monotonic() + START_TIMEOUT
    while _is_alive(pid) and time.monotonic() < deadline:
        state = SandboxState.read(file)
        if state and state.pid == pid:
            with contextlib.suppress(SandboxGoneError):
                request_report(state)
                return RunningSandbox(state, file)
        time.sleep(POLL_SECONDS)
    has_ended = not _is_alive(pid)
    _terminate(pid)
    log = file.with_suffix(".log")
    log_end = "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:])
    problem = "ended during its start" if has_ended else f"did not answer within {START_TIMEOUT:.0f} seconds"
    raise SandboxStartError(f"the sandbox {problem}; last lines of {log}:\n{log_end}", hint=f"see the log: {log}")


def _is_alive(pid: int) -> bool:
    """Return whether a process exists and belongs to this user."""
    # A child of this process that has ended stays a zombie until it is waited for; for other processes, waitpid raises
    # ChildProcessError.
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's process: the id was reused
    return True


def _terminate(pid: int) -> None:
    """Terminate a process, and kill it if it does not end."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_TIMEOUT
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        while time.monotonic() < deadline:
            if not _is_alive(pid):
                return
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _start_lock(path: Path) -> Iterator[None]:
    """Hold a file lock, so that two commands do not start a sandbox at the same time."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
