"""A picture depends on the templates alone: nothing in the room reads a clock, the environment or the network."""

from __future__ import annotations

import ast

import pytest
from drawn import ROOT

MODULES = sorted((ROOT / "cfngen" / "graph").rglob("*.py"))
IMPURE = {
    "boto3", "botocore", "datetime", "http", "os", "platform", "random", "secrets", "socket", "subprocess", "time",
    "urllib", "urllib3", "uuid",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_a_module_imports_nothing_that_changes_by_itself(module) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    assert not imported & IMPURE
