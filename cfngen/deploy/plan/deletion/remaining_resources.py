"""Finds what a deletion of a cluster has left in the account, for the result of the deletion.

`retained_resources` describes the resources; this module decides which of them are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cfngen.cluster.naming.tag_keys import SUBNET_ROLES, added_tags_note
from cfngen.deploy.aws import templates as template_objects
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import StackResource, list_resource_tree
from cfngen.deploy.aws.tags import cluster_tag, tag_map
from cfngen.deploy.plan.deletion import remaining_by_kind, retained_resources
from cfngen.deploy.plan.deletion.plan import DeletionRequest, PreparedDeletion
from cfngen.deploy.plan.deletion.retained_resources import RetainedResource
from cfngen.deploy.preflight.network.subnet_tags import SHARED, SubnetTag


def find_remaining_resources(
    account: Account,
    request: DeletionRequest,
    prepared: PreparedDeletion,
    *,
    authority_copies: tuple[RetainedResource, ...],
    reported_keys: Collection[tuple[str, str]],
) -> tuple[RetainedResource, ...]:
    """Return the resources that remain in the account after a deletion, each with the reason.

    Args:
        account: the AWS account.
        request: what was deleted.
        prepared: the plan of the deletion, and the data from which it was made.
        authority_copies: the copies of the certificate authorities that the deletion created.
        reported_keys: kind and id of the resources of Kubernetes that the result lists elsewhere, as removed or as
            orphans; they are left out here.
    """
    inventory, stack = prepared.inventory, prepared.stack
    volumes_left = [volume for volume in prepared.plan.volumes if (volume.kind, volume.id) not in reported_keys]
    snapshots_left = [
        snapshot for snapshot in prepared.plan.snapshots if (snapshot.kind, snapshot.id) not in reported_keys
    ]
    copy_name = authority_copies[0].id if authority_copies else ""
    # Templates, log groups and roles are found by the cluster's name, so they may belong to another one of that name.
    is_name_unique = not prepared.plan.name_conflict
    remaining = [
        *find_undeleted(account, request, _read_current_resources(account, prepared), is_name_unique=is_name_unique),
        *authority_copies,
        *retained_resources.find_snapshots(account, inventory, authority_copy=copy_name),
        *remaining_by_kind.find_keys(account, inventory),
        *remaining_by_kind.find_secrets(account, inventory),
        *remaining_by_kind.find_snapshot_buckets(account, inventory, stack.outputs if stack else {}),
        *remaining_by_kind.describe_remaining(account, inventory),
        *remaining_by_kind.find_flow_log_groups(account, request.stack_name),
        *retained_resources.describe_remaining_orphans(
            account, volumes_left, "data of a PersistentVolumeClaim, kept unless --delete-volumes is given"
        ),
        *retained_resources.describe_remaining_orphans(
            account,
            snapshots_left,
            "snapshot of a PersistentVolumeClaim's volume, kept unless --delete-snapshots is given",
        ),
    ]
    if is_name_unique and request.bucket:
        templates = template_objects.find(account, request.bucket, request.cluster)
        remaining += retained_resources.describe_remaining_templates(templates)
    if is_name_unique:
        remaining += remaining_by_kind.find_workload_log_groups(account, request.cluster)
    remaining += prepared.remaining_tags
    if stack:
        remaining += retained_resources.list_existing_resources(inventory, tuple(stack.values.items()))
    return tuple(remaining)


def find_undeleted(
    account: Account, request: DeletionRequest, resources: Collection[StackResource], *, is_name_unique: bool
) -> tuple[RetainedResource, ...]:
    """Return the resources that CloudFormation did not delete, and roles of service accounts of earlier stacks.

    Args:
        account: the AWS account.
        request: what to delete, or what was deleted.
        resources: the resources of the cluster's stacks, which may be deleted.
        is_name_unique: whether no other stack in the region has a cluster of this name, whose roles would be the same.
    """
    deletable_resources = [
        resource for resource in resources if resource.view.type not in remaining_by_kind.RETAINED_TYPES
    ]
    undeleted = retained_resources.find_undeleted(account, deletable_resources)
    if not is_name_unique:
        return undeleted
    # Roles that a stack still has are among its resources.
    stack_ids = {resource.view.physical_id for resource in deletable_resources if resource.exists}
    reported_roles = stack_ids | {resource.id for resource in undeleted}
    roles = remaining_by_kind.find_remaining(account, request.cluster, request.role_names, reported_roles)
    return (*undeleted, *roles)


def _read_current_resources(account: Account, prepared: PreparedDeletion) -> tuple[StackResource, ...]:
    """Return the current resources of the stack and its nested stacks, also if the stack has been deleted."""
    return list_resource_tree(account, prepared.stack.id) if prepared.stack else prepared.inventory.resources


def find_added(account: Account, cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that cfngen has added to subnets for a cluster, and that the subnets still have.

    The subnets are found by the tag in which cfngen notes what it has added, so also those that the cluster file does
    not name any more. That tag is the last one of each subnet.
    """
    note = added_tags_note(cluster)
    filters = [{"Name": "tag-key", "Values": [note]}]
    added: list[SubnetTag] = []
    for page in account.client("ec2").get_paginator("describe_subnets").paginate(Filters=filters):
        for subnet in page["Subnets"]:
            tags = tag_map(subnet.get("Tags"))
            keys = (*tags.get(note, "").split(), note)
            added += [SubnetTag(subnet["SubnetId"], key, tags[key]) for key in keys if key in tags]
    return tuple(added)


def select_removable(added: Iterable[SubnetTag], cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that a deletion removes: the cluster's own one, unless it was changed since, and the note."""
    return tuple(
        tag
        for tag in added
        if tag.key == added_tags_note(cluster) or (tag.key == cluster_tag(cluster) and tag.value == SHARED)
    )


def describe_remaining(account: Account, added: Iterable[SubnetTag]) -> tuple[RetainedResource, ...]:
    """Return the added tags that remain: those of roles, each with the command that removes it."""
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
