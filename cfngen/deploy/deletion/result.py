"""The result of a deletion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.deletion.blockers import Blocker
from cfngen.deploy.deletion.deletion_report import DeletionCount
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.messages.message import Message
from cfngen.deploy.subnet_tags import SubnetTag


@dataclass(frozen=True)
class Deleted(Message):
    """A deletion has ended.

    Attributes:
        cluster: name of the cluster.
        region: the region.
        stack: name of the root stack.
        stack_id: its ARN; empty if there was no stack.
        status: its status; empty if it no longer exists.
        succeeded: whether only the resources remain that the plan announced.
        in_progress: whether CloudFormation is still deleting the stack.
        seconds: duration from the first CloudFormation event to the last; without events, of the whole command.
        counted: how many of the stacks' resources are deleted and which still exist, by kind.
        removed: resources that Kubernetes created and that were removed.
        retained: the resources that remain, each with the reason and a command that deletes it.
        orphans: resources that Kubernetes created and that could not be removed.
        subnet_tags: tags that `cfngen deploy` had added to existing subnets and that were removed.
        blockers: foreign resources that block the stack's deletion.
        objects: how many object versions of templates were deleted.
        bucket_deleted: whether the bucket of the templates was deleted.
        name_conflict: a sentence about another cluster of this name in the region; empty if there is none.
    """

    kind: ClassVar[str] = "deleted"
    cluster: str
    region: str
    stack: str
    stack_id: str
    status: str
    succeeded: bool
    in_progress: bool
    seconds: float
    counted: tuple[DeletionCount, ...] = ()
    removed: tuple[OrphanedResource, ...] = ()
    retained: tuple[RetainedResource, ...] = ()
    orphans: tuple[OrphanedResource, ...] = ()
    subnet_tags: tuple[SubnetTag, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    objects: int = 0
    bucket_deleted: bool = False
    name_conflict: str = ""
