"""Stacks and their resources as CloudFormation describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.status import StackStatus
from cfngen.errors import CfngenError

CLUSTER_TAG = "cfngen:cluster"
NESTED = "AWS::CloudFormation::Stack"
GROUP = "AWS::AutoScaling::AutoScalingGroup"
_ARN = re.compile(r"arn:[^:]+:cloudformation:[^:]+:\d+:stack/([^/]+)/")


class NoStackError(CfngenError):
    """There is no stack of that name."""

    def __init__(self, account: Account, name: str) -> None:
        super().__init__(
            f"there is no stack {name} in {account.region} of account {account.id}",
            hint="`cfngen deploy` creates it; --stack-name names another one.",
        )


@dataclass(frozen=True)
class StackView:
    """A stack at the moment it was read.

    Attributes:
        name: its name.
        id: its ARN; a deleted stack is found by it only.
        status: its status.
        reason: why it has that status; often empty.
        parameters: values by name; those with NoEcho are asterisks.
        outputs: values by name.
        tags: values by key.
        created: when it was created.
        updated: when its last update began; for a stack made through a change set, also when its creation did.
        parent_id: ARN of the stack that nests it; empty for a root.
        root_id: ARN of the root; empty for a root.
        protected: whether termination protection is on.
        role_arn: service role of its operations; empty if they are the caller's.
        notification_arns: SNS topics that get its events.
    """

    name: str
    id: str
    status: StackStatus
    reason: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    created: datetime | None = None
    updated: datetime | None = None
    parent_id: str = ""
    root_id: str = ""
    protected: bool = False
    role_arn: str = ""
    notification_arns: tuple[str, ...] = ()

    @property
    def cluster(self) -> str:
        """Name of the cluster whose root `cfngen deploy` made this stack as; empty for any other stack."""
        return self.tags.get(CLUSTER_TAG, "")


@dataclass(frozen=True)
class ResourceView:
    """A resource of a stack at the moment it was read.

    Attributes:
        logical_id: its name in the template.
        physical_id: its name in AWS; empty if it has none yet. The ARN of the stack for a nested stack.
        type: e.g. `AWS::EC2::Volume`.
        status: as CloudFormation spells it, e.g. `CREATE_COMPLETE`, `DELETE_SKIPPED`.
        reason: why it has that status; often empty.
    """

    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str = ""


@dataclass(frozen=True)
class StackResource:
    """A resource somewhere in the tree of a cluster's stacks.

    Attributes:
        stack_id: ARN of its stack.
        path: logical ids from the root to its stack; empty for a resource of the root.
        view: the resource.
    """

    stack_id: str
    path: tuple[str, ...]
    view: ResourceView

    @property
    def exists(self) -> bool:
        """Whether there is something that it stands for."""
        return bool(self.view.physical_id) and self.view.status != "DELETE_COMPLETE"

    @property
    def name(self) -> str:
        """Its logical id behind those of the nested stacks around it, e.g. `VpcStack/Vpc`."""
        return "/".join((*self.path, self.view.logical_id))


def find(account: Account, name_or_id: str) -> StackView | None:
    """Return a stack, or None if there is none of that name; a deleted one is found by its ARN."""
    from botocore.exceptions import ClientError

    try:
        answer = account.client("cloudformation").describe_stacks(StackName=name_or_id)
    except ClientError as error:
        # There is no error code of its own for this: boto/boto3 and every deploy tool go by the text.
        if error_code(error) == "ValidationError" and "does not exist" in str(error):
            return None
        raise
    return view(answer["Stacks"][0])


def existing(account: Account, name: str) -> StackView:
    """Return the stack of a name.

    Raises:
        NoStackError: there is none.
    """
    found = find(account, name)
    if found is None or not found.status.exists:
        raise NoStackError(account, name)
    return found


def reread(account: Account, stack: StackView) -> StackView:
    """Return a stack as it is now; as it was where CloudFormation knows it no longer."""
    return find(account, stack.id) or stack


def view(stack: Mapping[str, Any]) -> StackView:
    """Return a stack from one entry of DescribeStacks."""
    return StackView(
        name=stack["StackName"],
        id=stack["StackId"],
        status=StackStatus(stack["StackStatus"]),
        reason=stack.get("StackStatusReason", ""),
        parameters={
            parameter["ParameterKey"]: parameter.get("ParameterValue", "") for parameter in stack.get("Parameters", ())
        },
        outputs={output["OutputKey"]: output.get("OutputValue", "") for output in stack.get("Outputs", ())},
        tags={tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())},
        created=stack.get("CreationTime"),
        updated=stack.get("LastUpdatedTime"),
        parent_id=stack.get("ParentId", ""),
        root_id=stack.get("RootId", ""),
        protected=bool(stack.get("EnableTerminationProtection")),
        role_arn=stack.get("RoleARN", ""),
        notification_arns=tuple(stack.get("NotificationARNs", ())),
    )


def resources(account: Account, name_or_id: str) -> tuple[ResourceView, ...]:
    """Return every resource of one stack, without those of nested stacks.

    By ListStackResources: DescribeStackResources ends at a hundred.
    """
    pages = account.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name_or_id)
    return tuple(
        ResourceView(
            logical_id=stack_resource_summary["LogicalResourceId"],
            physical_id=stack_resource_summary.get("PhysicalResourceId", ""),
            type=stack_resource_summary["ResourceType"],
            status=stack_resource_summary["ResourceStatus"],
            reason=stack_resource_summary.get("ResourceStatusReason", ""),
        )
        for page in pages
        for stack_resource_summary in page["StackResourceSummaries"]
    )


def template(account: Account, name_or_id: str) -> Mapping[str, Any]:
    """Return the template that a stack has now, as it was given to CloudFormation; empty where it is not JSON."""
    body = account.client("cloudformation").get_template(StackName=name_or_id, TemplateStage="Original")["TemplateBody"]
    # botocore parses JSON on its own, and leaves YAML as text.
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return {}
    return dict(body)


def tree(account: Account, root_id: str, path: tuple[str, ...] = ()) -> tuple[StackResource, ...]:
    """Return every resource of a stack and of those it nests, whether or not they still exist; parents first.

    CloudFormation lists the resources of a deleted stack for 90 days, by its ARN.
    """
    from botocore.exceptions import ClientError

    found: list[StackResource] = []
    for view in resources(account, root_id):
        found.append(StackResource(root_id, path, view))
        if view.type == NESTED and view.physical_id:
            try:
                found += tree(account, view.physical_id, (*path, view.logical_id))
            except ClientError as error:
                # What failed to be created months ago still lists its nested stacks, which are forgotten themselves.
                if "does not exist" not in str(error) or view.status != "DELETE_COMPLETE":
                    raise
    return tuple(found)


def stack_name(arn: str) -> str:
    """Return the name in a stack's ARN; an empty text if it is none."""
    match = _ARN.match(arn)
    return match[1] if match else ""
