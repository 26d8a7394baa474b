"""Rules about signals and pauses, exports, and parameters of nested stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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

_DURATION_PATTERN = re.compile(r"PT(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?\Z")
_SECONDS_PER_HOUR = 3600

# Keys of a CreationPolicy, and the keys that the value of each may have.
_CREATION_POLICY_KEYS: Mapping[str, frozenset[str]] = {
    "AutoScalingCreationPolicy": frozenset({"MinSuccessfulInstancesPercent"}),
    "ResourceSignal": frozenset({"Count", "Timeout"}),
}
_TYPES_WITH_CREATION_POLICY = (
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::CloudFormation::WaitCondition",
    "AWS::EC2::Instance",
)


class Signals(CloudFormationLintRule):  # type: ignore[misc]
    """A CreationPolicy with unknown keys or numbers, or a time that CloudFormation cannot parse or does not allow."""

    id = "E9015"
    shortdesc = "Time-outs and signals are well formed"
    description = "A duration that is not ISO 8601 (PT#H#M#S), too long, or under an unknown key fails the stack"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-creationpolicy.html"
    tags: ClassVar = ["resources", "creationpolicy", "updatepolicy"]

    MAX_TIMEOUT_SECONDS = 12 * _SECONDS_PER_HOUR
    MAX_PAUSE_SECONDS = _SECONDS_PER_HOUR

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for each problem in a CreationPolicy or PauseTime."""
        for logical_id, resource in cfn.get_resources().items():
            path: list[str | int] = ["Resources", logical_id]
            creation_policy = resource.get("CreationPolicy")
            if isinstance(creation_policy, Mapping):
                yield from self._check_creation_policy(creation_policy, resource.get("Type"), [*path, "CreationPolicy"])
            update_policy = resource.get("UpdatePolicy")
            rolling_update = (
                update_policy.get("AutoScalingRollingUpdate") if isinstance(update_policy, Mapping) else None
            )
            if isinstance(rolling_update, Mapping) and "PauseTime" in rolling_update:
                pause_path = [*path, "UpdatePolicy", "AutoScalingRollingUpdate", "PauseTime"]
                yield from self._check_duration(rolling_update["PauseTime"], self.MAX_PAUSE_SECONDS, pause_path)

    def _check_creation_policy(
        self, policy: Mapping[str, object], resource_type: object, path: list[str | int]
    ) -> Iterator[RuleMatch]:
        if resource_type == "AWS::AppStream::Fleet":
            return  # a fleet has another kind of CreationPolicy, which this rule does not check
        if resource_type not in _TYPES_WITH_CREATION_POLICY:
            yield RuleMatch(path, f"{resource_type} takes no CreationPolicy")
            return
        for key, value in policy.items():
            if key not in _CREATION_POLICY_KEYS:
                yield RuleMatch([*path, key], f"CreationPolicy has no {key}; {_allowed_keys(_CREATION_POLICY_KEYS)}")
            elif isinstance(value, Mapping):
                for unknown_key in sorted(value.keys() - _CREATION_POLICY_KEYS[key]):
                    text = f"{key} has no {unknown_key}; {_allowed_keys(_CREATION_POLICY_KEYS[key])}"
                    yield RuleMatch([*path, key, unknown_key], text)
        resource_signal = policy.get("ResourceSignal")
        if isinstance(resource_signal, Mapping):
            signal_path = [*path, "ResourceSignal"]
            if "Timeout" in resource_signal:
                timeout = resource_signal["Timeout"]
                yield from self._check_duration(timeout, self.MAX_TIMEOUT_SECONDS, [*signal_path, "Timeout"])
            yield from self._check_number(
                resource_signal.get("Count", 1), minimum=0, maximum=None, path=[*signal_path, "Count"]
            )
        auto_scaling_policy = policy.get("AutoScalingCreationPolicy")
        if isinstance(auto_scaling_policy, Mapping):
            key = "MinSuccessfulInstancesPercent"
            yield from self._check_number(
                auto_scaling_policy.get(key, 100),
                minimum=0,
                maximum=100,
                path=[*path, "AutoScalingCreationPolicy", key],
            )

    def _check_duration(self, value: object, max_seconds: int, path: list[str | int]) -> Iterator[RuleMatch]:
        """Yield a match if a value is not a duration such as PT15M, or is longer than `max_seconds`."""
        if isinstance(value, Mapping):
            return  # a function, whose result is known only at deployment
        match = _DURATION_PATTERN.match(value) if isinstance(value, str) else None
        if not match:
            yield RuleMatch(path, f"{value!r} is not a duration of the form PT#H#M#S, such as PT15M")
            return
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        if hours * _SECONDS_PER_HOUR + minutes * 60 + seconds > max_seconds:
            yield RuleMatch(
                path, f"{value} is longer than CloudFormation allows here, {max_seconds // _SECONDS_PER_HOUR} h"
            )

    def _check_number(
        self, value: object, minimum: int, maximum: int | None, path: list[str | int]
    ) -> Iterator[RuleMatch]:
        """Yield a match if a value is not a whole number from `minimum` to `maximum` (None: no maximum)."""
        if isinstance(value, Mapping):
            return  # a function, whose result is known only at deployment
        expected = f"a number from {minimum} to {maximum}" if maximum is not None else f"a number, at least {minimum}"
        number = int(str(value)) if str(value).isdecimal() else -1
        if number < minimum or (maximum is not None and number > maximum):
            yield RuleMatch(path, f"{value!r} is not {expected}")


