"""Checks that the stack to delete belongs to the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.ownership import ForeignStackError, check_stack_owner
from cfngen.deploy.stacks import CLUSTER_TAG, StackView, stack_name
from cfngen.hints import CommandText, suggest


def check_ownership(account: Account, stack: StackView, cluster: str) -> bool:
    """Check that the stack belongs to the cluster; return whether it was created in the console.

    A stack that was created in the console has no cfngen tags; the metadata of its template names the cluster.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was not created by cfngen.
    """
    if stack.parent_id:
        raise ForeignStackError(
            f"the stack {stack.name} is a nested stack",
            hint=f"name its root stack with --stack-name: {stack_name(stack.root_id or stack.parent_id)}.",
        )
    if stack.status.health is StackHealth.EMPTY:
        if not stack.cluster and cluster not in _read_change_set_clusters(account, stack):
            raise ForeignStackError(
                f"the stack {stack.name} is in {stack.status}: it is empty, and none of its change sets is "
                f"for the cluster {cluster}",
                hint=CommandText(
                    suggest("deploy", stack=stack.name),
                    " creates the cluster in it; if it is not needed, delete it: "
                    f"`aws cloudformation delete-stack --region {account.region} --stack-name {stack.name}`.",
                ),
            )
        return False
    if not stack.cluster and _read_template_cluster(account, stack) == cluster:
        return True
    check_stack_owner(stack, cluster)
    return False


def _read_change_set_clusters(account: Account, stack: StackView) -> Iterator[str]:
    """Yield the clusters that the change sets of an empty stack are for; the stack itself may have no tags yet."""
    cloudformation = account.client("cloudformation")
    for page in cloudformation.get_paginator("list_change_sets").paginate(StackName=stack.id):
        for summary in page["Summaries"]:
            change_set = cloudformation.describe_change_set(ChangeSetName=summary["ChangeSetId"])
            yield from (tag["Value"] for tag in change_set.get("Tags", ()) if tag["Key"] == CLUSTER_TAG)


def _read_template_cluster(account: Account, stack: StackView) -> str:
    """Return the cluster that a stack's template was generated for, from its metadata; empty if it is not cfngen's."""
    from botocore.exceptions import ClientError

    try:
        summary = account.client("cloudformation").get_template_summary(StackName=stack.id)
    except ClientError as error:
        if error_code(error) != "ValidationError":
            raise
        return ""
    metadata: object = json.loads(summary.get("Metadata") or "{}").get("cfngen")
    if not isinstance(metadata, dict) or metadata.get("stack") not in ("cluster", "standalone"):
        return ""
    return str(metadata.get("cluster", ""))
