"""Best-of-N wall times of whole processes, and the machine they were taken on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path


def machine() -> str:
    """Return one line that says what ran the benchmark."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    load = f", load {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("cfn-lint", "troposphere", "pydantic"))
    return f"{model}, {cpus} CPUs{load}; {platform.system()}, Python {platform.python_version()}, {packages}"


def best(command: Sequence[str], *, rounds: int, before: Callable[[], None] | None = None, **keywords: object) -> float:
    """Run a command `rounds` times and return the shortest time in seconds.

    Args:
        command: program and arguments; it must succeed.
        rounds: how often.
        before: called before each round, outside of the time taken.
        keywords: further arguments of `subprocess.run`, e.g. `cwd` or `env`.
    """
    times = []
    for _ in range(rounds):
        if before:
            before()
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **keywords)
        times.append(time.perf_counter() - start)
    return min(times)


def show(what: str, seconds: float, note: str = "") -> None:
    """Print one line of a table."""
    print(f"{seconds:8.2f} s  {what}{f'   ({note})' if note else ''}", flush=True)


def program(name: str, module: str) -> list[str]:
    """Return the command of a console script of this Python, or where it is not installed that of its module."""
    script = Path(sys.executable).with_name(name)
    return [str(script)] if script.is_file() else [sys.executable, "-m", module]
