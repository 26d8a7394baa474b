"""The two tables of configurations: a readable specification of the cluster file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.cluster.file import yaml_file
from cfngen.cluster.file.validation import ValidationResult
from cfngen.cluster.load import Loaded, load
from cfngen.cluster.paths import Path as Located
from cfngen.cluster.paths import dotted, leaves, within
from cfngen.cluster.problems import ClusterFileError, Problem, Source

HERE = Path(__file__).parent
FILE = Source("file", "cluster.yaml")
FLAG = Source("flag", "KEY=VALUE")
# More keys than a section has: they are of tags, labels or the like, where one is as another.
MANY = 30


# By the purpose of a case and the key of a problem. Nothing is said of it while one of its related keys is refused, and
# a flag for one of them is named.
RELATED: dict[str, dict[str, str]] = yaml.safe_load((HERE / "related_keys.yaml").read_text(encoding="utf-8"))


@cache
def cases(name: str) -> list[Any]:
    table = yaml.load((HERE / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [pytest.param(case, id=case["purpose"]) for case in table]


def loaded(case: dict[str, Any]) -> Loaded:
    Path("cluster.yaml").write_bytes(case["file"].encode())
    return load(Path("cluster.yaml"), environ=case.get("environ", {}), overrides=case.get("set", ()))


# What is said of them, errors or warnings, depends on nothing else.
FOR_ONE_FILE = [
    case
    for case in [*cases("invalid.yaml"), *cases("valid.yaml")]
    if case.values[0].keys() & {"message", "warnings"} and not case.values[0].keys() & {"set", "environ"}
]


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", cases("valid.yaml"))
def test_accepted(case: dict[str, Any]) -> None:
    found = loaded(case)
    effective = {dotted(path): value for path, value in leaves(found.cluster.model_dump(mode="json", by_alias=True))}
    assert {key: effective.get(key, "no such key") for key in case["expect"]} == case["expect"]
    assert list(found.warnings) == case.get("warnings", [])


@pytest.mark.parametrize("case", cases("valid.yaml"))
def test_the_file_that_a_stack_keeps_is_the_same_cluster(case: dict[str, Any]) -> None:
    deployed = loaded(case)
    Path("kept.yaml").write_bytes(deployed.kept_file.content)
    assert load(Path("kept.yaml"), environ={}).cluster == deployed.cluster


@pytest.mark.parametrize("case", cases("invalid.yaml"))
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ClusterFileError) as refusal:
        loaded(case)
    assert str(refusal.value).splitlines() == case["message"]


@cache
def file_of(text: str) -> yaml_file.YamlFile:
    """A cluster file, or one without content if its text is refused as such."""
    try:
        return yaml_file.parse_text(text, "cluster.yaml")
    except ClusterFileError:
        return yaml_file.YamlFile({})


def problems(data: dict[str, Any], places: dict[Located, Source]) -> dict[tuple[Located, str], Problem]:
    """What is said of a file, errors or else warnings, each with its place."""
    result = ValidationResult(data, sources=places)
    try:
        said = result.warnings(result.cluster())
    except ClusterFileError as error:
        said = list(error.problems)
    return {(problem.path, problem.message): problem for problem in said}


@cache
def problems_of(text: str) -> dict[tuple[Located, str], Problem]:
    return problems(file_of(text).data, {})


@pytest.mark.parametrize("case", FOR_ONE_FILE)
def test_what_a_problem_depends_on_is_what_the_table_says(case: dict[str, Any]) -> None:
    found: dict[str, str] = {}
    for problem in problems_of(case["file"]).values():
        key, related = dotted(problem.path), ", ".join(map(dotted, problem.related_paths))
        if related:
            found[key] = f"{found[key]}; {related}" if key in found else related
    assert found == RELATED.get(case["purpose"], {})


def written_paths(data: dict[str, Any], path: Located = ()) -> Iterator[tuple[Located, Located]]:
    """The paths of sections and values in a file, each with that of the only value in it if there is only one."""
    for key, value in data.items():
        section = only = (*path, key)
        while isinstance(value, dict) and len(value) == 1:
            [(inner_key, value)] = value.items()
            only = (*only, inner_key)
        yield section, only
        if isinstance(value, dict) and len(value) < MANY:
            yield from written_paths(value, only)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, dict):
                yield from written_paths(item, (*only, index))


def without(data: Any, path: Located) -> Any:
    if isinstance(data, list):
        return [without(item, path[1:]) if index == path[0] else item for index, item in enumerate(data)]
    rest = {key: value for key, value in data.items() if key != path[0]}
    return rest if len(path) == 1 else {**data, path[0]: without(data[path[0]], path[1:])}


@pytest.mark.parametrize("case", FOR_ONE_FILE)
def test_a_flag_is_named_for_every_problem_that_would_not_be_there_without_its_value(case: dict[str, Any]) -> None:
    file, said = file_of(case["file"]), problems_of(case["file"]).keys()
    data, places = file.data, dict.fromkeys(file.lines, FILE)
    for section, value in written_paths(data):
        others = {(key, text) for key, text in said if not within(key, section) and not within(section, key)}
        left = problems(without(data, section), {}).keys() if others else said
        if left < said and others - left:
            found = problems(data, {**places, **{path: FLAG for path in places if within(path, value)}})
            missing = [f"{dotted(key)}: {text}" for key, text in others - left if found[key, text].source != FLAG]
            assert not missing, f"{dotted(value)} is no related path of {missing}"


def test_the_table_of_related_keys_is_about_cases_that_there_are() -> None:
    assert RELATED.keys() <= {case.id for case in FOR_ONE_FILE}


def test_tables_are_large_enough_to_specify_the_file() -> None:
    assert len(cases("valid.yaml")) >= 60
    assert len(cases("invalid.yaml")) >= 60
