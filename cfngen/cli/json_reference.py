"""The JSON Schema of what commands print with `--output json`, and the page that describes it.

Both are read off the dataclasses that are printed, so they cannot say anything else: `python -m
cfngen.cli.json_reference docs` writes docs/json.schema.json and docs/json.md, and a test compares them.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cfngen.cli.json_output import keys, kind_of

_WORK = ("messages.Step", "messages.Notice")
_WATCH = ("messages.Event", "watching.progress.Progress", "watching.diagnosis.Diagnosis", "messages.Finished")
PRINTED: Mapping[str, tuple[str, ...]] = {
    "cfngen plan": (*_WORK, "preview.plan.Plan"),
    "cfngen deploy": (
        *_WORK,
        "preview.plan.Plan",
        *_WATCH,
        "inspection.validation.ValidationChange",
        "inspection.validation.Validation",
    ),
    "cfngen watch": (*_WORK, *_WATCH),
    "cfngen events": ("messages.Event",),
    "cfngen events --failures": ("watching.diagnosis.Diagnosis",),
    "cfngen status": (*_WORK, "inspection.cluster_status.ClusterStatus"),
    "cfngen validate cluster": ("inspection.validation.ValidationChange", "inspection.validation.Validation"),
    "cfngen kubeconfig": ("access.kubeconfig.KubeconfigChange",),
    "cfngen kubeconfig --print": ("access.kubeconfig.KubeconfigDocument",),
    "cfngen etcd list": ("etcd.snapshots.Snapshots",),
    "cfngen etcd backup": (*_WORK, "etcd.backup.BackupTaken"),
    "cfngen etcd restore": (
        *_WORK,
        "etcd.restore.RestorePlan",
        "etcd.watch.RestoreProgress",
        "etcd.restore.Restored",
    ),
    "cfngen rollback": (*_WORK, *_WATCH),
    "cfngen delete": (
        *_WORK,
        "deletion.plan.DeletionPlan",
        "messages.Event",
        "watching.progress.Progress",
        "deletion.orphaned_resource.Removed",
        "deletion.stack_removal.DeletionFailed",
        "watching.diagnosis.Diagnosis",
        "deletion.execution.Deleted",
        "deletion.remains.Remains",
    ),
    "cfngen rehearse": (
        *_WORK,
        "messages.Event",
        "watching.progress.Progress",
        "watching.diagnosis.Diagnosis",
        "rehearse.report.Rehearsal",
        "rehearse.report.RehearsalWritten",
    ),
    "cfngen rehearse --list": ("rehearse.report.RehearsalSteps",),
    "cfngen sandbox status": ("sandbox.status.SandboxStatus",),
}
"""By command, the classes whose objects it prints, one a line: of the package that is named, or of `cfngen.deploy`."""
FAILURE = "cli.exit_codes.Failure"
"""The class of what any of them prints when it fails."""

_PREAMBLE = """\
# JSON output

<!-- Written by `make docs` from the code. -->

With `--output json` every command that talks to AWS writes to standard output one JSON object a line, and nothing else;
what is meant for people goes to standard error. `type` says what an object is. Times are ISO 8601 in UTC, durations
seconds. Keys may be added in a new version; none is removed or changes its meaning without a new major version. The
same as a JSON Schema: [json.schema.json](json.schema.json).

