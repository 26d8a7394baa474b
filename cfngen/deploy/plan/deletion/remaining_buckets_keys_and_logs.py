"""Finds what remains of a deleted cluster, kind by kind: buckets, keys, secrets, log groups and roles.

etcd's snapshots are in the bucket that the stack created and retains, or in the operator's own bucket. The cluster's
name is the prefix of their keys, so a new cluster of the same name can be restored from them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET
from cfngen.cluster.naming.names import authority_copy_prefix
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import DeniedError, translate_aws_errors
from cfngen.deploy.aws.existing_resources import (
    LogGroup,
    bucket_exists,
    find_keys_pending_deletion,
    find_secrets_pending_deletion,
    list_secrets,
    read_log_groups,
)
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.roles import find_roles_of_cluster, removal_command
from cfngen.deploy.aws.services import has_object_lock
from cfngen.deploy.aws.snapshots import BUCKET_OUTPUT, NoBackupBucketError, Snapshot, SnapshotStore
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import COST_BY_RESOURCE_TYPE, RetainedResource
from cfngen.text import pluralize

BUCKET_TYPE = "AWS::S3::Bucket"
LOG_GROUP_TYPE = "AWS::Logs::LogGroup"
SECRET_TYPE = "AWS::SecretsManager::Secret"
AUTHORITY_COPY_KIND = "copy of the certificate authorities"
AUTHORITY_COPY_TIME = "%Y%m%dT%H%M%SZ"
"""The end of a copy's name, in UTC."""
RECOVERY_WINDOW_DAYS = 30
"""Recovery window of a copy; the longest that Secrets Manager allows."""
RETAINED_TYPES = (BUCKET_TYPE, "AWS::S3::BucketPolicy", LOG_GROUP_TYPE)
"""Resource types of which the templates declare only resources that are retained."""


def find_snapshot_buckets(
    account: Account, inventory: Inventory, outputs: Mapping[str, str]
) -> tuple[RetainedResource, ...]:
    """Return the buckets that hold etcd snapshots of the cluster, each with its contents.

    Args:
        outputs: outputs of the cluster's root stack; they name the bucket, even if the operator created it.
    """
    stack_buckets = sorted(inventory.ids(BUCKET_TYPE).difference(issuer_buckets(inventory)))
    operator_bucket = outputs.get(BUCKET_OUTPUT, "")
    buckets = [_find_stack_bucket(account, inventory.cluster, bucket) for bucket in stack_buckets]
    if operator_bucket and operator_bucket not in stack_buckets:
        buckets.append(_find_operator_bucket(account, inventory.cluster, operator_bucket))
    return tuple(filter(None, buckets))


def _find_stack_bucket(account: Account, cluster: str, bucket: str) -> RetainedResource | None:
    described = _describe_snapshots(SnapshotStore(account, bucket, cluster))
    if described is None:
        return None
    contents, lock = described
    return RetainedResource(
        kind="bucket of etcd's snapshots",
        id=bucket,
        why=f"{contents}; a new cluster {cluster} uses it if `etcd.backups.bucket` in its cluster file names it{lock}",
        cost=COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
        command=versioned_bucket_removal(account, bucket),
    )


def versioned_bucket_removal(account: Account, bucket: str) -> str:
    """Return the command that deletes a bucket with all versions of its objects, which `aws s3 rb --force` leaves."""
    versions = f"boto3.Session(region_name='{account.region}').resource('s3').Bucket('{bucket}').object_versions"
    return f'python3 -c "import boto3; {versions}.delete()" && aws s3 rb s3://{bucket} --region {account.region}'


def _find_operator_bucket(account: Account, cluster: str, bucket: str) -> RetainedResource | None:
    """Return the snapshots in a bucket of the operator; None if there are none."""
    store = SnapshotStore(account, bucket, cluster)
    contents, lock = _describe_snapshots(store) or (_count_and_size(0, 0), "")
    if contents == _count_and_size(0, 0):
        return None
    uri = f"s3://{bucket}/{store.prefix}"
    return RetainedResource(
        "etcd's snapshots",
        uri,
        f"{contents}, in your own bucket{lock}",
        COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
        f"aws s3 rm --recursive {uri}",
    )


