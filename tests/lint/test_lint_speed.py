"""The locked cfn-lint is made faster; one with other sources is left alone."""

from __future__ import annotations

import pytest

from cfngen.lint import speed
from cfngen.lint.linter import Linter


def test_the_locked_cfn_lint_is_one_whose_functions_are_known(judge: Linter) -> None:
    assert speed.speed_up()
    assert type(judge._rules["E1101"]).cfnLint.__code__.co_filename == speed.__file__


def test_a_cfn_lint_with_other_sources_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from cfnlint.context import context
    from cfnlint.jsonschema import validators

    def create() -> None:
        """As yet unchanged."""

    monkeypatch.setattr(validators, "create", create)
    monkeypatch.setattr(speed, "_KNOWN_CONTEXT", {})
    evolve = context.Context.evolve
    assert not speed.speed_up()
    assert validators.create is create
    assert context.Context.evolve is evolve
    assert not speed.speed_up_rules({"E1101": object()})
