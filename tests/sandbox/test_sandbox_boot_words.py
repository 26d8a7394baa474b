"""What instances of the sandbox say on their consoles is what the boot program says."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from sandboxed import CASES, golden

from cfngen.cluster.names import DRAIN_HOOK
from cfngen.sandbox import boot, machines, routine_steps
from cfngen.sandbox.boot import Program
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.instance import Instance
from cfngen.sandbox.user_data import BootData
from cfngen.userdata import roles

PROGRAM = Path(boot.__file__).parents[1] / "boot"
USER_DATA = PROGRAM.with_name("userdata")
# The journal's own way to print a line on the console.
JOURNAL = "[{:12.6f}] python3[612]: cfngen: {}"


def texts(node: ast.AST) -> Iterator[str]:
    """The forms that an expression's text can have, with `{}` for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.FormattedValue):
        chosen = isinstance(node.value, ast.IfExp) and [*texts(node.value)]
        spec = "".join(next(texts(node.format_spec))) if node.format_spec else ""
        yield from chosen or ["{:" + spec + "}" if spec else "{}"]
    elif isinstance(node, ast.JoinedStr):
        for parts in itertools.product(*([*texts(each)] for each in node.values)):
            yield "".join(parts)


def sentences(file: Path) -> set[str]:
    """Every text of more than one word in a module that is no documentation, and no part of another text."""
    tree = ast.parse(file.read_text())
    parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in ast.walk(node)}
    parts -= {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = [node for node in ast.walk(tree) if id(node) not in parts | alone]
    return {text for node in nodes for text in texts(node) if " " in text.strip()}


def test_every_sentence_is_one_of_the_boot_program() -> None:
    # The boot program says the sentences, and the titles of its steps are in its configuration.
    known = set[str]().union(*(sentences(file) for file in [*PROGRAM.rglob("*.py"), *USER_DATA.glob("*.py")]))
    for module in (boot, routine_steps):
        said = sentences(Path(str(module.__file__)))
        assert said - known - {JOURNAL} == set(), module.__name__
    assert len(sentences(Path(boot.__file__))) > 30


def test_every_step_of_every_role_is_known() -> None:
    clusters = [golden(folder.name) for folder in CASES.iterdir()]
    with open_emulated_account("us-west-2") as world:
        for role in (role for cluster in clusters for role in roles(cluster)):
            configuration = json.loads(role.files["config.json"])
            told = BootData({}, configuration)
            instance = Instance("i-1", "us-west-2a", "t3.medium", "", "", "", told, "", 0, 0.0)
            titles = list(Program(world.machines, instance).steps)
            assert titles == ["identity", *configuration["steps"], "signal"]


def test_the_hook_that_instances_complete_is_that_of_the_templates() -> None:
    assert machines.DRAIN_HOOK == DRAIN_HOOK
