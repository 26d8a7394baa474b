"""A row of the table of refusals: what AWS refuses, in which words, where that is written, and how it is tried.

Each `refusals_<what>.py` beside this file holds rows for the services of one kind; `test_refusals.py` tries every one
in an account of its own and keeps refusals.md, which a person reads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cfngen.sandbox.cloudformation import CloudFormation

Resources = Mapping[str, Any]


@dataclass(frozen=True)
class Creation:
    """A template that cannot be created.

    Attributes:
        resources: makes the template's resources; whatever else the account must have, it makes first.
        fails: the logical id that fails; empty if the call itself is refused.
    """

    resources: Callable[[], Resources]
    fails: str = ""


@dataclass(frozen=True)
class Update:
    """A template that can be created, and another one to which it cannot be updated.

    Attributes:
        first: makes the resources to begin with.
        second: makes those of the update from them.
        fails: the logical id that fails; empty if the call itself is refused.
    """

    first: Callable[[], Resources]
    second: Callable[[Resources], Resources]
    fails: str = ""


@dataclass(frozen=True)
class ServiceCall:
    """A call of a service that is refused: by an instance, by cfngen, or by someone else.

    Attributes:
        attempt: makes what is needed, then the call; it must raise.
    """

    attempt: Callable[[CloudFormation], object]


@dataclass(frozen=True)
class TestedElsewhere:
    """A refusal that has a test of its own.

    Attributes:
        test: as pytest names it, from tests/: `deploy/test_x.py::test_y`.
    """

    __test__ = False
    test: str


@dataclass(frozen=True)
class Refusal:
    """One row.

    Attributes:
        resource: type of the resource, or the operation of the API.
        condition: what is asked for.
        words: AWS's words, or the part of them that does not change.
        source: title and link of the documentation, or of the log in which somebody saw it.
        evidence: documented, words too; condition documented, but not the words; seen in somebody's log; assumed.
        tried: how it is tried.
    """

    resource: str
    condition: str
    words: str
    source: str
    evidence: Literal["documented", "condition documented", "seen", "assumed"]
    tried: Creation | Update | ServiceCall | TestedElsewhere


def tables() -> dict[str, list[Refusal]]:
    """The rows of every module `refusals_*.py`, by the first line of its docstring."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("refusals_*.py"))
    modules = [importlib.import_module(name) for name in names]
    return {str(module.__doc__).splitlines()[0].rstrip("."): module.ROWS for module in modules}
