"""The dimensions of `make matrix`: each value is valid, what is refused is refused clearly, and covers are complete."""

from __future__ import annotations

import random
from argparse import Namespace
from functools import cache

import matrix_run as run
import pytest
from combinations import (
    ALL,
    LIVED,
    LIVING,
    Parts,
    completed,
    conflicts_in,
    every_part,
    file_of,
    lived,
    neighbours,
    parts_of,
    refused,
)
from conflicts import CONFLICTS
from dimensions import DIMENSIONS
from matrix_pool import Progress, judged
from matrix_report import report
from outcomes import Outcome, generated

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections.base import Distribution, Plugin

USUAL = {name: next(iter(values)) for name, values in DIMENSIONS.items()}


@cache
def refusals() -> list[dict[str, str]]:
    return refused(ALL, 8)


def beside(part: Parts) -> dict[str, str]:
    """The usual values beside some, as far as there is no conflict."""
    found = completed(dict(part), ALL, lambda _, name, value: USUAL[name] == value, random.Random(1))
    assert found, part
    return found


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_value_is_valid_beside_usual_ones(dimension: str) -> None:
    assert not conflicts_in(USUAL)
    for value in DIMENSIONS[dimension]:
        parse(file_of(beside(frozenset({(dimension, value)}))))


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_values_of_a_dimension_make_different_files(dimension: str) -> None:
    rows = [{**USUAL, dimension: value} for value in DIMENSIONS[dimension]]
    if dimension == "architecture":  # arm64 and mixed differ in the nodes
        rows = [{**row, "nodes": "on-demand"} for row in rows]
    files = [str(file_of(row)) for row in rows]
    assert len(set(files)) == len(files)


def test_the_dimensions_have_every_plugin_and_distribution() -> None:
    assert set(Plugin.__args__) == set(DIMENSIONS["plugin"])
    assert set(Distribution.__args__) == set(DIMENSIONS["distribution"]) - {"own image"}


def test_every_pair_of_values_that_go_together_is_lived() -> None:
    occurring = {part for row in lived() for part in parts_of(row, 2)}
    missing = set(every_part(LIVED, 2)) - occurring
    never = {part for part in missing if not possible(part)}
    assert missing - never == set()
    assert len(never) < 60, "a conflict leaves out more than before"


def possible(part: Parts) -> bool:
    chance = random.Random(1)
    return completed(dict(part), LIVED, lambda _, name, value: 0, chance, LIVING) is not None


def test_what_is_lived_is_valid() -> None:
    rows = lived()
    assert 36 <= len(rows) <= 60
    for row in rows:
        parse(file_of(row))


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda conflict: conflict.message)
def test_a_conflict_is_refused_with_its_message(conflict) -> None:
    rows = [row for row in refusals() if conflict.is_in(row)]
    assert len(rows) == 8
    for row in rows:
        with pytest.raises(ClusterFileError, match=conflict.message):
            parse(file_of(row))
        assert generated(row, standalone=False)[0].faults == []


def test_a_run_has_two_thousand_combinations_that_differ() -> None:
    options = Namespace(combinations=2000, refused=1, seed=1, standalone="some")
    selected = run.chosen(options)
    valid = [row for row, _ in selected if not conflicts_in(row)]
    assert len(valid) == len({str(row) for row in valid}) >= 2000
    assert len(selected) - len(valid) == len(CONFLICTS)
    assert 36 <= sum(standalone for _, standalone in selected) < 100


def test_neighbours_differ_in_one_value() -> None:
    other = next(neighbours([USUAL], ALL, seed=1))
    assert sum(other[name] != USUAL[name] for name in ALL) == 1


def test_a_refusal_that_no_row_explains_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcomes.conflicts_in", lambda combination: [])
    outcome, _, _ = generated({**USUAL, "api": "elastic IP", "masters": "3"}, standalone=False)
    [fault] = outcome.faults
    assert fault.startswith("refused, and no row of conflicts.py explains it: api.elasticIp: 3 masters are behind")


def test_an_accepted_conflict_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcomes.conflicts_in", lambda combination: CONFLICTS[:1])
    outcome, views, _ = generated(USUAL, standalone=True)
    [fault] = outcome.faults
    assert fault.startswith("accepted, although conflicts.py says it is refused: the API has no internal endpoint")
    assert {view.document for view in views.values()} >= {"cluster", "master", "standalone"}


def test_a_traceback_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcomes.generate", lambda cluster: {}["no such template"])
    outcome, views, _ = generated(USUAL, standalone=False)
    [fault] = outcome.faults
    assert "KeyError: 'no such template'" in fault
    assert views == {}


def test_the_report_says_what_is_wrong_and_how_to_try_it() -> None:
    well, refusal = Outcome(USUAL), Outcome({**USUAL, "plugin": "none"})
    refusal.refusals = ["network.subnets[1].id: subnet-0a1b2c3d4e5f60718 is wrong"]
    progress = Progress(total=3, generated=3, linted=8, known=2)
    lines = list(report([well, refusal, Outcome(USUAL, findings=["vpc: E3012 wrong at Resources"])], progress, 1.5, 80))
    text = "\n".join(lines)
    assert "      1  network.subnets[].id: subnet-… is wrong" in text
    assert "vpc: E3012 wrong at Resources" in text
    assert '--only \'{"region": "us-west-2"' in text
    assert lines[-1].startswith("2 combinations generated, 1 refused by the checks; 8 templates linted, 2 were known;")
    assert lines[-1].endswith("1 with lint findings, 0 with faults; 1.5 minutes, 80 seconds of processor time")


def test_the_report_of_a_stopped_run_says_how_far_it_came() -> None:
    progress = Progress(total=2240, generated=1, linted=3, waiting=4, stopped=True)
    lines = list(report([Outcome(USUAL)], progress, 0.5, 20))
    assert lines[-2] == "stopped after 1 of 2,240 combinations; 4 templates of these not linted"


@pytest.mark.drill
def test_ctrl_c_keeps_what_was_done() -> None:
    progress = Progress(total=2)

    def interrupt() -> None:
        if progress.generated == 2:
            raise KeyboardInterrupt

    selected = [(USUAL, False), ({**USUAL, "masters": "3"}, False)]
    outcomes = judged(selected, ["us-west-2"], progress, None, interrupt, processes=1)
    assert [outcome.combination for outcome in outcomes] == [row for row, _ in selected]
    assert progress.stopped
    assert progress.waiting > 0
