"""Snapshots of etcd that outlive their cluster: in the bucket that its stack made and keeps, or in one of somebody's.

A cluster of the same name goes on with them, as they lie under its name.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DeniedError
from cfngen.deploy.deletion.retained import COSTS, Retained
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.etcd.snapshots import BUCKET, NoBackupBucketError, Store
from cfngen.text import pluralize

TYPE = "AWS::S3::Bucket"
KEPT = (TYPE, "AWS::S3::BucketPolicy")
"""Types of which the templates have nothing but what is kept."""


def snapshots(account: Account, scope: Scope, outputs: Mapping[str, str]) -> tuple[Retained, ...]:
    """Return the buckets of snapshots, each with what is in it.

    Args:
        account: where they are.
        scope: the cluster.
        outputs: of its root, which name a bucket that is not the stack's own.
    """
    made, given = sorted(scope.ids(TYPE)), outputs.get(BUCKET, "")
    found = [_made(account, scope.cluster, each) for each in made]
    if given and given not in made:
        found.append(_given(account, scope.cluster, given))
    return tuple(filter(None, found))


def _made(account: Account, cluster: str, bucket: str) -> Retained | None:
    """Return a bucket of the stack's; None if it is gone."""
    holds = _holds(Store(account, bucket, cluster))
    if holds is None:
        return None
    return Retained(
        "bucket of etcd's snapshots",
        bucket,
        f"{holds}; a cluster {cluster} that is made again goes on with it if its file names it: `etcd.backups.bucket`",
        COSTS[TYPE],
        f"aws s3 rb --force s3://{bucket} --region {account.region}",
    )


def _given(account: Account, cluster: str, bucket: str) -> Retained | None:
    """Return what lies in a bucket of the operator's; None if nothing does."""
    place = Store(account, bucket, cluster)
    holds = _holds(place)
    if holds in (None, _described(0, 0)):
        return None
    where = f"s3://{bucket}/{place.prefix}"
    return Retained(
        "etcd's snapshots", where, f"{holds}, in a bucket of yours", COSTS[TYPE], f"aws s3 rm --recursive {where}"
    )


def _holds(place: Store) -> str | None:
    """Return how much lies under the cluster's name; None if there is no such bucket."""
    try:
        sizes = [snapshot.size for snapshot in place.snapshots()]
    except NoBackupBucketError:
        return None
    except DeniedError:
        return "snapshots that you may not list"
    return _described(len(sizes), sum(sizes))


def _described(count: int, size: int) -> str:
    return f"{pluralize(count, 'snapshot')}, {size / 2**20:.1f} MiB"
