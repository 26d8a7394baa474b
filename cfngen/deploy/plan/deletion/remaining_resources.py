"""The table of what remains of a cluster in the account: before a deletion, after it, or after a failed creation.

`remaining_volumes_and_orphans` and `remaining_buckets_keys_and_logs` find and describe the resources of each kind; the
tags of existing subnets are found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.cluster.naming.tag_keys import SUBNET_ROLES, added_tags_note
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.network import read_tags_of_subnets
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import StackResource, StackView
from cfngen.deploy.aws.tags import cluster_tag
from cfngen.deploy.aws.templates import TemplateObjects
from cfngen.deploy.plan.deletion import remaining_buckets_keys_and_logs, remaining_volumes_and_orphans
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight.network.subnet_tags import SHARED, SubnetTag

Moment = Literal["before", "after", "failed creation"]
"""Before a deletion, after it, or after a creation that failed (or whose stack was deleted long ago)."""


@dataclass(frozen=True)
class DeletedCluster:
    """A cluster that is to be deleted, was deleted, or could not be created.

    Attributes:
        stack: the root stack that the deletion finds; None if there is none, and after a failed creation.
        resources: the resources of the stacks now; before a deletion, only what an earlier one has left is looked at.
        role_names: names of the roles of service accounts that the cluster file makes.
        is_name_unique: whether no other stack in the region has a cluster of this name: what is found by the name
            alone may be its own.
        volumes: volumes of claims that the deletion does not delete.
        snapshots: snapshots of these volumes that it does not delete.
        templates: templates in the bucket that it does not delete.
        subnet_tags: tags of existing subnets that it does not remove.
        authority_copies: the copies of the certificate authorities that this deletion created.
    """

    moment: Moment
    account: Account
    stack_name: str
    inventory: Inventory
    resources: Sequence[StackResource]
    stack: StackView | None = None
    role_names: Sequence[str] = ()
    is_name_unique: bool = True
    volumes: Sequence[OrphanedResource] = ()
    snapshots: Sequence[OrphanedResource] = ()
    templates: TemplateObjects = field(default_factory=TemplateObjects)
    subnet_tags: tuple[RetainedResource, ...] = ()
    authority_copies: tuple[RetainedResource, ...] = ()

    @cached_property
    def all_authority_copies(self) -> tuple[RetainedResource, ...] | None:
        """Those that this deletion created, and those of earlier ones; None if the caller may not list secrets."""
        created_ids = {copy.id for copy in self.authority_copies}
        with suppress_codes(ACCESS_DENIED_CODES):
            # A new secret may be listed only minutes later.
            earlier_copies = remaining_buckets_keys_and_logs.find_authority_copies(self.account, self.inventory)
            return (*self.authority_copies, *(copy for copy in earlier_copies if copy.id not in created_ids))
        return self.authority_copies or None


def find_remaining_resources(cluster: DeletedCluster) -> tuple[RetainedResource, ...]:
    """Return the resources that remain in the account, each with the reason, in the order of the table."""
    return tuple(resource for find, moments in _FINDERS if cluster.moment in moments for resource in find(cluster))


def _find_undeleted(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    """Return what CloudFormation did not delete, and roles of service accounts of earlier stacks."""
    if cluster.moment == "before" and cluster.stack:
        return ()
    deletable_resources = [
        resource
        for resource in cluster.resources
        if resource.view.type not in remaining_buckets_keys_and_logs.RETAINED_TYPES
        and not (RegistryId.parse(resource.view.logical_id) and resource.view.status == "DELETE_SKIPPED")
    ]
    undeleted = remaining_volumes_and_orphans.find_undeleted_resources(cluster.account, deletable_resources)
    if not cluster.is_name_unique:
        return undeleted
    # Roles that a stack still has are among its resources.
    stack_ids = {resource.view.physical_id for resource in deletable_resources if resource.exists}
    reported_roles = stack_ids | {resource.id for resource in undeleted}
    roles = remaining_buckets_keys_and_logs.find_service_account_roles(
        cluster.account, cluster.inventory.cluster, cluster.role_names, reported_roles
    )
    return (*undeleted, *roles)


def _foresee_snapshots(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    volume_ids = cluster.inventory.existing_ids("AWS::EC2::Volume") if cluster.stack else ()
    return (
        RetainedResource(
            kind="snapshot",
            id=f"one of {volume_id}",
            why="CloudFormation takes it before it deletes a master's volume, so that etcd's data is not lost",
            cost="EBS snapshot, billed per GiB of stored data and month",
        )
        for volume_id in volume_ids
    )


def _foresee_keys(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    key_ids = cluster.inventory.existing_ids("AWS::KMS::Key") if cluster.stack else ()
    return (
        RetainedResource(
            kind="KMS key",
            id=key_id,
            why="KMS deletes it after a waiting period; until then the deletion can be cancelled",
            cost="not billed while its deletion is pending",
        )
        for key_id in key_ids
    )


def _find_snapshots(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    return remaining_volumes_and_orphans.find_volume_snapshots(
        cluster.account,
        cluster.inventory,
        authorities_note=_authorities_note(cluster.all_authority_copies),
        has_run=cluster.moment == "after",
    )


def _authorities_note(copies: Sequence[RetainedResource] | None) -> str:
    if copies is None:
        return "whether a copy of them is kept is unknown without the permission secretsmanager:ListSecrets"
    if not copies:
        return "Secrets Manager lists no copy of them, so they are lost unless you have kept one in a file"
    return f"{copies[0].id} contains a copy of them"


def _find_snapshot_buckets(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    # Without outputs, the operator's own bucket is not listed: the cluster file already names it.
    outputs = cluster.stack.outputs if cluster.stack else {}
    return remaining_buckets_keys_and_logs.find_snapshot_buckets(cluster.account, cluster.inventory, outputs)


def _describe_volumes(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    text = "data of a PersistentVolumeClaim"
    return remaining_volumes_and_orphans.describe_remaining_orphans(
        cluster.account, cluster.volumes, _with_option(cluster, text, "--delete-volumes")
    )


def _describe_snapshots(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    text = "snapshot of a PersistentVolumeClaim's volume"
    return remaining_volumes_and_orphans.describe_remaining_orphans(
        cluster.account, cluster.snapshots, _with_option(cluster, text, "--delete-snapshots")
    )


def _with_option(cluster: DeletedCluster, text: str, option: str) -> str:
    return f"{text}; {option} deletes it" if cluster.moment == "before" else f"{text}, kept unless {option} is given"


def _find_workload_log_groups(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    if not cluster.is_name_unique:
        return ()
    return remaining_buckets_keys_and_logs.find_workload_log_groups(cluster.account, cluster.inventory.cluster)


def _list_existing_resources(cluster: DeletedCluster) -> Iterable[RetainedResource]:
    if cluster.stack is None:
        return ()
    return remaining_volumes_and_orphans.list_existing_resources(cluster.inventory, tuple(cluster.stack.values.items()))


_AT_ANY_TIME: tuple[Moment, ...] = ("before", "after", "failed creation")
_WITH_A_DELETION: tuple[Moment, ...] = ("before", "after")
_AFTERWARDS: tuple[Moment, ...] = ("after", "failed creation")
_FINDERS: tuple[tuple[Callable[[DeletedCluster], Iterable[RetainedResource]], tuple[Moment, ...]], ...] = (
    (_find_undeleted, _AT_ANY_TIME),
    (lambda cluster: cluster.all_authority_copies or (), _AFTERWARDS),
    (_foresee_snapshots, ("before",)),
    (_foresee_keys, ("before",)),
    (_list_existing_resources, ("before",)),
    (_find_snapshots, _AFTERWARDS),
    (lambda cluster: remaining_buckets_keys_and_logs.find_keys(cluster.account, cluster.inventory), _AFTERWARDS),
    (lambda cluster: remaining_buckets_keys_and_logs.find_secrets(cluster.account, cluster.inventory), _AFTERWARDS),
    (_find_snapshot_buckets, _AT_ANY_TIME),
    (
        lambda cluster: remaining_buckets_keys_and_logs.find_kept_issuer_buckets(cluster.account, cluster.inventory),
        _AFTERWARDS,
    ),
    (
        lambda cluster: remaining_buckets_keys_and_logs.find_flow_log_groups(cluster.account, cluster.stack_name),
        _AT_ANY_TIME,
    ),
    (
        lambda cluster: remaining_volumes_and_orphans.find_kept_registry(cluster.account, cluster.resources),
        _AT_ANY_TIME,
    ),
    (_describe_volumes, _WITH_A_DELETION),
    (_describe_snapshots, _WITH_A_DELETION),
    (lambda cluster: remaining_volumes_and_orphans.describe_remaining_templates(cluster.templates), _WITH_A_DELETION),
    (_find_workload_log_groups, _WITH_A_DELETION),
    (lambda cluster: cluster.subnet_tags, _WITH_A_DELETION),
    (_list_existing_resources, ("after",)),
)
"""Who finds what, and when that is listed."""


def find_added_subnet_tags(account: Account, cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that cfngen has added to subnets for a cluster, and that the subnets still have.

    The subnets are found by the tag in which cfngen notes what it has added, so also those that the cluster file does
    not name any more. That tag is the last one of each subnet.
    """
    note = added_tags_note(cluster)
    added: list[SubnetTag] = []
    for subnet, tags in read_tags_of_subnets(account, note).items():
        keys = (*tags.get(note, "").split(), note)
        added += [SubnetTag(subnet, key, tags[key]) for key in keys if key in tags]
    return tuple(added)


def select_removable_subnet_tags(added: Iterable[SubnetTag], cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that a deletion removes: the cluster's own one, unless it was changed since, and the note."""
    return tuple(
        tag
        for tag in added
        if tag.key == added_tags_note(cluster) or (tag.key == cluster_tag(cluster) and tag.value == SHARED)
    )


def describe_remaining_subnet_tags(account: Account, added: Iterable[SubnetTag]) -> tuple[RetainedResource, ...]:
    """Return the added tags that remain, which mark the role of a subnet, each with the command that removes it."""
    return tuple(
        RetainedResource(
            kind="subnet tag",
            id=f"{tag.subnet} {tag.key}",
            why="a deployment has added it, and other clusters may use it",
            command=f"aws ec2 delete-tags --resources {tag.subnet} --tags Key={tag.key} --region {account.region}",
        )
        for tag in added
        if tag.key in SUBNET_ROLES
    )
