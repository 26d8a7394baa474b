"""The log groups that remain after their cluster is deleted: those of flow logs and of Container Insights."""

from __future__ import annotations

import re

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.text import pluralize

LOG_GROUP_TYPE = "AWS::Logs::LogGroup"


def find_flow_log_groups(account: Account, stack_name: str) -> tuple[RetainedResource, ...]:
    """Return the log groups of the flow logs of a root stack.

    CloudFormation names a log group after its stack, so those of earlier stacks of the same name are found, too, and
    those that an update has taken out of the template.
    """
    # The flow log is in the nested VPC stack, or in the stack of the standalone template.
    name_pattern = re.compile(rf"{re.escape(stack_name)}-(VpcStack-[A-Za-z0-9]+-)?FlowLogGroup-[A-Za-z0-9]+")
    return tuple(
        _retained(account, group, why=f"records of the VPC's flow log{_retention(group.get('retentionInDays'))}")
        for group in _read_log_groups(account, prefix=f"{stack_name}-")
        if name_pattern.fullmatch(group["logGroupName"])
    )


def find_workload_log_groups(account: Account, cluster: str) -> tuple[RetainedResource, ...]:
    """Return the log groups of Container Insights, whose names contain the cluster's name.

    Nothing shows which cluster other log groups belong to.
    """
    groups = _read_log_groups(account, prefix=f"/aws/containerinsights/{cluster}/")
    return tuple(_retained(account, group, why="created by a workload of the cluster") for group in groups)


def _read_log_groups(account: Account, prefix: str) -> list[AwsObject]:
    """Return the log groups whose names start with a prefix; none if the caller may not list log groups."""
    from botocore.exceptions import ClientError

    try:
        pages = account.client("logs").get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
        return [group for page in pages for group in page["logGroups"]]
    except ClientError as error:
        if error_code(error) not in ACCESS_DENIED_CODES:
            raise
        return []


def _retained(account: Account, group: AwsObject, why: str) -> RetainedResource:
    """Return a log group as a resource that remains."""
    return RetainedResource(
        kind="log group",
        id=group["logGroupName"],
        why=why,
        cost=f"CloudWatch Logs storage, {group.get('storedBytes', 0) / 2**30:.2f} GiB, billed per GiB and month",
        command=f"aws logs delete-log-group --log-group-name {group['logGroupName']} --region {account.region}",
    )


def _retention(days: int | None) -> str:
    """Return when CloudWatch Logs deletes records, as the end of a sentence; empty if it never does."""
    return f"; each is deleted after {pluralize(days, 'day')}" if days else ""
