"""The record of the last sandbox, for users who look for its stacks after it has ended.

The state file is deleted when a sandbox ends; this file beside it stays until the next sandbox overwrites it. Cheap to
import.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

IDLE, STOPPED = "idle", "stopped"


@dataclass(frozen=True)
class LastSandbox:
    """The last sandbox.

    Attributes:
        token: its token.
        stacks: its root stacks, each with its region.
        end: why it ended: `idle`, `stopped` by its user, or empty: killed, or the machine was restarted.
        ended: when it ended, as ISO 8601 in UTC; empty if that is unknown, or it still runs.
    """

    token: str
    stacks: tuple[str, ...] = ()
    end: str = ""
    ended: str = ""

    @property
    def story(self) -> str:
        """How it ended, as a clause without a full stop."""
        moment = f" at {self.ended[11:16]} UTC on {self.ended[:10]}" if self.ended else ""
        if self.end == STOPPED:
            return f"the sandbox was stopped{moment}"
        if self.end == IDLE:
            return f"the sandbox ended{moment}, as nobody had used it"
        return f"the sandbox was ended from outside{moment}"


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
    """Return the path of the record beside a state file."""
    return state_file.with_suffix(".last")
