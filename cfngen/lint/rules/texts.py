"""Rules about texts, tags and keys: what a service refuses, tags that are missing, and placeholders in keys."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError
from cfnlint.template import Template

if TYPE_CHECKING:
    from cfngen import text_limits as limits
    from cfngen.templates import expressions
else:
    # By their paths, since cfn-lint may run in a Python without cfngen.
    _PACKAGE = Path(__file__).parents[2]
    expressions = SimpleNamespace(**run_path(str(_PACKAGE / "templates" / "expressions.py")))
    _spec = importlib.util.spec_from_file_location("cfngen_text_limits", _PACKAGE / "text_limits.py")
    limits = importlib.util.module_from_spec(_spec)
    # Creating a data class looks up the module of the class in sys.modules.
    sys.modules[_spec.name] = limits
    _spec.loader.exec_module(limits)


def _resources(cfn: Template) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield logical id, type and properties of each resource; those whose properties are no object are skipped."""
    for logical_id, resource in cfn.get_resources().items():
        resource_type, properties = resource.get("Type"), resource.get("Properties", {})
        if isinstance(resource_type, str) and isinstance(properties, Mapping):
            yield logical_id, resource_type, properties


class TextLimits(CloudFormationLintRule):  # type: ignore[misc]
    """A text that its service refuses: a character that is not allowed, or a wrong length.

    The limits and their sources are in `cfngen/text_limits.py`. If the text is an expression, the parts that the
    template contains are checked: the text of Fn::Sub and Fn::Join around references, each branch of Fn::If, and, if
    the expression is a reference to a parameter, the default of the parameter.
    """

    id = "E9020"
    shortdesc = "Service takes the text"
    description = "A description, name or tag with a character or length that the service refuses fails the stack"
    source_url = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpRange.html"
    tags: ClassVar = ["limits", "strings"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every text that is refused."""
        for path_pattern, limit in limits.TEMPLATE_LIMITS.items():
            for path, value in _values_at(cfn.template, path_pattern, []):
                yield from self._check(cfn, limit, value, path)
        for logical_id, resource_type, properties in _resources(cfn):
            path = ["Resources", logical_id, "Properties"]
            yield from self._check_properties(cfn, resource_type, properties, property_path=(), path=path)

    def _check_properties(
        self,
        cfn: Template,
        resource_type: str,
        value: object,
        property_path: tuple[str | int, ...],
        path: list[str | int],
    ) -> Iterator[RuleMatch]:
        """Yield a match for every text in a property, at any depth, that exceeds the limits of the property.

        Args:
            property_path: path of the property below `Properties`, to look up its limits.
            path: path of the value in the template, including the branches of Fn::If.
        """
        for branch_path, branch in expressions.branches(value, path):
            limit = limits.of_property(resource_type, property_path)
            if limit:
                yield from self._check(cfn, limit, branch, branch_path)
            elif isinstance(branch, list):
                for index, item in enumerate(branch):
                    item_path = [*branch_path, index]
                    yield from self._check_properties(
                        cfn, resource_type, item, property_path=(*property_path, index), path=item_path
                    )
            elif isinstance(branch, Mapping) and not expressions.is_function(branch):
                for key, item in branch.items():
                    item_path = [*branch_path, key]
                    yield from self._check_properties(
                        cfn, resource_type, item, property_path=(*property_path, key), path=item_path
                    )

    def _check(
        self, cfn: Template, limit: limits.TextLimit, value: object, path: list[str | int]
    ) -> Iterator[RuleMatch]:
        """Yield a match if a text, or the default of the parameter that it refers to, exceeds a limit."""
        fault = limit.fault_of_parts(expressions.text_parts(value))
        if fault:
            yield RuleMatch(path, f"{limit.what}: {fault}")
            return
        referenced = expressions.reference(value)
        if referenced is None or referenced.attribute:
            return
        parameter = cfn.template.get("Parameters", {}).get(referenced.name)
        default = parameter.get("Default") if isinstance(parameter, Mapping) else None
        # An empty default may mean that no value is given, so a default is never reported as too short: the part None
        # stands for text of any length.
        if default is not None and (fault := limit.fault_of_parts([str(default), None])):
            yield RuleMatch(path, f"{limit.what}: the default of parameter {referenced.name} {fault}")


def _values_at(
    value: object, path_pattern: tuple[str, ...], path: list[str | int]
) -> Iterator[tuple[list[str | int], object]]:
    """Yield the path and value of every item whose path matches a pattern, in which "*" stands for any key."""
    if not path_pattern:
        yield path, value
    elif isinstance(value, Mapping):
        for key in list(value) if path_pattern[0] == "*" else [path_pattern[0]]:
            if key in value:
                yield from _values_at(value[key], path_pattern[1:], [*path, key])


def _tag_keys(tags: object, path: list[str | int]) -> Iterator[tuple[list[str | int], str]]:
    """Yield the path and the text of each tag key in a list of tags; keys that are function calls are skipped."""
    for index, tag in enumerate(tags if isinstance(tags, list) else ()):
        for tag_path, branch in expressions.branches(tag, [*path, index]):
            key = branch.get("Key") if isinstance(branch, Mapping) else None
            if isinstance(key, str):
                yield [*tag_path, "Key"], key


class TagsOfRoles(CloudFormationLintRule):  # type: ignore[misc]
    """Two tags of an IAM resource whose keys differ only in upper and lower case, such as `Team` and `team`."""

    id = "E9021"
    shortdesc = "Tags of IAM differ in more than case"
    description = "To IAM the keys of tags are the same in upper and lower case; it refuses both"
    source_url = "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html"
    tags: ClassVar = ["resources", "iam", "tags"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every tag whose key is, apart from case, the key of an earlier tag."""
        for logical_id, resource_type, properties in _resources(cfn):
            if not resource_type.startswith("AWS::IAM::"):
                continue
            path: list[str | int] = ["Resources", logical_id, "Properties", "Tags"]
            paths_by_key = {key: tag_path for tag_path, key in _tag_keys(properties.get("Tags"), path)}
            for earlier, key in limits.same_but_for_case(list(paths_by_key)):
                yield RuleMatch(
                    paths_by_key[key], f"IAM takes the tags {earlier} and {key} for the same and refuses them"
                )


class MetadataTags(CloudFormationLintRule):  # type: ignore[misc]
    """Instances with tags that the metadata service cannot show, and without `InstanceMetadataTags: disabled`.

    The tags of instances are those of the resource AWS::EC2::Instance, of a launch template, and of an Auto Scaling
    group of the same template that propagates its tags.
    """

    id = "W9022"
    shortdesc = "Tags stay out of the metadata service that cannot show them"
    description = (
        "Where tags in instance metadata are the account's default, no instance is launched that has a tag such as "
        "kubernetes.io/cluster/name; InstanceMetadataTags: disabled holds against that default"
    )
    source_url = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-tags-in-IMDS.html"
    tags: ClassVar = ["resources", "ec2", "imds", "tags"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every launch template and instance that leaves the setting to the account."""
        for logical_id, resource_type, properties in _resources(cfn):
            path: list[str | int] = ["Resources", logical_id, "Properties"]
            if resource_type == "AWS::EC2::Instance":
                tag_keys = [key for _, key in _tag_keys(properties.get("Tags"), [])]
                yield from self._check_instances(properties, path, tag_keys)
            elif resource_type == "AWS::EC2::LaunchTemplate":
                data = properties.get("LaunchTemplateData")
                if isinstance(data, Mapping):
                    tag_keys = [*_launch_template_tag_keys(data), *_propagated_tag_keys(cfn, logical_id)]
                    yield from self._check_instances(data, [*path, "LaunchTemplateData"], tag_keys)

    def _check_instances(
        self, description: Mapping[str, object], path: list[str | int], tag_keys: list[str]
    ) -> Iterator[RuleMatch]:
        """Yield a match for each branch of MetadataOptions that leaves the setting to the account."""
        unsupported = [key for key in tag_keys if limits.METADATA_TAG_KEY.fault(key)]
        if not unsupported:
            return
        metadata_options = description.get("MetadataOptions", {})
        for options_path, options in expressions.branches(metadata_options, [*path, "MetadataOptions"]):
            if not isinstance(options, Mapping) or expressions.is_function(options):
                continue
            metadata_tags = options.get("InstanceMetadataTags")
            if (
                not expressions.is_function(metadata_tags)
                and metadata_tags != "disabled"
                and options.get("HttpEndpoint") != "disabled"
            ):
                yield RuleMatch(
                    options_path if "MetadataOptions" in description else path,
                    f"InstanceMetadataTags must be disabled: the metadata service cannot show the tag {unsupported[0]}",
                )


def _launch_template_tag_keys(data: Mapping[str, object]) -> Iterator[str]:
    specifications = data.get("TagSpecifications")
    for specification in specifications if isinstance(specifications, list) else ():
        if isinstance(specification, Mapping) and specification.get("ResourceType") == "instance":
            yield from (key for _, key in _tag_keys(specification.get("Tags"), []))


def _propagated_tag_keys(cfn: Template, launch_template: str) -> Iterator[str]:
    for resource in cfn.get_resources("AWS::AutoScaling::AutoScalingGroup").values():
        properties = resource.get("Properties")
        if not isinstance(properties, Mapping) or not any(
            _refers_to_launch_template(specification, launch_template) for specification in _specifications(properties)
        ):
            continue
        tags = properties.get("Tags")
        for tag in tags if isinstance(tags, list) else ():
            is_propagated = isinstance(tag, Mapping) and str(tag.get("PropagateAtLaunch")).lower() == "true"
            if is_propagated and isinstance(tag.get("Key"), str):
                yield tag["Key"]


def _specifications(group: Mapping[str, object]) -> Iterator[object]:
    yield group.get("LaunchTemplate")
    policy = group.get("MixedInstancesPolicy")
    source = policy.get("LaunchTemplate") if isinstance(policy, Mapping) else None
    if isinstance(source, Mapping):
        yield source.get("LaunchTemplateSpecification")


def _refers_to_launch_template(specification: object, launch_template: str) -> bool:
    """Return whether an Auto Scaling group's property LaunchTemplate refers to this resource of its template."""
    launch_template_id = specification.get("LaunchTemplateId") if isinstance(specification, Mapping) else None
    return expressions.reference(launch_template_id) == (launch_template, "")


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
        for logical_id, resource_type, properties in _resources(cfn):
            if resource_type in self.EXCEPTIONS:
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
        yield from _placeholders_in_keys(cfn.template, [])


def _placeholders_in_keys(value: object, path: list[str | int]) -> Iterator[RuleMatch]:
    """Yield a match for every such key below `path`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _placeholders_in_keys(item, [*path, index])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in str(key):
                yield RuleMatch([*path, key], f"the key {key} stays as it is: CloudFormation replaces nothing in keys")
            yield from _placeholders_in_keys(item, [*path, key])
