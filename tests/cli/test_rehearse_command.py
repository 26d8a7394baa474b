"""`cfngen rehearse`: the table of steps, what is refused before anything is made, exit codes, report."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployed_cluster import Place, Shell, place, session
from json_lines import lines

from cfngen.cli.input.target import Target
from cfngen.rehearse import clusters

LIST = ("rehearse", "--list", "--up-to", "network-plugins")


@pytest.fixture
def where(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An account of its own, in which the commands work by its clock."""
    with place() as made:
        monkeypatch.setattr("cfngen.deploy.aws.types.SystemClock", lambda: made.clock)
        monkeypatch.setattr(Target, "_session", lambda self, region: session())
        yield made


def stacks(where: Place) -> set[str]:
    return {
        stack.name
        for stack in where.world.cloud.stacks()
        if stack.name.startswith(clusters.REHEARSAL_NAME) and stack.status != "DELETE_COMPLETE"
    }


def test_the_steps_are_shown_without_credentials(cfngen: Shell) -> None:
    text = cfngen(*LIST)
    assert text.code == 0
    assert re.search(
        r"^ +1 +network-plugins +\d+ min +IAM and security-group stacks .* +nothing$", text.out, re.MULTILINE
    )
    [told] = lines(cfngen(*LIST, "-o", "json").out)
    assert [step["name"] for step in told["steps"]] == ["network-plugins"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--zones", "us-west-2a,us-west-2b"), 64, "is not three zones of one region"),
        (("--zones", "us-west-2a,us-west-2b,eu-central-1a"), 64, "is not three zones of one region"),
        (("--zones", "us-west-2a,us-west-2a,us-west-2b"), 64, "is not three zones of one region"),
        (("--list", "--clean-up"), 64, "cannot be used together"),
        (("--list", "--offline-report", "mine.json"), 64, "--list and --offline-report cannot be used together"),
        (("--offline-report", "mine.json"), 1, "mine.json: the report cannot be read: No such file"),
        (("--up-to", "moon"), 1, "the rehearsal has no step 'moon'"),
        (("--role-arn", "me"), 64, "is not the ARN of a role"),
    ],
)
def test_what_makes_no_sense_is_refused(cfngen: Shell, options: tuple[str, ...], code: int, said: str) -> None:
    ran = cfngen("rehearse", *options)
    assert (ran.code, said in ran.err) == (code, True)


@pytest.mark.drill
def test_a_rehearsal_from_the_question_to_the_report(cfngen: Shell, where: Place) -> None:
    unasked = cfngen("rehearse", "--up-to", "change-set")
    assert (unasked.code, stacks(where)) == (1, set())
    assert "confirmation is needed, and standard input is not a terminal: Rehearse 2 steps as arn:" in unasked.err
    assert list(Path().iterdir()) == []

    done = cfngen("rehearse", "--up-to", "change-set", "--yes", "--report", "mine.json")
    assert done.code == 0, done.err
    assert "step 2 of 2: change set of the whole default cluster" in done.err
    assert "AWS behaved like the emulator." in done.out
    assert "The report is in mine.json and mine.md." in done.out
    assert json.loads(Path("mine.json").read_text())["result"] == "as expected"
    assert Path("mine.md").read_text().startswith("# Rehearsal of cfngen ")
    facts = cfngen("rehearse", "--offline-report", "mine.json")
    assert (facts.code, facts.out.splitlines()[0]) == (0, "- repository: cfngen")
    [told] = lines(cfngen("rehearse", "--offline-report", "mine.json", "-o", "json").out)
    assert [fact["verdict"] for fact in told["facts"]] == ["confirmed"]
    assert stacks(where) == set()
    assert cfngen("rehearse", "--clean-up").code == 0


@pytest.mark.drill
def test_a_surprise_has_its_exit_code_and_a_program_is_told(cfngen: Shell, where: Place) -> None:
    where.world.cloud.fail("CiliumMasterRole", "x")
    where.world.cloud.fail("NodeInstanceProfile", "limit exceeded", during="CREATE")
    ran = cfngen("rehearse", "--up-to", "1", "--yes", "-o", "json")
    assert ran.code == 2
    shown = lines(ran.out)
    assert {each["type"] for each in shown} >= {"step", "event", "diagnosis", "rehearsal", "rehearsalWritten"}
    [rehearsal] = [each for each in shown if each["type"] == "rehearsal"]
    surprises = [
        surprise for step in rehearsal["steps"] for done in step["operations"] for surprise in done["surprises"]
    ]
    assert any("limit exceeded" in surprise["seen"] for surprise in surprises)
    [files] = [each["files"] for each in shown if each["type"] == "rehearsalWritten"]
    assert json.loads(Path(files[0]).read_text()) == rehearsal
    assert stacks(where) == set()


@pytest.mark.drill
def test_what_a_killed_one_has_left_is_removed(cfngen: Shell, where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr("cfngen.rehearse.run._remove_everything", lambda *arguments, **options: ())
        where.world.cloud.fail("NodeInstanceProfile", "killed", during="CREATE")
        assert cfngen("rehearse", "--up-to", "1", "--yes").code == 2
    assert clusters.REHEARSAL_NAME in stacks(where)
    unasked = cfngen("rehearse", "--clean-up")
    assert (unasked.code, clusters.REHEARSAL_NAME in stacks(where)) == (1, True)
    ran = cfngen("rehearse", "--clean-up", "--yes")
    assert (ran.code, stacks(where)) == (0, set()), ran.err


@pytest.mark.drill
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_an_interruption_has_its_exit_code_and_a_report(
    cfngen: Shell, where: Place, number: signal.Signals, code: int
) -> None:
    where.served.faults.before("CreateChangeSet", lambda: signal.raise_signal(number))
    ran = cfngen("rehearse", "--up-to", "1", "--yes", "--report", "mine.json")
    assert (ran.code, stacks(where)) == (code, set()), ran.err
    assert json.loads(Path("mine.json").read_text())["result"] == "interrupted"


@pytest.mark.drill
def test_nothing_is_made_where_no_report_can_be_written(cfngen: Shell, where: Place) -> None:
    ran = cfngen("rehearse", "--yes", "--report", "missing/report.json")
    assert ran.code == 1
    assert "the report cannot be written to missing/report.json" in ran.err
    assert not where.served.faults.called("CreateChangeSet")
