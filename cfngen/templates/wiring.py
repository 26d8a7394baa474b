"""Finds, for each parameter of a nested stack, the earlier stack's output of the same name that supplies its value.

The root template and the standalone template are built from the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.errors import CfngenError
from cfngen.templates.stack import Output, Parameter, Stack

# Values of parameters that the root stack itself supplies, not another nested stack's output, by the parameter's name.
VALUES_FROM_ROOT_STACK: Mapping[str, object] = {
    "ClusterStackName": {"Ref": "AWS::StackName"},
    # CloudFormation names nested stacks <root>-<logical id>-<random>.
    "NodeStackNames": {"Fn::Sub": "${AWS::StackName}-NodeGroup*Stack-*"},
}
# Those that have another value in the standalone template, where one stack has everything.
VALUES_IN_STANDALONE_STACK: Mapping[str, object] = {"NodeStackNames": {"Ref": "AWS::StackName"}}


class WiringError(CfngenError):
    """The parameters and outputs of the stacks do not match. This is a bug in cfngen, not an error in cluster.yaml."""

    code = "wiring"


class Supplier(NamedTuple):
    """The output of a nested stack that supplies a parameter's value, with the stack that has the output."""

    stack: Stack
    output: Output


@dataclass(frozen=True)
class Wiring:
    """The source of the value of each parameter of a cluster's nested stacks.

    Attributes:
        root_parameters: parameters whose values the user chooses, by name. The root template and the standalone
            template have them.
        suppliers: outputs that supply the values of parameters, by the parameter's name.
        values_of_root: expressions that the root itself resolves and passes, by the parameter's name.
    """

    root_parameters: Mapping[str, Parameter]
    suppliers: Mapping[str, Supplier]
    values_of_root: Mapping[str, object]


def wire(stacks: Sequence[Stack]) -> Wiring:
    """Match the stacks' parameters with outputs of the same name.

    Args:
        stacks: the nested stacks, each after the stacks whose outputs it takes.

    Raises:
        WiringError: no earlier stack supplies a parameter, two stacks have an output of the same name, or two stacks
            define a parameter of the same name differently.
    """
    root_parameters: dict[str, Parameter] = {}
    suppliers: dict[str, Supplier] = {}
    values_of_root: dict[str, object] = dict(VALUES_FROM_ROOT_STACK)
    for stack in stacks:
        for parameter in stack.parameters.values():
            if parameter.value_of_root is not None:
                values_of_root[parameter.name] = parameter.value_of_root
            elif parameter.is_from_other_stack:
                if parameter.name not in suppliers and parameter.name not in values_of_root:
                    raise WiringError(f"{stack.name} needs {parameter.name}, but no earlier stack has this output")
            elif root_parameters.setdefault(parameter.name, parameter) != parameter:
                raise WiringError(
                    f"{stack.name} and an earlier stack define the parameter {parameter.name} differently"
                )
        for output in stack.outputs.values():
            if output.name in suppliers:
                raise WiringError(
                    f"{stack.name} and {suppliers[output.name].stack.name} both have the output {output.name}"
                )
            suppliers[output.name] = Supplier(stack, output)
    return Wiring(root_parameters, suppliers, values_of_root)
