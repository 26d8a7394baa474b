"""References in place of ids: outputs of other stacks, parameters of Parameter Store, the account in an ARN.

A reference stands in the cluster file where the id of an existing part stands otherwise. CloudFormation resolves it
when it creates or updates the stack, so templates never have the id itself. The third kind, an output of Terraform, is
replaced by its value when the cluster file is loaded (`cfngen.cluster.file.terraform_outputs`).

ARNs of keys, policies and topics may have CloudFormation's `${AWS::AccountId}` in place of the account's number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

ACCOUNT_VARIABLE = "${AWS::AccountId}"
"""What stands for the number of the cluster's account in an ARN of the cluster file."""
STACK_PATTERN = r"stack:[A-Za-z][A-Za-z0-9-]{0,127}\.[A-Za-z0-9]{1,255}"
PARAMETER_PATTERN = r"ssm:(/[A-Za-z0-9_.-]+)+"
TERRAFORM_PATTERN = r"terraform:[^#\n]+#[^#\s]+"
_FORMS = {
    "stack": (STACK_PATTERN, "`stack:NAME.Output`, e.g. stack:network.VpcId"),
    "ssm": (PARAMETER_PATTERN, "`ssm:/NAME`, e.g. ssm:/network/vpc-id"),
    "terraform": (TERRAFORM_PATTERN, "`terraform:FILE#OUTPUT`, e.g. terraform:network.json#vpc_id"),
}
_KIND = re.compile(r"(stack|ssm|terraform):")


@dataclass(frozen=True)
class StackOutput:
    """An output of another CloudFormation stack in the same account and region."""

    stack: str
    output: str

    def __str__(self) -> str:
        """Return the reference as the cluster file has it."""
        return f"stack:{self.stack}.{self.output}"


@dataclass(frozen=True)
class StoredParameter:
    """A parameter of Parameter Store, in the same account and region."""

    name: str

    def __str__(self) -> str:
        """Return the reference as the cluster file has it."""
        return f"ssm:{self.name}"


Reference: TypeAlias = StackOutput | StoredParameter


def parse_reference(value: str | None) -> Reference | None:
    """Return the reference that a value of the cluster file is, or None if it is an id, or nothing."""
    if value is None:
        return None
    if re.fullmatch(STACK_PATTERN, value):
        stack, output = value.removeprefix("stack:").split(".")
        return StackOutput(stack, output)
    if re.fullmatch(PARAMETER_PATTERN, value):
        return StoredParameter(value.removeprefix("ssm:"))
    return None


def known_id(value: str | None) -> str | None:
    """Return the id that a value of the cluster file is, or None if it is a reference, or nothing."""
    return None if parse_reference(value) else value


def with_account(arn: str, account_number: str) -> str:
    """Return an ARN of the cluster file with the number of the cluster's account in place of the variable for it."""
    return arn.replace(ACCOUNT_VARIABLE, account_number)


def text_of_sub(arn: str) -> str:
    """Return the text for `Fn::Sub` of an ARN of the cluster file; empty if it has the number of an account.

    The partition is a variable there, too: the ARN has that of the account.
    """
    return re.sub("^arn:[^:]*", "arn:${AWS::Partition}", arn) if ACCOUNT_VARIABLE in arn else ""


def refusal(value: str, *, is_accepted: bool, expected: str) -> str:
    """Return why a text that looks like a reference cannot stand where it does; empty if it looks like none.

    Args:
        is_accepted: whether the key takes references to stacks and to Parameter Store.
        expected: what the key takes otherwise.
    """
    match = _KIND.match(value)
    if match is None:
        return ""
    pattern, form = _FORMS[match[1]]
    if match[1] != "terraform" and not is_accepted:
        return (
            f"{value!r} is a reference that only CloudFormation could resolve, and cfngen needs this value itself; "
            f"enter {expected}, or an output of Terraform (`terraform:FILE#OUTPUT`)"
        )
    if not re.fullmatch(pattern, value):
        return f"{value!r} is not of the form {form}"
    # Reading a cluster file replaces these by the values of the outputs, so this one is not from a file.
    if match[1] == "terraform":
        return f"{value!r} is the output of a file, which is only read for a cluster file; enter {expected}"
    return ""
