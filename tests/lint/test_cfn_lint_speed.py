"""With faster functions cfn-lint says the same about templates full of faults; an unknown cfn-lint is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cfngen.lint import cfn_lint_speed
from cfngen.lint.linter import Linter
from cfngen.lint.views import View

OUTPUT = Path(__file__).parents[2] / "output"
UNCHANGED = """
import json, sys
from pathlib import Path
from cfngen.lint import linter
from cfngen.lint.views import View
linter.speed_up = lambda: False
linter.speed_up_rules = lambda rules: False
judge = linter.Linter("us-west-2", Path.cwd())
print(json.dumps([judge.judge(View("faulty", body, {})) for body in json.load(sys.stdin)]))
"""


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


def test_verdicts_are_those_of_cfn_lint_unchanged(
    judge: Linter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not cfn_lint_speed.speed_up():
        pytest.skip("the installed cfn-lint runs unchanged: cfn_lint_speed.py does not know its sources")
    bodies = [faulty(name) for name in ("iam", "security-groups")]
    monkeypatch.chdir(judge.workplace)
    verdicts = [judge.judge(View("faulty", body, {})) for body in bodies]
    unchanged = subprocess.run(
        [sys.executable, "-c", UNCHANGED],
        input=json.dumps(bodies),
        text=True,
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert verdicts == json.loads(unchanged.stdout)
    rules = {finding["rule"] for verdict in verdicts for finding in verdict}
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
