"""The impact of changes of the bucket with etcd's snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.deploy.preview.impact.subject import ChangeContext
from cfngen.hints import suggest


def _bucket_impact(subject: ChangeContext) -> Impact | None:
    if subject.disappears:
        # Its DeletionPolicy and UpdateReplacePolicy are Retain.
        return Impact(
            f"backups: the bucket {subject.change.physical_id} is no longer the cluster's; it stays with every "
            f"snapshot in it, and `{suggest('etcd')}` finds those no more",
            Danger.DISRUPTIVE,
        )
    if subject.touches("LifecycleConfiguration"):
        return Impact("backups: how long snapshots are kept changes, also for those there are")
    return None


RULES: Mapping[str, Callable[[ChangeContext], Impact | None]] = {"AWS::S3::Bucket": _bucket_impact}