def _describe_snapshots(store: SnapshotStore) -> tuple[str, str] | None:
    """Return the number and size of the cluster's snapshots, and their lock, in words; None if there is no bucket."""
    try:
        snapshots = store.snapshots()
    except NoBackupBucketError:
        return None
    except DeniedError:
        return "snapshots that you have no permission to list", ""
    size = sum(snapshot.size for snapshot in snapshots)
    return _count_and_size(len(snapshots), size), _describe_lock(store, snapshots)


def _describe_lock(store: SnapshotStore, snapshots: Sequence[Snapshot]) -> str:
    """Return until when S3 keeps locked snapshots, as the end of a sentence; empty if the newest ones have no lock.

    Args:
        snapshots: all snapshots, the newest first; the newest of each period is locked the longest.
    """
    try:
        with translate_aws_errors():
            if not has_object_lock(store.account, store.bucket):
                return ""
        newest_by_period = {snapshot.period: snapshot for snapshot in reversed(snapshots)}
        locks = [lock for snapshot in newest_by_period.values() if (lock := store.read_lock(snapshot.key))]
    except DeniedError:
        return ""
    if not locks:
        return ""
    last = max(locks, key=lambda lock: lock.until)
    who = "only those with `s3:BypassGovernanceRetention`" if last.mode == "governance" else "nobody"
    return f"; S3 Object Lock lets {who} delete locked snapshots, the newest until {last.until:%Y-%m-%d}"


def _count_and_size(count: int, size: int) -> str:
    """Return the number and the size in words, e.g. `3 snapshots, 12.5 MiB`."""
    return f"{pluralize(count, 'snapshot')}, {size / 2**20:.1f} MiB"


def issuer_buckets(inventory: Inventory) -> tuple[str, ...]:
    """Return the names of the issuer's buckets that the stacks have or had."""
    names = {
        resource.view.physical_id
        for resource in inventory.resources
        if resource.view.type == BUCKET_TYPE and resource.view.logical_id == ISSUER_BUCKET and resource.view.physical_id
    }
    return tuple(sorted(names))