When a command fails, whichever it is, its last line is an object of type [`error`](#failure): the message and the hint
that standard error has as text, and the exit code. Only a command line of which `--output` cannot be read, such as one
with an unknown option, is told on standard error alone.

| command | prints objects of type |
|---|---|
"""


def classes() -> Iterator[type]:
    """The dataclasses that are printed as a line of their own, each once."""
    for name in dict.fromkeys((*(name for names in PRINTED.values() for name in names), FAILURE)):
        yield of(name)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of output."""
    definitions: dict[str, Any] = {}
    lines = [_reference(class_, definitions) for class_ in classes()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of what cfngen prints with --output json",
        "oneOf": lines,
        "$defs": dict(sorted(definitions.items())),
    }


def page() -> str:
    """Return the page that describes the objects."""
    definitions: Mapping[str, Any] = schema()["$defs"]
    rows = [
        f"| `{command}` | {', '.join(f'[{_title(each)}](#{_anchor(each)})' for each in map(of, names))} |"
        for command, names in PRINTED.items()
    ]
    return _PREAMBLE + "\n".join(rows) + "\n" + "".join(_section(name, each) for name, each in definitions.items())


def main(arguments: Sequence[str]) -> None:
    """Write the schema and the page into the directory that is named."""
    directory = Path(arguments[0])
    (directory / "json.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
    (directory / "json.md").write_text(page())


def of(name: str) -> type:
    """Return a class by its name in `PRINTED` or `FAILURE`."""
    module, _, attribute = name.rpartition(".")
    package = "cfngen" if name.startswith(("cli.", "rehearse.", "sandbox.")) else "cfngen.deploy"
    found: type = getattr(importlib.import_module(f"{package}.{module}"), attribute)
    return found


def _title(each: type) -> str:
    kind = getattr(each, "kind", "")
    return f"`{kind}`" if isinstance(kind, str) and kind else each.__name__


def _anchor(each: type) -> str:
    return each.__name__.lower()


def _section(name: str, definition: Mapping[str, Any]) -> str:
    if "enum" in definition:
        return (
            f"\n## {name}\n\n{definition['description']}\n\nOne of {', '.join(f'`{x}`' for x in definition['enum'])}.\n"
        )
    rows = "".join(
        f"| `{key}` | {_described(each)} | {each.get('description', '')} |\n"
        for key, each in definition["properties"].items()
    )
    return f"\n## {name}\n\n{definition['description']}\n\n| key | is | meaning |\n|---|---|---|\n{rows}"


def _described(each: Mapping[str, Any]) -> str:
    if "const" in each:
        return f"`{each['const']}`"
    if not each.keys() - {"description"}:
        return "anything"
    if "$ref" in each:
        name = each["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in each:
        return " or ".join(_described(one) for one in each["anyOf"])
    if each.get("type") == "array":
        return f"list of {_described(each['items'])}" if "items" in each else "list"
    if each.get("type") == "object":
        return f"object of {_described(each['additionalProperties'])}" if "additionalProperties" in each else "object"
    if each.get("format") == "date-time":
        return "time"
    return {"string": "text", "boolean": "true or false", "null": "null"}.get(each.get("type", ""), "number")


def _reference(each: type, definitions: dict[str, Any]) -> dict[str, str]:
    """Return a reference to a class's definition, and see that there is one.

    Raises:
        ValueError: another class has the same name, under which the schema could only have one of them.
    """
    known = definitions.get(each.__name__)
    if known is None:
        # A class may hold others of its own kind.
        definitions[each.__name__] = {"description": _summary(each)}
        definitions[each.__name__] = _definition(each, definitions)
    elif known["description"] != _summary(each):
        raise ValueError(f"two classes of the JSON output are called {each.__name__}")
    return {"$ref": f"#/$defs/{each.__name__}"}


def _summary(each: type) -> str:
    return (inspect.getdoc(each) or "").split("\n\n")[0].replace("\n", " ")


def _definition(each: type, definitions: dict[str, Any]) -> dict[str, Any]:
    description, summary = inspect.getdoc(each) or "", _summary(each)
    if issubclass(each, enum.Enum):
        return {"description": summary, "enum": [member.value for member in each]}
    meanings = _meanings(description)
    properties: dict[str, Any] = {key: {"const": kind} for key, kind in kind_of(each).items()}
    hints = typing.get_type_hints(each)
    for name, key in keys(each).items():
        about = {"description": meanings[name]} if name in meanings else {}
        properties[key] = _typed(hints[name], definitions) | about
    return {
        "description": summary,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _typed(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_typed(each, definitions) for each in inside]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _typed(inside[1], definitions)}
    if origin in (tuple, list, frozenset, set) or (origin is not None and issubclass(origin, Sequence)):
        return {"type": "array", "items": _typed(inside[0], definitions)}
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum)):
        return _reference(hint, definitions)
    plain: Mapping[Any, dict[str, Any]] = {
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
        datetime: {"type": "string", "format": "date-time"},
        type(None): {"type": "null"},
        Any: {},
    }
    return dict(plain[hint])


def _meanings(description: str) -> dict[str, str]:
    """What the `Attributes:` of a docstring say of each attribute, on one line."""
    _, _, attributes = description.partition("Attributes:\n")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in found}


if __name__ == "__main__":
    main(sys.argv[1:])
