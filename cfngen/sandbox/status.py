"""The data of `cfngen sandbox status`, with or without a running sandbox. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.last_sandbox import LastSandbox


@dataclass(frozen=True)
class SandboxStack:
    """A root stack in the sandbox.

    Attributes:
        region: its region.
        name: its name.
        status: its status in CloudFormation.
        api: URL of its cluster's Kubernetes API on this machine; empty if the API is not up.
        groups: the names of its node groups and masters, as `cfngen sandbox fail` takes them.
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
        times: how many more instances fail; 0 means every one.
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
        time: its simulated time.
        age: simulated seconds since its start.
        stacks: its root stacks.
        faults: the boot faults set by `cfngen sandbox fail`.
        defect: an internal error of the sandbox; empty if there was none.
        ended: how the last sandbox ended, if none runs and stacks were lost.
        lost: the stacks that were lost with the last sandbox, each with its region.
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
        endpoint: its endpoint URL.
        process: id of its process.
        speed: simulated seconds in a second.
        report: the sandbox's answer to a status request.
    """
    time = datetime.fromisoformat(report["time"])
    group_names: dict[tuple[str, str], list[str]] = {}  # by region and stack
    for group in report["groups"]:
        group_names.setdefault((group["region"], group["stack"]), []).append(group["name"])
    stacks = [
        SandboxStack(
            stack["region"],
            stack["name"],
            stack["status"],
            stack["address"],
            tuple(group_names.get((stack["region"], stack["name"]), ())),
        )
        for stack in report["stacks"]
    ]
    return SandboxStatus(
        running=True,
        endpoint=endpoint,
        process=process,
        speed=speed,
        started=datetime.fromisoformat(report["started"]),
        time=time,
        age=(time - datetime.fromisoformat(report["begin"])).total_seconds(),
        stacks=tuple(stacks),
        faults=tuple(SandboxFault(**fault) for fault in report["faults"]),
        defect=report["fault"],
    )


def status_without_sandbox(last: LastSandbox | None) -> SandboxStatus:
    """Return the status if no sandbox runs.

    Args:
        last: the record of the last one, if stacks were lost with it.
    """
    if last is None:
        return SandboxStatus(running=False)
    return SandboxStatus(running=False, ended=last.story, lost=last.stacks)