def find_kept_issuer_buckets(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the issuer's buckets that still exist, after they should have been deleted."""
    return tuple(
        RetainedResource(
            kind="bucket of the issuer's documents",
            id=bucket,
            why="CloudFormation keeps it, since S3 deletes no bucket that is not empty; nobody can read it without its "
            "bucket policy",
            cost=COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
            command=f"aws s3 rb --force s3://{bucket} --region {account.region}",
        )
        for bucket in issuer_buckets(inventory)
        if bucket_exists(account, bucket)
    )


def find_keys(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the KMS keys of the stacks that are pending deletion, each with the command that cancels that."""
    deletion_days = find_keys_pending_deletion(account, inventory.ids("AWS::KMS::Key"))
    return tuple(
        RetainedResource(
            kind="KMS key",
            id=key_id,
            why=f"deleted on {day or 'a day that KMS does not say'}; until then "
            f"`aws kms cancel-key-deletion --key-id {key_id} --region {account.region}` cancels the deletion",
            cost="not billed while its deletion is pending",
        )
        for key_id, day in deletion_days.items()
    )


def find_secrets(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the secrets of the stacks that are scheduled for deletion (by hand) and can still be restored."""
    return tuple(
        RetainedResource(
            kind="secret",
            id=arn,
            why="deleted when its recovery window ends; until then "
            f"`aws secretsmanager restore-secret --secret-id {arn} --region {account.region}` restores it",
            cost="not billed while its deletion is pending",
            command=f"aws secretsmanager delete-secret --force-delete-without-recovery --secret-id {arn} "
            f"--region {account.region}",
        )
        for arn in find_secrets_pending_deletion(account, inventory.ids(SECRET_TYPE))
    )


def describe_authority_copy(account: Account, name: str, *, is_restored: bool = False) -> RetainedResource:
    """Return the copy of a cluster's certificate authorities in a secret.

    Args:
        name: the secret's name; it ends with the time when the copy was made and its deletion was scheduled.
        is_restored: whether somebody has cancelled its deletion.
    """
    command = f"aws secretsmanager {{}} --secret-id {name} --region {account.region}"
    if is_restored:
        why, cost = "restored, so that it can be read", COST_BY_RESOURCE_TYPE[SECRET_TYPE]
    else:
        created = datetime.strptime(name.rpartition("-")[2], AUTHORITY_COPY_TIME).replace(tzinfo=UTC)
        deletion_date = (created + timedelta(days=RECOVERY_WINDOW_DAYS)).date()
        why = (
            f"deleted on {deletion_date}; until then `{command.format('restore-secret')}` restores it; "
            "docs/operate/backups.md says how a new cluster gets it"
        )
        cost = "not billed while its deletion is pending"
    return RetainedResource(
        AUTHORITY_COPY_KIND, name, why, cost, command.format("delete-secret --force-delete-without-recovery")
    )


def authority_copy_description(cluster: str, secret: str) -> str:
    """Return the description of a copy, by which it is found; `secret` is the ARN of what was copied."""
    return f"Certificate authorities of the deleted Kubernetes cluster {cluster}, copied from {secret}"


def find_authority_copies(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the copies in secrets of the certificate authorities that the stacks had, the newest first.

    Raises:
        ClientError: the caller may not list secrets.
    """
    descriptions = {
        authority_copy_description(inventory.cluster, resource.view.physical_id)
        for resource in inventory.resources
        if resource.view.logical_id == "CaSecret" and resource.view.physical_id
    }
    if not descriptions:
        return ()
    prefix = authority_copy_prefix(inventory.cluster)
    is_restored_by_name = {
        str(secret["Name"]): "DeletedDate" not in secret
        for secret in list_secrets(account, prefix)
        if secret.get("Description") in descriptions
    }
    return tuple(
        describe_authority_copy(account, name, is_restored=is_restored)
        for name, is_restored in sorted(is_restored_by_name.items(), reverse=True)
    )


def find_flow_log_groups(account: Account, stack_name: str) -> tuple[RetainedResource, ...]:
    """Return the log groups of the flow logs of a root stack.

    CloudFormation names a log group after its stack, so log groups of earlier stacks of the same name are found, too,
    and log groups that an update has taken out of the template.
    """
    # The flow log is in the nested VPC stack, or in the stack of the standalone template.
    name_pattern = re.compile(rf"{re.escape(stack_name)}-(VpcStack-[A-Za-z0-9]+-)?FlowLogGroup-[A-Za-z0-9]+")
    return tuple(
        _retained(account, group, why=f"records of the VPC's flow log{_retention(group.retention_days)}")
        for group in read_log_groups(account, prefix=f"{stack_name}-")
        if name_pattern.fullmatch(group.name)
    )


def find_workload_log_groups(account: Account, cluster: str) -> tuple[RetainedResource, ...]:
    """Return the log groups of Container Insights, whose names contain the cluster's name.

    Nothing shows which cluster other log groups belong to.
    """
    groups = read_log_groups(account, prefix=f"/aws/containerinsights/{cluster}/")
    return tuple(_retained(account, group, why="created by a workload of the cluster") for group in groups)


def _retained(account: Account, group: LogGroup, why: str) -> RetainedResource:
    return RetainedResource(
        kind="log group",
        id=group.name,
        why=why,
        cost=f"CloudWatch Logs storage, {group.size / 2**30:.2f} GiB, billed per GiB and month",
        command=f"aws logs delete-log-group --log-group-name {group.name} --region {account.region}",
    )


def _retention(days: int | None) -> str:
    """Return when CloudWatch Logs deletes records, as the end of a sentence; empty if it never does."""
    return f"; each is deleted after {pluralize(days, 'day')}" if days else ""


def find_service_account_roles(
    account: Account, cluster: str, names: Collection[str], reported: Collection[str]
) -> tuple[RetainedResource, ...]:
    """Return the roles that exist although the cluster's stack does not, and have the cluster's tag.

    Args:
        names: names of the roles of the cluster file.
        reported: names of roles that are listed elsewhere.
    """
    return tuple(
        RetainedResource(
            kind="role of a service account",
            id=name,
            why="left by an earlier stack; a new cluster with this service account is refused while it exists",
            command=removal_command(account, name),
        )
        for name in find_roles_of_cluster(account, cluster, set(names) - set(reported))
    )
