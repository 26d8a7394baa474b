"""The clusters of an account, found by the tags of their root stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import parse_stack
from cfngen.deploy.messages.message import Message
from cfngen.deploy.messages.stack_status import StackHealth


@dataclass(frozen=True)
class ListedCluster:
    """A cluster of the account.

    Attributes:
        cluster: its name.
        region: its region.
        stack: name of its root stack.
        status: status of that stack, as CloudFormation spells it.
        health: what the status allows, e.g. `healthy`, `busy` or `dead`.
        created: when its creation began.
        updated: when its last update began; null if there was none.
    """

    cluster: str
    region: str
    stack: str
    status: str
    health: StackHealth
    created: datetime | None
    updated: datetime | None


@dataclass(frozen=True)
class ClusterList(Message):
    """The clusters of an account.

    Attributes:
        account: number of the account.
        regions: where clusters were looked for.
        clusters: those that `cfngen deploy` has made there, by region and name.
    """

    kind: ClassVar[str] = "clusterList"
    account: str
    regions: tuple[str, ...]
    clusters: tuple[ListedCluster, ...]


def list_clusters(accounts: Sequence[Account]) -> ClusterList:
    """Return the clusters of an account.

    Args:
        accounts: the account in each region where clusters are looked for.

    Raises:
        AwsError: the stacks of a region cannot be read.
    """
    clusters: list[ListedCluster] = []
    for account in accounts:
        with translate_aws_errors():
            stacks = [parse_stack(stack) for stack in account.items("cloudformation.describe_stacks", "Stacks")]
        clusters += sorted(
            (
                ListedCluster(
                    stack.cluster,
                    account.region,
                    stack.name,
                    str(stack.status),
                    stack.status.health,
                    stack.created,
                    stack.updated,
                )
                for stack in stacks
                if stack.cluster and not stack.root_id and stack.status.exists
            ),
            key=lambda listed: (listed.cluster, listed.stack),
        )
    return ClusterList(accounts[0].id, tuple(account.region for account in accounts), tuple(clusters))
