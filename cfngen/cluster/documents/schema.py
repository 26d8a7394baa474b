"""The JSON Schema of the cluster file, for editors and CI pipelines."""

from __future__ import annotations

import json

from cfngen.cluster.model import Cluster

SCHEMA_ID = "urn:cfngen:cluster"
"""Identifier of the schema; not a URL to fetch. A store of schemas gives it an address of its own."""


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of the cluster file, in the form that SchemaStore and most editors read: draft-07.

    It has keys, types and patterns; checks across several values are made by `cfngen` only.
    """
    schema = Cluster.model_json_schema(by_alias=True, mode="validation", ref_template="#/definitions/{model}")
    # pydantic knows the newest form only, which has other names and places for some of the same keywords.
    schema["definitions"] = schema.pop("$defs")
    root_properties = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "cfngen cluster file",
        "description": "One Kubernetes cluster on EC2, from which cfngen makes CloudFormation templates.",
    }
    # The title and description of the file replace pydantic's, which are the name and docstring of the class.
    other_properties = {key: _in_draft_07(value) for key, value in schema.items() if key not in root_properties}
    return root_properties | other_properties


def schema_text() -> str:
    """Return the JSON Schema as the text of a file, without the last line's end."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False)


def _in_draft_07(value: object, *, keys_are_names: bool = False) -> object:
    """Return a part of a JSON Schema in draft-07, without the titles that pydantic adds, which only repeat the keys.

    Args:
        keys_are_names: whether the keys of the part are names that the cluster file or the model chooses, as in
            `properties`, and not keywords of JSON Schema. A name `title` is kept.
    """
    if isinstance(value, list):
        return [_in_draft_07(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, object] = {}
    for key, inner_value in value.items():
        is_title = key == "title" and isinstance(inner_value, str) and not keys_are_names
        if key == "$ref" and len(value) > 1:
            # In draft-07, what stands beside a reference is ignored.
            kept["allOf"] = [{key: inner_value}]
        elif not is_title:
            kept[key] = _in_draft_07(inner_value, keys_are_names=key in ("properties", "definitions"))
    return kept
