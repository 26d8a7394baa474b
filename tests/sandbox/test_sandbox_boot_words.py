"""What instances of the sandbox say on their consoles is what the boot program says."""

from __future__ import annotations

import ast
import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from sandboxed import CASES, golden

from cfngen.boot import runner
from cfngen.boot.host import disks
from cfngen.boot.master import (
    certificate_authorities,
    control_plane,
    decision,
    pod_identity_webhook,
    termination,
    volume,
)
from cfngen.boot.node import drain
from cfngen.boot.state import fill
from cfngen.cluster.naming.names import DRAIN_HOOK, QUORUM_HOOK
from cfngen.cluster.security_groups.addon_ports import POD_IDENTITY_PORT
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.instances import boot, boot_state, master_steps, node_steps, routine_steps, terminations
from cfngen.sandbox.instances.boot import BootProgram
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.instances.user_data import BootData, substitute
from cfngen.sandbox.kubernetes import certificates
from cfngen.userdata import roles
from cfngen.userdata.source import with_imported_modules
from cfngen.userdata.steps import MASTER_STEPS, NODE_STEPS

# The modules that emulate the boot program, besides the routine steps.
EMULATION = (boot, boot_state, master_steps, node_steps)
BOOT = Path(boot.__file__).parents[2] / "boot"
USER_DATA = BOOT.with_name("userdata")
# The functions of the boot program that run under a title.
FUNCTIONS = {
    step.title: {each.function for each in (*MASTER_STEPS, *NODE_STEPS) if each.title == step.title}
    for step in (*MASTER_STEPS, *NODE_STEPS)
}
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
        for parts in itertools.product(*([*texts(value)] for value in node.values)):
            yield "".join(parts)


@functools.cache
def sentences(file: Path) -> set[str]:
    """Every text of more than one word in a module that is no documentation, and no part of another text."""
    return sentences_of(ast.parse(file.read_text()))


def sentences_of(tree: ast.AST) -> set[str]:
    """Likewise of a part of a module."""
    parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in ast.walk(node)}
    parts -= {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = [node for node in ast.walk(tree) if id(node) not in parts | alone]
    return {text for node in nodes for text in texts(node) if " " in text.strip()}


def test_every_sentence_is_one_of_the_boot_program() -> None:
    # The boot program says the sentences, and the titles of its steps are in its configuration.
    known = set[str]().union(*(sentences(file) for file in [*BOOT.rglob("*.py"), *USER_DATA.glob("*.py")]))
    for module in (*EMULATION, routine_steps):
        said = sentences(Path(str(module.__file__)))
        assert said - known - {JOURNAL, *boot.FORMER_TITLES} == set(), module.__name__
    assert sum(len(sentences(Path(str(module.__file__)))) for module in EMULATION) > 30


def test_every_step_of_every_role_is_known() -> None:
    clusters = [golden(folder.name) for folder in CASES.iterdir()]
    with open_emulated_account("us-west-2") as account:
        for role in (role for cluster in clusters for role in roles(cluster)):
            configuration = json.loads(role.files["config.json"])
            told = BootData({}, configuration)
            instance = Instance("i-1", "us-west-2a", "t3.medium", "", "", "", told, "", 0, 0.0)
            titles = list(BootProgram(account.machines, instance).steps)
            assert titles == ["identity", *configuration["steps"], "signal"]


def test_every_step_of_the_tables_is_emulated_and_no_other() -> None:
    assert set(emulations()) == set(FUNCTIONS)


def test_what_a_step_says_is_what_its_own_function_can_say() -> None:
    """And not only what some other step of the boot program says."""
    for title, functions in emulations().items():
        modules = with_imported_modules(function.rpartition(".")[0] for function in FUNCTIONS[title])
        # `runner` wraps every step; `wait` of `machine` says what is waited for.
        known = set[str]().union(*(sentences(BOOT / f"{module.replace('.', '/')}.py") for module in modules))
        said = {text for tree in functions for text in sentences_of(tree)}
        assert said - known - {JOURNAL} == set(), title


def emulations() -> dict[str, list[ast.AST]]:
    """The functions of the sandbox that say what a step does, by the step's title."""
    trees = [ast.parse(Path(str(module.__file__)).read_text()) for module in EMULATION]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    methods = {
        node.name: node
        for class_ in classes
        if class_.name in ("BootProgram", "BootState", "MasterSteps", "NodeSteps")
        for node in class_.body
        if isinstance(node, ast.FunctionDef)
    }
    [table] = [node for node in ast.walk(methods["_emulated_step"]) if isinstance(node, ast.Dict)]
    named = {ast.literal_eval(key): value.attr for key, value in zip(table.keys, table.values, strict=True)}
    found: dict[str, list[ast.AST]] = {title: list(used(methods, name).values()) for title, name in named.items()}
    routine = ast.parse(Path(routine_steps.__file__).read_text())
    functions = {node.name: node for node in routine.body if isinstance(node, ast.FunctionDef)}
    [lines] = [
        node.value for node in routine.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "LINES"
    ]
    said = dict(zip(routine_steps.LINES, lines.values, strict=True))
    for title in routine_steps.SECONDS:
        found[title] = list(used({**functions, title: said[title]}, title).values()) if title in said else []
    return found


def used(functions: Mapping[str, ast.AST], name: str) -> dict[str, ast.AST]:
    """A function and those of the same module that it uses, by name."""
    found: dict[str, ast.AST] = {}
    unvisited = {name}
    while unvisited:
        name = unvisited.pop()
        found[name] = functions[name]
        nodes = list(ast.walk(functions[name]))
        names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        names |= {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        unvisited |= (names & set(functions)) - set(found)
    return found


def test_what_the_sandbox_knows_of_the_boot_program_is_so() -> None:
    """Limits, paths and names that the emulation has a copy of: it imports nothing of the boot program."""
    assert boot.SIGNAL_TIMEOUTS == runner.SIGNAL_TIMEOUTS
    assert boot.NOT_CREATED.pattern == runner.NOT_WAITING.pattern
    assert master_steps.FIRST_SLOT == decision.FIRST_SLOT
    assert master_steps.MODE_RESULTS == control_plane.OUTCOMES
    assert master_steps.RESTORE_SECRET_HINT == certificate_authorities.SECRET_RECOVERY_HINT
    assert master_steps.MOUNT_POINT == volume.MOUNT
    assert master_steps.WEBHOOK == pod_identity_webhook.NAME
    assert master_steps.WEBHOOK_PORT == POD_IDENTITY_PORT
    assert master_steps.WEBHOOK_HINT == pod_identity_webhook.HINT
    assert master_steps.WEBHOOK_WAIT_SECONDS == pod_identity_webhook.WAIT_SECONDS
    assert certificates.INITIALISED == certificate_authorities.INITIALISED_AT
    assert routine_steps.STORAGE_MOUNT_POINT == disks.MOUNT
    assert routine_steps.DRAINING in FUNCTIONS


@pytest.mark.parametrize(
    "value", ["${a}", "${b} ${a}", ["${a}", {"x": "${a}${a}", "y": 1}], {"z": None}, "$a {a} ${a-b}"]
)
def test_facts_are_filled_in_as_by_the_boot_program(value: object) -> None:
    assert substitute(value, {"a": "1"}) == fill(value, {"a": "1"})


def test_the_hooks_that_instances_complete_are_those_of_the_templates() -> None:
    assert terminations.HOOK_BY_ROLE == {"node": DRAIN_HOOK, "master": QUORUM_HOOK}
    assert (drain.LIFECYCLE_HOOK, termination.LIFECYCLE_HOOK) == (DRAIN_HOOK, QUORUM_HOOK)
