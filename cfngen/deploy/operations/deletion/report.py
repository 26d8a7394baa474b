"""What the user is asked before a deletion, with its consequences, and the result after it, counted in the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes
from cfngen.deploy.aws.existing_resources import RESOURCE_KINDS
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.messages.message import Consent, Message, Question
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionRequest, PreparedDeletion
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight.blockers import Blocker
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.hints import suggest
from cfngen.text import join_and, pluralize, verb_form

if TYPE_CHECKING:
    from cfngen.deploy.aws.existing_resources import ResourceKind


def confirm_deletion(
    request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None, consent: Consent
) -> bool:
    """Return whether the user agrees to a deletion; a deletion that would delete nothing needs no confirmation.

    Args:
        copy: how the certificate authorities are kept; None if there are none to keep.
    """
    stack, name = prepared.stack, request.cluster
    consequences = _consequences(request, prepared, copy)
    if stack and stack.status.health is StackHealth.EMPTY and not consequences:
        text = f"Delete the empty stack {stack.name} and the change sets in it? Nothing has been created from them."
        return consent(Question(text))
    if not consequences:
        # There is nothing to delete, or the user confirmed the deletion in progress when they started it.
        return True
    if stack is None or stack.status.health is StackHealth.EMPTY:
        text = f"Delete what is left of the cluster {name}?"
    elif prepared.plan.by_console:
        text = f"Delete {stack.name}, which was created from cfngen's templates but not by `{suggest('deploy')}`?"
    else:
        text = f"Delete the cluster {name} and everything in it?"
    return consent(Question(text, (*consequences, *_billing_notes(prepared)), dangerous=True, name=name))


def _consequences(request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None) -> list[str]:
    stack, plan = prepared.stack, prepared.plan
    consequences: list[str] = []
    if stack and stack.status.health is not StackHealth.EMPTY and stack.status.name != "DELETE_IN_PROGRESS":
        consequences.append(f"the stack {stack.name} ({stack.status}) is deleted, with every instance of the cluster")
        if plan.by_console:
            consequences.append("it was created in the console, and whoever created it may not know of its deletion")
        if stack.protected:
            consequences.append("its termination protection is disabled")
        if copy:
            consequences.append(copy.consequence)
        if plan.blockers:
            consequences.append(
                "the network is retained because other resources use it, and it may lose its internet access"
            )
    if plan.removed:
        consequences.append(
            f"{_count_by_kind(plan.removed)} that Kubernetes created {verb_form(len(plan.removed), 'are')} deleted too"
        )
    if plan.subnet_tags:
        subnets = {tag.subnet for tag in plan.subnet_tags}
        consequences.append(f"the tags of the cluster are removed from {pluralize(len(subnets), 'existing subnet')}")
    if data := plan.data_to_delete:
        consequences.append(
            f"{_count_by_kind(data, ' of claims')} {verb_form(len(data), 'are')} deleted too, with all data"
        )
    if request.empty_bucket and plan.objects:
        uri = f"s3://{request.bucket}/{request.cluster}/"
        consequences.append(
            f"{pluralize(plan.objects, 'object version')} in {uri} {verb_form(plan.objects, 'are')} deleted"
        )
    if request.delete_bucket:
        consequences.append(f"the bucket {request.bucket} is deleted if it is empty by then")
    return consequences


def _billing_notes(prepared: PreparedDeletion) -> list[str]:
    count = len(prepared.plan.volumes)
    if count and not prepared.plan.delete_volumes:
        return [f"{pluralize(count, 'volume of claims', 'remain')}, and {verb_form(count, 'continue')} to be billed"]
    return []


def _count_by_kind(resources: Sequence[OrphanedResource], suffix: str = "") -> str:
    """Return how many resources there are of each kind, e.g. `2 load balancers and 1 volume`."""
    counts = Counter(resource.kind for resource in resources)
    return join_and([pluralize(count, f"{kind}{suffix}") for kind, count in counts.items()])


@dataclass(frozen=True)
class DeletionCount:
    """How many of the resources of one kind that a cluster's stacks had are deleted.

    Attributes:
        kind: their type in words, in the plural, e.g. `subnets`.
        gone: how many of them no longer exist.
        left: ids of those that still exist.
        unknown: ids of those that the caller has no permission to describe.
    """

    kind: str
    gone: int
    left: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


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


def count_deleted_resources(account: Account, inventory: Inventory) -> tuple[DeletionCount, ...]:
    """Return, by kind, how many resources of a cluster's stacks are deleted and which still exist.

    OIDC providers of who pushes images stay, and are not among them.
    """
    kept = {resource.view.physical_id for resource in inventory.resources if RegistryId.parse(resource.view.logical_id)}
    return tuple(
        _count_kind(account, resource_kind, ids)
        for resource_kind in RESOURCE_KINDS
        if (ids := sorted(inventory.ids(resource_kind.type) - kept))
    )


def _count_kind(account: Account, resource_kind: ResourceKind, ids: list[str]) -> DeletionCount:
    # A caller who deletes stacks through a service role may lack permission to describe their resources.
    with suppress_codes(ACCESS_DENIED_CODES):
        remaining = resource_kind.find_existing(account, ids)
        return DeletionCount(resource_kind.name, gone=len(ids) - len(remaining), left=tuple(sorted(remaining)))
    return DeletionCount(resource_kind.name, gone=0, unknown=tuple(ids))
