"""Protects a cluster against accidental loss, by termination protection and stack policies.

Termination protection is enabled on the root stack and covers its nested stacks. A stack policy restricts updates of
the resources of one stack only: the root's policy protects the nested stacks that contain state, and each of these has
a policy for its volumes, addresses and secrets. A change set cannot set a policy, and a new stack has none: policies
are set once the stacks exist ("Prevent updates to stack resources", CloudFormation User Guide) and no operation is in
progress (envato/stack_master#178). Termination protection can be enabled in any status except during a deletion
("Protect CloudFormation stacks from being deleted"), so a new root has it before it has any resources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.aws.protection import (
    ALLOW_ALL_POLICY,
    disable_termination_protection,
    intended_stack_policies,
    read_stack_policy,
    set_termination_protection,
)
from cfngen.deploy.aws.stacks import StackView, find_stack, stack_name
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

if TYPE_CHECKING:
    from cfngen.deploy.aws.protection import StackPolicy


class PolicyNotRestoredError(CfngenError):
    """A stack policy that was lifted for one update could not be restored.

    Attributes:
        stacks: ARNs of the stacks whose policy is not restored.
    """

    code = "stack-policy-not-restored"

    def __init__(self, stacks: tuple[str, ...], reason: Exception) -> None:
        names = ", ".join(stack_name(stack) for stack in stacks)
        super().__init__(
            f"the stack policy could not be restored on {names}: {reason}",
            hint="deploy again without changes to set it again. Until then an update may replace volumes.",
        )
        self.stacks = stacks


def protect_stack(account: Account, root: StackView, termination: bool = True, *, report: Report) -> None:
    """Enable termination protection, and set stack policies on the root and the nested stacks that contain state.

    Args:
        root: the root stack, in which no operation is in progress.
        termination: whether to enable termination protection; it is never disabled here.
        report: receives a notice for each stack policy that someone else has set; such a policy is not changed, unless
            it allows every update.
    """
    with translate_aws_errors():
        if termination and not root.protected:
            set_termination_protection(account, root, enabled=True)
        for stack, policy in intended_stack_policies(account, root):
            current_policy = read_stack_policy(account, stack)
            if current_policy == policy:
                continue
            if current_policy not in (None, ALLOW_ALL_POLICY):
                hint = f"`aws cloudformation get-stack-policy --region {account.region} --stack-name {stack}` shows it."
                report(
                    Notice(f"the stack {stack_name(stack)} has a policy that is not cfngen's; it is unchanged", hint)
                )
                continue
            _set_stack_policy(account, stack, policy)


@contextmanager
def lift_stack_policies(account: Account, root: StackView, *, report: Report) -> Iterator[None]:
    """Lift the stack policies for one update, which may then replace protected resources; restore them afterwards.

    If the user detaches from the update, the policies stay lifted until `cfngen watch` or the next deployment:
    CloudFormation accepts no policy for a stack with an operation in progress, and a policy that is restored on a
    nested stack before the update reaches it would make the update fail.

    Args:
        report: receives a notice if the policies could not be restored after the update itself failed.

    Raises:
        PolicyNotRestoredError: the update succeeded, but a policy could not be restored.
        AwsError: a policy cannot be lifted.
    """
    lifted_policies: dict[str, StackPolicy] = {}
    update_failed = True
    try:
        with translate_aws_errors():
            for stack, _ in intended_stack_policies(account, root):
                current_policy = read_stack_policy(account, stack)
                if current_policy is not None and current_policy != ALLOW_ALL_POLICY:
                    lifted_policies[stack] = current_policy
                    _set_stack_policy(account, stack, ALLOW_ALL_POLICY)
        yield
        update_failed = False
    finally:
        _restore_stack_policies(account, root, lifted_policies, update_failed=update_failed, report=report)


def protect_new_stack(account: Account, stack_id: str) -> None:
    """Enable termination protection on a stack that is about to be created, before it has any resources.

    Errors are ignored here: `protect_stack` tries again at the end of the deployment, and reports them.

    Args:
        stack_id: ARN of the root stack, which is still empty.
    """
    with suppress(AwsError), translate_aws_errors():
        account.client("cloudformation").update_termination_protection(
            StackName=stack_id, EnableTerminationProtection=True
        )


def protect_deployed_stack(account: Account, stack: StackView, termination: bool, report: Report) -> None:
    """Protect a deployed stack; an AWS error is only a notice, since the deployment itself has succeeded."""
    try:
        protect_stack(account, stack, termination, report=report)
    except AwsError as error:
        text = f"{stack.name} is up to date, but not protected: {error}"
        report(Notice(text, error.hint or "the next deployment tries again."))


def unprotect_failed_creation(account: Account, root: StackView, report: Report) -> None:
    """Disable termination protection of a stack that can only be deleted, because its creation was rolled back.

    Args:
        root: the root stack, in which no operation is in progress.
    """
    if root.status.health is not StackHealth.DELETE_ONLY:
        return
    try:
        disable_termination_protection(account, root)
    except AwsError as error:
        report(Notice(f"{root.name} is still protected against deletion: {error}", error.hint))


def _set_stack_policy(account: Account, stack: str, policy: StackPolicy) -> None:
    account.client("cloudformation").set_stack_policy(StackName=stack, StackPolicyBody=json.dumps(policy))


def _restore_stack_policies(
    account: Account,
    root: StackView,
    lifted_policies: Mapping[str, StackPolicy],
    *,
    update_failed: bool,
    report: Report,
) -> None:
    """Set lifted stack policies again; if that fails, raise an error, or report it if the update failed too.

    While the update is still in progress (the user has detached from it), nothing is restored.
    """
    if lifted_policies and _is_in_progress(account, root.id):
        # A nested stack that the update has not reached yet would accept its policy, and then fail to be updated.
        hint = CommandText(suggest("watch", stack=root.name), " sets them again at the end of the update.")
        report(Notice("the stack policies stay lifted while the update continues", hint))
        return
    unrestored: list[str] = []
    reason: Exception | None = None
    interrupted: KeyboardInterrupt | None = None
    for stack, policy in lifted_policies.items():
        try:
            _restore_stack_policy(account, stack, policy)
        except KeyboardInterrupt as error:  # the next policies are restored despite a second Ctrl-C
            interrupted, reason = error, RuntimeError("interrupted")
            unrestored.append(stack)
        except CfngenError as error:
            reason = error
            unrestored.append(stack)
    if reason:
        restore_error = PolicyNotRestoredError(tuple(unrestored), reason)
        if not update_failed and not interrupted:
            raise restore_error
        # The error of the update itself is being raised, so this error is only reported.
        report(Notice(str(restore_error), restore_error.hint))
    if interrupted:
        raise interrupted


def _restore_stack_policy(account: Account, stack: str, policy: StackPolicy) -> None:
    from botocore.exceptions import ClientError

    with translate_aws_errors():
        try:
            _set_stack_policy(account, stack, policy)
        except ClientError as error:
            # If the update has deleted this nested stack, there is no policy to restore.
            if error_code(error) == "ValidationError" and _is_deleted(account, stack):
                return
            raise


def _is_in_progress(account: Account, stack: str) -> bool:
    """Return whether an operation is in progress on a stack; False if the stack cannot be read."""
    try:
        with translate_aws_errors():
            current = find_stack(account, stack)
    except CfngenError:
        return False
    return current is not None and current.status.in_progress


def _is_deleted(account: Account, stack: str) -> bool:
    current = find_stack(account, stack)
    return current is None or not current.status.exists
