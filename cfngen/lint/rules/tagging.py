"""Lint rule: a resource that can have tags has at least one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError
from cfnlint.template import Template


class Untagged(CloudFormationLintRule):  # type: ignore[misc]
    """A resource without tags, of a type that can have tags according to the resource schema of the template's region.

    Launch templates are checked too: their tags are in TagSpecifications, which the schema does not declare as tags.
    Types in `EXCEPTIONS` are not checked, for the reason given there.
    """

    id = "W9011"
    shortdesc = "Taggable resource has tags"
    description = "Without tags nobody can tell whose a resource is, what it costs, or whether it may be deleted"
    source_url = "https://docs.aws.amazon.com/whitepapers/latest/tagging-best-practices/tagging-best-practices.html"
    tags: ClassVar = ["resources", "tags"]

    EXCEPTIONS: Mapping[str, str] = {
        "AWS::CloudFormation::Stack": "a nested stack takes over the tags of the stack that nests it"
    }
    # Property that has the tags, for resource types whose schema does not declare it as tags.
    _UNDECLARED_TAG_PROPERTIES: Mapping[str, str] = {
        "AWS::EC2::CapacityReservation": "TagSpecifications",
        "AWS::EC2::LaunchTemplate": "TagSpecifications",
    }

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every resource without tags that could have some."""
        for logical_id, resource in cfn.get_resources().items():
            resource_type = resource.get("Type")
            properties = resource.get("Properties", {})
            if (
                not isinstance(resource_type, str)
                or resource_type in self.EXCEPTIONS
                or not isinstance(properties, Mapping)
            ):
                continue
            key = self._UNDECLARED_TAG_PROPERTIES.get(resource_type) or _tag_property(resource_type, cfn.regions)
            if key and not properties.get(key):
                yield RuleMatch(
                    ["Resources", logical_id, "Properties"], f"{resource_type} can have tags ({key}); this one has none"
                )


def _tag_property(resource_type: str, regions: list[str]) -> str | None:
    """Return the name of a resource type's property for tags; None if the type cannot have tags or is unknown.

    The first region stands for all: it is the only one unless somebody lints a template for several.
    """
    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(regions[0], resource_type).schema
    except ResourceNotFoundError:
        return None
    tagging = schema.get("tagging") or {}
    if not tagging.get("taggable"):
        return None
    key = str(tagging.get("tagProperty", "/properties/Tags")).rpartition("/")[2]
    return key if key in schema.get("properties", {}) else None
