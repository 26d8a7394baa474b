"""Remove everything that this rehearsal, or an earlier one that was interrupted, has created.

Everything is found by the stack's name and the rehearsal's tag, so removal can be interrupted and started again. It
includes resources that CloudFormation retains (snapshots of the masters' volumes, the bucket of etcd's snapshots),
since nobody needs those of a rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cfngen.deploy.aws import templates
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.existing_resources import bucket_exists
from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Notice, Report, Step
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations.deletion import template_bucket
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionRequest
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import versioned_bucket_removal
from cfngen.deploy.plan.publishing.bucket import default_name
from cfngen.deploy.watching.watch import watch
from cfngen.errors import CfngenError
from cfngen.rehearse.clusters import REHEARSAL_NAME

REHEARSAL_TAG = "cfngen:rehearsal"
"""Key of the tag of every stack of a rehearsal; its value is the version of cfngen that created the stack."""
VOLUME_TYPE, BUCKET_TYPE = "AWS::EC2::Volume", "AWS::S3::Bucket"


class ForeignRehearsalStackError(CfngenError):
    """A stack with the rehearsal's name exists that was not created by a rehearsal."""

    code = "foreign-rehearsal-stack"

    def __init__(self, account: Account) -> None:
        super().__init__(
            f"the stack {REHEARSAL_NAME} in {account.region} of account {account.id} was not created by a rehearsal: "
            f"it lacks the tag {REHEARSAL_TAG}",
            hint="rehearse in another region, with --zones, or in another account, with --profile.",
        )


@dataclass(frozen=True)
class Leftover:
    """Something of a rehearsal that could not be removed.

    Attributes:
        command: command that removes it; empty if `cfngen rehearse --clean-up` does.
    """

    kind: str
    id: str
    why: str
    command: str = ""

    @property
    def notice(self) -> Notice:
        """A message about it."""
        return Notice(
            f"the {self.kind} {self.id} was not removed: {self.why}",
            f"`{self.command}` removes it." if self.command else "",
        )


def find_rehearsal_stack(account: Account) -> StackView | None:
    """Return the stack of this rehearsal or an earlier one; None if there is none.

    Raises:
        ForeignRehearsalStackError: a stack with that name exists, but was not created by a rehearsal.
    """
    with translate_aws_errors():
        stack = find_stack(account, REHEARSAL_NAME)
        if stack is None or not stack.status.exists:
            return None
        # A stack has no tags before its first change set is executed; the change set has them.
        tags = _tags_of_change_sets(account, stack) if stack.status.health is StackHealth.EMPTY else stack.tags
        if REHEARSAL_TAG not in tags:
            raise ForeignRehearsalStackError(account)
        return stack


def deleted_stacks_with_leftovers(account: Account) -> tuple[str, ...]:
    """Return the ARNs of rehearsals' deleted stacks with retained resources, as far as CloudFormation lists them."""
    with translate_aws_errors():
        deleted = account.items("cloudformation.list_stacks", "StackSummaries", StackStatusFilter=["DELETE_COMPLETE"])
        ids = [
            str(summary["StackId"])
            for summary in deleted
            if summary["StackName"] == REHEARSAL_NAME and not summary.get("ParentId")
        ]
        stacks = (find_stack(account, stack_id) for stack_id in ids)
        return tuple(
            stack.id
            for stack in stacks
            if stack and REHEARSAL_TAG in stack.tags and any(_retained_resources(account, stack.id))
        )


def count_retained_resources(account: Account, stack_id: str) -> dict[str, str]:
    """Count the resources of a deleted stack that CloudFormation has retained, by kind."""
    kinds = [kind for kind, _ in _retained_resources(account, stack_id)]
    return {f"{kind}s that CloudFormation keeps": str(kinds.count(kind)) for kind in ("bucket", "snapshot")}


def remove_stack(account: Account, stack: StackView, interaction: Interaction) -> Deleted:
    """Delete the rehearsal's stack, whatever its status."""
    with translate_aws_errors():
        _finish_update(account, stack, interaction)
        request = DeletionRequest(
            stack_name=REHEARSAL_NAME, cluster=REHEARSAL_NAME, authorities=AuthorityCopy("destroy")
        )
    return delete(account, request, interaction)


