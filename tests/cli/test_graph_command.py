"""`cfngen graph`: what it writes, and what it refuses."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from shell import Shell


@pytest.fixture
def written(cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The templates of the default cluster, as YAML in output/; lint has tests of its own."""
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    assert cfngen("templates", "--defaults", "--output", "yaml").code == 0
    return directory / "output"


def test_without_options_it_draws_the_network_to_standard_output(cfngen: Shell) -> None:
    ran = cfngen("graph")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.lstrip().startswith("<")
    assert "172.20.0.0/16" in ran.out


def test_a_terminal_gets_advice_in_place_of_svg(process: Callable[..., Popen[str]]) -> None:
    terminal, end = os.openpty()
    graph = process("graph", stdout=end)
    _, told = graph.communicate()
    assert graph.returncode == 64
    assert "--output-file cluster.svg writes a file" in told
    assert select.select([terminal], [], [], 0)[0] == []
    os.close(end)
    os.close(terminal)


def test_mermaid_of_a_cluster_file(cfngen: Shell, directory: Path) -> None:
    (directory / "cluster.yaml").write_text("name: shop\nregion: eu-west-1\n")
    ran = cfngen("graph", "--format", "mermaid")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:4] == ["---", 'title: "shop in eu-west-1"', "---", "flowchart LR"]


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.mmd", "---\ntitle"), ("a.MERMAID", "---\ntitle"), ("a.dot", "digraph"), ("a.gv", "digraph")],
)
def test_the_suffix_says_the_format(cfngen: Shell, directory: Path, name: str, beginning: str) -> None:
    ran = cfngen("graph", "--output-file", name)
    assert (ran.code, ran.out) == (0, f"{name}: written.\n")
    assert (directory / name).read_text().startswith(beginning)
    assert [path.name for path in directory.iterdir()] == [name]


def test_the_option_wins_over_the_suffix(cfngen: Shell, directory: Path) -> None:
    assert cfngen("graph", "--format", "dot", "--output-file", "picture.txt").code == 0
    assert (directory / "picture.txt").read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("view", "shown", "hidden"),
    [
        ("network", "internet gateway", "role of masters"),
        ("access", "TCP 443", "internet gateway"),
        ("iam", "role of masters", "public subnet"),
        ("all", "role of masters", "nothing of this name"),
    ],
)
def test_each_view_shows_its_part(cfngen: Shell, view: str, shown: str, hidden: str) -> None:
    drawn = cfngen("graph", "--format", "dot", "--show", view).out
    assert shown in drawn
    assert hidden not in drawn


def test_templates_of_a_folder_give_the_same_picture(cfngen: Shell, written: Path) -> None:
    generated = cfngen("graph", "--defaults", "--format", "dot", "--show", "all").out
    for templates in (written, written / "standalone.yaml"):
        assert cfngen("graph", "--templates", str(templates), "--format", "dot", "--show", "all").out == generated


def test_templates_that_are_no_cluster(cfngen: Shell, written: Path) -> None:
    for name, message in (
        ("iam.yaml", "nests iam (IamStack), and that template is missing"),
        ("cluster.yaml", ""),
        ("standalone.yaml", "no template nests the others, and none has all resources"),
    ):
        (written / name).unlink()
        ran = cfngen("graph", "--templates", "output", "--format", "dot")
        assert (ran.code, message in ran.err) == (1 if message else 0, True), ran.err
        assert not message or "hint: draw the files that `cfngen templates` writes" in ran.err


def test_a_folder_without_templates(cfngen: Shell, directory: Path) -> None:
    ran = cfngen("graph", "--templates", "nowhere")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "error: nowhere does not exist")
    (directory / "empty").mkdir()
    ran = cfngen("graph", "--templates", "empty")
    assert ran.code == 1
    assert ran.err.startswith("error: there is no template in empty: no JSON or YAML file has Resources\nhint: ")


def test_a_broken_template(cfngen: Shell, directory: Path) -> None:
    (directory / "cluster.json").write_text('{"Resources": {')
    (directory / "list.json").write_text('["Resources"]')
    (directory / "cluster.yaml").write_text("name: shop\n")
    ran = cfngen("graph", "--templates", ".")
    assert ran.code == 1
    assert "error: cluster.json:2: " in ran.err
    assert "error: list.json: holds a list" in ran.err


def test_templates_without_the_shape_of_templates(cfngen: Shell, directory: Path) -> None:
    (directory / "own.json").write_text(json.dumps({"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": 3}}}))
    ran = cfngen("graph", "--templates", "own.json", "--format", "dot")
    assert (ran.code, ran.err) == (0, "")
    assert '"Vpc"' in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output-file", "html"), "--output-file is the file to write; the format html goes to --output."),
        (("--output", "cluster.svg"), "is not one of svg, html, mermaid, dot; --output-file chooses the file."),
        (("--templates", "output", "--defaults"), "--templates draws templates as they are"),
        (("--templates", ""), "--templates is empty; give a folder of templates, or one template"),
        (("--show", "costs"), "'costs' is not one of"),
    ],
)
def test_what_cannot_be_meant_is_refused(cfngen: Shell, arguments: tuple[str, ...], message: str) -> None:
    ran = cfngen("graph", *arguments)
    assert ran.code == 64
    assert message in ran.err


@pytest.mark.parametrize("command", ["graph", "plan"])
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("picture.png", "the name picture.png does not say which format the picture shall have"),
        ("nowhere/picture.dot", "does not exist"),
        ("folder.dot", "folder.dot is a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_at_once(
    cfngen: Shell, directory: Path, command: str, file: str, message: str
) -> None:
    (directory / "folder.dot").mkdir()
    ran = cfngen(command, "--output-file" if command == "graph" else "--graph", file)
    assert ran.code == 1
    assert message in ran.err
