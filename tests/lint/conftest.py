"""What tests of the rules share: cfn-lint with cfngen's rules loaded once, and a function that applies one rule."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.lint.linter import Linter
from cfngen.lint.views import View


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Linter:
    return Linter("us-west-2", tmp_path_factory.mktemp("workplace"))


@pytest.fixture
def reported_paths(judge: Linter, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function from a rule, a template and templates it nests to the paths at which the rule finds something."""

    def run(rule: str, template: dict[str, Any], **nested: dict[str, Any]) -> list[tuple[str | int, ...]]:
        monkeypatch.chdir(judge.workplace)
        handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
        body = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Wait": handle}, **template}
        verdict = judge.judge(View("tested", body, nested))
        assert not [finding for finding in verdict if finding["rule"] == "E0002"], "a rule failed"
        return [tuple(finding["path"]) for finding in verdict if finding["rule"] == rule]

    return run
