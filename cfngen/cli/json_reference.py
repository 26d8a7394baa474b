"""The JSON Schema of what commands print with `--output json`, and the page that describes it.

Both are generated from the dataclasses that commands print: `python -m cfngen.cli.json_reference docs` writes
docs/reference/json.schema.json and docs/reference/json.md. A test checks that they are up to date.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from cfngen.cli.application import COMMANDS
from cfngen.cli.error_reference import error_rows
from cfngen.cli.error_reporting import Failure
from cfngen.cli.json_output import json_keys_by_attribute, type_entry
from cfngen.cli.message_types import MESSAGE_TYPES
from cfngen.hints import Hint, SuggestedCommand

JsonSchema = dict[str, Any]
Definitions = dict[str, JsonSchema]
"""The schema of each class, by the name of the class."""

_PAGE_START = """\
# JSON output

<!-- Written by `make docs` from the code. -->

With `--output json` every command that talks to AWS, `cfngen permissions` and `cfngen version` write one JSON object a
line to standard output, and nothing else; messages for people go to standard error. `type` is the type of an object.
Times are ISO 8601 in UTC, durations seconds. Keys may be added in a new version; none is removed or changes its
meaning without a new major version. The same as a JSON Schema: [json.schema.json](json.schema.json).

When a command fails, its last line is an object of type [`error`](#failure): a `code` by which
programs tell errors apart ([all codes](#error-codes)), the message and the hint, which are also printed on standard
error, and the exit code. If `--output` cannot be read, e.g. because of an unknown option, the error is printed on
standard error only.

| command | prints objects of type |
|---|---|
"""

_ERROR_SECTION_START = """\
## Error codes

The `code` of an error stays the same while messages are reworded. New codes may be added in a new version; none is
removed or changes its meaning without a new major version.

| code | exit code | meaning |
|---|---|---|
"""


def message_classes() -> Iterator[type]:
    """Yield each dataclass that commands print as one JSON line; the classes of its attributes are not included."""
    for message_type in MESSAGE_TYPES.values():
        yield message_type.message_class
    yield Failure


def classes_by_command() -> dict[str, list[type]]:
    """Return the classes that each command prints, by the command, in the order of `cfngen --help`.

    Every command also prints `Failure`, which is not in the lists.
    """
    unordered_classes: dict[str, list[type]] = {}
    for message_type in MESSAGE_TYPES.values():
        for command in message_type.commands:
            unordered_classes.setdefault(command, []).append(message_type.message_class)
    # Of a command such as `etcd list`, the help lists the first word.
    commands = sorted(unordered_classes, key=lambda command: COMMANDS.index(command.split()[0]))
    return {command: unordered_classes[command] for command in commands}


def json_schema() -> JsonSchema:
    """Return the JSON Schema of one line of output."""
    definitions: Definitions = {}
    line_schemas = [_reference(class_, definitions) for class_ in message_classes()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of what cfngen prints with --output json",
        "oneOf": line_schemas,
        "$defs": dict(sorted(definitions.items())),
    }


def json_page() -> str:
    """Return docs/reference/json.md."""
    definitions: Definitions = json_schema()["$defs"]
    command_rows = [
        f"| `cfngen {command}` | {', '.join(map(_section_link, classes))} |\n"
        for command, classes in classes_by_command().items()
    ]
    sections = [_definition_section(name, definition) for name, definition in definitions.items()]
    return "".join([_PAGE_START, *command_rows, *sections, _error_codes_section()])


def _error_codes_section() -> str:
    """Return the section of the page with the table of all error codes."""
    rows = "".join(f"| `{row.code}` | {row.exit_code} | {row.meaning} |\n" for row in error_rows())
    return f"\n{_ERROR_SECTION_START}{rows}"


def _section_link(class_: type) -> str:
    """Return a Markdown link to the section of a class."""
    return f"[{_section_title(class_)}](#{_section_anchor(class_)})"


def main(arguments: Sequence[str]) -> None:
    """Write the schema and the page into the given directory."""
    directory = Path(arguments[0])
    (directory / "json.schema.json").write_text(json.dumps(json_schema(), indent=2) + "\n")
    (directory / "json.md").write_text(json_page())


def _section_title(class_: type) -> str:
    """Return the kind of a message, or the name of a class that is only part of messages."""
    kind = getattr(class_, "kind", "")
    return f"`{kind}`" if isinstance(kind, str) and kind else class_.__name__


def _section_anchor(class_: type) -> str:
    """Return the anchor that Markdown gives to the heading of the section of a class."""
    return class_.__name__.lower()


def _definition_section(name: str, definition: JsonSchema) -> str:
    """Return the section of the page for one definition: an enumeration, or a table of an object's keys."""
    if "enum" in definition:
        values = ", ".join(f"`{value}`" for value in definition["enum"])
        return f"\n## {name}\n\n{definition['description']}\n\nOne of {values}.\n"
    rows = "".join(
        f"| `{key}` | {_type_in_words(property_)} | {property_.get('description', '')} |\n"
        for key, property_ in definition["properties"].items()
    )
    return f"\n## {name}\n\n{definition['description']}\n\n| key | type | meaning |\n|---|---|---|\n{rows}"


def _type_in_words(schema: JsonSchema) -> str:
    """Return the type of a value in words, e.g. `list of text`, for the table of an object's keys."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return "text"
    if not schema.keys() - {"description"}:
        return "anything"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type_in_words(alternative) for alternative in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type_in_words(schema['items'])}" if "items" in schema else "list"
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return f"object of {_type_in_words(schema['additionalProperties'])}"
    if schema.get("type") == "object":
        return "object"
    if schema.get("format") == "date-time":
        return "time"
    return {"string": "text", "boolean": "true or false", "null": "null"}.get(schema.get("type", ""), "number")


def _reference(class_: type, definitions: Definitions) -> dict[str, str]:
    """Return a reference to the schema of a class; add the schema to `definitions` if it is missing.

    Raises:
        ValueError: another class has the same name, and the schema can only have one definition of a name.
    """
    existing_definition = definitions.get(class_.__name__)
    if existing_definition is None:
        # A preliminary definition, since an attribute of the class may refer to the class itself.
        definitions[class_.__name__] = {"description": _summary(class_)}
        definitions[class_.__name__] = _definition(class_, definitions)
    elif existing_definition["description"] != _summary(class_):
        raise ValueError(f"two classes of the JSON output are called {class_.__name__}")
    return {"$ref": f"#/$defs/{class_.__name__}"}


def _summary(class_: type) -> str:
    """Return the first paragraph of a class's docstring, on one line."""
    return (inspect.getdoc(class_) or "").split("\n\n")[0].replace("\n", " ")


def _definition(class_: type, definitions: Definitions) -> JsonSchema:
    """Return the schema of a dataclass or enumeration; add the classes of its attributes to `definitions`."""
    summary = _summary(class_)
    if issubclass(class_, enum.Enum):
        return {"description": summary, "enum": [member.value for member in class_]}
    descriptions = _attribute_descriptions(inspect.getdoc(class_) or "")
    properties: JsonSchema = {key: {"const": kind} for key, kind in type_entry(class_).items()}
    annotations = typing.get_type_hints(class_)
    for attribute, key in json_keys_by_attribute(class_).items():
        properties[key] = _type_schema(annotations[attribute], definitions)
        if attribute in descriptions:
            properties[key]["description"] = descriptions[attribute]
    return {
        "description": summary,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _type_schema(annotation: object, definitions: Definitions) -> JsonSchema:
    """Return the schema for the type annotation of an attribute; add the classes in it to `definitions`."""
    if annotation in (Hint, str | SuggestedCommand, SuggestedCommand):
        return {"type": "string"}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type_schema(argument, definitions) for argument in arguments]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], definitions)}
    if origin in (tuple, list, frozenset, set) or (origin is not None and issubclass(origin, Sequence)):
        return {"type": "array", "items": _type_schema(arguments[0], definitions)}
    if isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or issubclass(annotation, enum.Enum)):
        return _reference(annotation, definitions)
    schemas: Mapping[object, JsonSchema] = {
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
        Decimal: {"type": "number"},
        datetime: {"type": "string", "format": "date-time"},
        type(None): {"type": "null"},
        Any: {},
        object: {},
    }
    return dict(schemas[annotation])


def _attribute_descriptions(docstring: str) -> dict[str, str]:
    """Return the descriptions in the `Attributes:` section of a docstring, by attribute, each on one line."""
    _, _, attributes = docstring.partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in entries}


if __name__ == "__main__":
    main(sys.argv[1:])
