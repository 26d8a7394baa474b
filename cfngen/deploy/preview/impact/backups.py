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
            f"backups: the bucket {subject.change.physical_id} no longer belongs to the cluster; it is kept with all "
            f"its snapshots, but `{suggest('etcd')}` no longer finds them",
            Danger.DISRUPTIVE,
        )
    if subject.touches("LifecycleConfiguration"):
        return Impact("backups: the retention of snapshots changes, also for existing snapshots")
    return None


RULES: Mapping[str, Callable[[ChangeContext], Impact | None]] = {"AWS::S3::Bucket": _bucket_impact}
