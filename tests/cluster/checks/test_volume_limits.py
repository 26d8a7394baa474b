"""Limits of volumes against what CloudFormation's schema of AWS::EC2::Volume says of each type in words.

cfn-lint brings the schema; when a newer one names other limits, this test says so.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.sections.instances import Volume
from cfngen.templates.launch import allowed_volume_types


def published(name: str) -> str:
    properties: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", "AWS::EC2::Volume").schema
    return str(properties["properties"][name]["description"]).replace("`", "").replace("(*default*)", "")


def span(text: str, kind: str) -> tuple[int, int] | None:
    match = re.search(rf"{kind}: ([0-9,]+) ?- ?([0-9,]+)", text)
    return (int(match[1].replace(",", "")), int(match[2].replace(",", ""))) if match else None


@pytest.mark.parametrize("kind", sorted(VOLUME_TYPES))
def test_sizes_and_iops_are_the_published_ones(kind: str) -> None:
    assert (VOLUME_TYPES[kind].size_gib, VOLUME_TYPES[kind].iops) == (
        span(published("Size"), kind),
        span(published("Iops"), kind),
    )


def test_throughput_is_the_published_one() -> None:
    text = published("Throughput")
    schema = Volume.model_json_schema()["properties"]["throughput"]["anyOf"][0]
    assert f"Minimum value of {schema['minimum']}. Maximum value of {schema['maximum']}" in text
    assert "0.25 MiB/s per IOPS" in text


def test_only_types_that_hold_the_volume_may_be_chosen_in_the_console() -> None:
    assert allowed_volume_types(Volume(size=20)) == ["gp3", "gp2"]
    assert allowed_volume_types(Volume(size=20000)) == ["gp3"]
