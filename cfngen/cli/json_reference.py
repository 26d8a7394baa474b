"""The JSON Schema of what commands print with `--output json`, and the page that describes it.

Both are generated from the dataclasses that are printed: `python -m
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
from cfngen.hints import Hint, SuggestedCommand

_WORK_CLASSES = ("messages.Step", "messages.Notice")
_WATCH_CLASSES = ("messages.Event", "watching.progress.Progress", "watching.diagnosis.Diagnosis", "messages.Finished")
PRINTED: Mapping[str, tuple[str, ...]] = {
    "cfngen plan": (*_WORK_CLASSES, "preview.plan.Plan"),
    "cfngen deploy": (
        *_WORK_CLASSES,
        "preview.plan.Plan",
        *_WATCH_CLASSES,
        "inspection.validation.ValidationChange",
        "inspection.validation.Validation",
    ),
    "cfngen watch": (*_WORK_CLASSES, *_WATCH_CLASSES),
    "cfngen events": ("messages.Event",),
    "cfngen events --failures": ("watching.diagnosis.Diagnosis",),
    "cfngen status": (*_WORK_CLASSES, "inspection.cluster_status.ClusterStatus"),
    "cfngen validate cluster": ("inspection.validation.ValidationChange", "inspection.validation.Validation"),
    "cfngen kubeconfig": ("access.kubeconfig.KubeconfigChange",),
    "cfngen kubeconfig --print": ("access.kubeconfig.KubeconfigDocument",),
    "cfngen etcd list": ("etcd.snapshots.Snapshots",),
    "cfngen etcd backup": (*_WORK_CLASSES, "etcd.backup.BackupTaken"),
    "cfngen etcd restore": (
        *_WORK_CLASSES,
        "etcd.restore.RestorePlan",
        "etcd.watch.RestoreProgress",
        "etcd.restore.Restored",
    ),
    "cfngen rollback": (*_WORK_CLASSES, *_WATCH_CLASSES),
    "cfngen delete": (
        *_WORK_CLASSES,
        "deletion.plan.DeletionPlan",
        "messages.Event",
        "watching.progress.Progress",
        "deletion.orphaned_resource.Removed",
        "deletion.stack_removal.DeletionFailed",
        "watching.diagnosis.Diagnosis",
        "deletion.result.Deleted",
        "deletion.leftovers.Remains",
    ),
    "cfngen rehearse": (
        *_WORK_CLASSES,
        "messages.Event",
        "watching.progress.Progress",
        "watching.diagnosis.Diagnosis",
        "rehearse.report.Rehearsal",
        "rehearse.report.RehearsalWritten",
    ),
    "cfngen rehearse --list": ("rehearse.report.RehearsalSteps",),
    "cfngen sandbox status": ("sandbox.status.SandboxStatus",),
}
"""The classes of the objects that each command prints, relative to `cfngen.deploy` or to `cfngen` (see `of`)."""
FAILURE = "cli.exit_codes.Failure"
"""The class of the object that every command prints when it fails."""

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
    """Yield each dataclass that is printed as a line of its own, once."""
    for name in dict.fromkeys((*(name for names in PRINTED.values() for name in names), FAILURE)):
        yield class_named(name)


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
    """Return docs/json.md."""
    definitions: Mapping[str, Any] = schema()["$defs"]
    rows = [
        f"| `{command}` | {', '.join(_link(class_named(name)) for name in names)} |"
        for command, names in PRINTED.items()
    ]
    return (
        _PREAMBLE
        + "\n".join(rows)
        + "\n"
        + "".join(_section(name, definition) for name, definition in definitions.items())
    )


def _link(class_: type) -> str:
    return f"[{_title(class_)}](#{_anchor(class_)})"


def main(arguments: Sequence[str]) -> None:
    """Write the schema and the page into the given directory."""
    directory = Path(arguments[0])
    (directory / "json.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
    (directory / "json.md").write_text(page())


def class_named(name: str) -> type:
    """Return a class by its name in `PRINTED` or `FAILURE`."""
    module, _, attribute = name.rpartition(".")
    package = "cfngen" if name.startswith(("cli.", "rehearse.", "sandbox.")) else "cfngen.deploy"
    class_: type = getattr(importlib.import_module(f"{package}.{module}"), attribute)
    return class_


def _title(class_: type) -> str:
    kind = getattr(class_, "kind", "")
    return f"`{kind}`" if isinstance(kind, str) and kind else class_.__name__


def _anchor(class_: type) -> str:
    return class_.__name__.lower()


def _section(name: str, definition: Mapping[str, Any]) -> str:
    if "enum" in definition:
        return (
            f"\n## {name}\n\n{definition['description']}\n\nOne of {', '.join(f'`{x}`' for x in definition['enum'])}.\n"
        )
    rows = "".join(
        f"| `{key}` | {_type_text(property_)} | {property_.get('description', '')} |\n"
        for key, property_ in definition["properties"].items()
    )
    return f"\n## {name}\n\n{definition['description']}\n\n| key | is | meaning |\n|---|---|---|\n{rows}"


def _type_text(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if not schema.keys() - {"description"}:
        return "anything"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type_text(alternative) for alternative in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type_text(schema['items'])}" if "items" in schema else "list"
    if schema.get("type") == "object":
        return (
            f"object of {_type_text(schema['additionalProperties'])}" if "additionalProperties" in schema else "object"
        )
    if schema.get("format") == "date-time":
        return "time"
    return {"string": "text", "boolean": "true or false", "null": "null"}.get(schema.get("type", ""), "number")


def _reference(class_: type, definitions: dict[str, Any]) -> dict[str, str]:
    """Return a reference to a class's definition, adding the definition if it is missing.

    Raises:
        ValueError: another class has the same name, and the schema can only have one definition of a name.
    """
    existing = definitions.get(class_.__name__)
    if existing is None:
        # Added before its attributes, since a class may refer to itself.
        definitions[class_.__name__] = {"description": _summary(class_)}
        definitions[class_.__name__] = _definition(class_, definitions)
    elif existing["description"] != _summary(class_):
        raise ValueError(f"two classes of the JSON output are called {class_.__name__}")
    return {"$ref": f"#/$defs/{class_.__name__}"}


def _summary(class_: type) -> str:
    return (inspect.getdoc(class_) or "").split("\n\n")[0].replace("\n", " ")


def _definition(class_: type, definitions: dict[str, Any]) -> dict[str, Any]:
    description, summary = inspect.getdoc(class_) or "", _summary(class_)
    if issubclass(class_, enum.Enum):
        return {"description": summary, "enum": [member.value for member in class_]}
    descriptions = _attribute_descriptions(description)
    properties: dict[str, Any] = {key: {"const": kind} for key, kind in kind_of(class_).items()}
    hints = typing.get_type_hints(class_)
    for name, key in keys(class_).items():
        description_entry = {"description": descriptions[name]} if name in descriptions else {}
        properties[key] = _type_schema(hints[name], definitions) | description_entry
    return {
        "description": summary,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _type_schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint in (Hint, str | SuggestedCommand, SuggestedCommand):
        return {"type": "string"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type_schema(argument, definitions) for argument in arguments]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], definitions)}
    if origin in (tuple, list, frozenset, set) or (origin is not None and issubclass(origin, Sequence)):
        return {"type": "array", "items": _type_schema(arguments[0], definitions)}
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum)):
        return _reference(hint, definitions)
    schemas: Mapping[Any, dict[str, Any]] = {
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
        datetime: {"type": "string", "format": "date-time"},
        type(None): {"type": "null"},
        Any: {},
    }
    return dict(schemas[hint])


def _attribute_descriptions(description: str) -> dict[str, str]:
    """Return the description of each attribute in the `Attributes:` section of a docstring, on one line."""
    _, _, attributes = description.partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in entries}


if __name__ == "__main__":
    main(sys.argv[1:])
