"""Values that a cluster file takes from elsewhere: outputs of stacks, and parameters of Systems Manager."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from cfngen.cluster.sections.references import StackOutput
from cfngen.deploy.aws.account import Account, batches
from cfngen.deploy.aws.errors import AwsError, DeniedError, translate_aws_errors
from cfngen.deploy.aws.stacks import StackView, find_stack

_MAX_NAMES = 10  # of one call of GetParameters


_SECURE = "SecureString"


class StackOutputs:
    """The outputs of other stacks."""

    def __init__(self, account: Account, cluster: str, stacks: set[str]) -> None:
        self._region = account.region
        self._cluster = cluster
        self._found = {name: _read_stack(account, name) for name in sorted(stacks)}

    def find(self, reference: StackOutput) -> tuple[str, str]:
        """Return the value of an output and an empty text, or an empty text and why there is no value."""
        stack = self._found[reference.stack]
        if isinstance(stack, AwsError):
            return "", _describe_failure(stack, f"cloudformation:DescribeStacks on the stack {reference.stack}")
        if stack is None or not stack.status.exists:
            return "", f"names a stack that does not exist in {self._region}"
        if stack.cluster == self._cluster:
            return "", "names a stack of this cluster itself, whose outputs follow from the cluster file"
        if reference.output not in stack.outputs:
            advice = _advise(reference.output, stack.outputs) or f"it has none, and is {stack.status.name}"
            return "", f"names an output that the stack does not have; {advice}"
        return stack.outputs[reference.output], ""


def _read_stack(account: Account, name: str) -> StackView | AwsError | None:
    """Return a stack, None if there is none with this name, or why it cannot be read."""
    try:
        with translate_aws_errors():
            return find_stack(account, name)
    except AwsError as error:
        return error


class StoredValues:
    """Parameters of Parameter Store."""

    def __init__(self, account: Account, names: Sequence[str]) -> None:
        self._region = account.region
        self._parameters: dict[str, Mapping[str, Any]] = {}
        self._error: AwsError | None = None
        try:
            with translate_aws_errors():
                for batch in batches(names, _MAX_NAMES):
                    parameters = account.items("ssm.get_parameters", "Parameters", Names=batch)
                    self._parameters.update({parameter["Name"]: parameter for parameter in parameters})
        except AwsError as error:
            self._error = error

    def find(self, name: str) -> tuple[str, str]:
        """Return the value of a parameter and an empty text, or an empty text and why there is no value."""
        if self._error:
            return "", _describe_failure(self._error, f"ssm:GetParameters on the parameter {name}")
        parameter = self._parameters.get(name)
        if parameter is None:
            return "", f"names a parameter that does not exist in the Parameter Store of {self._region}"
        if parameter["Type"] == _SECURE:
            return "", f"is a {_SECURE}, which CloudFormation does not look up for parameters; store it as a String"
        return str(parameter["Value"]), ""


def _describe_failure(error: AwsError, permission: str) -> str:
    """Return why a reference could not be read; `permission` is the action and resource that may be missing."""
    if isinstance(error, DeniedError):
        return f"cannot be read; get the permission {permission}"
    return f"cannot be read: {error}"


def _advise(name: str, existing: Mapping[str, str]) -> str:
    """Return which output may be meant, or which there are; an empty text if there are none."""
    if matches := difflib.get_close_matches(name, existing, n=1):
        return f"did you mean {matches[0]}?"
    return f"it has {', '.join(sorted(existing))}" if existing else ""
