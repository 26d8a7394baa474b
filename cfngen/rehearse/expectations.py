"""What the emulator does with each step of the rehearsal, recorded by running the rehearsal there.

`expected.json` is written by the tests (`make golden`) and compared by them; nobody types it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from cfngen.rehearse.masking import shape
from cfngen.rehearse.operations import CHATTER, Operation, transitions

FILE = "expected.json"


@dataclass(frozen=True)
class Expected:
    """What the emulator does with one operation.

    Attributes:
        status: the root's status at the end.
        transitions: the statuses that each resource goes through, by its name.
        types: the type of each resource.
        words: the reasons that CloudFormation gives, without numbers, by resource and status.
        changes: what the change set would do.
        facts: what is found afterwards.
    """

    status: str
    transitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


Expectations = Mapping[str, Expected]
"""By step and operation, as `key` writes them."""


def key(step: str, operation: str) -> str:
    """Return the name under which the expectation of an operation stands."""
    return f"{step}: {operation}"


def of(operation: Operation) -> Expected:
    """Return what was seen as an expectation."""
    words: dict[str, list[str]] = {}
    for event in operation.events:
        if event.reason and not event.reason.startswith(CHATTER):
            about = words.setdefault(f"{event.resource} {event.status}", [])
            if shape(event.reason) not in about:
                about.append(shape(event.reason))
    return Expected(
        status=operation.status,
        transitions=dict(sorted(transitions(operation.events).items())),
        types={event.resource: event.type for event in operation.events},
        words={name: tuple(texts) for name, texts in sorted(words.items())},
        changes=tuple(sorted(operation.changes)),
        facts=dict(operation.facts),
    )


def recorded() -> Expectations:
    """Return the expectations that this version of cfngen was released with."""
    content = json.loads((files("cfngen.rehearse") / FILE).read_text("utf-8"))
    return {name: _parsed(each) for name, each in content.items()}


def text(expectations: Expectations) -> str:
    """Return expectations as the file that `recorded` reads, a line for each resource."""
    content = {
        name: {
            "status": each.status,
            "resources": {
                resource: " ".join([each.types[resource], *statuses]) for resource, statuses in each.transitions.items()
            },
            "words": {name: list(texts) for name, texts in each.words.items()},
            "changes": list(each.changes),
            "facts": dict(each.facts),
        }
        for name, each in expectations.items()
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _parsed(content: Mapping[str, Any]) -> Expected:
    resources = {name: line.split(" ") for name, line in content["resources"].items()}
    return Expected(
        status=content["status"],
        transitions={name: tuple(words[1:]) for name, words in resources.items()},
        types={name: words[0] for name, words in resources.items()},
        words={name: tuple(texts) for name, texts in content["words"].items()},
        changes=tuple(content["changes"]),
        facts=content["facts"],
    )
