"""Removing what a rehearsal has made: this one, or an earlier one that was cut off.

Everything is found by the stack's name and the rehearsal's tag, so that it goes on wherever it was interrupted. What
CloudFormation keeps on purpose, snapshots of masters' volumes and the bucket of etcd's snapshots, goes too: nobody
wants that of a rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.deletion.custody import Custody
from cfngen.deploy.deletion.execution import Deleted, delete
from cfngen.deploy.deletion.plan import DeletionRequest
from cfngen.deploy.messages import Notice, Report, Step
from cfngen.deploy.publishing import template_objects
from cfngen.deploy.publishing.bucket import default_name
from cfngen.deploy.recovery import Interaction
from cfngen.deploy.stacks import CLUSTER_TAG, StackView, find, tree
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching.watch import watch
from cfngen.errors import CfngenError
from cfngen.rehearse.clusters import NAME

MARK = "cfngen:rehearsal"
"""Key of the tag that every stack of a rehearsal bears; its value is the version of cfngen that made it."""
VOLUME, BUCKET = "AWS::EC2::Volume", "AWS::S3::Bucket"


class NotOursError(CfngenError):
    """A stack of the rehearsal's name stands that no rehearsal made."""

    def __init__(self, account: Account) -> None:
        super().__init__(
            f"there is a stack {NAME} in {account.region} of account {account.id} that no rehearsal has made: it lacks "
            f"the tag {MARK}",
            hint="rehearse in another region, with --zones, or in another account, with --profile.",
        )


@dataclass(frozen=True)
class Leftover:
    """Something of a rehearsal that could not be removed.

    Attributes:
        kind: what it is, e.g. `snapshot`.
        id: its id.
        why: why it stays.
        command: how to get rid of it; empty if `cfngen rehearse --clean-up` is the way.
    """

    kind: str
    id: str
    why: str
    command: str = ""

    @property
    def notice(self) -> Notice:
        """The same as a message."""
        return Notice(
            f"the {self.kind} {self.id} stays: {self.why}", f"`{self.command}` removes it." if self.command else ""
        )


def standing(account: Account) -> StackView | None:
    """Return the stack of an earlier rehearsal, or of this one; None if there is none.

    Raises:
        NotOursError: there is one that no rehearsal made.
    """
    with translate_aws_errors():
        stack = find(account, NAME)
        if stack is None or not stack.status.exists:
            return None
        # CloudFormation shows no tags of a stack before its first change set is executed.
        tags = _tags_in_review(account, stack) if stack.status.standing is StackHealth.EMPTY else stack.tags
        if MARK not in tags:
            raise NotOursError(account)
        return stack


def kept_by_earlier(account: Account) -> tuple[str, ...]:
    """Return the ARNs of deleted stacks of rehearsals of which something may be left, as far as they are remembered."""
    with translate_aws_errors():
        pages = (
            account.client("cloudformation")
            .get_paginator("list_stacks")
            .paginate(StackStatusFilter=["DELETE_COMPLETE"])
        )
        ids = [
            str(stack_summary["StackId"])
            for page in pages
            for stack_summary in page["StackSummaries"]
            if stack_summary["StackName"] == NAME and not stack_summary.get("ParentId")
        ]
        stacks = (find(account, id_) for id_ in ids)
        return tuple(stack.id for stack in stacks if stack and MARK in stack.tags and any(_kept(account, stack.id)))


def kept(account: Account, stack_id: str) -> dict[str, str]:
    """Count what CloudFormation has kept of a deleted stack."""
    kinds = [kind for kind, _ in _kept(account, stack_id)]
    return {f"{kind}s that CloudFormation keeps": str(kinds.count(kind)) for kind in ("bucket", "snapshot")}


def remove_stack(account: Account, stack: StackView, waiting: Interaction) -> Deleted:
    """Delete the rehearsal's stack, whatever state it is in, with what CloudFormation keeps of it.

    Raises:
        CfngenError: as `deletion.delete`.
    """
    with translate_aws_errors():
        _settle(account, stack, waiting)
        request = DeletionRequest(NAME, NAME, authorities=Custody("destroy"))
    return delete(account, request, waiting)


