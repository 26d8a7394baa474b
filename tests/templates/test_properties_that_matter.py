"""Properties on which it hangs whether a cluster works, is safe, or costs what it should; each block says why.

A row is a path into the flat template (`Resource.Property.0.Property`) and its value, with references written as
`!Vpc` and `!SubnetA.SubnetId`; a path that is not there is None. Tags are read by their keys.
"""

from __future__ import annotations

from typing import Any

import pytest
from properties_default import DEFAULT
from properties_others import CLUSTERS, OTHERS

from cfngen.cluster.load import parse
from cfngen.templates import generate

ROWS = {"default": DEFAULT, **OTHERS}


@pytest.fixture(scope="module")
def resources() -> dict[str, dict[str, Any]]:
    """The resources of each cluster's flat template."""
    return {cluster: described(cluster) for cluster in CLUSTERS}


def described(cluster: str) -> dict[str, Any]:
    """The resources of a flat template, each with its attributes beside its properties."""
    bodies = {document.name: document.body for document in generate(parse(CLUSTERS[cluster]))}
    return {
        logical_id: shortened(
            {key: value for key, value in resource.items() if key not in ("Type", "Properties", "Metadata")}
            | resource.get("Properties", {})
        )
        for logical_id, resource in bodies["standalone"]["Resources"].items()
    }


def shortened(value: Any) -> Any:
    """References as `!Vpc` and `!SubnetA.SubnetId`; tags by key, with a word where instances do not take one over."""
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return f"!{value['Ref']}"
    if set(value) == {"Fn::GetAtt"}:
        return f"!{'.'.join(value['Fn::GetAtt'])}"
    if set(value) == {"Fn::Sub"}:
        return value["Fn::Sub"]
    return {key: tags(inner) if key == "Tags" else shortened(inner) for key, inner in value.items()}


def tags(listed: list[dict[str, Any]]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"] + ("" if tag.get("PropagateAtLaunch", True) else " (of the group)") for tag in listed
    }


def at(value: Any, path: str) -> Any:
    """The value at a path; a tag's key holds full stops and ends the path."""
    if not path:
        return value
    if path.startswith("Tags."):
        return value["Tags"].get(path.removeprefix("Tags."))
    name, _, rest = path.partition(".")
    if isinstance(value, list):
        return at(value[int(name)], rest) if int(name) < len(value) else None
    return at(value[name], rest) if name in value else None


@pytest.mark.parametrize("cluster", ROWS)
def test_what_the_services_are_told(resources: dict[str, Any], cluster: str) -> None:
    expected = {path: value for block in ROWS[cluster] for path, value in block.items()}
    assert {path: at(resources[cluster], path) for path in expected} == expected


def test_every_resource_of_the_default_cluster_is_looked_at(resources: dict[str, Any]) -> None:
    seen = {path.partition(".")[0] for block in ROWS["default"] for path in block}
    assert {name for name in resources["default"] if "Program" not in name} == seen
