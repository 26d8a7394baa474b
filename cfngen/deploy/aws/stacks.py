"""Stacks and their resources as CloudFormation describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from cfngen.cluster.naming.logical_ids import RecordedId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import error_code, translate_aws_errors
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

CLUSTER_TAG = "cfngen:cluster"
NESTED_STACK = "AWS::CloudFormation::Stack"
AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
_STACK_ARN_PATTERN = re.compile(r"arn:[^:]+:cloudformation:[^:]+:\d+:stack/(?P<name>[^/]+)/")


class NoStackError(CfngenError):
    """There is no stack of that name."""

    code = "stack-not-found"

    def __init__(self, account: Account, name: str) -> None:
        super().__init__(
            f"there is no stack {name} in {account.region} of account {account.id}",
            hint=CommandText(
                "--stack-name names another one; ", suggest("deploy"), " creates a new cluster of this name."
            ),
        )


@dataclass(frozen=True)
class StackView:
    """A stack as it was when it was read; it is not updated.

    Attributes:
        id: its ARN; a deleted stack can only be found by its ARN.
        reason: why it has that status; often empty.
        parameters: values by name; CloudFormation shows NoEcho values as `****`.
        looked_up: what CloudFormation found in Parameter Store at the last update, by name of the parameter.
        updated: when its last update started; for a stack created by a change set, also when its creation started.
        parent_id: ARN of the parent stack; empty for a root stack.
        root_id: ARN of the root stack; empty for a root stack.
        role_arn: service role of its operations; empty if they use the caller's permissions.
        notification_arns: SNS topics for its events.
    """

    name: str
    id: str
    status: StackStatus
    reason: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    looked_up: Mapping[str, str] = field(default_factory=dict)
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
    def values(self) -> Mapping[str, str]:
        """What its resources were last given, by names of parameters.

        Parameters have the value that was looked up in Parameter Store. Outputs of other stacks, to which the cluster
        file refers, have the names that parameters would have; the root records them as outputs.
        """
        from_other_stacks = {
            recorded.part: value for name, value in self.outputs.items() if (recorded := RecordedId.parse(name))
        }
        return {**from_other_stacks, **self.parameters, **self.looked_up}

    @property
    def cluster(self) -> str:
        """Name of the cluster that this is the root stack of; empty for a stack that `cfngen deploy` did not create."""
        return self.tags.get(CLUSTER_TAG, "")

    @property
    def made_elsewhere(self) -> bool:
        """Whether something else than `cfngen deploy` made and updates it; an empty or deleted one is nobody's."""
        return not self.cluster and self.status.health not in (StackHealth.EMPTY, StackHealth.ABSENT)


@dataclass(frozen=True)
class ResourceView:
    """A resource of a stack as it was when it was read; it is not updated.

    Attributes:
        logical_id: its name in the template.
        physical_id: its name in AWS; empty if it has none yet. The ARN of the stack for a nested stack.
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
        path: logical ids of the nested stacks from the root to its stack; empty for a resource of the root.
    """

    stack_id: str
    path: tuple[str, ...]
    view: ResourceView

    @property
    def exists(self) -> bool:
        """Whether the resource exists in AWS."""
        return bool(self.view.physical_id) and self.view.status != "DELETE_COMPLETE"

    @property
    def name(self) -> str:
        """Its logical id after those of its nested stacks, e.g. `VpcStack/Vpc`."""
        return "/".join((*self.path, self.view.logical_id))


def find_stack(account: Account, name_or_id: str) -> StackView | None:
    """Return a stack, or None if no stack has this name or ARN; a deleted stack is found only by its ARN."""
    from botocore.exceptions import ClientError

    try:
        response = account.client("cloudformation").describe_stacks(StackName=name_or_id)
    except ClientError as error:
        # CloudFormation has no separate error code for a missing stack; other deployment tools match the text, too.
        if error_code(error) == "ValidationError" and "does not exist" in str(error):
            return None
        raise
    return next(map(parse_stack, response["Stacks"]), None)


def require_stack(account: Account, name: str) -> StackView:
    """Return the stack of that name.

    Raises:
        NoStackError: there is no stack of that name.
    """
    stack = find_stack(account, name)
    if stack is None or not stack.status.exists:
        raise NoStackError(account, name)
    return stack


def reread_stack(account: Account, stack: StackView) -> StackView:
    """Read a stack again and return it; return `stack` itself if CloudFormation no longer knows it."""
    return find_stack(account, stack.id) or stack


