"""What `cfngen sandbox status` shows, with or without a sandbox that runs. Light to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from cfngen.sandbox.last_sandbox import Last


@dataclass(frozen=True)
class SandboxStack:
    """A stack in the sandbox; nested ones are left out.

    Attributes:
        region: where it is.
        name: of the stack.
        status: CloudFormation's.
        api: where the API of its cluster answers on this machine; empty if none does.
        groups: its node groups and masters by the names that `cfngen sandbox fail` takes.
    """

    region: str
    name: str
    status: str
    api: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class SandboxFault:
    """What instances fail with that are launched from now on.

    Attributes:
        region: where.
        group: name of the node group or the master, or the logical id of the Auto Scaling group.
        step: of the boot program.
        message: why; empty if they hang.
        times: how many instances still will; 0 is every one.
    """

    region: str
    group: str
    step: str
    message: str
    times: int


@dataclass(frozen=True)
class SandboxStatus:
    """The account on this machine.

    Attributes:
        running: whether there is one.
        endpoint: where AWS' APIs answer.
        process: number of the process; 0 if none runs.
        speed: simulated seconds in a second; 0 if none runs.
        started: when it was started, by this machine's clock.
        time: what its own clock shows.
        age: seconds that have passed in it.
        stacks: what is in it.
        faults: what was switched on by `cfngen sandbox fail`.
        defect: what went wrong in the sandbox itself; empty if nothing did.
        ended: how the last one ended, if none runs and something was in it.
        lost: the stacks that were in the last one, each with its region.
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


def of_running(endpoint: str, process: int, speed: float, report: Mapping[str, Any]) -> SandboxStatus:
    """Return the status of a sandbox that runs.

    Args:
        endpoint: where it answers.
        process: its number.
        speed: simulated seconds in a second.
        report: the sandbox's answer to a status request.
    """
    time = datetime.fromisoformat(report["time"])
    stacks = (
        SandboxStack(
            stack["region"],
            stack["name"],
            stack["status"],
            stack["address"],
            tuple(group["name"] for group in report["groups"] if _of(group) == (stack["region"], stack["name"])),
        )
        for stack in report["stacks"]
    )
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


def of_none(last: Last | None) -> SandboxStatus:
    """Return the status where no sandbox runs.

    Args:
        last: what is known of the last one, if something was in it.
    """
    if last is None:
        return SandboxStatus(running=False)
    return SandboxStatus(running=False, ended=last.story, lost=last.stacks)


def _of(group: Mapping[str, str]) -> tuple[str, str]:
    return group["region"], group["stack"]
