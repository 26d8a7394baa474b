"""Finds and reports what a failed creation, or earlier stacks of the same name, left in the account.

CloudFormation does not report them. The templates retain some resources on purpose, for clusters that contain data: the
bucket of etcd snapshots, unless it is still empty, a snapshot of each master's volume, and the log group of flow logs.
KMS keys, and secrets that are deleted by hand, are pending deletion for some time. After a failed creation these
resources are mostly worthless, but still billed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import find_lost_addresses
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.stacks import NESTED_STACK, StackView, find_deleted_stacks, list_resource_tree
from cfngen.deploy.messages.message import Message, Notice, Report
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import BUCKET_TYPE
from cfngen.deploy.plan.deletion.remaining_resources import DeletedCluster, find_remaining_resources
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource

MAX_EARLIER_STACKS = 5
"""How many earlier stacks of a name are read, the latest first; each takes about ten API calls."""


@dataclass(frozen=True)
class Remains(Message):
    """The resources that a stack whose creation failed, or earlier stacks of its name, left in the account.

    Attributes:
        stack: name of the stack.
        earlier: whether earlier, deleted stacks left the resources.
        retained: the resources that remain, each with the reason and a command that deletes it.
    """

    kind: ClassVar[str] = "remains"
    stack: str
    earlier: bool
    retained: tuple[RetainedResource, ...]


def report_failed_creation(account: Account, stack: StackView, cluster: str, report: Report) -> None:
    """Report the resources that a rolled-back creation left; if they cannot be read, report why.

    Args:
        stack: the root stack as it is now; it may be deleted.
    """
    _report_remains(
        report,
        lambda: Remains(stack=stack.name, earlier=False, retained=_find_retained_by_stack(account, stack, cluster)),
    )


def report_earlier_stacks(account: Account, stack_name: str, cluster: str, report: Report) -> None:
    """Report the resources that earlier, deleted stacks of this name left, before the stack is created again."""

    def find_remains() -> Remains:
        stacks = itertools.islice(find_deleted_stacks(account, stack_name, cluster), MAX_EARLIER_STACKS)
        retained_by_id = {
            (resource.kind, resource.id): resource
            for stack in stacks
            for resource in _find_retained_by_stack(account, stack, cluster)
        }
        return Remains(stack=stack_name, earlier=True, retained=tuple(retained_by_id.values()))

    _report_remains(report, find_remains)


def only_backup_buckets_left(account: Account, stack: StackView) -> bool:
    """Return whether the only resource that a rollback failed to delete is the bucket of etcd snapshots.

    S3 does not delete a bucket that contains objects.
    """
    undeleted_types = {
        resource.view.type
        for resource in list_resource_tree(account, stack.id)
        if resource.view.status == "DELETE_FAILED"
    }
    return undeleted_types - {NESTED_STACK} == {BUCKET_TYPE}


def _report_remains(report: Report, find_remains: Callable[[], Remains]) -> None:
    """Report the resources that were left, if any; if they cannot be read, report why."""
    try:
        with translate_aws_errors():
            remains = find_remains()
    except AwsError as error:
        report(Notice(f"could not find out what earlier stacks left in the account: {error}", error.hint))
        return
    if remains.retained:
        report(remains)


def _find_retained_by_stack(account: Account, stack: StackView, cluster: str) -> tuple[RetainedResource, ...]:
    resources = list_resource_tree(account, stack.id)
    return find_remaining_resources(
        DeletedCluster("failed creation", account, stack.name, Inventory(cluster, resources), resources)
    )


def report_lost_addresses(account: Account, stack: StackView, report: Report) -> None:
    """Report which masters, and whether the bastion, have lost their Elastic IP after a rollback; ignore AWS errors.

    A stack in CREATE_FAILED or UPDATE_FAILED is skipped: it does not show which address an interface should have.
    """
    if not stack.status.rolled_back and stack.status.health is not StackHealth.UPDATE_ROLLBACK_FAILED:
        return
    try:
        with translate_aws_errors():
            views = [resource.view for resource in list_resource_tree(account, stack.id)]
        lost = find_lost_addresses(account, views, stack.parameters)
    except AwsError:
        return  # the command `status` checks again
    for address in lost:
        report(
            Notice(address.text, f"`{address.command}` associates it again: CloudFormation believes that it still is.")
        )