def parse_stack(stack: AwsObject) -> StackView:
    """Return a stack from an entry of the response of DescribeStacks."""
    return StackView(
        name=stack["StackName"],
        id=stack["StackId"],
        status=StackStatus(stack["StackStatus"]),
        reason=stack.get("StackStatusReason", ""),
        parameters=parameter_values(stack),
        looked_up=looked_up_values(stack),
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


def parameter_values(description: AwsObject) -> dict[str, str]:
    """Return the values of parameters by name, from the description of a stack or of a change set."""
    return {
        parameter["ParameterKey"]: parameter.get("ParameterValue") or ""
        for parameter in description.get("Parameters") or ()
    }


def looked_up_values(description: AwsObject) -> dict[str, str]:
    """Return what was found in Parameter Store, by name of the parameter; see `parameter_values`."""
    return {
        parameter["ParameterKey"]: parameter["ResolvedValue"]
        for parameter in description.get("Parameters") or ()
        if parameter.get("ResolvedValue")
    }


def list_resources(account: Account, name_or_id: str) -> tuple[ResourceView, ...]:
    """Return every resource of one stack, without those of nested stacks.

    This calls ListStackResources, because DescribeStackResources returns at most 100 resources.
    """
    summaries = account.items("cloudformation.list_stack_resources", "StackResourceSummaries", StackName=name_or_id)
    return tuple(
        ResourceView(
            logical_id=summary["LogicalResourceId"],
            physical_id=summary.get("PhysicalResourceId", ""),
            type=summary["ResourceType"],
            status=summary["ResourceStatus"],
            reason=summary.get("ResourceStatusReason", ""),
        )
        for summary in summaries
    )


def read_template(account: Account, name_or_id: str) -> AwsObject:
    """Return the current template of a stack as it was uploaded; empty if it is not JSON."""
    response = account.client("cloudformation").get_template(StackName=name_or_id, TemplateStage="Original")
    body = response.get("TemplateBody") or {}
    # botocore parses JSON, and returns YAML as text.
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return {}
    return dict(body) if isinstance(body, dict) else {}


def list_resource_tree(account: Account, root_id: str, path: tuple[str, ...] = ()) -> tuple[StackResource, ...]:
    """Return every resource of a stack and its nested stacks, including deleted ones; parents come first.

    CloudFormation lists the resources of a deleted stack for 90 days, by the stack's ARN.
    """
    from botocore.exceptions import ClientError

    stack_resources: list[StackResource] = []
    for view in list_resources(account, root_id):
        stack_resources.append(StackResource(stack_id=root_id, path=path, view=view))
        if view.type == NESTED_STACK and view.physical_id:
            try:
                stack_resources += list_resource_tree(account, view.physical_id, (*path, view.logical_id))
            except ClientError as error:
                # An old failed creation still lists its nested stacks, which CloudFormation no longer knows.
                if "does not exist" not in str(error) or view.status != "DELETE_COMPLETE":
                    raise
    return tuple(stack_resources)


@dataclass(frozen=True)
class StackTree:
    """A root stack as it was read, with its nested stacks, their resources and templates: each read once, when needed.

    It is for what changes no stack, such as a plan: an operation has to read again what it changes.
    """

    account: Account
    root: StackView
    _templates: dict[str, AwsObject] = field(default_factory=dict, init=False, repr=False)
    _stacks: dict[str, StackView] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def resources(self) -> tuple[StackResource, ...]:
        """The resources of all stacks, as `list_resource_tree` returns them."""
        return list_resource_tree(self.account, self.root.id)

    @property
    def physical_ids(self) -> dict[str, str]:
        """The physical ids of all resources that exist, by logical id."""
        return {resource.view.logical_id: resource.view.physical_id for resource in self.resources if resource.exists}

    def stack(self, stack_id: str) -> StackView:
        """Return one of the nested stacks.

        Raises:
            NoStackError: CloudFormation does not know it any more.
        """
        if stack_id not in self._stacks:
            self._stacks[stack_id] = require_stack(self.account, stack_id)
        return self._stacks[stack_id]

    def template(self, stack_id: str) -> AwsObject:
        """Return the current template of one of the stacks, as `read_template` does."""
        if stack_id not in self._templates:
            self._templates[stack_id] = read_template(self.account, stack_id)
        return self._templates[stack_id]


def read_status_time(account: Account, stack: StackView) -> datetime | None:
    """Return when a stack got its status: the time of the newest event of the stack itself; None without events."""
    events = account.items("cloudformation.describe_stack_events", "StackEvents", StackName=stack.id)
    return next((event["Timestamp"] for event in events if event.get("PhysicalResourceId") == stack.id), None)


def stack_name(arn: str) -> str:
    """Return the name in a stack's ARN; empty if the text is not a stack's ARN."""
    stack_arn = _STACK_ARN_PATTERN.match(arn)
    return stack_arn["name"] if stack_arn else ""


ENDPOINT_OUTPUT, CA_SECRET_OUTPUT, JOIN_SECRET_OUTPUT = "ApiEndpoint", "CaSecretArn", "JoinSecretArn"


def require_root_stack(account: Account, stack_name: str) -> StackView:
    """Return the cluster's root stack.

    Raises:
        NoStackError: there is no stack of this name.
    """
    with translate_aws_errors():
        return require_stack(account, stack_name)


def read_outputs(account: Account, stack: StackView) -> Mapping[str, str]:
    """Return the outputs of a root stack; if the API's URL or secret is missing, also those of its nested stacks.

    A root stack that is being created, or whose creation failed, has no outputs, but its nested stacks may have them.
    """
    stack_outputs = dict(stack.outputs)
    if ENDPOINT_OUTPUT in stack_outputs and CA_SECRET_OUTPUT in stack_outputs:
        return stack_outputs
    with translate_aws_errors():
        for resource in list_resources(account, stack.id):
            if resource.type == NESTED_STACK and resource.physical_id:
                child = find_stack(account, resource.physical_id)
                stack_outputs = {**(child.outputs if child else {}), **stack_outputs}
    return stack_outputs


def find_deleted_stacks(account: Account, stack_name: str, cluster: str) -> Iterator[StackView]:
    """Yield the deleted root stacks of this name that contained the cluster, the latest first.

    CloudFormation lists deleted stacks for 90 days. A stack without the cluster's tag counts as the cluster's.
    """
    summaries = account.items("cloudformation.list_stacks", "StackSummaries", StackStatusFilter=["DELETE_COMPLETE"])
    for summary in summaries:
        if summary["StackName"] != stack_name or summary.get("ParentId"):
            continue
        stack = find_stack(account, summary["StackId"])
        if stack and stack.cluster in ("", cluster):
            yield stack


def find_last_deleted(account: Account, stack_name: str, cluster: str) -> StackView | None:
    """Return the cluster's root stack that was deleted last; None if there is none."""
    return next(find_deleted_stacks(account, stack_name, cluster), None)
