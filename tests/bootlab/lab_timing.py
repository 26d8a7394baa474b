"""How long a boot took, step by step, as the boot program itself says it on the console."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lab_instance import Instance

STEP = re.compile(r"^\[(\d+)/(\d+)\] (.+?): .* \((\d+\.\d) s\)$")
DONE = re.compile(r"^done in (\d+\.\d) s$")
HEAD = """\
# How long a boot takes

Seconds of each step of the boot program, as it says them on the console. They are those of `make boot-test
TIMING=docs/develop/boot-timing.md`, which wrote this page: the instances were containers that shared one machine of
{processors} processors and booted side by side, files came from a mirror on that machine, and stand-ins took the place
of Kubernetes' programs. So what the boot program itself needs is measured here; on EC2 come the time until cloud-init
starts it, downloads, container images, and Kubernetes' own starts.
"""


def steps(instance: Instance) -> dict[str, float]:
    """Return the seconds of each step by title, in order, and of the whole as `in all`."""
    found = {}
    for line in instance.lines:
        if match := STEP.match(line):
            found[match[3]] = float(match[4])
        elif match := DONE.match(line):
            found["in all"] = float(match[1])
            break
    return found


def before(instance: Instance, launched: float) -> float:
    """Return the seconds from launch to the boot program's first words."""
    return max(0.0, instance.spoke - launched)


def report(boots: Mapping[str, tuple[Instance, float]], processors: int) -> str:
    """Return the page on boots: by title the instance and when it was launched."""
    parts = [HEAD.format(processors=processors)]
    for title, (instance, launched) in boots.items():
        rows = {"launch, kernel and cloud-init": before(instance, launched), **steps(instance)}
        lines = [f"## {title}", "", "| step | seconds |", "|---|---:|"]
        parts.append("\n".join([*lines, *(f"| {step} | {seconds:.1f} |" for step, seconds in rows.items()), ""]))
    return "\n".join(parts)


def write(path: str, text: str) -> None:
    """Write the page if a path is given."""
    if path:
        Path(path).write_text(text, encoding="utf-8")
