"""Chooses the values of the root's parameters for a deployment.

`--parameter` takes precedence over the parameter file, and the file over the template's default; `--keep` leaves a
parameter at its current value in the stack. Defaults are passed explicitly: if they were left out, CloudFormation would
keep the value of the last deployment, and a change of the cluster file would be lost. A parameter without a default
keeps its current value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import NamedTuple

from cfngen.cluster.instances.group_types import types_key
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.network.existing_parts import GroupRole, existing_group, group_key, stack_outputs
from cfngen.cluster.network.topology import has_api_load_balancer
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.aws.types import AwsArguments, TemplatePart
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.preflight.parameters.parameter_file import ParameterFile
from cfngen.errors import CfngenError
from cfngen.templates.document import LOCATION_PARAMETERS

MASK = "****"
"""Shown in messages instead of the value of a NoEcho parameter."""


class ParameterError(CfngenError):
    """Parameters are missing or unknown, or their values are not allowed.

    Attributes:
        problems: one sentence for each problem.
    """

    code = "invalid-parameter"

    def __init__(self, problems: Sequence[str], *, hint: str) -> None:
        super().__init__("\n".join(problems), hint=hint)
        self.problems = tuple(problems)


class MissingParameterError(ParameterError):
    """Parameters without a default have no value."""

    code = "missing-parameter"

    def __init__(self, problems: Sequence[str], names: Sequence[str], *, hint: str) -> None:
        super().__init__(problems, hint=hint)
        self.names = tuple(names)


@dataclass(frozen=True)
class ParameterValues:
    """The values of one deployment.

    Attributes:
        request_parameters: the argument `Parameters` of CreateChangeSet, in the template's order.
        values: the values of the deployment; NoEcho parameters that keep their value are missing.
        sources: by name, where the value of each parameter comes from that does not have its default, e.g.
            `--parameter VpcId`.
        notices: warnings, e.g. about values that someone has changed in the stack and this deployment resets.
    """

    request_parameters: tuple[TemplatePart, ...]
    values: Mapping[str, str]
    sources: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def choose_values(
    root_template: TemplatePart,
    *,
    option_values: Mapping[str, str] | None = None,
    file: ParameterFile | None = None,
    kept_parameters: Collection[str] = (),
    deployed_stack: StackView | None = None,
    deployed_root_template: TemplatePart | None = None,
    left_out: Mapping[str, str] | None = None,
) -> ParameterValues:
    """Choose the value of every parameter of a root.

    Args:
        option_values: values from the command line (`--parameter`), by parameter.
        kept_parameters: parameters that keep their current value in the stack (`--keep`).
        deployed_stack: the root stack; None if it does not exist yet.
        deployed_root_template: the root's template as it is deployed; its defaults show which values someone has
            changed in the stack.
        left_out: why the root has no parameter of some name, by name; see `left_out_parameters`.

    Raises:
        MissingParameterError: parameters without a default have no value.
        ParameterError: parameters are unknown, or values are not allowed.
    """
    definitions: Mapping[str, TemplatePart] = root_template.get("Parameters", {})
    stack_values = deployed_stack.parameters if deployed_stack else {}
    sources = _ValueSources(option_values or {}, file or ParameterFile(), kept_parameters, stack_values)
    choices = {name: sources.choose(name, definition) for name, definition in definitions.items()}
    chosen = {name: choice for name, choice in choices.items() if choice}
    problems = [*sources.misnamed_parameters(definitions, left_out or {}), *_broken_rules(definitions, chosen)]
    _raise_problems(problems, [name for name, choice in choices.items() if choice is None], definitions)
    return ParameterValues(
        request_parameters=tuple(_request_parameter(name, choice) for name, choice in chosen.items()),
        values={name: choice.value for name, choice in chosen.items() if not _is_hidden(definitions[name], choice)},
        sources={name: choice.source for name, choice in chosen.items() if not _is_default(definitions[name], choice)},
        notices=tuple(_notices(definitions, chosen, sources, deployed_root_template)),
    )


class _Choice(NamedTuple):
    """The value of a parameter, where it comes from, and whether it is the one that the stack has."""

    value: str
    source: str
    is_kept: bool = False


class _ValueSources(NamedTuple):
    """What the command line, the parameter file and the stack say about parameters."""

    option_values: Mapping[str, str]
    file: ParameterFile
    kept_parameters: Collection[str]
    stack_values: Mapping[str, str]

    def choose(self, name: str, definition: TemplatePart) -> _Choice | None:
        """Return the value of a parameter; None if it has neither a value nor a default."""
        is_option = name in self.option_values
        keeps_value = name in self.kept_parameters or (name in self.file.kept_parameters and not is_option)
        if is_option:
            return _Choice(self.option_values[name], f"--parameter {name}")
        if name in self.file.values and not keeps_value:
            return _Choice(self.file.values[name], f"{self.file.name}: {name}")
        # A NoEcho parameter is never reset to its default, since nobody could see the lost value.
        if name in self.stack_values and (keeps_value or "Default" not in definition or _is_no_echo(definition)):
            return _Choice(self.stack_values[name], f"{name}, from the stack", is_kept=True)
        if "Default" in definition:
            return _Choice(str(definition["Default"]), f"{name}, from its default")
        return None

    def misnamed_parameters(
        self, definitions: Mapping[str, TemplatePart], left_out: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield a problem for each name that the root lacks, and for each value to keep that the stack lacks."""
        file_names = self.file.values.keys() | self.file.kept_parameters
        yield from _unknown_parameters(definitions, left_out, self.option_values, "--parameter ")
        yield from _unknown_parameters(definitions, left_out, file_names, f"{self.file.name}: ")
        yield from _unknown_parameters(definitions, left_out, self.kept_parameters, "--keep ")
        kept_names = set(self.kept_parameters) | self.file.kept_parameters
        for name in sorted(kept_names & definitions.keys() - self.stack_values.keys()):
            yield f"--keep {name}: the stack has no value to keep; set one with --parameter {name}=…"


