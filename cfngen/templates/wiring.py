"""Matches parameters of nested stacks with outputs of earlier stacks, for the root and the standalone template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.errors import CfngenError
from cfngen.templates.stack import Output, Parameter, Stack

# Values that no nested stack supplies but the root stack, by the parameter's name.
ROOT_VALUES: Mapping[str, object] = {"ClusterStackName": {"Ref": "AWS::StackName"}}


class WiringError(CfngenError):
    """The parameters and outputs of the stacks do not match. This is a bug in cfngen, not an error in cluster.yaml."""

    code = "wiring"


@dataclass(frozen=True)
class Wiring:
    """The source of the value of each parameter of a cluster's stacks.

    Attributes:
        root_parameters: parameters whose values the user chooses, by name. The root template and the standalone
            template have them.
        suppliers: the stack and the output that supply a parameter's value, by the parameter's name.
    """

    root_parameters: Mapping[str, Parameter]
    suppliers: Mapping[str, tuple[Stack, Output]]


def wire(stacks: Sequence[Stack]) -> Wiring:
    """Match the stacks' parameters with outputs of the same name.

    Args:
        stacks: the nested stacks, each after the stacks whose outputs it takes.

    Raises:
        WiringError: no earlier stack supplies a parameter, two stacks have an output of the same name, or two stacks
            define a parameter of the same name differently.
    """
    root_parameters: dict[str, Parameter] = {}
    suppliers: dict[str, tuple[Stack, Output]] = {}
    for stack in stacks:
        for parameter in stack.parameters.values():
            if parameter.is_from_other_stack:
                if parameter.name not in suppliers and parameter.name not in ROOT_VALUES:
                    raise WiringError(f"{stack.name} needs {parameter.name}, but no earlier stack has this output")
            elif root_parameters.setdefault(parameter.name, parameter) != parameter:
                raise WiringError(
                    f"{stack.name} and an earlier stack define the parameter {parameter.name} differently"
                )
        for output in stack.outputs.values():
            if output.name in suppliers:
                raise WiringError(
                    f"{stack.name} and {suppliers[output.name][0].name} both have the output {output.name}"
                )
            suppliers[output.name] = (stack, output)
    return Wiring(root_parameters, suppliers)
