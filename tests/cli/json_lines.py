"""Lines of JSON output, each held against the schema of its type."""

from __future__ import annotations

import functools
import json
from typing import Any

import jsonschema

from cfngen.cli.display import json_reference


def lines(text: str) -> list[dict[str, Any]]:
    """The objects of some output; fails where one is not what docs/reference/json.schema.json says of its type."""
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        validators()[each["type"]].validate(each)
    return found


@functools.cache
def validators() -> dict[str, jsonschema.Draft202012Validator]:
    schema = json_reference.json_schema()
    definitions = schema["$defs"]
    names = {each["properties"]["type"]["const"]: name for name, each in definitions.items() if is_message(each)}
    return {
        kind: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
        for kind, name in names.items()
    }


def is_message(definition: dict[str, Any]) -> bool:
    return "const" in definition.get("properties", {}).get("type", {})