def _allowed_keys(keys: Iterable[str]) -> str:
    return f"it may have {' and '.join(sorted(keys))}"


class ExportNames(CloudFormationLintRule):  # type: ignore[misc]
    """Two exports of the same name, in a template or in templates that it nests from local files.

    Names are compared as the templates contain them. In one template, two outputs under different conditions may have
    the same name. Between templates, only names are compared that are the same in every stack.
    """

    id = "E9016"
    shortdesc = "Export names are unique"
    description = "Export names are unique in an account and region; the second stack or output with the name fails"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/outputs-section-structure.html"
    tags: ClassVar = ["outputs", "exports"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every export whose name was used before."""
        yield from self._check_outputs_of_template(cfn)
        yield from self._check_outputs_of_nested_templates(cfn)

    def _check_outputs_of_template(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every output whose export has the name of an earlier output's export.

        Two outputs under different conditions may have the same name, since perhaps only one of them exists.
        """
        first_outputs: dict[tuple[str, object], str] = {}  # output by export name and condition
        for output_name, export_name, condition in _exports(cfn.template):
            first_output = first_outputs.setdefault((export_name, condition), output_name)
            if first_output == output_name and condition is not None:
                first_output = first_outputs.get((export_name, None), output_name)
            if first_output != output_name:
                path = ["Outputs", output_name, "Export", "Name"]
                yield RuleMatch(path, f"output {first_output} has the same export name")

    def _check_outputs_of_nested_templates(self, cfn: Template) -> Iterator[RuleMatch]:
        first_exporters = {
            export_name: "this template"
            for _, export_name, _ in _exports(cfn.template)
            if _is_same_in_every_stack(export_name)
        }
        for path, template in _nested_templates(cfn):
            exporter = f"nested stack {path[1]}"
            for output_name, export_name, _ in _exports(template):
                if not _is_same_in_every_stack(export_name):
                    continue
                first_exporter = first_exporters.setdefault(export_name, exporter)
                if first_exporter != exporter:
                    yield RuleMatch(path, f"output {output_name} of {exporter} has an export name of {first_exporter}")


def _exports(template: Mapping[str, object]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the name of each output with an export, the export name as JSON, and the output's condition."""
    outputs = template.get("Outputs")
    for name, output in outputs.items() if isinstance(outputs, Mapping) else ():
        export = output.get("Export") if isinstance(output, Mapping) else None
        if isinstance(export, Mapping) and "Name" in export:
            yield name, json.dumps(export["Name"], sort_keys=True), output.get("Condition")


def _is_same_in_every_stack(export_name: str) -> bool:
    """Return whether an export name is the same in every stack of the account and region.

    Such a name contains no references except to region, account and partition.
    """
    constants = dict.fromkeys(("AWS::Region", "AWS::AccountId", "AWS::Partition"), "constant")
    return None not in expressions.text_parts(expressions.substitute(json.loads(export_name), constants))


class NestedParameters(CloudFormationLintRule):  # type: ignore[misc]
    """Parameters that a stack does not pass to a nested stack, or passes with unsuitable values.

    Only nested templates in local files are checked. cfn-lint's E3043 compares the names of parameters, but not if no
    parameters are passed at all. This rule also reports that, and values that the nested parameter cannot take: lists,
    text for a number, values that AllowedValues or AllowedPattern exclude, and ids of another type.
    """

    id = "E9018"
    shortdesc = "Nested stack gets parameters it can take"
    description = "A nested stack whose parameters are missing or do not fit fails after the deployment has begun"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-nested-stacks.html"
    tags: ClassVar = ["resources", "cloudformation"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every parameter that is missing or does not fit."""
        parent_parameters = cfn.template.get("Parameters", {})
        for path, template in _nested_templates(cfn):
            nested_parameters = template.get("Parameters")
            if not isinstance(nested_parameters, Mapping):
                nested_parameters = {}
            properties = cfn.template["Resources"][path[1]]["Properties"]
            if "Parameters" not in properties:
                missing = sorted(name for name, parameter in nested_parameters.items() if "Default" not in parameter)
                if missing:
                    yield RuleMatch(path, f"the nested template needs parameters: {', '.join(missing)}")
                continue
            passed_values = properties["Parameters"]
            for name, value in passed_values.items() if isinstance(passed_values, Mapping) else ():
                if isinstance(nested_parameters.get(name), Mapping):
                    problem = _explain_mismatch(value, nested_parameters[name], parent_parameters)
                    if problem:
                        yield RuleMatch([*path[:-1], "Parameters", name], f"nested parameter {name}: {problem}")


class ValuesKnownLater(CloudFormationLintRule):  # type: ignore[misc]
    """Values that are not known yet when a change set is made, passed to a nested stack whose template is a local file.

    In a change set, outputs of stacks and attributes of resources that do not exist yet are placeholders. Parameters of
    AWS-specific types, numbers, patterns and lists of allowed values refuse a placeholder, and functions such as
    Fn::Select cannot take it apart. Such a stack can be created without a change set only
    (https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2113).
    """

    id = "E9019"
    shortdesc = "Nested stack takes values that are known later"
    description = "A change set with nested stacks fails on a parameter that cannot take a placeholder"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/change-sets-for-nested-stacks.html"
    tags: ClassVar = ["resources", "cloudformation"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every value that is known later, but needed when the change set is made."""
        resources = cfn.template.get("Resources", {})
        for path, template in _nested_templates(cfn):
            passed_values = resources[path[1]]["Properties"].get("Parameters")
            nested_parameters = template.get("Parameters")
            if not isinstance(passed_values, Mapping) or not isinstance(nested_parameters, Mapping):
                continue
            for name, value in passed_values.items():
                source = next((referenced for referenced in _referenced_names(value) if referenced in resources), "")
                if not source or not isinstance(nested_parameters.get(name), Mapping):
                    continue
                refusal = _explain_refused_placeholder(nested_parameters[name])
                problem = refusal or _find_use_that_needs_value(name, template)
                if problem:
                    text = f"{name} is known only once {source} exists, and {problem}"
                    yield RuleMatch([*path[:-1], "Parameters", name], text)


# A placeholder of a change set does not meet these constraints of a parameter.
_CONSTRAINTS_THAT_REFUSE_PLACEHOLDERS = ("AllowedPattern", "AllowedValues", "MaxLength")
_FUNCTIONS_THAT_NEED_VALUES = ("Fn::Select", "Fn::Split", "Fn::Cidr", "Fn::FindInMap")


def _explain_refused_placeholder(parameter: Mapping[str, object]) -> str:
    """Return why a parameter of a nested stack refuses a placeholder; empty if it accepts one."""
    parameter_type = str(parameter.get("Type"))
    if parameter_type not in ("String", "CommaDelimitedList"):
        return f"the nested parameter is of the type {parameter_type}; make it a String"
    constraint = next((key for key in _CONSTRAINTS_THAT_REFUSE_PLACEHOLDERS if key in parameter), "")
    return f"the nested parameter has {constraint}; leave that out" if constraint else ""


def _find_use_that_needs_value(parameter_name: str, template: Mapping[str, object]) -> str:
    """Return a message about a function or rule of the template that cannot take a placeholder for a parameter's value.

    Empty if none is given the parameter.
    """
    if parameter_name in _referenced_names(template.get("Rules")):
        return "a rule of the nested template asks for it; leave it out of Rules"
    for section in ("Resources", "Outputs"):
        function = _find_function_that_needs(parameter_name, template.get(section))
        if function:
            return f"{function} of the nested template looks inside; hand it on as it is"
    return ""


def _find_function_that_needs(parameter_name: str, value: object) -> str:
    """Return the name of a function, at any depth of `value`, that needs a parameter's value; empty if none does."""
    if isinstance(value, Mapping):
        for function in _FUNCTIONS_THAT_NEED_VALUES:
            if function in value and parameter_name in _referenced_names(value[function]):
                return function
        items = list(value.values())
    else:
        items = value if isinstance(value, list) else []
    for item in items:
        function_in_item = _find_function_that_needs(parameter_name, item)
        if function_in_item:
            return function_in_item
    return ""


def _referenced_names(value: object) -> Iterator[str]:
    return (referenced.name for referenced in expressions.references(value))


def _nested_templates(cfn: Template) -> Iterator[tuple[list[str], Mapping[str, object]]]:
    """Yield each nested template that is a local file: the path of its TemplateURL in the parent, and the template."""
    if not cfn.filename:
        return
    for name, resource in cfn.get_resources("AWS::CloudFormation::Stack").items():
        properties = resource.get("Properties")
        url = properties.get("TemplateURL") if isinstance(properties, Mapping) else None
        if not isinstance(url, str) or "://" in url:
            continue
        file = Path(cfn.filename).parent / url
        try:
            template = json.loads(file.read_bytes()) if file.is_file() else None
        except (OSError, ValueError, RecursionError):
            continue  # the file is not JSON, which cfn-lint reports itself
        if isinstance(template, Mapping):
            yield ["Resources", name, "Properties", "TemplateURL"], template


def _explain_mismatch(
    value: object, nested_parameter: Mapping[str, object], parent_parameters: Mapping[str, object]
) -> str:
    """Return why a parameter of a nested stack cannot take a value; empty if it can."""
    if isinstance(value, list):
        return "it is passed a list; nested parameters take text, so join it with commas"
    if isinstance(value, Mapping):
        return _explain_reference_mismatch(value, nested_parameter, parent_parameters)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    parameter_type = str(nested_parameter.get("Type"))
    if parameter_type == "Number" and not re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
        return f"{text!r} is not a number"
    allowed = nested_parameter.get("AllowedValues")
    is_list = parameter_type.startswith("List<") or parameter_type == "CommaDelimitedList"
    if isinstance(allowed, list):
        for item in text.split(",") if is_list else [text]:
            if item.strip() not in map(str, allowed):
                return f"{item.strip()!r} is not among its AllowedValues"
    pattern = nested_parameter.get("AllowedPattern")
    try:
        refused = isinstance(pattern, str) and not re.fullmatch(pattern, text)
    except re.error:
        refused = False  # CloudFormation uses Java's regular expressions, some of which Python cannot parse
    return f"{text!r} does not match its AllowedPattern {pattern}" if refused else ""


def _explain_reference_mismatch(
    value: Mapping[str, object], nested_parameter: Mapping[str, object], parent_parameters: Mapping[str, object]
) -> str:
    """Return why a parameter of a nested stack cannot take the value of a function call; empty if it can."""
    function, argument = expressions.function_call(value)
    if function in ("Fn::GetAZs", "Fn::Split", "Fn::Cidr"):
        return f"{function} gives a list; nested parameters take text, so join it with commas"
    passed_parameter = parent_parameters.get(argument) if function == "Ref" and isinstance(argument, str) else None
    if not isinstance(passed_parameter, Mapping):
        return ""
    passed_type, expected_type = str(passed_parameter.get("Type")), str(nested_parameter.get("Type"))
    if passed_type.startswith("List<") or passed_type == "CommaDelimitedList":
        return f"parameter {argument} is a list; nested parameters take text, so join it with commas"
    if passed_type.startswith("AWS::EC2::") and expected_type.startswith("AWS::EC2::") and passed_type != expected_type:
        return f"it takes {expected_type}, and parameter {argument} is {passed_type}"
    if expected_type == "Number" and passed_type.startswith("AWS::EC2::"):
        return f"it takes a number, and parameter {argument} is {passed_type}"
    return ""
