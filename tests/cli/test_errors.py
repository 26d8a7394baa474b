"""Errors: each class has a stable code of its own, and exit codes are decided in one module."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import cfngen
from cfngen.cli import exit_codes
from cfngen.cli.display import json_reference
from cfngen.cli.display.json_reference import OTHER_ERRORS, error_classes, error_rows
from cfngen.deploy.preflight.findings import FindingsError
from cfngen.errors import CfngenError

ROOT = Path(cfngen.__file__).parent


def subclasses(class_: type[CfngenError]) -> set[type[CfngenError]]:
    """All public subclasses of an error that cfngen defines, at any depth."""
    direct = class_.__subclasses__()
    deeper = (subclass for each in direct for subclass in subclasses(each))
    return {each for each in (*direct, *deeper) if each.__module__.startswith("cfngen.") and each.__name__[0] != "_"}


def test_the_list_holds_every_error_that_any_module_defines() -> None:
    for module in pkgutil.walk_packages(cfngen.__path__, "cfngen."):
        if not re.match(r"cfngen\.(boot|sandbox|__main__)\b", module.name):
            importlib.import_module(module.name)
    assert set(error_classes()) == {CfngenError, *subclasses(CfngenError)} - {FindingsError}


def test_every_error_has_a_code_of_its_own() -> None:
    classes = error_classes()
    assert {each for each in subclasses(CfngenError) if "code" not in vars(each)} == {FindingsError}
    codes = [*(each.code for each in classes), *OTHER_ERRORS]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(-[a-z]+)*", code)] == []


def test_the_page_of_json_lists_every_code() -> None:
    listed = re.findall(
        r"^\| `([a-z-]+)` \| (\d+) \| \S", json_reference.json_page().partition("## Error codes")[2], re.M
    )
    assert [(code, int(exit_code)) for code, exit_code in listed] == [row[:2] for row in error_rows()]


def test_the_table_of_exit_codes_names_errors_that_exist() -> None:
    codes = {code for code, _, _ in error_rows()}
    assert set(exit_codes.EXIT_CODE_BY_ERROR) <= codes
    assert set(exit_codes.EXIT_CODE_BY_ERROR.values()) <= set(exit_codes.EXIT_CODE_MEANINGS)


def exit_code_literals(module: Path) -> list[int]:
    """Lines of a module that exit with a number, or give something the attribute `exit_code`."""
    source = module.read_text()
    lines: list[int] = []
    for node in ast.walk(ast.parse(source)) if "exit" in source.lower() else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("exit", "Exit"):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = [node.value] if any("exit_code" in ast.unparse(each).lower() for each in targets) else []
        else:
            continue
        if any(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in values):
            lines.append(node.lineno)
    return lines


def test_exit_codes_are_decided_in_one_module() -> None:
    # The boot program runs on instances, and the sandbox is a process of its own.
    others = {"boot", "sandbox"}
    modules = [each for each in ROOT.rglob("*.py") if each.relative_to(ROOT).parts[0] not in others]
    places = {
        str(module.relative_to(ROOT)): exit_code_literals(module)
        for module in modules
        if module != ROOT / "cli" / "exit_codes.py"
    }
    assert {module: lines for module, lines in places.items() if lines} == {}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("plan", "-f", "missing.yaml", "-o", "json"), "invalid-cluster-file"),
        (("plan", "-o", "json", "--stack-name", "1st"), "invalid-stack-name"),
        (("plan", "-o", "json", "--defaults", "-f", "mine.yaml"), "usage"),
        (("status", "-o", "json", "--profile", "missing"), "aws-credentials"),
        (("status", "-o", "json", "--profile", "missing", "--all"), "aws-credentials"),
    ],
)
def test_a_program_is_told_the_code_of_an_error(cfngen, arguments: tuple[str, ...], code: str) -> None:  # type: ignore[no-untyped-def]
    ran = cfngen(*arguments)
    error = json.loads(ran.out.splitlines()[-1])
    assert (error["type"], error["code"], error["exitCode"]) == ("error", code, ran.code)
