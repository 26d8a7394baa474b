"""Which stack's output supplies which parameter, for the root template and for the flat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.errors import CfngenError
from cfngen.templates.stack import Output, Parameter, Stack

# Wired parameters whose value the root stack itself supplies.
ROOT_VALUES: Mapping[str, Any] = {"ClusterStackName": {"Ref": "AWS::StackName"}}


class WiringError(CfngenError):
    """Parameters and outputs of the stacks do not match; a bug in cfngen, not in the cluster file."""


@dataclass(frozen=True)
class Wiring:
    """Where the parameters of a cluster's stacks get their values.

    Attributes:
        operator_parameters: the parameters whose values the operator sets, by name.
        suppliers: the stack and output that supply each wired parameter, by the parameter's name.
    """

    operator_parameters: Mapping[str, Parameter]
    suppliers: Mapping[str, tuple[Stack, Output]]


def wire(stacks: Sequence[Stack]) -> Wiring:
    """Return the wiring of stacks.

    Args:
        stacks: the stacks in the order of their dependencies.

    Raises:
        WiringError: no stack supplies a wired parameter, two stacks have the same output, or they define the same
            parameter differently.
    """
    operator_parameters: dict[str, Parameter] = {}
    suppliers: dict[str, tuple[Stack, Output]] = {}
    for stack in stacks:
        for parameter in stack.parameters.values():
            if parameter.wired:
                if parameter.name not in suppliers and parameter.name not in ROOT_VALUES:
                    raise WiringError(f"{stack.name} needs {parameter.name}, which no earlier stack puts out")
            elif operator_parameters.setdefault(parameter.name, parameter) != parameter:
                raise WiringError(f"{stack.name} asks for {parameter.name} otherwise than an earlier stack")
        for output in stack.outputs.values():
            if output.name in suppliers:
                raise WiringError(f"{stack.name} and {suppliers[output.name][0].name} both put out {output.name}")
            suppliers[output.name] = (stack, output)
    return Wiring(operator_parameters, suppliers)
