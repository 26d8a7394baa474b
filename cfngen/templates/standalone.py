"""The same cluster as one flat template, for the console's upload button: no bucket, no nested stacks.

Each wired parameter is replaced by the value of the output that supplies it, so the wiring is not written twice. The
order of the nested stacks becomes DependsOn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import troposphere
from troposphere import cloudformation

from cfngen.cluster.model import Cluster
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import immutable_settings
from cfngen.templates.stack import Stack, add_parameter, finish, plain
from cfngen.templates.wiring import ROOT_VALUES, Wiring, WiringError

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9]+)\}")


# The size of a template in S3 (1 MB) and its resources (AWS CloudFormation quotas).
MAX_BYTES, MAX_RESOURCES = 1_000_000, 500


def build(cluster: Cluster, stacks: Sequence[Stack], wiring: Wiring) -> Document | None:
    """Return the flat template, or None where it would exceed CloudFormation's limits.

    Args:
        cluster: the cluster.
        stacks: all stacks, in the order of their dependencies.
        wiring: which stack supplies which parameter.

    Raises:
        WiringError: two stacks use the same logical id.
    """
    template = troposphere.Template()
    template.set_version()
    template.set_description(f"Kubernetes cluster {cluster.name}: all of it in one template")
    for parameter in wiring.operator_parameters.values():
        add_parameter(template, parameter)
    body = finish(template, cluster, "standalone", wiring.operator_parameters.values(), immutable_settings(cluster))
    resources: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    expressions: dict[str, Any] = dict(ROOT_VALUES)
    for stack in stacks:
        own = stack.document().body
        for logical_id, resource in own["Resources"].items():
            if logical_id in resources or logical_id in wiring.operator_parameters:
                raise WiringError(f"{stack.name} uses the logical id {logical_id} a second time")
            resources[logical_id] = substitute(resource, expressions)
            _add_dependencies(resources, logical_id, stack.standalone_depends_on.get(logical_id, ()))
        for title, wait_condition in stack.outer_wait_conditions.items():
            condition = cloudformation.WaitCondition(
                title, DependsOn=[wait_condition.launched_by], CreationPolicy=wait_condition.policy
            )
            resources[title] = plain(condition)
        expressions.update({output.name: substitute(output.value, expressions) for output in stack.outputs.values()})
        outputs.update(
            {
                output.name: {"Description": output.description, "Value": expressions[output.name]}
                for output in stack.outputs.values()
                if output.in_root
            }
        )
    body["Resources"], body["Outputs"] = resources, outputs
    if len(resources) > MAX_RESOURCES or len(json.dumps(body, indent=2)) > MAX_BYTES:
        return None
    return Document("standalone", body, __name__)


def _add_dependencies(resources: dict[str, Any], logical_id: str, dependencies: Sequence[str]) -> None:
    present = [candidate for candidate in dependencies if candidate in resources]
    if present:
        resource = resources[logical_id]
        own = resource.get("DependsOn", [])
        resource["DependsOn"] = sorted({*([own] if isinstance(own, str) else own), *present})


def substitute(value: Any, expressions: Mapping[str, Any]) -> Any:
    """Return `value` with each reference to a parameter in `expressions` replaced by its expression.

    Args:
        value: JSON-ready data.
        expressions: by the name of the parameter that each replaces.
    """
    if isinstance(value, list):
        return [substitute(item, expressions) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"} and value["Ref"] in expressions:
        return expressions[value["Ref"]]
    if set(value) == {"Fn::Sub"}:
        text, variables = value["Fn::Sub"] if isinstance(value["Fn::Sub"], list) else (value["Fn::Sub"], {})
        return _substitute_sub(text, substitute(variables, expressions), expressions)
    return {key: substitute(item, expressions) for key, item in value.items()}


def _substitute_sub(text: str, variables: dict[str, Any], expressions: Mapping[str, Any]) -> dict[str, Any]:
    """Return an Fn::Sub in which placeholders are replaced by their expressions.

    Text, Ref and Fn::GetAtt go into the text itself; any other expression becomes a variable of the Fn::Sub.
    """
    values = {**{name: expressions[name] for name in _PLACEHOLDER.findall(text) if name in expressions}, **variables}
    variables_left: dict[str, Any] = {}

    def placeholder(match: re.Match[str]) -> str:
        name = match.group(1)
        expression = values.get(name)
        if isinstance(expression, str) and "${" not in expression:
            return expression
        if isinstance(expression, dict) and set(expression) == {"Ref"}:
            return f"${{{expression['Ref']}}}"
        if isinstance(expression, dict) and set(expression) == {"Fn::GetAtt"}:
            return f"${{{'.'.join(expression['Fn::GetAtt'])}}}"
        if expression is not None:
            variables_left[name] = expression
        return match.group(0)

    text = _PLACEHOLDER.sub(placeholder, text)
    return {"Fn::Sub": [text, variables_left] if variables_left else text}
