"""etcd snapshots that remain after their cluster is deleted.

They are in the bucket that the stack created and retains, or in the operator's own bucket. The cluster's name is the
prefix of their keys, so a new cluster of the same name can be restored from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DeniedError
from cfngen.deploy.deletion import issuer_buckets
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.log_groups import LOG_GROUP_TYPE
from cfngen.deploy.deletion.retained_resources import COST_BY_RESOURCE_TYPE, RetainedResource
from cfngen.deploy.etcd.snapshots import BUCKET_OUTPUT, NoBackupBucketError, SnapshotStore
from cfngen.text import pluralize

BUCKET_TYPE = issuer_buckets.BUCKET_TYPE
RETAINED_TYPES = (BUCKET_TYPE, "AWS::S3::BucketPolicy", LOG_GROUP_TYPE)
"""Resource types of which the templates declare only resources that are retained."""


def find_snapshot_buckets(
    account: Account, inventory: Inventory, outputs: Mapping[str, str]
) -> tuple[RetainedResource, ...]:
    """Return the buckets that hold etcd snapshots of the cluster, each with its contents.

    Args:
        account: the AWS account.
        inventory: the cluster.
        outputs: outputs of the cluster's root stack; they name the bucket, even if the operator created it.
    """
    stack_buckets = sorted(inventory.ids(BUCKET_TYPE).difference(issuer_buckets.issuer_buckets(inventory)))
    operator_bucket = outputs.get(BUCKET_OUTPUT, "")
    buckets = [_find_stack_bucket(account, inventory.cluster, bucket) for bucket in stack_buckets]
    if operator_bucket and operator_bucket not in stack_buckets:
        buckets.append(_find_operator_bucket(account, inventory.cluster, operator_bucket))
    return tuple(filter(None, buckets))


def _find_stack_bucket(account: Account, cluster: str, bucket: str) -> RetainedResource | None:
    """Return a bucket that the stack created; None if it no longer exists."""
    contents = _describe_snapshots(SnapshotStore(account, bucket, cluster))
    if contents is None:
        return None
    return RetainedResource(
        kind="bucket of etcd's snapshots",
        id=bucket,
        why=f"{contents}; a new cluster {cluster} uses it if `etcd.backups.bucket` in its cluster file names it",
        cost=COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
        command=f"aws s3 rb --force s3://{bucket} --region {account.region}",
    )


def _find_operator_bucket(account: Account, cluster: str, bucket: str) -> RetainedResource | None:
    """Return the snapshots in a bucket of the operator; None if there are none."""
    store = SnapshotStore(account, bucket, cluster)
    contents = _describe_snapshots(store)
    if contents in (None, _count_and_size(0, 0)):
        return None
    uri = f"s3://{bucket}/{store.prefix}"
    return RetainedResource(
        "etcd's snapshots",
        uri,
        f"{contents}, in your own bucket",
        COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
        f"aws s3 rm --recursive {uri}",
    )


def _describe_snapshots(store: SnapshotStore) -> str | None:
    """Return the number and size of the cluster's snapshots, in words; None if the bucket does not exist."""
    try:
        sizes = [snapshot.size for snapshot in store.snapshots()]
    except NoBackupBucketError:
        return None
    except DeniedError:
        return "snapshots that you have no permission to list"
    return _count_and_size(len(sizes), sum(sizes))


def _count_and_size(count: int, size: int) -> str:
    """Return the number and the size in words, e.g. `3 snapshots, 12.5 MiB`."""
    return f"{pluralize(count, 'snapshot')}, {size / 2**20:.1f} MiB"