def _broken_rules(definitions: Mapping[str, TemplatePart], choices: Mapping[str, _Choice]) -> Iterator[str]:
    """Yield a problem for each value that its parameter does not allow."""
    for name, choice in choices.items():
        definition = definitions[name]
        # What CloudFormation shows of a hidden value need not fit the rules.
        if not _is_hidden(definition, choice) and (problem := broken_rule(name, definition, choice.value)):
            yield f"{choice.source}: {MASK if _is_no_echo(definition) else repr(choice.value)} {problem}"


def _is_hidden(definition: TemplatePart, choice: _Choice) -> bool:
    """Return whether a value is not known: CloudFormation shows a NoEcho parameter of the stack only as asterisks."""
    return choice.is_kept and _is_no_echo(definition)


def _is_default(definition: TemplatePart, choice: _Choice) -> bool:
    return "Default" in definition and choice.value == str(definition["Default"])


def _raise_problems(problems: list[str], missing_names: Sequence[str], definitions: Mapping[str, TemplatePart]) -> None:
    missing = [_describe_missing(name, definitions[name]) for name in missing_names]
    if problems:
        raise ParameterError([*problems, *missing], hint="correct them and try again; nothing was changed.")
    if missing:
        options = " ".join(f"--parameter {name}=…" for name in missing_names)
        raise MissingParameterError(missing, missing_names, hint=f"set a value for each: {options}")


def _request_parameter(name: str, choice: _Choice) -> AwsArguments:
    if choice.is_kept:
        return {"ParameterKey": name, "UsePreviousValue": True}
    return {"ParameterKey": name, "ParameterValue": choice.value}


def _is_no_echo(definition: TemplatePart) -> bool:
    """Return whether CloudFormation hides the value of a parameter."""
    return str(definition.get("NoEcho", "")).lower() == "true"


def _describe_missing(name: str, definition: TemplatePart) -> str:
    description = str(definition.get("Description", "")).rstrip(".")
    rule = str(definition.get("ConstraintDescription", ""))
    if description and rule:
        return f"{name} has no value: {description} ({rule})"
    return f"{name} has no value: {description or rule}"


