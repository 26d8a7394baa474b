"""Reports the resources that a failed creation, or earlier stacks of the same name, left in the account.

CloudFormation does not report them. The templates retain some resources on purpose, for clusters that contain data: the
bucket of etcd snapshots, unless it is still empty, a snapshot of each master's volume, and the log group of flow logs.
KMS keys, and secrets that somebody deletes by hand, are pending deletion for some time. After a failed creation these
resources are mostly worthless, but still billed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import issuer_buckets, log_groups, pending_deletions, retained_resources, snapshot_buckets
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.messages.message import Message, Notice, Report
from cfngen.deploy.stacks import NESTED_STACK, StackView, find_stack, list_resource_tree

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
        account: the AWS account.
        stack: the root stack as it is now; it may be deleted.
        cluster: name of the cluster.
        report: receives the message.
    """
    _report_remains(
        report,
        lambda: Remains(stack=stack.name, earlier=False, retained=_find_retained_by_stack(account, stack, cluster)),
    )


def report_earlier_stacks(account: Account, stack_name: str, cluster: str, report: Report) -> None:
    """Report the resources that earlier, deleted stacks of this name left, before the stack is created again.

    Args:
        account: the AWS account.
        stack_name: name of the root stack.
        cluster: name of the cluster.
        report: receives the message.
    """

    def find_remains() -> Remains:
        stacks = _find_deleted_stacks(account, stack_name, cluster)
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
    return undeleted_types - {NESTED_STACK} == {snapshot_buckets.BUCKET_TYPE}


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
    """Return the resources that one stack left in the account."""
    resources = list_resource_tree(account, stack.id)
    inventory = Inventory(cluster, resources)
    deletable_resources = [
        resource for resource in resources if resource.view.type not in snapshot_buckets.RETAINED_TYPES
    ]
    return (
        *retained_resources.find_undeleted(account, deletable_resources),
        *retained_resources.find_snapshots(account, inventory, has_run=False),
        *pending_deletions.find_keys(account, inventory),
        *pending_deletions.find_secrets(account, inventory),
        # Without outputs, the operator's own bucket is not listed: the cluster file already names it.
        *snapshot_buckets.find_snapshot_buckets(account, inventory, {}),
        *issuer_buckets.describe_remaining(account, inventory),
        *log_groups.find_flow_log_groups(account, stack.name),
    )


def _find_deleted_stacks(account: Account, stack_name: str, cluster: str) -> list[StackView]:
    """Return up to `MAX_EARLIER_STACKS` deleted root stacks of this name that contained the cluster, the latest first.

    CloudFormation lists deleted stacks for 90 days. A stack without the cluster's tag counts as the cluster's.
    """
    stacks: list[StackView] = []
    paginator = account.client("cloudformation").get_paginator("list_stacks")
    for page in paginator.paginate(StackStatusFilter=["DELETE_COMPLETE"]):
        for stack_summary in page["StackSummaries"]:
            if stack_summary["StackName"] != stack_name or stack_summary.get("ParentId"):
                continue
            stack = find_stack(account, stack_summary["StackId"])
            if stack and stack.cluster in ("", cluster):
                stacks.append(stack)
            if len(stacks) == MAX_EARLIER_STACKS:
                return stacks
    return stacks
