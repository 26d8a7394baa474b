"""The architecture as docs/develop/architecture.md tells it: its picture and tables are those of the code.

`CFNGEN_UPDATE_GOLDEN=1` writes the picture and the table of rooms again and still fails, so that they are looked at.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/develop/architecture.md"
GENERATED = re.compile(r"(?s)(<!-- Written by `make docs`[^\n]*-->\n).*?(<!-- End -->)")
ROOMS = {path.parent.name: path for path in sorted((ROOT / "cfngen").glob("*/__init__.py"))}
# Modules that belong to no room; `__init__` and `__main__` are but entrances.
MODULES = {path.stem: path for path in sorted((ROOT / "cfngen").glob("[a-z]*.py"))}


@cache
def imports(*, types: bool = True) -> dict[str, set[str]]:
    """The rooms that each room imports, for a type checker alone too or not."""
    graph = grimp.build_graph("cfngen", exclude_type_checking_imports=not types, cache_dir=None)
    imported: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in graph.modules:
        room = room_of(module)
        if room in imported:
            imported[room] |= {room_of(other) for other in graph.find_modules_directly_imported_by(module)}
    return {room: (others & set(ROOMS)) - {room} for room, others in imported.items()}


def room_of(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def picture() -> str:
    """The rooms as a Mermaid flowchart: an arrow for each import that does not follow from others."""
    imported = imports()
    reached = {room: reachable(room, imported) for room in ROOMS}
    arrows = [
        (room, other)
        for room in ROOMS
        for other in sorted(imported[room])
        if not any(other in reached[between] for between in imported[room] - {other})
    ]
    lines = [f"    {room} --> {other}" for room, other in arrows if other != "boot"]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "    userdata -. packs .-> boot", "```"])


def reachable(room: str, imported: dict[str, set[str]]) -> set[str]:
    """The rooms that a room imports, and those that they import."""
    return set().union(*({other} | reachable(other, imported) for other in imported[room]))


def table() -> str:
    """The rooms and modules with the first sentence of their docstring, and the rooms that they import."""
    imported = imports()
    rooms = sorted(ROOMS, key=lambda room: (-len(reachable(room, imported)), room))
    rows = [row(ROOMS[room], room, imported[room]) for room in rooms]
    rows += [row(path, module, set()) for module, path in MODULES.items()]
    return "\n".join(["| room | what it is | imports |", "|---|---|---|", *rows])


def row(path: Path, name: str, imported: set[str]) -> str:
    text = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
    return f"| `cfngen.{name}` | {text} | {', '.join(f'`{room}`' for room in sorted(imported))} |"


def test_the_picture_and_the_table_of_rooms_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    parts = iter((picture(), table()))
    current = GENERATED.sub(lambda match: f"{match[1]}{next(parts)}\n{match[2]}", page)
    assert next(parts, None) is None
    if page != current and os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        PAGE.write_text(current)
        pytest.fail("docs/develop/architecture.md rewritten: review it, then run without CFNGEN_UPDATE_GOLDEN")
    assert page == current


def test_only_a_type_checker_reads_the_boot_program() -> None:
    assert [room for room, others in imports(types=False).items() if "boot" in others] == []


# Where `cfngen.deploy` calls AWS itself: what reads the account or signs in to a cluster, and what changes something.
# The other modules judge what they are given, or ask for it in the words of `Account.items` and `Account.read`.
CALLERS = ("aws/", "access/", "operations/", "plan/change_sets.py", "plan/publishing/", "watching/cancellation.py")


def test_rooms_that_judge_leave_calls_of_aws_to_the_room_that_reads() -> None:
    deploy = ROOT / "cfngen/deploy"
    calling = [str(path.relative_to(deploy)) for path in deploy.rglob("*.py") if ".client(" in path.read_text()]
    assert sorted(path for path in calling if not path.startswith(CALLERS)) == []
    assert [each for each in CALLERS if not any(path.startswith(each) for path in calling)] == []


MEASURE = runpy.run_path(str(ROOT / ".ci/measure"))
TABLES = ("text_limits.py",)


def test_modules_stay_under_400_lines_and_functions_under_60() -> None:
    package = ROOT / "cfngen"
    sources = {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    assert [path for path, source in sources.items() if len(source.splitlines()) > 400 and path not in TABLES] == []
    lengths = {path: MEASURE["function_lengths"](ast.parse(source)).values() for path, source in sources.items()}
    assert [path for path in sources if max(lengths[path], default=0) > 60] == []


WHERE = re.compile(r"(?ms)^## Where do I put …\?$.*?(?=^## )")


def test_every_file_that_a_change_goes_to_exists() -> None:
    section = WHERE.search(PAGE.read_text())
    assert section
    paths = re.findall(r"`((?:cfngen|tests|docs)/[^`]*)`", section[0])
    assert len(paths) > 20
    assert [path for path in paths if not list(ROOT.glob(path))] == []


# What a module may not import, and a part of the name of the contract that says so.
FORBIDDEN = [
    ("cluster/load.py", "import cfngen.templates", "one way, from the cluster file to the account"),
    ("boot/machine.py", "from cfngen.errors import CfngenError", "import nothing of cfngen"),
    ("boot/machine.py", "from ..errors import CfngenError", "import nothing of cfngen"),
    ("userdata/source.py", "from cfngen.boot.machine import Machine", "Nothing imports the boot program"),
    ("deploy/messages/stack_status.py", "import cfngen.sandbox.process.status", "The command line alone"),
    ("sandbox/process/status.py", "import cfngen.cluster.load", "Who knows what the cluster file asks for"),
    ("__init__.py", "import cfngen.cluster.load", "Importing cfngen itself"),
    ("deploy/aws/account.py", "import cfngen.deploy.preflight.findings", "AWS is read once and judged purely"),
    ("cluster/model.py", "import cfngen.cluster.naming.names", "from the text of a cluster file to a checked"),
]


@pytest.fixture(scope="module")
def broken_contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What import-linter says of a package with everything that is forbidden, by the names of the contracts."""
    folder = tmp_path_factory.mktemp("forbidden")
    shutil.copy(ROOT / "setup.cfg", folder)
    shutil.copytree(ROOT / "cfngen", folder / "cfngen", ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    for module, line, _ in FORBIDDEN:
        with (folder / "cfngen" / module).open("a") as file:
            file.write(line + "\n")
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    environ = {**os.environ, "COLUMNS": "200"}
    report = subprocess.run(command, cwd=folder, env=environ, text=True, capture_output=True, check=False).stdout
    _, *parts = re.split(r"(?m)^(\S.*)\n-{3,}\n", report.partition("\nBroken contracts\n")[2].partition("\n")[2])
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(("module", "line", "contract"), FORBIDDEN)
def test_the_import_contract_refuses(module: str, line: str, contract: str, broken_contracts: dict[str, str]) -> None:
    lines = (ROOT / "cfngen" / module).read_text().splitlines()
    lines += [each for path, each, _ in FORBIDDEN if path == module]
    importer = ".".join(("cfngen", *Path(module).with_suffix("").parts)).removesuffix(".__init__")
    [chains] = [chains for name, chains in broken_contracts.items() if contract in name]
    number = len(lines) - lines[::-1].index(line)
    assert re.search(rf" {importer} -> \S+ \((l\.\d+, )*l\.{number}\b", chains), chains
