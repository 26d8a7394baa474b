"""What the emulator does in each step of the rehearsal, recorded by running the rehearsal in it.

`expected.json` is generated and checked by the tests (`make golden`); it is not edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from cfngen.rehearse.masking import without_numbers
from cfngen.rehearse.operations import ROUTINE_REASONS, Operation, status_transitions

EXPECTATIONS_FILE = "expected.json"


@dataclass(frozen=True)
class ExpectedOperation:
    """What the emulator does in one operation.

    Attributes:
        status: the root stack's final status.
        transitions: the statuses that each resource goes through, by the resource's name.
        types: the resource types, by the resource's name.
        reasons: the status reasons without numbers, by resource and status; `words` in the file.
    """

    status: str
    transitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


Expectations = Mapping[str, ExpectedOperation]
"""Expected operations, by the keys that `expectation_key` returns."""


def expectation_key(step: str, operation: str) -> str:
    """Return the key of an operation's expectation."""
    return f"{step}: {operation}"


def expectation_of(operation: Operation) -> ExpectedOperation:
    """Return an operation that was carried out in the emulator as the expectation for the same operation in AWS."""
    reasons: dict[str, list[str]] = {}  # by resource and status, e.g. `VpcStack/Vpc CREATE_FAILED`
    for event in operation.events:
        if event.reason and not event.reason.startswith(ROUTINE_REASONS):
            reasons_of_event = reasons.setdefault(f"{event.resource} {event.status}", [])
            if without_numbers(event.reason) not in reasons_of_event:
                reasons_of_event.append(without_numbers(event.reason))
    return ExpectedOperation(
        status=operation.status,
        transitions=dict(sorted(status_transitions(operation.events).items())),
        types={event.resource: event.type for event in operation.events},
        reasons={name: tuple(texts) for name, texts in sorted(reasons.items())},
        changes=tuple(sorted(operation.changes)),
        facts=dict(operation.facts),
    )


def read_recorded_expectations() -> Expectations:
    """Return the recorded expectations of this version of cfngen."""
    content = json.loads((files("cfngen.rehearse") / EXPECTATIONS_FILE).read_text("utf-8"))
    return {name: _parse(expectation) for name, expectation in content.items()}


def format_expectations(expectations: Expectations) -> str:
    """Return expectations as content of `expected.json`, with one line per resource."""
    content = {
        name: {
            "status": expectation.status,
            "resources": {
                resource: " ".join([expectation.types[resource], *statuses])
                for resource, statuses in expectation.transitions.items()
            },
            "words": {name: list(texts) for name, texts in expectation.reasons.items()},
            "changes": list(expectation.changes),
            "facts": dict(expectation.facts),
        }
        for name, expectation in expectations.items()
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _parse(content: Mapping[str, Any]) -> ExpectedOperation:
    # The line of a resource is its type and the statuses that it goes through, separated by spaces.
    type_and_statuses = {name: line.split(" ") for name, line in content["resources"].items()}
    return ExpectedOperation(
        status=content["status"],
        transitions={name: tuple(statuses) for name, (_, *statuses) in type_and_statuses.items()},
        types={name: type_ for name, (type_, *_) in type_and_statuses.items()},
        reasons={name: tuple(texts) for name, texts in content["words"].items()},
        changes=tuple(content["changes"]),
        facts=content["facts"],
    )
