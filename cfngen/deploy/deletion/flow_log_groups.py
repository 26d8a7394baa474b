"""The log groups of flow logs, which remain after their cluster is deleted.

CloudFormation names a log group after its stack, so those of earlier stacks of the same name are found, too, and those
that an update has taken out of the template.
"""

from __future__ import annotations

import re

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.text import pluralize

LOG_GROUP_TYPE = "AWS::Logs::LogGroup"


def find_log_groups(account: Account, stack_name: str) -> tuple[RetainedResource, ...]:
    """Return the log groups of the flow logs of a root stack; none if the caller may not list log groups."""
    from botocore.exceptions import ClientError

    # The flow log is in the nested VPC stack, or in the stack of the standalone template.
    name_pattern = re.compile(rf"{re.escape(stack_name)}-(VpcStack-[A-Za-z0-9]+-)?FlowLogGroup-[A-Za-z0-9]+")
    try:
        pages = (
            account.client("logs").get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"{stack_name}-")
        )
        groups = [
            group for page in pages for group in page["logGroups"] if name_pattern.fullmatch(group["logGroupName"])
        ]
    except ClientError as error:
        if error_code(error) not in ACCESS_DENIED_CODES:
            raise
        return ()
    return tuple(
        RetainedResource(
            kind="log group",
            id=group["logGroupName"],
            why=f"records of the VPC's flow log{_retention(group.get('retentionInDays'))}",
            cost=f"CloudWatch Logs storage, {group.get('storedBytes', 0) / 2**30:.2f} GiB, billed per GiB and month",
            command=f"aws logs delete-log-group --log-group-name {group['logGroupName']} --region {account.region}",
        )
        for group in groups
    )


def _retention(days: int | None) -> str:
    """Return when CloudWatch Logs deletes records, as the end of a sentence; empty if it never does."""
    return f"; each is deleted after {pluralize(days, 'day')}" if days else ""
