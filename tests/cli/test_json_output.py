"""JSON output: what is printed is what docs/reference/json.schema.json says, and the pages are those of the code."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from deployed_cluster import Command
from json_lines import lines

from cfngen.cli.display import json_reference
from cfngen.cli.display.json_output import camel_case, print_json, to_json_value
from cfngen.deploy.messages.message import Danger, Step

DOCS = Path(__file__).parents[2] / "docs/reference"


def test_the_schema_and_its_page_are_those_of_the_code() -> None:
    assert json.loads((DOCS / "json.schema.json").read_text()) == json_reference.json_schema(), "run `make docs`"
    assert (DOCS / "json.md").read_text() == json_reference.json_page(), "run `make docs`"


def test_every_attribute_is_described() -> None:
    bare = [
        f"{name}.{key}"
        for name, definition in json_reference.json_schema()["$defs"].items()
        for key, each in definition.get("properties", {}).items()
        if key != "type" and not each.get("description")
    ]
    assert bare == []


def test_programs_are_told_how_dangerous_a_change_is_in_these_words() -> None:
    """They are compared with, so they stay; each is worse than the one before it."""
    words = [to_json_value(danger) for danger in sorted(Danger, key=lambda danger: danger.rank)]
    assert words == ["none", "disruptive", "dangerous"]
    assert [Danger.NONE.rank, Danger.DISRUPTIVE.rank, Danger.DANGEROUS.rank] == [0, 1, 2]


def test_types_are_told_apart_by_their_type() -> None:
    kinds = [message_class.kind for message_class in json_reference.message_classes()]
    assert all(kinds)
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("validate", "cluster"),
        ("events",),
        ("events", "--failures"),
        ("kubeconfig", "--file", "mine"),
        ("kubeconfig", "--print"),
        ("kubeconfig", "--remove"),
        ("etcd", "list"),
        ("delete", "--dry-run"),
        ("permissions",),
    ],
    ids=" ".join,
)
def test_commands_print_what_the_schema_says(run: Command, command: tuple[str, ...]) -> None:
    ran = run(*command, "--output", "json")
    printed = {line["type"] for line in lines(ran.out)}
    assert printed
    assert printed <= {each.kind for each in classes_of(command)}


def classes_of(command: tuple[str, ...]) -> list[type]:
    line, printed = " ".join(command), json_reference.classes_by_command()
    return printed[max((each for each in printed if f"{line} ".startswith(f"{each} ")), key=len)]


def test_two_classes_of_one_name_are_refused() -> None:
    one = dataclasses.make_dataclass("Same", [("a", str)], namespace={"__doc__": "One of them."})
    other = dataclasses.make_dataclass("Same", [("a", str)], namespace={"__doc__": "Another."})
    definitions: dict[str, object] = {}
    assert json_reference._reference(one, definitions) == json_reference._reference(one, definitions)
    with pytest.raises(ValueError, match="two classes of the JSON output are called Same"):
        json_reference._reference(other, definitions)


def test_keys_are_in_camel_case() -> None:
    assert camel_case("stack_name") == "stackName"
    assert to_json_value(Step("uploading")) == {"type": "step", "text": "uploading"}


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be converted"):
        to_json_value(object())


def test_what_a_terminal_hides_or_obeys_is_escaped_and_stays_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    step = Step("one\u202eeno \x7f \x1b[2J \u200b tags\U000e0041 ü")
    print_json(step)
    printed = capsys.readouterr().out
    assert printed.rstrip("\n").isprintable()
    assert "ü" in printed
    assert json.loads(printed)["text"] == step.text
