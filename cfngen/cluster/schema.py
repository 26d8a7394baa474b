"""The JSON Schema of the cluster file, for editors and CI pipelines."""

from __future__ import annotations

from cfngen.cluster.model import Cluster

ID = "urn:cfngen:cluster"
"""Identifier of the schema; not a URL to fetch."""


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of the cluster file.

    It has keys, types and patterns; checks across several values are made by `cfngen` only.
    """
    schema = Cluster.model_json_schema(by_alias=True, mode="validation")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "cfngen cluster file",
        "description": "One Kubernetes cluster on EC2, from which cfngen makes CloudFormation templates.",
    }
    return head | {key: _remove_titles(value) for key, value in schema.items() if key not in head}


def _remove_titles(value: object, *, keys_are_names: bool = False) -> object:
    """Remove the titles, which only repeat the keys."""
    if isinstance(value, list):
        return [_remove_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _remove_titles(inner, keys_are_names=key in ("properties", "$defs"))
        for key, inner in value.items()
        if keys_are_names or key != "title" or not isinstance(inner, str)
    }