def remove_retained_resources(account: Account, stack_ids: Iterable[str], report: Report) -> tuple[Leftover, ...]:
    """Delete the resources that CloudFormation has retained of deleted stacks; return those that could not be."""
    leftovers: list[Leftover] = []
    for stack_id in stack_ids:
        with translate_aws_errors():
            remaining = list(_retained_resources(account, stack_id))
        for kind, name in remaining:  # the name of a bucket, or the id of a snapshot
            report(Step(f"deleting the {kind} {name}, which CloudFormation retained"))
            try:
                with translate_aws_errors():
                    _remove_retained_resource(account, kind, name)
            except CfngenError as error:
                leftovers.append(
                    Leftover(kind=kind, id=name, why=str(error), command=_removal_command(account, kind, name))
                )
    return tuple(leftovers)


def remove_templates(
    account: Account, interaction: Interaction, *, bucket: str, is_bucket_new: bool
) -> tuple[Leftover, ...]:
    """Delete the rehearsal's templates, and their bucket if the rehearsal created it; return what could not be.

    Args:
        bucket: name of the operator's bucket; cfngen's own bucket if empty.
        is_bucket_new: whether the rehearsal created the bucket.
    """
    name = bucket or default_name(account)
    try:
        with translate_aws_errors():
            if not templates.find(account, name, REHEARSAL_NAME).versions:
                return ()
            interaction.report(Step(f"deleting the templates in s3://{name}/{REHEARSAL_NAME}/"))
            template_bucket.empty(account, name, REHEARSAL_NAME)
            if is_bucket_new:
                template_bucket.delete_bucket(account, name)
    except CfngenError as error:
        return (Leftover(kind="templates", id=f"s3://{name}/{REHEARSAL_NAME}/", why=str(error)),)
    return ()


def _finish_update(account: Account, stack: StackView, interaction: Interaction) -> None:
    """Cancel an update and wait until an operation in progress has ended, so that the stack can be deleted."""
    if stack.status.cancellable:
        interaction.report(Notice(f"the update of {stack.name} is being cancelled"))
        account.client("cloudformation").cancel_update_stack(StackName=stack.id)
    elif not stack.status.in_progress or stack.status.name in ("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS"):
        return
    watch(account, stack.id, report=interaction.report, on_interrupt=interaction.on_interrupt)


def _tags_of_change_sets(account: Account, stack: StackView) -> dict[str, str]:
    """Return the tags in the change sets of an empty stack; the rehearsal's own tags if it has no change sets."""
    cloudformation = account.client("cloudformation")
    summaries = account.items("cloudformation.list_change_sets", "Summaries", StackName=stack.id)
    ids = [summary["ChangeSetId"] for summary in summaries]
    if not ids:
        return {REHEARSAL_TAG: "", CLUSTER_TAG: REHEARSAL_NAME}
    change_sets = (cloudformation.describe_change_set(ChangeSetName=change_set_id) for change_set_id in ids)
    return {tag["Key"]: tag["Value"] for change_set in change_sets for tag in change_set.get("Tags", ())}


def _retained_resources(account: Account, stack_id: str) -> Iterator[tuple[str, str]]:
    """Yield the resources of a deleted stack that CloudFormation has retained: (`snapshot` or `bucket`, id or name)."""
    resources = [resource.view for resource in list_resource_tree(account, stack_id) if resource.view.physical_id]
    volumes = sorted({resource.physical_id for resource in resources if resource.type == VOLUME_TYPE})
    filters = {"volume-id": volumes}
    for snapshot in account.items("ec2.describe_snapshots", "Snapshots", filters=filters, OwnerIds=["self"]):
        yield "snapshot", str(snapshot["SnapshotId"])
    for bucket in sorted({resource.physical_id for resource in resources if resource.type == BUCKET_TYPE}):
        if bucket_exists(account, bucket):
            yield "bucket", bucket


def _remove_retained_resource(account: Account, kind: str, name: str) -> None:
    """Delete a snapshot, or empty and delete a bucket.

    Raises:
        AwsError: the bucket contains objects that are not the rehearsal's.
    """
    if kind == "snapshot":
        account.client("ec2").delete_snapshot(SnapshotId=name)
        return
    template_bucket.empty(account, name, REHEARSAL_NAME)
    if not template_bucket.delete_bucket(account, name):
        raise AwsError(f"the bucket {name} contains more than snapshots of the cluster")


def _removal_command(account: Account, kind: str, name: str) -> str:
    if kind == "snapshot":
        return f"aws ec2 delete-snapshot --snapshot-id {name} --region {account.region}"
    return versioned_bucket_removal(account, name)
