"""Finds what a deletion of a cluster has left in the account, for the result of the deletion.

`retained_resources` describes the resources; this module decides which of them are listed.
"""

from __future__ import annotations

from collections.abc import Collection

from cfngen.deploy.account import Account
from cfngen.deploy.deletion import (
    issuer_buckets,
    log_groups,
    pending_deletions,
    retained_resources,
    service_account_roles,
    snapshot_buckets,
)
from cfngen.deploy.deletion.plan import DeletionRequest, PreparedDeletion
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.publishing import template_objects
from cfngen.deploy.stacks import StackResource, list_resource_tree


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
        *pending_deletions.find_keys(account, inventory),
        *pending_deletions.find_secrets(account, inventory),
        *snapshot_buckets.find_snapshot_buckets(account, inventory, stack.outputs if stack else {}),
        *issuer_buckets.describe_remaining(account, inventory),
        *log_groups.find_flow_log_groups(account, request.stack_name),
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
        remaining += log_groups.find_workload_log_groups(account, request.cluster)
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
        resource for resource in resources if resource.view.type not in snapshot_buckets.RETAINED_TYPES
    ]
    undeleted = retained_resources.find_undeleted(account, deletable_resources)
    if not is_name_unique:
        return undeleted
    # Roles that a stack still has are among its resources.
    stack_ids = {resource.view.physical_id for resource in deletable_resources if resource.exists}
    reported_roles = stack_ids | {resource.id for resource in undeleted}
    roles = service_account_roles.find_remaining(account, request.cluster, request.role_names, reported_roles)
    return (*undeleted, *roles)


def _read_current_resources(account: Account, prepared: PreparedDeletion) -> tuple[StackResource, ...]:
    """Return the current resources of the stack and its nested stacks, also if the stack has been deleted."""
    return list_resource_tree(account, prepared.stack.id) if prepared.stack else prepared.inventory.resources
