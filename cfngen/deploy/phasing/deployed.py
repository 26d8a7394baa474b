"""Reads the deployed templates and parameters of a root and its nested stacks.

A phase that must leave a nested stack unchanged deploys that stack's template and parameters again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.publishing.publish import nested
from cfngen.deploy.stacks import list_resources, read_template

SSM_TYPE_PREFIX = "AWS::SSM::Parameter::Value"
"""Start of the type of template parameters whose values CloudFormation reads from SSM Parameter Store."""


@dataclass(frozen=True)
class DeployedStack:
    """A nested stack as it is deployed.

    Attributes:
        name: name of the document of its template.
        body: its template.
        values: values of its parameters by name; for parameters read from SSM, the resolved values. NoEcho parameters
            are missing, since CloudFormation does not return their values.
    """

    name: str
    body: TemplatePart
    values: Mapping[str, str]


@dataclass(frozen=True)
class Deployed:
    """A root and its nested stacks as they are deployed.

    Attributes:
        root: the root's template.
        children: the root's nested stacks by logical id, without those whose templates cannot be read as JSON.
    """

    root: TemplatePart
    children: Mapping[str, DeployedStack] = field(default_factory=dict)


def read_deployed(account: Account, root_id: str, root: TemplatePart) -> Deployed:
    """Return the templates and parameters of a root and its nested stacks.

    Args:
        account: the account and region.
        root_id: ARN of the root.
        root: the root's template; empty if it cannot be read.
    """
    names_by_stack = nested(root)
    children: dict[str, DeployedStack] = {}
    for view in list_resources(account, root_id):
        if not view.physical_id or view.logical_id not in names_by_stack:
            continue
        if view.status.startswith("DELETE") or view.status == "CREATE_FAILED":
            continue
        if body := read_template(account, view.physical_id):
            children[view.logical_id] = DeployedStack(
                name=names_by_stack[view.logical_id],
                body=body,
                values=_read_parameter_values(account, view.physical_id, body),
            )
    return Deployed(root, children)


def _read_parameter_values(account: Account, stack_id: str, body: TemplatePart) -> dict[str, str]:
    """Return the values of a stack's parameters by name, without the NoEcho parameters of its template."""
    [stack] = account.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    secret_names = {
        name
        for name, definition in body.get("Parameters", {}).items()
        if str(definition.get("NoEcho", "")).lower() == "true"
    }
    return {
        parameter["ParameterKey"]: parameter.get("ResolvedValue") or parameter.get("ParameterValue", "")
        for parameter in stack.get("Parameters", ())
        if parameter["ParameterKey"] not in secret_names
    }
