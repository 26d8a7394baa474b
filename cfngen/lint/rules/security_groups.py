"""Lint rule: each rule of a security group has a description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

if TYPE_CHECKING:
    from cfngen.templates import expressions
else:  # By its path, since cfn-lint may run in a Python without cfngen.
    expressions = SimpleNamespace(**run_path(str(Path(__file__).parents[2] / "templates" / "expressions.py")))

_RULE_TYPES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
_INLINE_RULE_PROPERTIES = ("SecurityGroupIngress", "SecurityGroupEgress")


class SecurityGroupRuleDescription(CloudFormationLintRule):  # type: ignore[misc]
    """A security-group rule without a description, inline or as a separate resource."""

    id = "W9010"
    shortdesc = "Security-group rule has a description"
    description = (
        "Whoever reviews an account sees the rules without the template; the description says why each is there"
    )
    source_url = "https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html"
    tags: ClassVar = ["resources", "ec2", "securitygroup"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every rule without a description."""
        for logical_id, resource in cfn.get_resources().items():
            properties = resource.get("Properties")
            if not isinstance(properties, Mapping):
                continue
            path: list[str | int] = ["Resources", logical_id, "Properties"]
            if resource.get("Type") in _RULE_TYPES:
                yield from self._check(properties, path)
            elif resource.get("Type") == "AWS::EC2::SecurityGroup":
                for key in _INLINE_RULE_PROPERTIES:
                    yield from self._check(properties.get(key), [*path, key])

    def _check(self, value: object, path: list[str | int]) -> Iterator[RuleMatch]:
        for branch_path, branch in expressions.branches(value, path):
            if isinstance(branch, list):
                for index, item in enumerate(branch):
                    yield from self._check(item, [*branch_path, index])
            elif isinstance(branch, Mapping) and "IpProtocol" in branch and branch.get("Description") in (None, ""):
                yield RuleMatch(branch_path, "this security-group rule has no Description")
