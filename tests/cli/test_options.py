"""Durations as they are typed."""

from __future__ import annotations

import json
from datetime import timedelta

import click
import pytest
from shell import COMMANDS, Shell

from cfngen.cli.input.options import Duration
from cfngen.cli.render.durations import format_duration

# Commands without --output: what they print is for one reader only.
ONE_FORM = {
    "init": "asks, and writes a file",
    "kind": "writes files, which README.md among them describes",
    "schema": "prints JSON",
    "completion": "prints a script for a shell",
    "sandbox env": "prints lines for a shell",
    **dict.fromkeys(("sandbox start", "sandbox stop"), "`sandbox status` says how it is then"),
    **dict.fromkeys(("sandbox fail", "sandbox heal", "sandbox interrupt"), "orders to the emulator, without a result"),
}
# Where --output is the form of a file: its forms, and the option that says where the file goes.
OF_A_FILE = {
    "templates": (("json", "yaml"), "--output-dir"),
    "graph": (("svg", "html", "mermaid", "dot"), "--output-file"),
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_output_means_the_form_of_the_output_in_every_command(name: str) -> None:
    options = {opt: option for option in COMMANDS[name].params for opt in option.opts}
    assert (name in ONE_FORM) == ("--output" not in options)
    assert options.get("-o") is options.get("--output")
    if name not in ONE_FORM:
        form = options["--output"].type
        assert isinstance(form, click.Choice)
        usual = ("text", "yaml", "json", "terraform") if name == "config" else ("text", "json")
        forms, where = OF_A_FILE.get(name, (usual, None))
        assert tuple(form.choices) == forms
        assert where is None or where in options


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - ONE_FORM.keys() - OF_A_FILE.keys()))
def test_an_error_has_the_form_of_the_output(cfngen: Shell, name: str) -> None:
    arguments = [parameter for parameter in COMMANDS[name].params if isinstance(parameter, click.Argument)]
    values = ["a" for argument in arguments if argument.required]
    if not any("--cluster" in parameter.opts for parameter in COMMANDS[name].params):
        values += ["surplus"]
    ran = cfngen(*name.split(), *values, "-o", "json", *(() if "surplus" in values else ("-f", "missing.yaml")))
    error = json.loads(ran.out)
    assert (error["type"], error["exitCode"]) == ("error", ran.code)


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("10m", 600), ("12h", 43200), ("1h30m", 5400), ("2d", 172800), ("0s", 0)]
)
def test_a_duration_is_read_and_written(text: str, seconds: int) -> None:
    assert Duration().convert(text, None, None) == timedelta(seconds=seconds)
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("text", ["", " ", "10", "h", "-5m", "1.5h", "5m1h", "1w", "9999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration, such as"):
        Duration().convert(text, None, None)


def test_a_least_one_is_kept() -> None:
    with pytest.raises(click.BadParameter, match="59s is too short; the minimum is 1m"):
        Duration(timedelta(minutes=1)).convert("59s", None, None)
