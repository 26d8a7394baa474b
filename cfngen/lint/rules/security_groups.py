"""Security-group rules say what they are for."""

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

_SEPARATE = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
_INLINE = ("SecurityGroupIngress", "SecurityGroupEgress")


class SecurityGroupRuleDescription(CloudFormationLintRule):  # type: ignore[misc]
    """A security-group rule, inline or a resource of its own, without a description."""

    id = "W9010"
    shortdesc = "Security-group rule has a description"
    description = (
        "Whoever reviews an account sees the rules without the template; the description says why each is there"
    )
    source_url = "https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html"
    tags: ClassVar = ["resources", "ec2", "securitygroup"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every rule without a description."""
        for name, resource in cfn.get_resources().items():
            properties = resource.get("Properties")
            if not isinstance(properties, Mapping):
                continue
            path: list[str | int] = ["Resources", name, "Properties"]
            if resource.get("Type") in _SEPARATE:
                yield from self._check(properties, path)
            elif resource.get("Type") == "AWS::EC2::SecurityGroup":
                for key in _INLINE:
                    yield from self._check(properties.get(key), [*path, key])

    def _check(self, value: object, path: list[str | int]) -> Iterator[RuleMatch]:
        for branch_path, branch in expressions.branches(value, path):
            if isinstance(branch, list):
                for index, item in enumerate(branch):
                    yield from self._check(item, [*branch_path, index])
            elif isinstance(branch, Mapping) and "IpProtocol" in branch and branch.get("Description") in (None, ""):
                yield RuleMatch(branch_path, "this security-group rule has no Description")
