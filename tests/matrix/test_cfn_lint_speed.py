"""With faster functions cfn-lint says the same about templates full of faults; an unknown cfn-lint is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cfn_lint_speed
import pytest

OUTPUT = Path(__file__).parents[2] / "output"
UNCHANGED = """
import json, sys
from pathlib import Path
from cfngen.lint.linter import Linter
from cfngen.lint.views import View
linter = Linter("us-west-2", Path.cwd())
print(json.dumps([linter.judge(View("faulty", body, {})) for body in json.load(sys.stdin)]))
"""
FASTER = UNCHANGED.replace("cfngen.lint.linter import Linter", "cfn_lint_speed import fast_linter as Linter")


def faulty(name: str) -> dict[str, Any]:
    """A template of the default cluster with a fault in each resource, of several kinds in turn."""
    body: dict[str, Any] = json.loads((OUTPUT / f"{name}.json").read_text())
    for index, (logical_id, resource) in enumerate(body["Resources"].items()):
        properties = resource.get("Properties", {})
        first = next(iter(properties), "Unknown")
        if index % 4 == 0:
            properties.pop(first, None)
        elif index % 4 == 1:
            properties[first] = {"Fn::GetAtt": [logical_id, "Nothing"]}
        elif index % 4 == 2:
            properties[first] = {"Fn::If": ["NoCondition", "a", {"Ref": "AWS::NoValue"}]}
        else:
            properties.update({first: [{"wrong": 1}], "Unknown": {"Fn::Sub": "${Nobody} ${AWS::Region}"}})
    return body


def verdicts(program: str, bodies: list[dict[str, Any]], workplace: Path) -> list[list[dict[str, Any]]]:
    """What lint says of templates in a process of its own, since replaced functions stay replaced."""
    workplace.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(bodies),
        text=True,
        cwd=workplace,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        check=True,
        stdout=subprocess.PIPE,
    )
    said: list[list[dict[str, Any]]] = json.loads(run.stdout)
    return said


@pytest.mark.drill
def test_verdicts_are_those_of_cfn_lint_unchanged(tmp_path: Path) -> None:
    bodies = [faulty(name) for name in ("iam", "security-groups")]
    unchanged = verdicts(UNCHANGED, bodies, tmp_path / "unchanged")
    assert verdicts(FASTER, bodies, tmp_path / "faster") == unchanged
    rules = {finding["rule"] for verdict in unchanged for finding in verdict}
    assert rules >= {"E1010", "E1028", "E3002", "E3003", "E3012"}


def test_a_cfn_lint_with_other_sources_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from cfnlint.context import context
    from cfnlint.jsonschema import validators

    def create() -> None:
        """As yet unchanged."""

    monkeypatch.setattr(validators, "create", create)
    monkeypatch.setattr(cfn_lint_speed, "_KNOWN_CONTEXT", {})
    evolve = context.Context.evolve
    assert not cfn_lint_speed.speed_up()
    assert validators.create is create
    assert context.Context.evolve is evolve
    assert not cfn_lint_speed.speed_up_rules({"E1101": object()})
