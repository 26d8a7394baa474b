"""Golden cases: a small cluster file in, every template and UserData out.

`CFNGEN_UPDATE_GOLDEN=1` rewrites the expected files and still fails, so that a change of output is always looked at.
The packed boot program is left out of the templates: it is the same for all of them and shown unpacked beside them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen import lint, output, userdata
from cfngen.cluster.load import Loaded, load
from cfngen.templates import Document, generate

CASES = sorted(path.name for path in (Path(__file__).parent / "cases").iterdir())
PACKED = 1000  # a literal this long in UserData is the packed program


def load_case(case: str) -> Loaded:
    directory = Path(__file__).parent / "cases" / case
    environment = directory / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(directory / "cluster.yaml", environ=environ)


def without_program(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_program(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_program(item) for item in value]
    return "(packed boot program)" if isinstance(value, str) and len(value) > PACKED else value


def rendered(case: str) -> dict[str, str]:
    cluster = load_case(case).cluster
    documents = [Document(each.name, without_program(each.body), each.module) for each in generate(cluster)]
    files = output.render(documents, userdata.roles(cluster), "json")
    wanted = {path: data.decode() for path, data in files.items() if "/boot/" not in path and path != "README.md"}
    return {path: text if path.endswith(".json") else without_packed_lines(text) for path, text in wanted.items()}


def without_packed_lines(text: str) -> str:
    return "\n".join(line if len(line) < PACKED else "(packed boot program)" for line in text.split("\n"))


def expected(case: str) -> dict[str, str]:
    directory = Path(__file__).parent / "cases" / case / "expected"
    return {
        str(path.relative_to(directory)): path.read_text() for path in sorted(directory.rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize("case", CASES)
def test_output_is_as_reviewed(case: str) -> None:
    found = rendered(case)
    if os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        directory = Path(__file__).parent / "cases" / case / "expected"
        for path in expected(case):
            (directory / path).unlink()
        for path, text in found.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
        pytest.fail("golden files rewritten: review them, then run without CFNGEN_UPDATE_GOLDEN")
    reviewed = expected(case)
    assert sorted(found) == sorted(reviewed)
    for path, text in found.items():
        assert text == reviewed[path], path


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Verdicts of this run: most stacks are the same in most cases, and each is judged once."""
    return tmp_path_factory.mktemp("verdicts")


@pytest.mark.parametrize("case", CASES)
def test_lint_has_nothing_to_say(case: str, verdicts: Path) -> None:
    cluster = load_case(case).cluster
    assert lint.lint(generate(cluster), region=cluster.region, cache=verdicts) == ()


@pytest.mark.parametrize("case", CASES)
def test_the_same_cluster_gives_the_same_bytes(case: str) -> None:
    cluster = load_case(case).cluster
    assert [json.dumps(each.body) for each in generate(cluster)] == [
        json.dumps(each.body) for each in generate(load_case(case).cluster)
    ]
