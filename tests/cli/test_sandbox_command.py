"""`cfngen sandbox`: the account on this machine, as its user meets it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from shell import Shell

from cfngen.sandbox import process


@pytest.mark.parametrize("command", [("heal",), ("fail", "NodeGroupNodesAutoScalingGroup")], ids=" ".join)
def test_what_is_about_a_running_account_starts_none(
    cfngen: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a sandbox was started"))
    ran = cfngen("sandbox", *command, XDG_STATE_HOME=str(tmp_path))
    assert ran.code == 1
    assert "no sandbox is running\nhint: `cfngen sandbox start` starts one." in ran.err


@pytest.mark.parametrize(("options", "region"), [((), "us-west-2"), (("--region", "eu-central-1"), "eu-central-1")])
def test_the_environment_names_a_region(
    cfngen: Shell, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], region: str
) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: SimpleNamespace(endpoint="http://127.0.0.1:1"))
    ran = cfngen("sandbox", "env", *options)
    assert ran.code == 0
    assert f"export AWS_DEFAULT_REGION={region}\n" in ran.out
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:1\n" in ran.out


def test_what_to_install_is_said_as_it_works_in_a_checkout(cfngen: Shell) -> None:
    said = " ".join(cfngen("sandbox", "--help").out.split())
    assert "pip install '.[sandbox]'" in said
    assert "cfngen[sandbox]" not in said
