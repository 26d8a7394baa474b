"""Which functions of cfngen each test calls, and which blocks of them: the tests are run once, and each block notes it.

Each file of tests is run by a process of its own, so that nothing that an earlier file made is there already.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from mutations import block_names, modules

NOTE = "__cfngen_called__"
called: set[str] = set()


class _Noting(ast.NodeTransformer):
    """Lets each function, and each block in it, begin by noting its name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: list[str] = []
        self.function = ""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        blocks = list(block_names(node, self.function)) if self.function else []
        super().generic_visit(node)
        for statements, name in blocks:
            statements.insert(0, self._note(name))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.names.append(node.name)
        outer, self.function = self.function, ".".join(self.names)
        self.generic_visit(node)
        # Behind the docstring: click shows those of commands.
        node.body.insert(1 if ast.get_docstring(node) is not None else 0, self._note(self.function))
        self.function = outer
        self.names.pop()
        return node

    def _note(self, name: str) -> ast.stmt:
        return ast.parse(f"{NOTE}({f'{self.path}::{name}'!r})").body[0]


def noting(root: Path) -> dict[str, CodeType]:
    """Return the code of each module of cfngen, by its path from the top, in which functions and blocks note calls."""
    codes = {}
    for path in modules(root, ["cfngen"]):
        name = str(path.relative_to(root))
        tree = _Noting(name).visit(ast.parse(path.read_bytes(), path))
        # A module notes itself when it is imported.
        note = ast.parse(f"{NOTE}({name + '::<module>'!r})").body[0]
        places = [place for place, node in enumerate(tree.body) if not _must_be_first(node)]
        tree.body.insert(places[0] if places else len(tree.body), note)
        codes[name] = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    return codes


def watch(root: Path, codes: dict[str, CodeType]) -> None:
    """Let the functions of cfngen note their calls from now on; what is imported already does not."""
    setattr(builtins, NOTE, called.add)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        path = os.path.relpath(self.get_filename(name), root)
        return codes[path] if path in codes else original(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _must_be_first(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


class Notes:
    """A plug-in of pytest: what each test of a file calls, how long it takes, and whether it passes.

    Attributes:
        tests: by the test's id: seconds, whether it passed, functions.
        shared: functions that were called between the tests: by imports and by what several tests share.
    """

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.shared: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        before = set(called)
        called.clear()
        try:
            return (yield)
        finally:
            self.shared |= called
            called.update(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.shared |= called
        called.clear()
        begin = time.process_time()
        self.tests[item.nodeid] = {"passed": True}
        result = yield
        self.tests[item.nodeid] |= {"seconds": round(time.process_time() - begin, 3), "functions": sorted(called)}
        called.clear()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[report.nodeid]["passed"] = False


def record(root: Path, files: list[str], target: Path, marked: str, processes: int = 1) -> None:
    """Run files of tests in a copy of the checkout, those with some marks, and write what they call into a file."""
    target.mkdir(parents=True, exist_ok=True)
    pending = [file for file in files if not _notes_of(target, file).exists()]
    running: list[Any] = []
    context = multiprocessing.get_context("fork")
    codes = noting(root) if pending else {}
    begin, total = time.monotonic(), len(pending)
    while pending or running:
        for process in [process for process in running if not process.is_alive()]:
            running.remove(process)
            if process.exitcode:
                sys.exit(f"{process.name}: pytest cannot run it")
        if pending and len(running) < processes:
            file = pending.pop(0)
            arguments = (root, file, codes, _notes_of(target, file), marked)
            process = context.Process(target=_record_one, name=file, args=arguments)
            process.start()
            running.append(process)
            done = total - len(pending)
            print(f"[{time.monotonic() - begin:5.0f} s] {done} of {total}: {file}", flush=True)
        else:
            time.sleep(0.1)


def _notes_of(target: Path, file: str) -> Path:
    return target / (file.replace("/", "+") + ".json")


def _record_one(root: Path, file: str, codes: dict[str, CodeType], target: Path, marked: str) -> None:
    enter(root)
    watch(root, codes)
    notes = Notes()
    ended = pytest.main(["-q", "-n", "0", "-m", marked, "-p", "no:cacheprovider", file], plugins=[notes])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        os._exit(1)
    shared = sorted(notes.shared | called)
    target.write_text(json.dumps({"shared": shared, "tests": notes.tests}))
    os._exit(0)


def enter(root: Path) -> None:
    """Let this process, and those that it starts, import from a copy of the checkout, and say nothing."""
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(root)
    sys.path[0:0] = [str(root)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def read(target: Path) -> dict[str, dict[str, Any]]:
    """Return what was noted, by the file of tests."""
    notes = [json.loads(path.read_text()) for path in sorted(target.glob("*.json"))]
    return {next(iter(note["tests"])).partition("::")[0]: note for note in notes if note["tests"]}
