"""What keeps a cluster from being lost by accident: termination protection, and stack policies.

Termination protection belongs to the root and covers what it nests. A stack policy says what updates may do to the
resources of one stack only, so the root's protects the nested stacks that hold state, and each of these has a policy of
its own for its volumes, addresses and secrets. A change set cannot carry a policy and a new stack has none: they are
set once the stacks exist ("Prevent updates to stack resources", CloudFormation User Guide), and no operation is under
way in them (envato/stack_master#178). Termination protection can be set in any status but those of a deletion ("Protect
CloudFormation stacks from being deleted"), so a new root has it before anything is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.messages import Notice, Report
from cfngen.deploy.stacks import NESTED, StackView, find, resources, stack_name
from cfngen.deploy.status import StackHealth
from cfngen.errors import CfngenError

# Nested stacks whose loss is the cluster's: etcd's volumes and the API's address, and the certificate authorities.
HOLDERS = ("MasterStack", "SecretsStack")
# Resources whose replacement loses data, or an address that others know.
KEPT = (
    "AWS::EC2::EIP",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
)

Policy = Mapping[str, Any]

# A policy cannot be removed; this one is as good as none.
EVERYTHING: Policy = {"Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}
_LOSS = {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*"}
OF_ROOT: Policy = {
    "Statement": [
        *EVERYTHING["Statement"],
        {**_LOSS, "Resource": [f"LogicalResourceId/{holder}" for holder in HOLDERS]},
    ]
}
OF_HOLDERS: Policy = {
    "Statement": [
        *EVERYTHING["Statement"],
        {**_LOSS, "Resource": "*", "Condition": {"StringEquals": {"ResourceType": list(KEPT)}}},
    ]
}


class NotRestoredError(CfngenError):
    """The protection that was lifted for one operation could not be put back.

    Attributes:
        stacks: ARNs of the stacks that are unprotected now.
    """

    def __init__(self, stacks: tuple[str, ...], reason: Exception) -> None:
        names = ", ".join(stack_name(stack) for stack in stacks)
        super().__init__(
            f"the stack policy could not be put back on {names}: {reason}",
            hint="deploy once more without changes: that sets it again. Until then an update may replace volumes.",
        )
        self.stacks = stacks


def protect(account: Account, root: StackView, termination: bool = True, *, report: Report) -> None:
    """Set termination protection and the stack policies where they are not set.

    Args:
        account: the account.
        root: the root stack, in which no operation is under way.
        termination: whether deletion of the root is to be refused; the protection it has is not taken away.
        report: told of policies that somebody else has set, which stay.

    Raises:
        AwsError: CloudFormation refuses.
    """
    with translate_aws_errors():
        if termination and not root.protected:
            _terminate(account, root, protected=True)
        for stack, policy in _policies(account, root):
            found = _policy_of(account, stack)
            if found == policy:
                continue
            if found not in (None, EVERYTHING):
                hint = f"`aws cloudformation get-stack-policy --region {account.region} --stack-name {stack}` shows it."
                report(Notice(f"the stack {stack_name(stack)} has a policy that is not cfngen's, and keeps it", hint))
                continue
            _set(account, stack, policy)


@contextmanager
def lift(account: Account, root: StackView, *, report: Report) -> Iterator[None]:
    """Let one update replace and delete what the stack policies protect; put them back whatever happens to it.

    Where the update goes on without its watcher they stay lifted until it has ended, and `cfngen watch` or the next
    deployment sets them: CloudFormation takes no policy of a stack at work, and one that the update has yet to come to
    would refuse it.

    Args:
        account: the account.
        root: the root stack.
        report: told if the policies could not be put back after a failure of something else.

    Raises:
        NotRestoredError: the update went well, and a policy could not be put back.
        AwsError: a policy cannot be lifted.
    """
    lifted: dict[str, Policy] = {}
    failed = True
    try:
        with translate_aws_errors():
            for stack, _ in _policies(account, root):
                found = _policy_of(account, stack)
                if found not in (None, EVERYTHING):
                    lifted[stack] = found or {}
                    _set(account, stack, EVERYTHING)
        yield
        failed = False
    finally:
        _put_back(account, root, lifted, failed=failed, report=report)


def protect_new(account: Account, stack_id: str) -> None:
    """Set termination protection on a stack that is about to be created, so that it never holds anything without it.

    Whether that is allowed shows at the end, when `protect` tries again and says so.

    Args:
        account: the account.
        stack_id: ARN of the root, which is still empty.
    """
    with suppress(AwsError), translate_aws_errors():
        account.client("cloudformation").update_termination_protection(
            StackName=stack_id, EnableTerminationProtection=True
        )


def give_up(account: Account, root: StackView, report: Report) -> None:
    """Switch termination protection off where a creation has failed for good, so that anybody can delete the rest.

    Args:
        account: the account.
        root: the root stack, in which no operation is under way.
        report: told if that is not allowed.
    """
    if root.status.standing is not StackHealth.DEAD:
        return
    try:
        unprotect(account, root)
    except AwsError as error:
        report(Notice(f"{root.name} is still protected against deletion: {error}", error.hint))


def missing(account: Account, root: StackView) -> tuple[str, ...]:
    """Return the names of the stacks, of the root and those that hold state, that have no stack policy.

    Raises:
        AwsError: a call failed.
    """
    with translate_aws_errors():
        found = [stack for stack, _ in _policies(account, root) if _policy_of(account, stack) in (None, EVERYTHING)]
    return tuple(stack_name(each) for each in found)


def unprotect(account: Account, root: StackView) -> None:
    """Switch termination protection off, so that the root can be deleted; policies do not hinder a deletion.

    Raises:
        AwsError: CloudFormation refuses.
    """
    if root.protected:
        with translate_aws_errors():
            _terminate(account, root, protected=False)


def _terminate(account: Account, root: StackView, *, protected: bool) -> None:
    account.client("cloudformation").update_termination_protection(
        StackName=root.id, EnableTerminationProtection=protected
    )


def _policies(account: Account, root: StackView) -> list[tuple[str, Policy]]:
    """Return the ARN of each stack that is there, with the policy it should have."""
    holders = [
        resource.physical_id
        for resource in resources(account, root.id)
        if resource.type == NESTED
        and resource.logical_id in HOLDERS
        and resource.physical_id
        and not resource.status.startswith("DELETE")
    ]
    return [(root.id, OF_ROOT), *((holder, OF_HOLDERS) for holder in holders)]


def _policy_of(account: Account, stack: str) -> Policy | None:
    body = account.client("cloudformation").get_stack_policy(StackName=stack).get("StackPolicyBody")
    if not body:
        return None
    policy: Policy = json.loads(body)
    return policy


def _set(account: Account, stack: str, policy: Policy) -> None:
    account.client("cloudformation").set_stack_policy(StackName=stack, StackPolicyBody=json.dumps(policy))


def _put_back(
    account: Account, root: StackView, policies: Mapping[str, Policy], *, failed: bool, report: Report
) -> None:
    if policies and _is_at_work(account, root.id):
        # A nested stack that the update has not come to yet would take its policy, and then refuse the update.
        hint = f"`cfngen watch --stack-name {root.name}` sets them again at the end of the update."
        report(Notice("the stack policies stay lifted while the update goes on", hint))
        return
    open_stacks: list[str] = []
    reason: Exception | None = None
    interrupted: KeyboardInterrupt | None = None
    for stack, policy in policies.items():
        try:
            _restore(account, stack, policy)
        except KeyboardInterrupt as error:  # noqa: PERF203  a second Ctrl-C must not leave the others open
            interrupted, reason = error, RuntimeError("interrupted")
            open_stacks.append(stack)
        except CfngenError as error:
            reason = error
            open_stacks.append(stack)
    if reason:
        problem = NotRestoredError(tuple(open_stacks), reason)
        if not failed and not interrupted:
            raise problem
        # What went wrong first is what the user must hear of.
        report(Notice(str(problem), problem.hint))
    if interrupted:
        raise interrupted


def _restore(account: Account, stack: str, policy: Policy) -> None:
    from botocore.exceptions import ClientError

    with translate_aws_errors():
        try:
            _set(account, stack, policy)
        except ClientError as error:
            # The update has deleted the stack, as it was allowed to.
            if error_code(error) == "ValidationError" and _is_gone(account, stack):
                return
            raise


def _is_at_work(account: Account, stack: str) -> bool:
    """Return whether an operation is under way; if that cannot be read, putting back is what tells."""
    try:
        with translate_aws_errors():
            found = find(account, stack)
    except CfngenError:
        return False
    return found is not None and found.status.in_progress


def _is_gone(account: Account, stack: str) -> bool:
    found = find(account, stack)
    return found is None or not found.status.exists
