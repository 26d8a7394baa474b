"""The record of the last sandbox, which tells users what happened to their stacks after the sandbox has ended.

The state file is deleted when a sandbox ends; this file beside it stays until the next sandbox overwrites it. The
command line imports this module, so it must not import moto.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

IDLE, STOPPED = "idle", "stopped"  # why a sandbox ended


@dataclass(frozen=True)
class LastSandbox:
    """The record of the last sandbox that used a state file.

    Attributes:
        token: identifies the sandbox.
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
    path = _path(state_file)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(last), file)
    partial.replace(path)


def _path(state_file: Path) -> Path:
    return state_file.with_suffix(".last")
