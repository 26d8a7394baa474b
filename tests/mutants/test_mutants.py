"""The faults that `make mutants` puts into modules: all of them are faults, and a seed always draws the same ones."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from calls import NOTE, _Noting
from forks import UnfitError, put_in
from mutations import modules, mutated, mutations
from run import GOLDEN, why_equivalent

ROOT = Path(__file__).parents[2]
SOURCE = '''\
"""A module."""

from __future__ import annotations

import json

LIMIT: int = 3


def check(values: list[int], strict: bool = True) -> str | None:
    """Return a word."""
    if not values or len(values) >= LIMIT and strict:
        raise ValueError(f"too many: {values}, and so on")
    print(json.dumps(values, sort_keys=True))
    for value in values:
        if value in (1, 2):
            continue
        return {"a": "small", "b": "of several words"}["a"]
    return None
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_faults_of_a_module_are_found_where_they_are(module: Path) -> None:
    found = {(each.line, each.kind, each.change) for each in mutations(module, module.parent)}
    assert {
        (7, "constant", "3 -> 4"),
        (10, "constant", "True -> False"),
        (12, "without not", "not values -> values"),
        (12, "comparison", "len(values) >= LIMIT -> len(values) > LIMIT"),
        (14, "call left out", "print(json.dumps(values, sort_keys=True)) -> pass"),
        (14, "without sort_keys", "json.dumps(values, sort_keys=True) -> json.dumps(values)"),
        (16, "comparison", "value in (1, 2) -> value not in (1, 2)"),
        (16, "without item 0", "(1, 2) -> (2,)"),
        (17, "break/continue", "continue -> break"),
        (18, "constant", "'small' -> 'smallX'"),
    } <= {(line, kind, change) for line, kind, change in found}
    assert (12, "condition turned round") in {(line, kind) for line, kind, _ in found}
    lines = {line for line, *_ in found}
    assert lines & {1, 5, 11, 13, 19} == set(), "docstrings, imports, messages and a None that is returned anyway"
    assert not [
        change for _, _, change in found if "several words" in change.partition(" -> ")[0] and "'a'" not in change
    ]


def test_every_fault_makes_another_module_that_compiles(module: Path) -> None:
    original = ast.unparse(ast.parse(SOURCE))
    texts = [mutated(SOURCE, each) for each in mutations(module, module.parent)]
    assert len(texts) > 25
    for text in texts:
        compile(text, "module.py", "exec")
        assert text.rstrip("\n") != original
    assert len(set(texts)) == len(texts), "each fault is another one"


def test_what_only_states_that_lengths_are_the_same_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def pairs(one, two):\n    yield from zip(one, two, strict=True)\n    f(strict=True)\n")
    assert {(each.line, each.change) for each in mutations(path, tmp_path) if "strict" in each.change} == {
        (3, "f(strict=True) -> pass"),
        (3, "f(strict=True) -> f()"),
    }
    assert [each.line for each in mutations(path, tmp_path) if each.kind == "constant"] == [3]


def test_functions_are_named_as_their_calls_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "def outer():\n    def inner():\n        return f(1)\n    return g(inner)\n"
        "class Kind:\n    limit = 3\n    def method(self):\n        return h(2)\n"
    )
    assert {(each.line, each.function) for each in mutations(path, tmp_path)} == {
        (3, "outer.inner"),
        (4, "outer"),
        (6, "<module>"),
        (8, "Kind.method"),
    }


def test_blocks_are_named_as_tests_note_that_they_come_there(tmp_path: Path) -> None:
    source = """\
def choose(value):
    if value:
        return 1
    elif value is None:
        return f(2)
    for one in value:
        try:
            return g(3)
        except ValueError:
            return h(4)
"""
    path = tmp_path / "module.py"
    path.write_text(source)
    noted = ast.unparse(ast.fix_missing_locations(_Noting("module.py").visit(ast.parse(source))))
    blocks = {mutation.block for mutation in mutations(path, tmp_path)}
    assert blocks == {"choose", *(f"choose@{line}" for line in (3, 4, 5, 7, 10))}
    assert all(f"{NOTE}('module.py::{block}')" in noted for block in blocks)


def test_a_fork_gives_functions_the_code_of_a_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mutated_module.py").write_text(
        "from functools import cache\nLIMIT = 1\n@cache\ndef cached():\n    return 1\n"
        "class Kind:\n    @property\n    def size(self):\n        def inner():\n            return 1\n"
        "        return inner()\n    @classmethod\n    def made(cls):\n        return 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import mutated_module

    faults = {
        mutation.function: mutation
        for mutation in mutations(tmp_path / "mutated_module.py", tmp_path)
        if mutation.kind == "constant"
    }
    for function in ("cached", "Kind.size.inner", "Kind.made"):
        put_in(faults[function], tmp_path)
    kind = mutated_module.Kind()
    assert (mutated_module.cached(), kind.size, kind.made()) == (2, 2, 2)
    with pytest.raises(UnfitError):
        put_in(faults["<module>"], tmp_path)


def test_a_fault_of_a_package_is_put_into_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mutated_package"
    package.mkdir()
    (package / "__init__.py").write_text("def size():\n    return len('one')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mutated_package  # type: ignore[import-not-found]

    [fault] = [each for each in mutations(package / "__init__.py", tmp_path) if each.kind == "returns None"]
    put_in(fault, tmp_path)
    assert mutated_package.size() is None


def test_places_of_the_program_are_the_same_each_time() -> None:
    path = ROOT / "cfngen/boot/node/drain.py"
    assert list(modules(ROOT, ["cfngen/boot/node/drain.py"])) == [path]
    first, second = (random.Random(7).sample(mutations(path, ROOT), 5) for _ in range(2))
    assert first == second


def test_what_is_noted_as_equivalent_is_in_the_program() -> None:
    entries = json.loads((ROOT / "tests/mutants/equivalent.json").read_text())
    mutants = {path: mutations(ROOT / path, ROOT) for path in {entry["path"] for entry in entries}}
    for entry in entries:
        assert entry["reason"]
        found = mutants[entry["path"]]
        assert [each for each in found if why_equivalent(each, [entry])], entry
        assert [each for each in found if not why_equivalent(each, [entry])], "not the whole module"


@pytest.mark.parametrize("test", sorted(GOLDEN))
def test_what_counts_as_a_golden_comparison_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text()


def test_the_command_line_says_what_it_takes() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tests/mutants/run.py", "--help"], capture_output=True, text=True, check=True
    )
    for option in ("--sample", "--seed", "--only", "--seconds", "--drill-seconds", "--calls", "--json"):
        assert option in done.stdout
