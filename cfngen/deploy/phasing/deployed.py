"""Reads the deployed templates and parameters of a root and its nested stacks.

A phase that must leave a nested stack unchanged deploys that stack's template and parameters again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.publishing.publish import nested_template_names
from cfngen.deploy.stacks import list_resources, read_template

SSM_TYPE_PREFIX = "AWS::SSM::Parameter::Value"
"""Start of the type of template parameters whose values CloudFormation reads from SSM Parameter Store."""


@dataclass(frozen=True)
class DeployedStack:
    """A nested stack as it is deployed.

    Attributes:
        template_name: name of its template, as in `Document.name`.
        template: its template.
        values: values of its parameters by name; for parameters read from SSM, the resolved values. NoEcho parameters
            are missing, since CloudFormation does not return their values.
    """

    template_name: str
    template: TemplatePart
    values: Mapping[str, str]


@dataclass(frozen=True)
class DeployedTemplates:
    """A root and its nested stacks as they are deployed.

    Attributes:
        root_template: the root's template.
        nested_stacks: the root's nested stacks by logical id, without those whose templates cannot be read as JSON.
    """

    root_template: TemplatePart
    nested_stacks: Mapping[str, DeployedStack] = field(default_factory=dict)


def read_deployed(account: Account, root_id: str, root_template: TemplatePart) -> DeployedTemplates:
    """Return the templates and parameters of a root and its nested stacks.

    Args:
        account: the account and region.
        root_id: ARN of the root.
        root_template: the root's template; empty if it cannot be read.
    """
    names_by_stack = nested_template_names(root_template)
    nested_stacks: dict[str, DeployedStack] = {}
    for resource in list_resources(account, root_id):
        if not resource.physical_id or resource.logical_id not in names_by_stack:
            continue
        if resource.status.startswith("DELETE") or resource.status == "CREATE_FAILED":
            continue
        if stack_template := read_template(account, resource.physical_id):
            nested_stacks[resource.logical_id] = DeployedStack(
                template_name=names_by_stack[resource.logical_id],
                template=stack_template,
                values=_read_parameter_values(account, resource.physical_id, stack_template),
            )
    return DeployedTemplates(root_template, nested_stacks)


def _read_parameter_values(account: Account, stack_id: str, stack_template: TemplatePart) -> dict[str, str]:
    """Return the values of a stack's parameters by name, without the NoEcho parameters of its template."""
    [stack] = account.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    no_echo_names = {
        name
        for name, definition in stack_template.get("Parameters", {}).items()
        if str(definition.get("NoEcho", "")).lower() == "true"
    }
    return {
        parameter["ParameterKey"]: parameter.get("ResolvedValue") or parameter.get("ParameterValue", "")
        for parameter in stack.get("Parameters", ())
        if parameter["ParameterKey"] not in no_echo_names
    }
