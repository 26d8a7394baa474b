"""What a creation that failed has left in the account, and earlier stacks of the same name: nobody else names it.

The templates keep some things on purpose, for a cluster that has data: the bucket of etcd's snapshots, unless it is
still empty, and a snapshot of each master's volume. KMS deletes no key at once, and a secret that somebody deletes by
hand waits, too. What stays of a creation that failed is mostly worth nothing, and is billed all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import backups, retained
from cfngen.deploy.deletion.retained import Retained
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.messages import Message, Notice, Report
from cfngen.deploy.stacks import NESTED, StackView, find, tree

LOOKED_AT = 5
"""Earlier stacks of a name that are looked at, the latest first: each takes some ten calls."""


@dataclass(frozen=True)
class Remains(Message):
    """What stays in the account of a stack that has failed to be created, or of earlier ones of its name.

    Attributes:
        stack: name of the stack.
        earlier: whether they are of earlier stacks, which are deleted.
        retained: what stays, why, and how to get rid of it.
    """

    kind: ClassVar[str] = "remains"
    stack: str
    earlier: bool
    retained: tuple[Retained, ...]


def of_creation(account: Account, stack: StackView, cluster: str, report: Report) -> None:
    """Tell what a creation has left that was taken back; what cannot be found out is told as well.

    Args:
        account: where it is.
        stack: the root as it is now, deleted perhaps.
        cluster: name of the cluster.
        report: is told.
    """
    _tell(report, lambda: Remains(stack.name, earlier=False, retained=_of_stack(account, stack, cluster)))


def of_earlier(account: Account, stack_name: str, cluster: str, report: Report) -> None:
    """Tell what the stacks have left that had this name before and are deleted, before it is created again.

    Args:
        account: where they are.
        stack_name: name of the root.
        cluster: name of the cluster.
        report: is told.
    """

    def found() -> Remains:
        stacks = _deleted(account, stack_name, cluster)
        left = {(each.kind, each.id): each for stack in stacks for each in _of_stack(account, stack, cluster)}
        return Remains(stack_name, earlier=True, retained=tuple(left.values()))

    _tell(report, found)


def only_buckets(account: Account, stack: StackView) -> bool:
    """Return whether all that a rollback could not delete is the bucket of etcd's snapshots, which S3 keeps."""
    kinds = {each.view.type for each in tree(account, stack.id) if each.view.status == "DELETE_FAILED"}
    return kinds - {NESTED} == {backups.TYPE}


def _tell(report: Report, look: Callable[[], Remains]) -> None:
    try:
        with translate_aws_errors():
            remains = look()
    except AwsError as error:
        report(Notice(f"what earlier attempts have left could not be looked for: {error}", error.hint))
        return
    if remains.retained:
        report(remains)


def _of_stack(account: Account, stack: StackView, cluster: str) -> tuple[Retained, ...]:
    members = tree(account, stack.id)
    scope = Scope(cluster, members)
    left = [member for member in members if member.view.type not in backups.KEPT]
    return (
        *retained.left_by_stacks(account, left),
        *retained.snapshots(account, scope, created=False),
        *retained.keys(account, scope),
        *retained.secrets(account, scope),
        # A bucket of the operator's is left out: that it is used was their word.
        *backups.snapshots(account, scope, {}),
    )


def _deleted(account: Account, stack_name: str, cluster: str) -> list[StackView]:
    """Return the cluster's deleted roots of a name, as long as CloudFormation remembers them: 90 days."""
    found: list[StackView] = []
    pages = account.client("cloudformation").get_paginator("list_stacks")
    for page in pages.paginate(StackStatusFilter=["DELETE_COMPLETE"]):
        for stack_summary in page["StackSummaries"]:
            if stack_summary["StackName"] != stack_name or stack_summary.get("ParentId"):
                continue
            stack = find(account, stack_summary["StackId"])
            if stack and stack.cluster in ("", cluster):
                found.append(stack)
            if len(found) == LOOKED_AT:
                return found
    return found
