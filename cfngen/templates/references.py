"""Values of existing parts in templates: ids and ARNs, parameters with ids, references that CloudFormation resolves.

The root resolves references, once, and passes the values to the nested stacks: an output of another stack by
Fn::GetStackOutput, and a parameter of Parameter Store by a parameter of the root that has its name. If a reference
leads elsewhere, a property of the nested stack in the root changes, so that a change set shows it. DescribeStacks shows
the values of both on the root: of the first kind as outputs, of the second as `ResolvedValue`.
"""

from __future__ import annotations

from typing import Any

import troposphere
from troposphere import GetStackOutput, Sub

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import ExistingPartId, RecordedId
from cfngen.cluster.network.existing_parts import PartKind, stack_outputs
from cfngen.cluster.sections.references import StackOutput, parse_reference, text_of_sub
from cfngen.templates.stack import ACCESS, NETWORK, PropertyValue, Stack

_NAME_CONSTRAINTS: dict[str, Any] = {
    "AllowedPattern": "^(/[A-Za-z0-9_.-]+)+$",
    "ConstraintDescription": "must be the name of a parameter in Parameter Store, which begins with /",
}


def part_parameter(
    stack: Stack,
    name: str,
    value: str | None,
    kind: PartKind,
    *,
    label: str,
    parameter_group: str = NETWORK,
    description: str,
    **constraints: Any,
) -> PropertyValue:
    """Return the id of an existing part: a parameter for an id, or for the name of a stored one, or another's output.

    Args:
        value: id or reference in the cluster file; None if the user enters the id at deployment.
        constraints: further keys of the parameter's definition if it takes an id, e.g. `AllowedPattern`.
    """
    reference = parse_reference(value)
    if isinstance(reference, StackOutput):
        return stack.parameter_from_other_stack(name, description=description, value_of_root=_output_of(reference))
    if reference:
        return stack.parameter(
            name,
            type=f"AWS::SSM::Parameter::Value<{kind.parameter_type}>",
            label=label,
            parameter_group=parameter_group,
            description=f"{description}: name of the parameter in Parameter Store that contains its id",
            default=reference.name,
            is_looked_up_by_root=True,
            **_NAME_CONSTRAINTS,
        )
    return stack.parameter(
        name,
        type=kind.parameter_type,
        label=label,
        parameter_group=parameter_group,
        description=description,
        default=value,
        **constraints,
    )


def part_value(stack: Stack, value: str, kind: PartKind, *, parameter_group: str = ACCESS) -> PropertyValue:
    """Return the id of an existing part, which becomes a parameter only if the cluster file has a reference to it.

    Args:
        value: id or reference in the cluster file.
        parameter_group: heading under which the console shows the parameter for a stored id.
    """
    reference = parse_reference(value)
    if reference is None:
        return value
    return part_parameter(
        stack,
        str(ExistingPartId.of(kind.word, value)),
        value,
        kind,
        label=f"{kind.noun[0].upper()}{kind.noun[1:]} {value.partition(':')[2]}",
        parameter_group=parameter_group,
        description=f"Existing {kind.noun}",
    )


def reference_outputs(cluster: Cluster) -> tuple[troposphere.Output, ...]:
    """Return an output of the root for each output of another stack that the cluster refers to: the resolved value."""
    return tuple(
        troposphere.Output(
            str(RecordedId(name)),
            Description=f"Output {reference.output} of the stack {reference.stack}, as it was at the last update",
            Value=_output_of(reference),
        )
        for name, reference in stack_outputs(cluster).items()
    )


def _output_of(reference: StackOutput) -> GetStackOutput:
    return GetStackOutput(StackName=reference.stack, OutputName=reference.output)


def named_arn(arn: str) -> PropertyValue:
    """Return an ARN as it is or, if it leaves the account open, an expression for that of the stack's account."""
    text = text_of_sub(arn)
    return Sub(text) if text else arn