def _unknown_parameters(
    definitions: TemplatePart, left_out: Mapping[str, str], names: Iterable[str], source: str
) -> list[str]:
    """Return one problem for each name that is no parameter of the root; `source` is where the names come from."""
    problems = []
    for name in sorted(set(names) - definitions.keys()):
        if name in left_out:
            problems.append(f"{source}{name}: {left_out[name]}; remove the parameter, or change the cluster file")
            continue
        if name in LOCATION_PARAMETERS:
            advice = "cfngen uploads the templates itself; remove it (--bucket chooses the bucket)"
        elif matches := difflib.get_close_matches(name, definitions) or _matches_ignoring_case(name, definitions):
            advice = f"did you mean {matches[0]}?"
        else:
            advice = f"there are {', '.join(definitions)}" if definitions else "the template has none"
        problems.append(f"{source}{name}: there is no such parameter; {advice}")
    return problems


def _matches_ignoring_case(name: str, existing_names: Iterable[str]) -> list[str]:
    """Return the existing names that differ from a name only in upper and lower case."""
    return [existing_name for existing_name in existing_names if existing_name.lower() == name.lower()]


def _notices(
    definitions: Mapping[str, TemplatePart],
    choices: Mapping[str, _Choice],
    sources: _ValueSources,
    deployed_root_template: TemplatePart | None,
) -> Iterator[Notice]:
    """Yield warnings about values that open the API to everybody, or reset what someone has changed in the stack."""
    kept_names = [name for name, choice in choices.items() if choice.is_kept]
    explicit_names = {*sources.option_values, *sources.file.values, *kept_names}
    values = {name: choice.value for name, choice in choices.items()}
    yield from _open_api_notices(values, explicit_names)
    implicit_values = {name: value for name, value in values.items() if name not in explicit_names}
    yield from _reset_notices(definitions, implicit_values, sources.stack_values, deployed_root_template)


def _open_api_notices(values: Mapping[str, str], explicit_names: Collection[str]) -> Iterator[Notice]:
    """Yield a warning if a parameter opens the API to everybody.

    The key `api.allowedCidrs` of the cluster file is checked elsewhere.
    """
    if API_CIDR_PARAMETER in explicit_names and values.get(API_CIDR_PARAMETER, "").endswith("/0"):
        yield Notice(
            f"the Kubernetes API is open to everybody: {API_CIDR_PARAMETER} is {values[API_CIDR_PARAMETER]}",
            f"set your own address range with --parameter {API_CIDR_PARAMETER}=…, e.g. 203.0.113.7/32.",
        )


def _reset_notices(
    definitions: Mapping[str, TemplatePart],
    values: Mapping[str, str],
    stack_values: Mapping[str, str],
    deployed_root_template: TemplatePart | None,
) -> Iterator[Notice]:
    """Yield a notice for each parameter that someone has changed in the stack and this deployment resets.

    Args:
        values: the values that neither come from the user nor are kept.
        deployed_root_template: the root's template as it is deployed; None if there is none.
    """
    deployed_definitions = (deployed_root_template or {}).get("Parameters", {})
    for name, value in values.items():
        current_value = stack_values.get(name)
        if _is_no_echo(definitions[name]) or current_value is None or current_value == value:
            continue
        default = deployed_definitions.get(name, {}).get("Default")
        # A value that is the deployed default was not changed in the stack: the cluster file has changed since.
        if default is not None and str(default) == current_value:
            continue
        yield Notice(
            f"{name} was changed to {current_value} in the stack and is reset to {value} from the cluster file",
            f"--keep {name} keeps {current_value}; to keep it in later deployments too, change the cluster file.",
        )


