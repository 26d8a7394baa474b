"""What the tests of templates share: templates by name from a few lines of configuration."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.templates import generate


class Templates:
    """The templates of one configuration."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.cluster = parse(configuration)
        self.bodies = {each.name: each.body for each in generate(self.cluster)}

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self.bodies[name]

    def properties(self, logical_id: str) -> dict[str, Any]:
        """The properties of a resource of the flat template."""
        found: dict[str, Any] = self.bodies["standalone"]["Resources"][logical_id]["Properties"]
        return found

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """The resources of a type in the flat template, by logical id."""
        resources = self.bodies["standalone"]["Resources"].items()
        return {logical_id: resource for logical_id, resource in resources if resource["Type"] == kind}


@pytest.fixture
def templates():
    return Templates
