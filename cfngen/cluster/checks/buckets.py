"""Checks of the settings of buckets: their key, the lock of snapshots, and where their access logs go."""

from __future__ import annotations

from cfngen.cluster.checks.sections import KeyCheck

PROBLEM_CHECKS = (
    KeyCheck(
        "etcd.backups.kmsKey",
        when=lambda cluster: cluster.etcd.backups.kms_key and not cluster.etcd.backups.enabled,
        message="there is no bucket to encrypt, as masters take no snapshots; remove the key",
        related=("etcd.backups.enabled",),
    ),
    KeyCheck(
        "etcd.backups.kmsKey",
        when=lambda cluster: (
            cluster.etcd.backups.kms_key and cluster.etcd.backups.enabled and cluster.etcd.backups.bucket
        ),
        message="is for a bucket that is created; remove it, and give {cluster.etcd.backups.bucket} the key as its "
        "default encryption",
        related=("etcd.backups.bucket",),
    ),
    KeyCheck(
        "etcd.backups.objectLock",
        when=lambda cluster: cluster.etcd.backups.object_lock and not cluster.etcd.backups.enabled,
        message="there are no snapshots to lock; remove the key",
        related=("etcd.backups.enabled",),
    ),
    KeyCheck(
        "etcd.backups.objectLock.days",
        when=lambda cluster: (
            cluster.etcd.backups.object_lock
            and cluster.etcd.backups.object_lock.days > max(cluster.etcd.backups.days_by_period.values())
        ),
        message="no snapshot is kept for {cluster.etcd.backups.object_lock.days} days; lock them for fewer days, or "
        "increase etcd.backups.dailyDays",
        related=("etcd.backups.hourlyDays", "etcd.backups.dailyDays"),
    ),
    KeyCheck(
        "logging.bucket",
        when=lambda cluster: (
            cluster.logging.bucket
            and not cluster.etcd.backups.creates_bucket
            and not (cluster.service_account_issuer and cluster.service_account_issuer.creates_bucket)
        ),
        message="no bucket is created whose access logs could go there; remove it, and have the logs of your own "
        "buckets written yourself",
        related=("etcd.backups.bucket", "etcd.backups.enabled"),
    ),
)
