"""The list of all errors for docs/reference/json.md: each `code`, its exit code, and what it means."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cfngen
from cfngen.cli.exit_codes import error_exit_code
from cfngen.errors import CfngenError

OTHER_ERRORS = {
    "usage": "The command line is wrong, e.g. it has an unknown command or option.",
    "interrupted": "The command was interrupted.",
    "os-error": "A file cannot be read or written.",
    "internal-error": "A bug in cfngen.",
}
"""Errors that are no `CfngenError`: the `code` of each, and what it means."""
# The first line of a class of errors; modules without such a line need not be imported.
_ERROR_CLASS_PATTERN = re.compile(r"^class \w+\(\w*Error\):$", re.MULTILINE)
# The errors of these packages never reach the user: the boot program, and the emulator of CloudFormation.
_EXCLUDED_PACKAGES = {"boot", "cloudformation"}


def error_classes() -> tuple[type[CfngenError], ...]:
    """Return `CfngenError` and its subclasses, sorted by `code`.

    Private classes, which never end a command, are left out, as are bases that have no code of their own.
    """
    package_directory = Path(cfngen.__file__).parent
    for file in sorted(package_directory.rglob("*.py")):
        module_names = file.relative_to(package_directory).with_suffix("").parts
        is_excluded = bool(_EXCLUDED_PACKAGES.intersection(module_names))
        if not is_excluded and _ERROR_CLASS_PATTERN.search(file.read_text(encoding="utf-8")):
            importlib.import_module(".".join(("cfngen", *module_names)).removesuffix(".__init__"))
    all_classes = set(_class_and_subclasses(CfngenError))
    classes = {class_ for class_ in all_classes if "code" in vars(class_) and not class_.__name__.startswith("_")}
    return tuple(sorted(classes, key=lambda class_: class_.code))


class ErrorRow(NamedTuple):
    """A row of the table of errors.

    Attributes:
        code: the error's stable name, for programs.
        exit_code: what the process exits with.
        meaning: the first line of the docstring of the error's class.
    """

    code: str
    exit_code: int
    meaning: str


def error_rows() -> list[ErrorRow]:
    """Return a row for each error, sorted by code."""
    meanings = {class_.code: (inspect.getdoc(class_) or "").partition("\n")[0] for class_ in error_classes()}
    meanings.update(OTHER_ERRORS)
    return [ErrorRow(code, error_exit_code(code), meaning) for code, meaning in sorted(meanings.items())]


def _class_and_subclasses(class_: type[CfngenError]) -> Iterator[type[CfngenError]]:
    """Yield a class and all its subclasses, if they are defined in cfngen."""
    # Classes that tests define are not documented.
    if class_.__module__.startswith("cfngen."):
        yield class_
    for subclass in class_.__subclasses__():
        yield from _class_and_subclasses(subclass)
