"""Golden cases: a small cluster file in, every template and UserData out.

Of the default case `expected/` holds every file, byte for byte, but for the packed boot program, whose digest
steps.md has. Of each other case `differences.json` holds what it has otherwise (see `case_differences`).
`CFNGEN_UPDATE_GOLDEN=1` rewrites them and still fails, so that a change of output is always looked at.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest
from case_differences import DIGEST, LENGTH, counterparts, differences, masked, replaced, without_digests
from golden_cases import CASES, FOLDER, load_case, rendered

from cfngen import lint, userdata
from cfngen.templates import generate

# `scope="module"` below lets all tests of a case run one after the other, so that it is read and parsed once.
OTHERS = [case for case in CASES if case != "default"]
# Together these have most types of resources; cfn-lint takes seconds for a case, so the others are drills.
FIRST = ("default", "add-ons")
SOME_FIRST = [case if case in FIRST else pytest.param(case, marks=pytest.mark.drill) for case in CASES]
EXPECTED = FOLDER / "default" / "expected"
MASKS = {DIGEST: "[0-9a-f]{5,64}", LENGTH: "[0-9]+"}
REWRITTEN = "golden files rewritten: review them, then run without CFNGEN_UPDATE_GOLDEN"


def test_the_default_case_is_as_reviewed() -> None:
    files = rendered("default")
    reviewed = {
        str(path.relative_to(EXPECTED)): path.read_text() for path in sorted(EXPECTED.rglob("*")) if path.is_file()
    }
    if os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        for path in reviewed:
            (EXPECTED / path).unlink()
        for path, text in files.items():
            (EXPECTED / path).parent.mkdir(parents=True, exist_ok=True)
            (EXPECTED / path).write_text(text)
        pytest.fail(REWRITTEN)
    assert sorted(files) == sorted(reviewed)
    for path, text in files.items():
        assert text == reviewed[path], path


@pytest.mark.parametrize("case", OTHERS, scope="module")
def test_what_another_case_has_otherwise_is_as_reviewed(case: str) -> None:
    path = FOLDER / case / "differences.json"
    text = json.dumps(differences(case), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        path.write_text(text)
        pytest.fail(REWRITTEN)
    assert text == path.read_text()


@pytest.mark.parametrize("case", OTHERS, scope="module")
def test_differences_leave_nothing_out(case: str) -> None:
    """The default case's files with the reviewed differences are the case's files, but for the masked digests."""
    files = counterparts(case)
    for path, changes in json.loads((FOLDER / case / "differences.json").read_text()).items():
        content = replaced(files[path], changes) if isinstance(changes, dict) and path in files else changes
        files = {**files, path: content}
    assert {path: content for path, content in files.items() if content is not None} == masked(case)


@pytest.mark.parametrize("case", CASES, scope="module")
def test_only_digests_and_lengths_of_the_program_are_masked(case: str) -> None:
    resources = [role.resource for role in userdata.roles(load_case(case).cluster)]
    for path, text in rendered(case).items():
        end = 0
        for part in re.split(f"({'|'.join(map(re.escape, MASKS))})", without_digests(path, text, resources)):
            if part in MASKS:
                match = re.compile(MASKS[part]).match(text, end)
                assert match, path
                end = match.end()
            else:
                assert text.startswith(part, end), path
                end += len(part)
        assert end == len(text), path


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Verdicts of this run: most stacks are the same in most cases, and each is judged once, whichever process asks."""
    root = tmp_path_factory.getbasetemp()
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    return (root.parent if is_one_of_several else root) / "verdicts"


@pytest.mark.parametrize("case", SOME_FIRST, scope="module")
def test_lint_has_nothing_to_say(case: str, verdicts: Path) -> None:
    cluster = load_case(case).cluster
    assert lint.lint(generate(cluster), region=cluster.region, cache=verdicts) == ()


@pytest.mark.parametrize("case", SOME_FIRST, scope="module")
def test_the_same_cluster_gives_the_same_bytes(case: str) -> None:
    # Not what the other tests have of this cluster already (see conftest), and each from its own reading of the file.
    load_anew, generate_anew = inspect.unwrap(load_case), inspect.unwrap(generate)
    one, other = ([json.dumps(each.body) for each in generate_anew(load_anew(case).cluster)] for _ in range(2))
    assert one == other
