"""What changes of the bucket of etcd's snapshots mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.impact.subject import Subject
from cfngen.deploy.preview.plan import Danger, Impact


def _bucket(subject: Subject) -> Impact | None:
    if subject.goes:
        # Its DeletionPolicy and UpdateReplacePolicy keep it.
        return Impact(
            f"backups: the bucket {subject.change.physical_id} is no longer the cluster's; it stays with every "
            "snapshot in it, and `cfngen etcd` finds those no more",
            Danger.DISRUPTIVE,
        )
    if subject.touches("LifecycleConfiguration"):
        return Impact("backups: how long snapshots are kept changes, also for those there are")
    return None


RULES: Mapping[str, Callable[[Subject], Impact | None]] = {"AWS::S3::Bucket": _bucket}
