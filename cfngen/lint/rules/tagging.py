"""Resources that can have tags have some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError
from cfnlint.template import Template


class Untagged(CloudFormationLintRule):  # type: ignore[misc]
    """A resource whose type takes tags, by the resource schema of the template's region, and that has none.

    Launch templates take theirs as TagSpecifications, which their schema does not call tags; they are checked as well.
    Not asked for tags are types that `EXCEPTIONS` names, each with the reason.
    """

    id = "W9011"
    shortdesc = "Taggable resource has tags"
    description = "Without tags nobody can tell whose a resource is, what it costs, or whether it may be deleted"
    source_url = "https://docs.aws.amazon.com/whitepapers/latest/tagging-best-practices/tagging-best-practices.html"
    tags: ClassVar = ["resources", "tags"]

    EXCEPTIONS: Mapping[str, str] = {
        "AWS::CloudFormation::Stack": "a nested stack takes over the tags of the stack that nests it",
    }
    _BY_SPECIFICATION: Mapping[str, str] = {"AWS::EC2::LaunchTemplate": "TagSpecifications"}

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every resource without tags that could have some."""
        for name, resource in cfn.get_resources().items():
            kind = resource.get("Type")
            properties = resource.get("Properties", {})
            if not isinstance(kind, str) or kind in self.EXCEPTIONS or not isinstance(properties, Mapping):
                continue
            key = self._BY_SPECIFICATION.get(kind) or _tag_property(kind, cfn.regions)
            if key and not properties.get(key):
                yield RuleMatch(["Resources", name, "Properties"], f"{kind} can have tags ({key}); this one has none")


def _tag_property(kind: str, regions: list[str]) -> str | None:
    """Return the name of the property for tags, or None if the type takes none or is not known."""
    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(regions[0], kind).schema
    except ResourceNotFoundError:
        return None
    tagging = schema.get("tagging") or {}
    if not tagging.get("taggable"):
        return None
    key = str(tagging.get("tagProperty", "/properties/Tags")).rpartition("/")[2]
    return key if key in schema.get("properties", {}) else None