def remove_kept(account: Account, stack_ids: Iterable[str], report: Report) -> tuple[Leftover, ...]:
    """Remove what CloudFormation has kept of stacks that are deleted; return what stays."""
    left: list[Leftover] = []
    for stack_id in stack_ids:
        with translate_aws_errors():
            things = list(_kept(account, stack_id))
        for kind, name in things:
            report(Step(f"deleting the {kind} {name}, which the stack has left"))
            try:
                with translate_aws_errors():
                    _remove(account, kind, name)
            except CfngenError as error:
                left.append(Leftover(kind, name, str(error), _command(account, kind, name)))
    return tuple(left)


def remove_templates(account: Account, waiting: Interaction, *, bucket: str, made: bool) -> tuple[Leftover, ...]:
    """Remove the rehearsal's templates, and the bucket if the rehearsal made it; return what stays.

    Args:
        account: where they are.
        waiting: who is told.
        bucket: the operator's bucket; cfngen's own if empty.
        made: whether the bucket was made for the rehearsal.
    """
    name = bucket or default_name(account)
    try:
        with translate_aws_errors():
            if not template_objects.find(account, name, NAME).versions:
                return ()
            waiting.report(Step(f"deleting the templates in s3://{name}/{NAME}/"))
            template_objects.empty(account, name, NAME)
            if made:
                template_objects.delete_bucket(account, name)
    except CfngenError as error:
        return (Leftover("templates", f"s3://{name}/{NAME}/", str(error)),)
    return ()


def bucket_exists(account: Account, bucket: str) -> bool:
    """Return whether the bucket of the templates is there already, or cannot be seen."""
    from botocore.exceptions import ClientError

    try:
        account.client("s3").head_bucket(Bucket=bucket or default_name(account))
    except ClientError as error:
        return error_code(error) not in ("404", "NoSuchBucket")
    return True


def _settle(account: Account, stack: StackView, waiting: Interaction) -> None:
    """Bring a stack that is being updated or rolled back to where it can be deleted."""
    if stack.status.cancellable:
        waiting.report(Notice(f"the update of {stack.name} is being cancelled"))
        account.client("cloudformation").cancel_update_stack(StackName=stack.id)
    elif not stack.status.in_progress or stack.status.name in ("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS"):
        return
    watch(account, stack.id, report=waiting.report, interrupted=waiting.interrupted)


def _tags_in_review(account: Account, stack: StackView) -> dict[str, str]:
    """Return the tags that the change sets of an empty stack would give it; an empty stack without any is nobody's."""
    cloudformation = account.client("cloudformation")
    pages = cloudformation.get_paginator("list_change_sets").paginate(StackName=stack.id)
    ids = [summary["ChangeSetId"] for page in pages for summary in page["Summaries"]]
    if not ids:
        return {MARK: "", CLUSTER_TAG: NAME}
    described = (cloudformation.describe_change_set(ChangeSetName=id_) for id_ in ids)
    return {tag["Key"]: tag["Value"] for each in described for tag in each.get("Tags", ())}


def _kept(account: Account, stack_id: str) -> Iterator[tuple[str, str]]:
    """Yield kind and id of what is left of a deleted stack."""
    from botocore.exceptions import ClientError

    members = [each.view for each in tree(account, stack_id) if each.view.physical_id]
    volumes = sorted({member.physical_id for member in members if member.type == VOLUME})
    if volumes:
        pages = account.client("ec2").get_paginator("describe_snapshots")
        filters = [{"Name": "volume-id", "Values": volumes}]
        for page in pages.paginate(Filters=filters, OwnerIds=["self"]):
            yield from (("snapshot", str(snapshot["SnapshotId"])) for snapshot in page["Snapshots"])
    for bucket in sorted({member.physical_id for member in members if member.type == BUCKET}):
        try:
            account.client("s3").head_bucket(Bucket=bucket)
        except ClientError as error:
            if error_code(error) in ("404", "NoSuchBucket"):
                continue
        yield "bucket", bucket


def _remove(account: Account, kind: str, name: str) -> None:
    if kind == "snapshot":
        account.client("ec2").delete_snapshot(SnapshotId=name)
        return
    template_objects.empty(account, name, NAME)
    if not template_objects.delete_bucket(account, name):
        raise AwsError(f"the bucket {name} holds more than snapshots of the cluster")


def _command(account: Account, kind: str, name: str) -> str:
    if kind == "snapshot":
        return f"aws ec2 delete-snapshot --snapshot-id {name} --region {account.region}"
    return f"aws s3 rb --force s3://{name} --region {account.region}"
