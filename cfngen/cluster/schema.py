"""The JSON Schema of the cluster file, for editors and for checks in a pipeline of one's own."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.model import Cluster

ID = "urn:cfngen:cluster"
"""Identifier of the schema; it names it and is no address."""


def json_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema 2020-12) of what a cluster file may hold.

    It knows keys, types and patterns; what follows from several values together only `cfngen` checks.
    """
    schema = Cluster.model_json_schema(by_alias=True, mode="validation")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "cfngen cluster file",
        "description": "One Kubernetes cluster on EC2, from which cfngen makes CloudFormation templates.",
    }
    return head | {key: _tidy(value) for key, value in schema.items() if key not in head}


def _tidy(value: Any, *, named: bool = False) -> Any:
    """Leave out the titles that only repeat a key."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _tidy(inner, named=key in ("properties", "$defs"))
        for key, inner in value.items()
        if named or key != "title" or not isinstance(inner, str)
    }
