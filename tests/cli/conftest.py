"""A shell for the tests: runs command lines in this process, in an empty directory and a clean environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

for beside in ("aws", "deploy"):
    sys.path.insert(0, str(Path(__file__).parents[1] / beside))

from shell import Ran, Shell  # noqa: E402

from cfngen.cli.application import application  # noqa: E402

if TYPE_CHECKING:
    from deployed_cluster import Command, Place

ROOT = Path(__file__).parents[2]
# A shell starts its background jobs with SIGINT ignored, and their children inherit that: a process that is to be
# interrupted has to take the signal up again.
START = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('cfngen', run_name='__main__', alter_sys=True)"
)
KEPT = ("PATH", "TMPDIR", "COVERAGE_PROCESS_START")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests of a process, so that a template is linted once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """The current directory: empty; and nothing in the environment that a cluster could depend on."""
    for name in set(os.environ) - set(KEPT):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # with every sign, whatever the machine's own locale is
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cfngen(directory: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `cfngen ARGUMENTS` in this process; keywords become environment variables."""

    def run(*arguments: str, **environ: str) -> Ran:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as left:
                application.main(list(arguments), prog_name="cfngen")
        out, err = capfd.readouterr()
        return Ran(left.value.code if isinstance(left.value.code, int) else 0, out, err)

    return run


class Process(subprocess.Popen[str]):
    """A process that is waited for no longer than `PATIENCE` seconds; then the test fails."""

    PATIENCE = 60

    def communicate(self, input: str | None = None, timeout: float | None = PATIENCE) -> tuple[str, str]:  # noqa: A002
        return super().communicate(input, timeout)

    def wait(self, timeout: float | None = PATIENCE) -> int:
        return super().wait(timeout)


@pytest.fixture
def process(directory: Path) -> Iterator[Callable[..., Process]]:
    """Starts `python -m cfngen ARGUMENTS` as a process of its own; keywords become environment variables."""
    processes = ExitStack()

    def start(*arguments: str, stdout: int = subprocess.PIPE, **environ: str) -> Process:
        started = Process(
            [sys.executable, "-c", START, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.enter_context(started)
        # Whatever the test comes to, the process does not outlive it.
        processes.callback(started.kill)
        return started

    with processes:
        yield start


@pytest.fixture
def tree(directory: Path) -> Callable[[], dict[str, bytes]]:
    """Every file below the current directory by its relative path."""

    def read() -> dict[str, bytes]:
        files = (path for path in directory.rglob("*") if path.is_file())
        return {str(path.relative_to(directory)): path.read_bytes() for path in files}

    return read


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """The default cluster, deployed; a module's tests share it."""
    from deployed_cluster import created

    with created() as made:
        yield made


@pytest.fixture
def run(where: Place, cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `cfngen COMMAND …` on the deployed cluster."""
    from deployed_cluster import commanding

    return commanding(where, cfngen, monkeypatch)
