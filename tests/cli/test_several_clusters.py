"""Commands with several cluster files: each cluster as if it were alone, one table at the end, one exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from json_lines import lines
from pages_account import PagesAccount
from shell import COMMANDS, Ran, Shell

from cfngen.cli.exit_codes import EXIT_CODE_MEANINGS, WORST_FIRST, worst_exit_code
from cfngen.cli.several_clusters.command import SeveralClustersCommand
from cfngen.cli.several_clusters.outcomes import outcome_of
from cfngen.cli.several_clusters.processes import Processes
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.validation import Validation

FILE = """\
name: {name}
api: {{allowedCidrs: [203.0.113.7/32]}}
nodeGroups: [{{name: of-{name}, minSize: 1, maxSize: 1}}]
"""
SEVERAL = ("lint", "templates", "config", "plan", "deploy", "status", "validate", "kubeconfig", "delete")


@pytest.fixture
def folder(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three cluster files, and what does not count as one."""
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    made = directory / "clusters"
    made.mkdir()
    for name in ("c", "a", "b"):
        (made / f"{name}.yaml").write_text(FILE.format(name=name))
    (made / ".hidden.yaml").write_text("nonsense")
    (made / "README.md").write_text("nonsense")
    return made


@pytest.fixture
def account(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[PagesAccount]:
    made = PagesAccount(monkeypatch, ("us-west-2",))
    made.use(sandbox=True)
    yield made
    made.close()


def results(ran: Ran) -> dict[str, str]:
    """The outcome of each cluster in the table at the end, in its order."""
    rows = re.findall(r"^  (\S+) +[a-z]+-[a-z]+-\d +clusters/\S+ +(.*?)(?:  .*)?$", ran.out, re.MULTILINE)
    return dict(rows)


def test_exactly_these_commands_take_several_files() -> None:
    taking = {name.split()[0] for name, command in COMMANDS.items() if isinstance(command, SeveralClustersCommand)}
    assert taking == set(SEVERAL)


def test_a_folder_stands_for_its_yaml_files_in_order(cfngen: Shell, folder: Path) -> None:
    ran = cfngen("lint", "-f", "clusters", "-f", "clusters/c.yaml")
    assert (ran.code, results(ran)) == (0, dict.fromkeys("abc", "nothing found"))
    assert re.findall("▸ (.*)", ran.out) == [f"{name}  clusters/{name}.yaml" for name in "abc"]


def test_a_file_that_others_extend_is_no_cluster_of_its_own(cfngen: Shell, folder: Path) -> None:
    (folder / "a.yaml").rename(folder / "common.yaml")
    for name in "bc":
        (folder / f"{name}.yaml").write_text(f"extends: common.yaml\nname: {name}\n")
    ran = cfngen("lint", "-f", "clusters")
    assert (ran.code, results(ran)) == (0, dict.fromkeys("bc", "nothing found"))
    assert "clusters/common.yaml:2" in cfngen("config", "-f", "clusters/b.yaml").out


def test_json_names_the_cluster_in_each_object(cfngen: Shell, folder: Path) -> None:
    *linted, last = lines(cfngen("lint", "-f", "clusters", "-o", "json").out)
    assert [(each["type"], each["clusterName"], each["clusterFile"]) for each in linted] == [
        ("lint", name, f"clusters/{name}.yaml") for name in "abc"
    ]
    assert (last["type"], last["command"], last["exitCode"]) == ("clusters", "lint", 0)
    *shown, last = map(json.loads, cfngen("config", "-f", "clusters", "-o", "json").out.splitlines())
    assert [each["clusterName"] for each in shown] == [each["cluster"]["name"] for each in shown] == list("abc")
    assert last["type"] == "clusters"


def test_one_file_is_as_before(cfngen: Shell, folder: Path) -> None:
    ran = cfngen("lint", "-f", "clusters/a.yaml", "-o", "json")
    assert list(json.loads(ran.out)) == ["type", "templates", "regions", "findings"]


def test_values_as_yaml_are_a_stream_of_documents(cfngen: Shell, folder: Path) -> None:
    ran = cfngen("config", "-f", "clusters", "-o", "yaml", "--set", "region=eu-west-1")
    documents = list(yaml.safe_load_all(ran.out))
    assert [(each["name"], each["region"]) for each in documents] == [(name, "eu-west-1") for name in "abc"]


def test_templates_of_each_cluster_have_a_directory_of_their_own(cfngen: Shell, folder: Path) -> None:
    assert cfngen("templates", "-f", "clusters", "-d", "made").code == 0
    assert sorted(path.name for path in Path("made").iterdir()) == list("abc")
    (folder / "b.yaml").write_text(FILE.format(name="b") + "ssh: {keyName: mine}\n")
    ran = cfngen("templates", "-f", "clusters", "-d", "made", "--check")
    assert (ran.code, results(ran)) == (3, {"a": "done", "b": "not up to date", "c": "done"})
    (folder / "b.yaml").write_text("name: a\nregion: eu-west-1\n")
    assert cfngen("templates", "-f", "clusters", "-d", "regions").code == 0
    assert sorted(path.name for path in Path("regions").iterdir()) == ["a-eu-west-1", "a-us-west-2", "c-us-west-2"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("deploy", "-f", "clusters", "--set", "name=x"), 1, "a.yaml and clusters/b.yaml describe clusters with the"),
        (("plan", "-f", "clusters", "-f", "empty"), 1, "the folder empty has no cluster files"),
        (("lint", "-f", "clusters", "-f", "wrong.yaml"), 1, "wrong.yaml:1: colour: there is no such key"),
        (("lint", "-f", "clusters", "-f", "-"), 64, "- is standard input, which is one cluster file"),
        (("lint", "-f", "clusters", "template.yaml"), 64, "only one cluster file can be used with FILES"),
        (("lint", "-f", "clusters", "--defaults"), 64, "--defaults and --cluster cannot be used together"),
        (("status", "-f", "clusters", "--stack-name", "x"), 64, "only one cluster file can be used with --stack-name"),
        (("plan", "-f", "clusters", "--graph", "x.svg"), 64, "only one cluster file can be used with --graph"),
        (("kubeconfig", "-f", "clusters", "--print"), 64, "only one cluster file can be used with --print"),
        (("graph", "-f", "clusters/a.yaml", "-f", "clusters/b.yaml"), 64, "cfngen graph takes one cluster file"),
        (
            ("deploy", "-f", "clusters", "--canary", "wrong.yaml"),
            64,
            "--canary wrong.yaml is none of the cluster files",
        ),
        (("deploy", "-f", "clusters", "--parallel", "2"), 64, "--parallel cannot ask about several clusters"),
        (("status", "--regions", "us-west-2"), 64, "--regions is for --all"),
        (("status", "--all", "-f", "clusters/a.yaml"), 64, "--all reads no cluster"),
        (("deploy", "-f", "clusters/a.yaml", "--parallel", "2"), 64, "--parallel is for several cluster files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_for_several_is_refused_at_first(
    cfngen: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.setattr("cfngen.cli.input.target.Target.connect", lambda *_, **__: pytest.fail("AWS was called"))
    Path("empty").mkdir()
    Path("wrong.yaml").write_text("colour: red\n")
    ran = cfngen(*arguments)
    assert ran.code == code
    assert message in " ".join(ran.err.split())
    assert ran.out == ""


def test_the_worst_exit_code_counts() -> None:
    assert sorted(WORST_FIRST) == sorted(EXIT_CODE_MEANINGS)
    assert [worst_exit_code(codes) for codes in ([], [0, 4], [4, 5], [2, 5], [6, 2], [1, 6], [1, 70])] == [
        0, 4, 5, 2, 6, 1, 70,
    ]  # fmt: skip


def view(status: str, *, id: str = "1", minute: int = 0) -> StackView:  # noqa: A002
    return StackView("a", id, StackStatus(status), updated=datetime(2026, 11, 22, 12, minute, tzinfo=UTC))


@pytest.mark.parametrize(
    ("command", "code", "before", "after", "outcome"),
    [
        ("lint", 1, None, None, "failed"),
        ("plan", 5, None, None, "dangerous changes"),
        ("status", 130, None, None, "interrupted"),
        ("deploy", 0, None, view("CREATE_COMPLETE"), "created"),
        ("deploy", 2, None, view("CREATE_COMPLETE"), "created, but not valid"),
        ("deploy", 0, view("ROLLBACK_COMPLETE"), view("CREATE_COMPLETE", id="2"), "created"),
        ("deploy", 0, view("CREATE_COMPLETE"), view("CREATE_COMPLETE"), "unchanged"),
        ("deploy", 0, view("CREATE_COMPLETE"), view("UPDATE_COMPLETE", minute=5), "updated"),
        ("deploy", 1, view("CREATE_COMPLETE"), view("CREATE_COMPLETE"), "failed, unchanged"),
        ("deploy", 1, view("UPDATE_COMPLETE"), view("UPDATE_ROLLBACK_COMPLETE", minute=5), "rolled back"),
        ("deploy", 1, view("ROLLBACK_COMPLETE"), None, "rolled back"),
        ("deploy", 1, None, view("CREATE_FAILED"), "failed"),
        ("deploy", 6, None, view("CREATE_IN_PROGRESS"), "in progress"),
        ("deploy", 143, view("CREATE_COMPLETE"), view("CREATE_COMPLETE"), "interrupted, unchanged"),
        ("delete", 0, view("CREATE_COMPLETE"), None, "deleted"),
        ("delete", 0, None, None, "was not there"),
        ("delete", 1, view("CREATE_COMPLETE"), view("DELETE_FAILED"), "failed"),
    ],
)
def test_an_outcome_says_what_became_of_the_stack(
    command: str, code: int, before: StackView | None, after: StackView | None, outcome: str
) -> None:
    assert outcome_of(command, code, before, after) == outcome


@pytest.mark.drill
def test_a_deployment_stops_at_the_first_failure_and_continues_there(
    cfngen: Shell, folder: Path, account: PagesAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: str, *options: str) -> Ran:
        return cfngen(command, "-f", "clusters", "--sandbox", *options)

    assert run("plan").code == 4
    machines = account.worlds["us-west-2"].machines
    machines.inject_failure("of-b", "downloads", "no route to dl.k8s.io")
    failed = run("deploy", "--yes")
    assert failed.code == 1
    assert results(failed) == {"a": "created", "b": "rolled back", "c": "not started"}
    assert sorted(account.stacks("us-west-2")) == ["a", "b"]
    machines.remove_faults()
    *_, last = lines(run("deploy", "--yes", "-o", "json").out)
    assert (last["type"], last["exitCode"]) == ("clusters", 0)
    assert [(each["outcome"], each["status"]) for each in last["clusters"]] == [
        ("unchanged", "CREATE_COMPLETE"), ("created", "CREATE_COMPLETE"), ("created", "CREATE_COMPLETE"),
    ]  # fmt: skip
    assert results(run("validate")) == dict.fromkeys("abc", "valid")
    listed = cfngen("status", "--all", "--sandbox")
    assert [line.split()[:4] for line in listed.out.splitlines()[1:4]] == [
        [name, "us-west-2", name, "CREATE_COMPLETE"] for name in "abc"
    ]
    assert run("kubeconfig", "--file", "config").code == 0
    assert [each["name"] for each in yaml.safe_load(Path("config").read_text())["contexts"]] == list("abc")
    refused = run("delete")
    assert refused.code == 1
    assert "confirmation is needed, and standard input is not a terminal: Delete 3 clusters?" in refused.err
    assert sorted(account.stacks("us-west-2")) == ["a", "b", "c"]
    assert results(run("delete", "--yes")) == dict.fromkeys("abc", "deleted")
    assert account.stacks("us-west-2") == []


@pytest.mark.drill
def test_others_are_left_alone_unless_the_canary_is_valid(
    cfngen: Shell, folder: Path, account: PagesAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Callable[..., Any] = lambda *options: cfngen(  # noqa: E731
        "deploy", "-f", "clusters", "--sandbox", "--yes", "--canary", "clusters/b.yaml", *options
    )
    with monkeypatch.context() as patch:
        verdict = Validation("b", "b", datetime(2026, 11, 22, tzinfo=UTC), valid=False)
        patch.setattr("cfngen.deploy.status.validation.wait_until_valid", lambda *_, **__: verdict)
        ran = run()
    assert (ran.code, results(ran)) == (2, {"b": "created, but not valid", "a": "not started", "c": "not started"})
    assert account.stacks("us-west-2") == ["b"]
    assert results(run()) == {"b": "unchanged", "a": "created", "c": "created"}


def test_processes_bear_labels_and_none_is_started_after_a_failure(directory: Path) -> None:
    shown: list[tuple[str, str]] = []
    processes = Processes(1, lambda *line: shown.append(line), lambda code: code == 0)
    lines = {"good": ["version"], "bad": ["lint", "-f", "missing.yaml"], "later": ["version"]}
    assert dict(processes.run(lines)) == {"good": 0, "bad": 1}
    assert [line[:19] for label, line in shown if label == "bad"][:1] == ["error: missing.yaml"]
    assert {label for label, _ in shown} == {"good", "bad"}
