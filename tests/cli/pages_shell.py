"""The shell of a page's reader: `/bin/sh` runs each line as it is printed, and the test answers for the programs.

Pipes, redirections, `&&`, `$(…)`, quotes and comments are therefore the shell's own. Nothing else is in the path: what
a page names runs in the test's process (`cfngen`), or not at all (`dd`).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shell import Ran

# Tools of the machine that examples put behind a pipe.
REAL = ("base64", "cat", "cut", "grep", "mkdir", "sha256sum", "xargs")
# Standard input is a terminal unless a pipe or a file is there: the shell's own is /dev/null.
CLIENT = """\
import json, os, socket, stat, sys
piped = None if stat.S_ISCHR(os.fstat(0).st_mode) else sys.stdin.read()
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
call = {"words": sys.argv[2:], "directory": os.getcwd(), "environ": dict(os.environ), "piped": piped}
connection.sendall(json.dumps(call).encode())
connection.shutdown(socket.SHUT_WR)
ran = json.load(connection.makefile("rb"))
sys.stderr.write(ran["err"])
sys.stdout.write(ran["out"])
sys.stdout.flush()
sys.exit(ran["code"])
"""
# Lines arrive as names of files, so that a line may have several; the exit code of each goes back.
LOOP = """\
exec 4<&0 3>&1 </dev/null >>"$1" 2>&1
while IFS= read -r typed <&4; do . "$typed"; echo $? >&3; done
"""


@dataclass(frozen=True)
class Call:
    """A program that the shell has started.

    Attributes:
        words: its name and arguments.
        directory: where.
        environ: its environment.
        piped: what is on its standard input; None if that is the terminal.
    """

    words: list[str]
    directory: str
    environ: Mapping[str, str]
    piped: str | None


class PageShell:
    """A shell that stays open from line to line.

    Args:
        own: an empty directory of its own, with a short path.
        programs: names of the programs that there are.
        answer: runs one of them.
        environ: the environment to begin with.
    """

    def __init__(
        self, own: Path, programs: Iterable[str], answer: Callable[[Call], Ran], environ: Mapping[str, str]
    ) -> None:
        self._own = own
        self._answer = answer
        self._typed = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(own / "socket"))
        self._listener.listen()
        (own / "client.py").write_text(CLIENT)
        self.bin = own / "bin"
        self.bin.mkdir()
        for name in programs:
            program = self.bin / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -ISX utf8 {own}/client.py {own}/socket {name} "$@"\n')
            program.chmod(0o755)
        for name in REAL:
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)
        self._output = own / "output"
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", LOOP, "sh", str(self._output)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environ, "PATH": str(self.bin)},
        )

    def type(self, text: str) -> tuple[int, str]:
        """Type a line; return its exit code and what was shown."""
        assert self._process.stdin
        assert self._process.stdout
        self._typed += 1
        file = self._own / f"typed-{self._typed}"
        file.write_text(text + "\n")
        shown_before = self._output.stat().st_size if self._output.exists() else 0
        self._process.stdin.write(f"{file}\n".encode())
        self._process.stdin.flush()
        while True:
            ready, _, _ = select.select([self._process.stdout, self._listener], [], [])
            if self._listener in ready:
                self._serve()
                continue
            code = self._process.stdout.readline()
            shown = self._output.read_bytes()[shown_before:].decode()
            assert code, f"the shell does not understand `{text}`:\n{shown}"
            return int(code), shown

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as request:
            ran = self._answer(Call(**json.load(request)))
            connection.sendall(json.dumps({"code": ran.code, "out": ran.out, "err": ran.err}).encode())

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.communicate()
        self._listener.close()


def environ_changes(environ: Mapping[str, str]) -> dict[str, str]:
    """What a page's lines have set in the environment; credentials are the test account's own."""
    kept = ("PATH", "PWD", "OLDPWD", "SHLVL", "_")
    return {
        name: value
        for name, value in environ.items()
        if os.environ.get(name) != value and name not in kept and not name.startswith("AWS_")
    }
