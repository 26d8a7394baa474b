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
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.stacks import NESTED_STACK, StackView, find_stack, list_resources, stack_name
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

# Nested stacks that contain the cluster's state: etcd's volumes, the API's address, and the certificate authorities.
STATEFUL_STACKS = ("MasterStack", "SecretsStack")
# Types of resources whose replacement loses data, or an address that clients use.
PROTECTED_TYPES = (
    "AWS::EC2::EIP",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
)

StackPolicy = Mapping[str, Any]

# A stack policy cannot be removed, only replaced by one that allows every update.
ALLOW_ALL_POLICY: StackPolicy = {
    "Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}]
}
_DENY_REPLACE_AND_DELETE = {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*"}
ROOT_POLICY: StackPolicy = {
    "Statement": [
        *ALLOW_ALL_POLICY["Statement"],
        {**_DENY_REPLACE_AND_DELETE, "Resource": [f"LogicalResourceId/{logical_id}" for logical_id in STATEFUL_STACKS]},
    ]
}
STATEFUL_STACK_POLICY: StackPolicy = {
    "Statement": [
        *ALLOW_ALL_POLICY["Statement"],
        {
            **_DENY_REPLACE_AND_DELETE,
            "Resource": "*",
            "Condition": {"StringEquals": {"ResourceType": list(PROTECTED_TYPES)}},
        },
    ]
}


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
        account: the account.
        root: the root stack, in which no operation is in progress.
        termination: whether to enable termination protection; it is never disabled here.
        report: receives a notice for each stack policy that someone else has set; such a policy is not changed, unless
            it allows every update.

    Raises:
        AwsError: CloudFormation refuses.
    """
    with translate_aws_errors():
        if termination and not root.protected:
            _set_termination_protection(account, root, enabled=True)
        for stack, policy in _intended_stack_policies(account, root):
            current_policy = _read_stack_policy(account, stack)
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
        account: the account.
        root: the root stack.
        report: receives a notice if the policies could not be restored after the update itself failed.

    Raises:
        PolicyNotRestoredError: the update succeeded, but a policy could not be restored.
        AwsError: a policy cannot be lifted.
    """
    lifted_policies: dict[str, StackPolicy] = {}
    update_failed = True
    try:
        with translate_aws_errors():
            for stack, _ in _intended_stack_policies(account, root):
                current_policy = _read_stack_policy(account, stack)
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
        account: the account.
        stack_id: ARN of the root stack, which is still empty.
    """
    with suppress(AwsError), translate_aws_errors():
        account.client("cloudformation").update_termination_protection(
            StackName=stack_id, EnableTerminationProtection=True
        )


def unprotect_failed_creation(account: Account, root: StackView, report: Report) -> None:
    """Disable termination protection of a stack that can only be deleted, because its creation was rolled back.

    Args:
        account: the account.
        root: the root stack, in which no operation is in progress.
        report: receives a notice if CloudFormation refuses.
    """
    if root.status.health is not StackHealth.DELETE_ONLY:
        return
    try:
        disable_termination_protection(account, root)
    except AwsError as error:
        report(Notice(f"{root.name} is still protected against deletion: {error}", error.hint))


def find_stacks_without_policy(account: Account, root: StackView) -> tuple[str, ...]:
    """Return the names of the root stack and the stateful nested stacks, without those that have a stack policy.

    Raises:
        AwsError: a call failed.
    """
    with translate_aws_errors():
        unprotected = [
            stack
            for stack, _ in _intended_stack_policies(account, root)
            if _read_stack_policy(account, stack) in (None, ALLOW_ALL_POLICY)
        ]
    return tuple(stack_name(stack) for stack in unprotected)


def disable_termination_protection(account: Account, root: StackView) -> None:
    """Disable termination protection, so that the root can be deleted; stack policies do not prevent a deletion.

    Raises:
        AwsError: CloudFormation refuses.
    """
    if root.protected:
        with translate_aws_errors():
            _set_termination_protection(account, root, enabled=False)


def _set_termination_protection(account: Account, root: StackView, *, enabled: bool) -> None:
    """Enable or disable the termination protection of a root stack."""
    account.client("cloudformation").update_termination_protection(
        StackName=root.id, EnableTerminationProtection=enabled
    )


def _intended_stack_policies(account: Account, root: StackView) -> list[tuple[str, StackPolicy]]:
    """Return which stack policies `protect_stack` sets: (ARN of the stack, policy), the root first, then nested stacks.

    Of the nested stacks, only those that contain the cluster's state have a policy.
    """
    stateful_stacks = [
        resource.physical_id
        for resource in list_resources(account, root.id)
        if resource.type == NESTED_STACK
        and resource.logical_id in STATEFUL_STACKS
        and resource.physical_id
        and not resource.status.startswith("DELETE")
    ]
    return [(root.id, ROOT_POLICY), *((stateful_stack, STATEFUL_STACK_POLICY) for stateful_stack in stateful_stacks)]


def _read_stack_policy(account: Account, stack: str) -> StackPolicy | None:
    """Return the stack policy; None if the stack has none."""
    policy_json = account.client("cloudformation").get_stack_policy(StackName=stack).get("StackPolicyBody")
    if not policy_json:
        return None
    policy: StackPolicy = json.loads(policy_json)
    return policy


def _set_stack_policy(account: Account, stack: str, policy: StackPolicy) -> None:
    """Replace the stack policy of the stack with this ARN."""
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
    """Restore a stack policy, unless the stack has been deleted."""
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
    """Return whether the stack with this ARN does not exist any more."""
    current = find_stack(account, stack)
    return current is None or not current.status.exists