_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def broken_rule(name: str, definition: TemplatePart, value: str) -> str:
    """Return which rule a value breaks, as the rest of a sentence; an empty text if the value is allowed.

    Args:
        name: the parameter's name; one that ends in `Cidr` takes an address range.
    """
    parameter_type = str(definition.get("Type", ""))
    is_list = (
        parameter_type.startswith(("List<", "AWS::SSM::Parameter::Value<List<"))
        or "CommaDelimitedList" in parameter_type
    )
    # The rules apply to each item of a list. If the value is the name of an SSM parameter, they apply to the name.
    items = [item.strip() for item in value.split(",")] if is_list else [value]
    description = str(definition.get("ConstraintDescription", ""))
    for item in items:
        if reason := _broken_bound(definition, item, is_numeric=parameter_type in ("Number", "List<Number>")):
            return f"{description} ({reason})" if description else reason
        if not _fits_pattern(definition, item):
            # The constraint description explains the pattern.
            return description or f"does not match {definition['AllowedPattern']}"
        if name.endswith("Cidr") and (reason := _cidr_problem(item)):
            return f"{description} ({reason})" if description else reason
    return ""


def _broken_bound(definition: TemplatePart, item: str, *, is_numeric: bool) -> str:
    """Return which bound a value breaks (allowed values, minimum, maximum, or length), or an empty text."""
    allowed = [str(allowed_value) for allowed_value in definition.get("AllowedValues", ())]
    if allowed and item not in allowed:
        return f"is not one of {', '.join(allowed)}"
    if is_numeric and not _NUMBER.fullmatch(item):
        return "is not a number"
    if is_numeric and "MinValue" in definition and float(item) < float(definition["MinValue"]):
        return f"must be at least {definition['MinValue']}"
    if is_numeric and "MaxValue" in definition and float(item) > float(definition["MaxValue"]):
        return f"must be at most {definition['MaxValue']}"
    if "MinLength" in definition and len(item) < int(definition["MinLength"]):
        return f"must have at least {definition['MinLength']} characters"
    if "MaxLength" in definition and len(item) > int(definition["MaxLength"]):
        return f"must have at most {definition['MaxLength']} characters"
    return ""


def _cidr_problem(item: str) -> str:
    """Return why a text is no IPv4 address range, which a pattern cannot check; an empty text if it is one."""
    try:
        IPv4Network(item, strict=False)
    except ValueError as error:
        # Python's messages end with "in" and the value, which the caller's message contains already.
        reason, _, _ = str(error).partition(" in ")
        return reason[:1].lower() + reason[1:]
    return ""


def _fits_pattern(definition: TemplatePart, value: str) -> bool:
    """Return whether a value matches the parameter's `AllowedPattern`, if there is one."""
    pattern = definition.get("AllowedPattern")
    if not pattern:
        return True
    try:
        return bool(re.fullmatch(str(pattern), value))
    except re.error:
        # Java's regular expressions, which CloudFormation uses, have features that Python lacks; CloudFormation checks.
        return True


API_CIDR_PARAMETER = "ApiAllowedCidr"
"""Parameter with the address range from which the Kubernetes API can be reached."""


def left_out_parameters(cluster: Cluster) -> dict[str, str]:
    """Return the reason for each parameter that the root template lacks because of the cluster file, by its name."""
    reasons = {
        str(NodeGroupId(group.name, "InstanceType")): f"`nodeGroups[{index}].{types_key(group)}` in the cluster file "
        "says which types the group has"
        for index, group in enumerate(cluster.node_groups)
        if group.instance_types or group.instance_requirements
    }
    for name, output in stack_outputs(cluster).items():
        reasons[name] = f"the cluster file takes it from another stack ({output})"
    api_reason = _api_range_reason(cluster)
    if api_reason:
        reasons[API_CIDR_PARAMETER] = api_reason
    return reasons


def _api_range_reason(cluster: Cluster) -> str:
    """Return why there is no parameter for who may reach the API; empty if there is one."""
    if cluster.api.allowed_cidrs:
        return "`api.allowedCidrs` in the cluster file sets it"
    if cluster.api.allowed_prefix_lists:
        return "`api.allowedPrefixLists` in the cluster file says who may reach the API"
    role: GroupRole = "ApiLoadBalancer" if has_api_load_balancer(cluster) else "Master"
    if existing_group(cluster, role):
        return (
            f"the rules of your own security group ({group_key(role)}) say who may reach the API, and cfngen changes "
            "none of them"
        )
    return ""
