"""The JSON Schema of the cluster file, for editors and CI pipelines."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from cfngen.cluster.file import extended_file
from cfngen.cluster.file.keys import section_at
from cfngen.cluster.file.terraform_outputs import SUBNETS
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.references import TERRAFORM_PATTERN

SCHEMA_ID = "urn:cfngen:cluster"
"""Identifier of the schema; not a URL to fetch. A store of schemas gives it an address of its own."""

_OUTPUT = f"^{TERRAFORM_PATTERN}$"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the cluster file, in the form that SchemaStore and most editors read: draft-07.

    It has keys, types and patterns; checks across several values are made by `cfngen` only. What loading replaces is
    accepted, too: references to outputs of Terraform in place of scalars, and keys without a value.
    """
    schema = Cluster.model_json_schema(by_alias=True, mode="validation", ref_template="#/definitions/{model}")
    # pydantic knows the newest form only, which has other names and places for some of the same keywords.
    schema["definitions"] = schema.pop("$defs")
    converted: dict[str, Any] = _in_draft_07(schema)
    section, key = section_at(SUBNETS[:-1]), SUBNETS[-1]
    properties = converted["definitions"][section.__name__ if section else ""]["properties"]
    properties[key] = _or_output(properties[key])
    converted["properties"][extended_file.KEY] = {
        "type": ["string", "null"],
        "description": extended_file.DESCRIPTION,
    }
    beginning = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "cfngen cluster file",
        "description": "One Kubernetes cluster on EC2, from which cfngen makes CloudFormation templates.",
    }
    # The title and description of the file replace pydantic's, which are the name and docstring of the class.
    return beginning | converted | beginning


@functools.cache
def schema_text() -> str:
    """Return the JSON Schema as the text of a file, without the last line's end."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False)


def _in_draft_07(value: Any, *, keys_are_names: bool = False) -> Any:
    """Return a part of a JSON Schema in draft-07, without the titles that pydantic adds, which only repeat the keys.

    Args:
        keys_are_names: whether the keys of the part are names that the cluster file or the model chooses, as in
            `properties`, and not keywords of JSON Schema. A name `title` is kept.
    """
    if isinstance(value, list):
        return [_in_draft_07(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, inner_value in value.items():
        is_title = key == "title" and isinstance(inner_value, str) and not keys_are_names
        if key == "$ref" and len(value) > 1:
            # In draft-07, what stands beside a reference is ignored.
            kept["allOf"] = [{key: inner_value}]
        elif not is_title:
            kept[key] = _in_draft_07(inner_value, keys_are_names=key in ("properties", "definitions"))
    return kept if keys_are_names else _as_loaded(kept)


def _as_loaded(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, whose parts are complete, that also accepts what loading a file replaces."""
    for key, value in schema.get("properties", {}).items():
        if key not in schema.get("required", ()):
            schema["properties"][key] = _or_nothing(value)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = _or_nothing(schema["additionalProperties"])
    if "enum" in schema or "const" in schema:
        return _or_output(schema)
    types = _types(schema)
    if "pattern" in schema or {"integer", "boolean"}.intersection(types):
        # A pattern is for texts alone, and limits are for numbers.
        patterns = [*filter(None, [schema.get("pattern")]), _OUTPUT]
        return schema | {"type": [*dict.fromkeys([*types, "string"])], "pattern": "|".join(patterns)}
    return schema


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    if types := _types(schema):
        return schema | {"type": [*types, "null"]}
    is_there = {"type": "null"} in schema.get("anyOf", ())
    return schema if is_there else _or(schema, {"type": "null"})


def _or_output(schema: dict[str, Any]) -> dict[str, Any]:
    return _or(schema, {"type": "string", "pattern": _OUTPUT})


def _or(schema: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts what another one does; its notes remain outermost."""
    conditions = {key: value for key, value in schema.items() if key not in ("default", "description")}
    notes = {key: value for key, value in schema.items() if key not in conditions}
    [*choices] = conditions.get("anyOf") or conditions.get("allOf") or [conditions]
    return {**notes, "anyOf": [*choices, other]}
