"""A rule about mixed instances policies: what their launch templates must not have."""

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


def _value(properties: object, *keys: str) -> object:
    """Return the value at some keys, or None if there is none, or if a function call is in the way."""
    for key in keys:
        if not isinstance(properties, Mapping) or expressions.is_function(properties):
            return None
        properties = properties.get(key)
    return properties


class SpotInMixedInstances(CloudFormationLintRule):  # type: ignore[misc]
    """A launch template with market options that a mixed instances policy of the same template uses."""

    id = "E9023"
    shortdesc = "No Spot request in the launch template of a mixed instances policy"
    description = (
        "EC2 Auto Scaling refuses a group whose mixed instances policy uses a launch template that requests Spot "
        "Instances (InstanceMarketOptions); the policy's InstancesDistribution says which nodes are Spot Instances"
    )
    source_url = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups.html"
    tags: ClassVar = ["resources", "autoscaling", "spot"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every mixed instances policy whose launch templates request Spot Instances."""
        requests_spot = {
            logical_id
            for logical_id, resource in cfn.get_resources("AWS::EC2::LaunchTemplate").items()
            if _value(resource.get("Properties"), "LaunchTemplateData", "InstanceMarketOptions") is not None
        }
        for logical_id, resource in cfn.get_resources("AWS::AutoScaling::AutoScalingGroup").items():
            policy = _value(resource.get("Properties"), "MixedInstancesPolicy")
            path: list[str | int] = ["Resources", logical_id, "Properties", "MixedInstancesPolicy", "LaunchTemplate"]
            overrides = _value(policy, "LaunchTemplate", "Overrides")
            specifications = [
                (
                    [*path, "LaunchTemplateSpecification"],
                    _value(policy, "LaunchTemplate", "LaunchTemplateSpecification"),
                )
            ]
            for index, override in enumerate(overrides if isinstance(overrides, list) else ()):
                specification = _value(override, "LaunchTemplateSpecification")
                specifications.append(([*path, "Overrides", index, "LaunchTemplateSpecification"], specification))
            for specification_path, specification in specifications:
                launch_template = expressions.reference(_value(specification, "LaunchTemplateId"))
                if launch_template and launch_template.name in requests_spot:
                    message = f"{launch_template.name} has InstanceMarketOptions; use InstancesDistribution instead"
                    yield RuleMatch(specification_path, message)
