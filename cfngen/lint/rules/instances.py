"""Rules about instances: metadata, volumes, launch configurations, mixed instances policies, security groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

ObjectWithPath = tuple[list[str | int], Mapping[str, object]]
"""The path of an object in a template, and the object."""

_Paths = Mapping[str, Sequence[tuple[str, ...]]]
# Resource types that describe instances, and below `Properties` the path to the description; an empty path means that
# `Properties` is itself the description.
_PATHS_TO_INSTANCES: _Paths = {
    "AWS::EC2::Instance": [()],
    "AWS::EC2::LaunchTemplate": [("LaunchTemplateData",)],
    "AWS::AutoScaling::LaunchConfiguration": [()],
}
# Likewise those that describe rules of security groups.
_PATHS_TO_RULES: _Paths = {
    "AWS::EC2::SecurityGroup": [("SecurityGroupIngress",), ("SecurityGroupEgress",)],
    "AWS::EC2::SecurityGroupEgress": [()],
    "AWS::EC2::SecurityGroupIngress": [()],
}


def _objects(value: object, path: list[str | int]) -> Iterator[ObjectWithPath]:
    """Yield the path and value of each object, in lists and branches of Fn::If; other function calls are skipped."""
    for branch_path, branch in expressions.branches(value, path):
        if isinstance(branch, list):
            for index, item in enumerate(branch):
                yield from _objects(item, [*branch_path, index])
        elif isinstance(branch, Mapping) and not expressions.is_function(branch):
            yield branch_path, branch


def _descriptions(cfn: Template, paths_by_type: _Paths) -> Iterator[ObjectWithPath]:
    for logical_id, resource in cfn.get_resources(list(paths_by_type)).items():
        for keys in paths_by_type[resource["Type"]]:
            description = resource.get("Properties")
            for key in keys:
                description = description.get(key) if isinstance(description, Mapping) else None
            yield from _objects(description, ["Resources", logical_id, "Properties", *keys])


def _is_or_unknown(value: object, expected: str) -> bool:
    """Return whether a value is the expected one, or a function call, whose result is known only at deployment."""
    return expressions.is_function(value) or str(value).lower() == expected


class InstanceMetadata(CloudFormationLintRule):  # type: ignore[misc]
    """Instances whose metadata service answers without a session token.

    An instance that refers to a launch template is not checked, since the launch template is checked.
    """

    id = "W9012"
    shortdesc = "Instance metadata needs a session token"
    description = "With IMDSv1 any request forged through a program on the instance can read its role's credentials"
    source_url = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html"
    tags: ClassVar = ["resources", "ec2", "imds"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every description of instances that allows IMDSv1."""
        for path, instance in _descriptions(cfn, _PATHS_TO_INSTANCES):
            options = instance.get("MetadataOptions")
            if options is None:
                if "LaunchTemplate" not in instance:
                    yield RuleMatch(path, "MetadataOptions is missing: HttpTokens must be required (IMDSv2)")
                continue
            for option_path, option in _objects(options, [*path, "MetadataOptions"]):
                tokens = option.get("HttpTokens")
                if not _is_or_unknown(tokens, "required") and option.get("HttpEndpoint") != "disabled":
                    yield RuleMatch(option_path, f"HttpTokens must be required (IMDSv2), not {tokens or 'left out'}")


class VolumeEncryption(CloudFormationLintRule):  # type: ignore[misc]
    """An EBS volume that is not encrypted: a separate resource, or in the description of instances.

    Volumes of an image that no block device mapping mentions are not checked.
    """

    id = "W9013"
    shortdesc = "Volume is encrypted"
    description = "An unencrypted volume stays so: its snapshots and their copies can be read by whoever gets at them"
    source_url = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html"
    tags: ClassVar = ["resources", "ec2", "ebs"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every volume that is not encrypted."""
        for logical_id, resource in cfn.get_resources("AWS::EC2::Volume").items():
            for path, volume in _objects(resource.get("Properties"), ["Resources", logical_id, "Properties"]):
                yield from self._check(path, volume)
        for path, instance in _descriptions(cfn, _PATHS_TO_INSTANCES):
            key = "BlockDeviceMappings"
            for mapping_path, mapping in _objects(instance.get(key), [*path, key]):
                for volume_path, volume in _objects(mapping.get("Ebs"), [*mapping_path, "Ebs"]):
                    yield from self._check(volume_path, volume)

    def _check(self, path: list[str | int], volume: Mapping[str, object]) -> Iterator[RuleMatch]:
        """Yield a match if a volume is not encrypted; `path` is the path of the volume in the template."""
        if not _is_or_unknown(volume.get("Encrypted"), "true"):
            yield RuleMatch(path, "Encrypted must be true for this volume")


class LaunchConfigurations(CloudFormationLintRule):  # type: ignore[misc]
    """A launch configuration instead of a launch template."""

    id = "W9017"
    shortdesc = "Launch template instead of launch configuration"
    description = "AWS takes no new launch configurations from accounts opened since October 2024"
    source_url = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-configurations.html"
    tags: ClassVar = ["resources", "autoscaling"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every launch configuration and every group that uses one."""
        for logical_id in cfn.get_resources("AWS::AutoScaling::LaunchConfiguration"):
            yield RuleMatch(["Resources", logical_id], "use a launch template instead of a launch configuration")
        key = "LaunchConfigurationName"
        for logical_id, resource in cfn.get_resources("AWS::AutoScaling::AutoScalingGroup").items():
            if key in resource.get("Properties", {}):
                path = ["Resources", logical_id, "Properties", key]
                yield RuleMatch(path, "use LaunchTemplate instead of LaunchConfigurationName")


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
        for rule_path, rule in _descriptions(cfn, _PATHS_TO_RULES):
            if "IpProtocol" in rule and rule.get("Description") in (None, ""):
                yield RuleMatch(rule_path, "this security-group rule has no Description")
