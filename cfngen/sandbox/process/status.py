"""The data of `cfngen sandbox status`, with or without a running sandbox, and the record of the last one.

The state file is deleted when a sandbox ends; the record beside it stays until the next sandbox overwrites it, and
tells users what happened to their stacks. The command line imports this module, so it must not import moto.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from cfngen.atomic_files import replace_file
from cfngen.sandbox.untyped import JsonObject

IDLE, STOPPED = "idle", "stopped"  # why a sandbox ended


@dataclass(frozen=True)
class LastSandbox:
    """The record of the last sandbox that used a state file.

    Attributes:
        stacks: its root stacks, as `NAME in REGION`.
        end: why it ended: `idle`, or `stopped` by its user; empty if it still runs, or was killed.
        ended: when it ended, as ISO 8601 in UTC; empty if that is unknown, or if it still runs.
    """

    token: str
    stacks: tuple[str, ...] = ()
    end: str = ""
    ended: str = ""

    @property
    def how_it_ended(self) -> str:
        """When and why the sandbox ended, as a clause without a full stop."""
        end_time = f" at {self.ended[11:16]} UTC on {self.ended[:10]}" if self.ended else ""
        if self.end == STOPPED:
            return f"the sandbox was stopped{end_time}"
        if self.end == IDLE:
            return f"the sandbox ended{end_time} because it was idle"
        return f"the sandbox was killed{end_time}"


def read_last_sandbox(state_file: Path) -> LastSandbox | None:
    """Return the record of the last sandbox that used a state file; None if there was none."""
    try:
        content = json.loads(_path(state_file).read_text("utf-8"))
        return LastSandbox(**{**content, "stacks": tuple(content["stacks"])})
    except (OSError, KeyError, TypeError, ValueError):
        return None


def write_last_sandbox(state_file: Path, last: LastSandbox) -> None:
    """Write the record atomically, readable for this user only."""
    replace_file(_path(state_file), json.dumps(asdict(last)), private=True)


def _path(state_file: Path) -> Path:
    return state_file.with_suffix(".last")


@dataclass(frozen=True)
class SandboxStack:
    """A root stack in the sandbox.

    Attributes:
        region: region of the stack.
        name: name of the stack.
        status: CloudFormation's status of the stack.
        api: URL of the cluster's Kubernetes API on this machine; empty if the API does not answer.
        groups: names of the node groups and masters, for the command `cfngen sandbox fail`.
    """

    region: str
    name: str
    status: str
    api: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class SandboxFault:
    """A boot fault of instances that are launched from now on.

    Attributes:
        region: region of the group.
        group: name of the node group or the master, or the logical id of the Auto Scaling group.
        step: step of the boot program that fails.
        message: reason of the failure; empty if the instances hang.
        times: how many more instances fail; 0 means all.
    """

    region: str
    group: str
    step: str
    message: str
    times: int


@dataclass(frozen=True)
class SandboxStatus:
    """The status of the sandbox.

    Attributes:
        running: whether a sandbox runs.
        endpoint: endpoint URL of AWS's APIs.
        process: id of the process; 0 if no sandbox runs.
        speed: simulated seconds in a second; 0 if no sandbox runs.
        started: when it was started, by this machine's clock.
        time: the simulated time.
        age: simulated seconds since the start.
        stacks: the root stacks.
        faults: the boot faults set by `cfngen sandbox fail`.
        defect: an internal error of the sandbox; empty if there was none.
        ended: when and why the last sandbox ended, if none runs and stacks were lost with it.
        lost: the stacks that were lost with the last sandbox, as `NAME in REGION`.
    """

    kind: ClassVar[str] = "sandbox"
    running: bool
    endpoint: str = ""
    process: int = 0
    speed: float = 0.0
    started: datetime | None = None
    time: datetime | None = None
    age: float = 0.0
    stacks: tuple[SandboxStack, ...] = ()
    faults: tuple[SandboxFault, ...] = ()
    defect: str = ""
    ended: str = ""
    lost: tuple[str, ...] = ()


def status_of_running(endpoint: str, process: int, speed: float, report: JsonObject) -> SandboxStatus:
    """Return the status of a running sandbox.

    Args:
        report: the sandbox's answer to a status request; see `Sandbox.status` of the module `server`.
    """
    time = datetime.fromisoformat(report["time"])
    group_names: dict[tuple[str, str], list[str]] = {}  # by region and name of the stack
    for group in report["groups"]:
        group_names.setdefault((group["region"], group["stack"]), []).append(group["name"])
    stacks = [
        SandboxStack(
            region=stack["region"],
            name=stack["name"],
            status=stack["status"],
            api=stack["address"],
            groups=tuple(group_names.get((stack["region"], stack["name"]), ())),
        )
        for stack in report["stacks"]
    ]
    simulated_start = datetime.fromisoformat(report["begin"])
    return SandboxStatus(
        running=True,
        endpoint=endpoint,
        process=process,
        speed=speed,
        started=datetime.fromisoformat(report["started"]),
        time=time,
        age=(time - simulated_start).total_seconds(),
        stacks=tuple(stacks),
        faults=tuple(SandboxFault(**fault) for fault in report["faults"]),
        defect=report["fault"],
    )


def status_without_sandbox(last: LastSandbox | None) -> SandboxStatus:
    """Return the status while no sandbox runs.

    Args:
        last: the record of the last sandbox, if stacks were lost with it.
    """
    if last is None:
        return SandboxStatus(running=False)
    return SandboxStatus(running=False, ended=last.how_it_ended, lost=last.stacks)
