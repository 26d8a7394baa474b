"""A rule about keys: CloudFormation puts no values into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template


class PlaceholderInKey(CloudFormationLintRule):  # type: ignore[misc]
    """A key of a map, at any depth of the template, that contains a placeholder of Fn::Sub."""

    id = "E9024"
    shortdesc = "No placeholder in a key"
    description = (
        "Fn::Sub is evaluated in values only. A key such as ${Issuer}:sub in the condition of a trust policy stays as "
        "it is, and the policy then allows nothing; write the whole document as one text, in an Fn::Sub"
    )
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference-sub.html"
    tags: ClassVar = ["functions", "sub"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every such key."""
        yield from _matches(cfn.template, [])


def _matches(value: object, path: list[str | int]) -> Iterator[RuleMatch]:
    """Yield a match for every such key below `path`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _matches(item, [*path, index])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in str(key):
                yield RuleMatch([*path, key], f"the key {key} stays as it is: CloudFormation replaces nothing in keys")
            yield from _matches(item, [*path, key])
