"""Lint says of every golden case, and of the same full of faults, what the cfn-lint command says."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from golden_cases import CASES, load_case

from cfngen.lint.findings import shorten
from cfngen.lint.linter import IGNORED, RULES, Linter
from cfngen.lint.views import View
from cfngen.templates import generate


def faulty(template: dict[str, Any]) -> dict[str, Any]:
    """A template with a fault in each resource, of several kinds in turn."""
    body = copy.deepcopy(template)
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


@pytest.mark.drill
@pytest.mark.parametrize("case", CASES)
def test_a_verdict_is_that_of_the_cfn_lint_command(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = load_case(case).cluster
    largest = max(generate(cluster), key=lambda document: len(document.body["Resources"])).body
    faultless, full_of_faults = tmp_path / "faultless.json", tmp_path / "faulty.json"
    faultless.write_text(json.dumps(largest, indent=1))
    full_of_faults.write_text(json.dumps(faulty(largest), indent=1))
    (tmp_path / "empty").write_text("{}\n")
    options = ["--config-file", "empty", "-a", str(RULES), "-c", "I", "-i", *IGNORED, "--regions", cluster.region]
    command = [sys.executable, "-c", "from cfnlint.runner import main; main()", *options, "--format", "json"]
    templates = ["--template", str(faultless), str(full_of_faults)]
    run = subprocess.run([*command, *templates], cwd=tmp_path, capture_output=True, text=True, check=False)
    findings_of_command = sorted(
        (finding["Rule"]["Id"], shorten(finding["Message"]), finding["Location"]["Path"] or [])
        for finding in json.loads(run.stdout)
    )

    linter = Linter(cluster.region, tmp_path)
    monkeypatch.chdir(tmp_path)
    verdict = linter.judge(View("faultless", largest, {}))
    assert verdict == []
    verdict = linter.judge(View("faulty", json.loads(full_of_faults.read_text()), {}))
    assert sorted((finding["rule"], finding["message"], finding["path"]) for finding in verdict) == findings_of_command
    assert {rule for rule, _, _ in findings_of_command} >= {"E1010", "E1028", "E3002", "E3003", "E3012"}
