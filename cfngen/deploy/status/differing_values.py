"""Parameters whose value in the stack is not that of the cluster file.

The AWS CLI and the CDK keep a stack's values in updates, so a change of the cluster file may be lost without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.deploy.aws.stacks import StackView
from cfngen.hints import CommandText, Hint, suggest


@dataclass(frozen=True)
class DifferingValue:
    """A parameter whose value in the stack is not that of the cluster file.

    Attributes:
        name: name of the parameter.
        stack_value: its value in the stack.
        file_value: what the cluster file says.
        hint: how the value of the cluster file gets into the stack.
    """

    name: str
    stack_value: str
    file_value: str
    hint: Hint

    @property
    def text(self) -> str:
        """The difference as the rest of a sentence."""
        return f"{self.name} is {self.stack_value} in the stack and {self.file_value} in the cluster file"


def find_differing_values(stack: StackView, file_values: Mapping[str, str]) -> tuple[DifferingValue, ...]:
    """Return the parameters of a root stack that have another value than the cluster file says.

    Args:
        file_values: what the cluster file says, by parameter; a parameter that only one of the two has is left out.
    """
    hint: Hint = ""  # a stack that cannot be updated has another next step first
    if stack.made_elsewhere:
        hint = CommandText(
            "pass what ", suggest("templates"), " writes into parameters/ in each update (docs/deploy/pipelines.md)."
        )
    elif stack.status.change_set_type:
        hint = CommandText(suggest("plan"), " shows what the cluster file would change.")
    return tuple(
        DifferingValue(name, stack.parameters[name], value, hint)
        for name, value in file_values.items()
        if stack.parameters.get(name, value) != value
    )
