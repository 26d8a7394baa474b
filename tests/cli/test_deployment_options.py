"""Options of `cfngen plan` and `deploy` that are refused before anything is asked of AWS, and how programs are told."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from json_lines import lines
from shell import Shell

from cfngen.cli.input.deployment import DeploymentOptions, deployment_options, given_options


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tag", "cfngen:cluster=x", "is set by cfngen"),
        ("--tag", "Cfngen:Cluster=x", "differs from cfngen:cluster only in upper and lower case"),
        ("--tag", "name=x", "differs from Name only in upper and lower case"),
        ("--tag", "owner=", "the value has 0 characters; at least 1 are needed"),
        ("--tag", "a;b=x", "the key holds ; (U+003B)"),
        ("--tag", "aws:owner=x", "AWS reserves tags that start with aws:"),
        ("--tag", "AWS:owner=x", "AWS reserves tags that start with aws:"),
        ("--role-arn", "admin", "'admin' is not the ARN of a role"),
        ("--role-arn", "arn:aws:iam::123456789012:user/admin", "is not the ARN of a role"),
        ("--account", "abc", "'abc' is not an account number, which has 12 digits"),
        ("--notify", "topic", "'topic' is not the ARN of a topic"),
        ("--notify", "arn:aws:sqs:us-west-2:123456789012:queue", "is not the ARN of a topic"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "deploy"])
def test_what_cannot_be_meant_is_refused(cfngen: Shell, command: str, option: str, value: str, message: str) -> None:
    ran = cfngen(command, "--sandbox", "--defaults", option, value)
    assert ran.code == 64
    assert message in ran.err


def test_a_tag_of_the_cluster_file_in_another_spelling(cfngen: Shell) -> None:
    ran = cfngen("plan", "--defaults", "--set", "tags.Team=a", "--tag", "team=b")
    assert ran.code == 1
    assert "the tag team differs from Team in the cluster file only in upper and lower case" in ran.err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ": is empty"),
        ('{"Key": "1",\n "Other": ]}', ":2: is not JSON: expecting value"),
        ("- Key\n", ":1: an item"),
    ],
)
def test_errors_of_a_parameter_file_name_it(cfngen: Shell, directory, monkeypatch, content: str, problem: str) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    (directory / "values.json").write_text(content)
    ran = cfngen("plan", "--defaults", "--parameter-file", "values.json")
    assert ran.code == 1
    assert f"error: values.json{problem}" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--parameter-file", "absent.json"), 1, "absent.json: cannot be read"),
        (("--role-arn", "admin"), 64, "'admin' is not the ARN of a role"),
        (("--set", "nodeGroups[0].maxSize=x"), 1, "nodeGroups[0].maxSize"),
    ],
)
def test_a_program_is_told_of_a_failure(cfngen: Shell, monkeypatch, arguments, code: int, message: str) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    ran = cfngen("plan", "--defaults", *arguments, "--output", "json")
    [told] = lines(ran.out)
    assert (ran.code, told["type"], told["exitCode"]) == (code, "error", code)
    assert message in told["message"]
    assert message in ran.err


def test_a_person_is_told_once(cfngen: Shell) -> None:
    ran = cfngen("plan", "--defaults", "--role-arn", "admin")
    assert (ran.code, ran.out) == (64, "")


def test_a_program_gets_the_hint_as_a_person_does(cfngen: Shell, monkeypatch) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    ran = cfngen("plan", "--defaults", "--stack-name", "1st", "--output", "json")
    printed = json.loads(ran.out)
    assert printed["hint"] == "choose a valid name with --stack-name."
    assert f"hint: {printed['hint']}" in ran.err


def test_a_price_list_for_another_region(cfngen: Shell, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: USD\ndate: 2026-11-01\nregion: eu-west-1\n")
    ran = cfngen("plan", "--sandbox", "--defaults", "--prices", str(prices))
    assert ran.code == 1
    assert f"{prices}:3: region: the prices are those of eu-west-1, but the cluster is in us-west-2" in ran.err


def test_another_command_is_suggested_with_what_decides_the_deployment() -> None:
    found: list[tuple[str, ...]] = []

    @click.command()
    @deployment_options
    @click.pass_context
    def command(context: click.Context, deployment: DeploymentOptions) -> None:
        found.extend(given_options(context))

    role = "arn:aws:iam::123456789012:role/a"
    given = ["-p", "A=1", "-p", "B=2 3", "--keep", "C", "--role-arn", role, "--on-failure", "keep", "--express"]
    shown = ["--full", "--prices", "prices.yaml", "--no-cache"]
    assert CliRunner().invoke(command, [*given, *shown, "--parallel-groups", "2"]).exception is None
    assert found == [
        ("--parameter", "A=1"), ("--parameter", "B=2 3"), ("--keep", "C"), ("--role-arn", role),
        ("--on-failure", "keep"), ("--express",), ("--parallel-groups", "2"),
    ]  # fmt: skip
