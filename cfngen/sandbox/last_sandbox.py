"""What is known of the last sandbox: it may have ended by itself, and somebody may look for what was in it.

Beside the state file, which is gone with its sandbox, lies this one, which the next sandbox writes anew. Light to
import.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

IDLE, STOPPED = "idle", "stopped"


@dataclass(frozen=True)
class Last:
    """The last sandbox.

    Attributes:
        token: by which it was known.
        stacks: those in it, each with its region; without nested ones.
        end: `idle`, `stopped` by its user, or an empty text: killed, or by a restart of the machine.
        ended: when, as ISO 8601 in UTC; an empty text if nobody knows, or it has not.
    """

    token: str
    stacks: tuple[str, ...] = ()
    end: str = ""
    ended: str = ""

    @property
    def story(self) -> str:
        """How it ended, as a clause without an end."""
        moment = f" at {self.ended[11:16]} UTC on {self.ended[:10]}" if self.ended else ""
        if self.end == STOPPED:
            return f"the sandbox was stopped{moment}"
        if self.end == IDLE:
            return f"the sandbox ended{moment}, as nobody had used it"
        return f"the sandbox was ended from outside{moment}"


def recall(state_file: Path) -> Last | None:
    """Return what is known of the last sandbox that used a state file; nothing if there was none."""
    try:
        content = json.loads(_path(state_file).read_text("utf-8"))
        return Last(**{**content, "stacks": tuple(content["stacks"])})
    except (OSError, KeyError, TypeError, ValueError):
        return None


def remember(state_file: Path, last: Last) -> None:
    """Write it down in one piece, for this user's eyes only."""
    path = _path(state_file)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(last), file)
    partial.replace(path)


def _path(state_file: Path) -> Path:
    return state_file.with_suffix(".last")
