"""The impact of changes of the bucket with etcd's snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preview.impact.context import ChangeContext
from cfngen.hints import suggest


def _bucket_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the bucket."""
    if context.disappears:
        # Its DeletionPolicy and UpdateReplacePolicy are Retain.
        return Impact(
            f"backups: the bucket {context.change.physical_id} no longer belongs to the cluster; it is kept with all "
            f"its snapshots, but `{suggest('etcd')}` no longer finds them",
            Danger.DISRUPTIVE,
        )
    if context.touches("LifecycleConfiguration"):
        return Impact("backups: the retention of snapshots changes, also for existing snapshots")
    return None


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {"AWS::S3::Bucket": _bucket_impact}
