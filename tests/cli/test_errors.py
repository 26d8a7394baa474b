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


# What programs compare with: codes by the exit code. New ones are added; none is renamed but in a new major version.
PUBLISHED = {
    1: """
    address-in-use ambiguous-cluster-name authorities-copy-not-written authorities-unreadable
    authority-secret-denied authority-secret-empty authority-secret-malformed authority-secret-not-found
    aws-access-denied aws-answer-incomplete aws-credentials aws-credentials-expired aws-error aws-region
    aws-throttled aws-unreachable backup-bucket-not-found backups-disabled boundary-too-large broken-program
    bucket-error bucket-not-found bucket-wrong-owner bucket-wrong-region cannot-pause cannot-resume
    change-set-failed change-set-timeout cluster-file-missing cluster-file-not-kept cluster-name-conflict
    cluster-paused consent-required declined early-validation-failed error failed-creation file-exists
    file-not-editable file-not-written foreign-rehearsal-stack foreign-resources foreign-stack group-missing
    group-stopped immutable-setting import-rollback-failed impossible-plan instance-types-not-offered
    invalid-certificate invalid-cluster-file invalid-kubeconfig invalid-parameter invalid-parameter-file
    invalid-price-list invalid-stack-name invalid-template-file kubeconfig-entry-conflict kubernetes-error
    kubernetes-forbidden kubernetes-unauthorized kubernetes-unreachable kubernetes-wrong-server lint-findings
    lint-unavailable made-elsewhere missing-parameter network-in-use network-problems no-cluster-files no-endpoint
    no-masters no-operation no-running-instances no-sandbox no-standalone-template no-templates not-a-cluster
    nothing-to-roll-back objects-not-deleted os-error output-not-written pause-timeout picture-file plan-outdated
    plan-would-change quorum-would-be-lost rehearsal-stopped replacement-in-progress replacement-refused
    replacement-timeout report-not-read report-not-written restore-in-progress restore-timeout resume-timeout
    route-tables-conflict same-stack sandbox-ended sandbox-gone sandbox-not-installed sandbox-not-started
    sandbox-running several-sandbox-regions snapshot-not-found snapshot-timeout stack-blocked stack-not-found
    stack-not-plannable stack-policy-not-restored standalone-too-large subnet-tags tag-case-conflict
    template-too-large templates-in-use unknown-chart unknown-instance unknown-kubernetes-version
    unknown-rehearsal-step unknown-sandbox-group unresolved-reference unsuitable-instance-type upload-failed
    user-data-too-large wiring wrong-account zones-missing
    """,
    6: "operation-in-progress start-interrupted update-unfinished watch-ended",
    64: "usage",
    70: "internal-error",
    130: "interrupted pause-interrupted replacement-detached restore-detached resume-interrupted",
}


def test_codes_and_their_exit_codes_are_those_that_programs_know() -> None:
    codes = {code: exit_code for exit_code, published in PUBLISHED.items() for code in published.split()}
    assert {row.code: row.exit_code for row in error_rows()} == codes


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
