"""Checks of how the nodes of a group are replaced: what CloudFormation's rolling update can do."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import GroupCheck
from cfngen.cluster.instances.rolling_updates import MAX_BATCH_SIZE, MAX_PAUSE_MINUTES, SPARE_MINUTES
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem


def _update_path(index: int, key: str) -> Path:
    return ("nodeGroups", index, "update", key)


def _check_batch_size(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        update = group.update
        related_paths = (_update_path(index, "maxSurge"),)
        if update.batch_size == 0:
            message = "0 and maxSurge 0 leave no node to replace; raise one of the two"
            yield Problem(_update_path(index, "maxUnavailable"), message, related_paths=related_paths)
        elif update.batch_size > MAX_BATCH_SIZE:
            message = (
                f"{update.max_unavailable} and maxSurge ({update.max_surge}) are {update.batch_size} nodes at a time, "
                f"but CloudFormation replaces at most {MAX_BATCH_SIZE}; lower one of the two"
            )
            yield Problem(_update_path(index, "maxUnavailable"), message, related_paths=related_paths)


def _check_room_for_surge(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        surge, size = group.update.max_surge, group.initial_size
        if surge and size + surge > group.max_size:
            size_key = "minSize" if group.desired_size is None else "desiredSize"
            message = (
                f"CloudFormation launches no nodes beyond maxSize ({group.max_size}), and {size_key} ({size}) leaves "
                f"room for {max(group.max_size - size, 0)}; raise maxSize to {size + surge}, or lower maxSurge"
            )
            related_paths: tuple[Path, ...] = tuple(
                ("nodeGroups", index, key) for key in ("maxSize", "minSize", "desiredSize")
            )
            yield Problem(_update_path(index, "maxSurge"), message, related_paths=related_paths)


def _check_pause(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        pause, available = group.update.pause, MAX_PAUSE_MINUTES - SPARE_MINUTES
        needed = group.creation_timeout + group.drain_timeout
        if pause and needed + pause > available:
            remedy = f"a pause of at most {available - needed}" if needed < available else "no pause"
            message = (
                f"CloudFormation waits an hour at most for a batch: with creationTimeout ({group.creation_timeout}), "
                f"drainTimeout ({group.drain_timeout}) and {SPARE_MINUTES} minutes to spare there is room for "
                f"{remedy}; lower one of the three"
            )
            related_paths: tuple[Path, ...] = tuple(
                ("nodeGroups", index, key) for key in ("creationTimeout", "drainTimeout")
            )
            yield Problem(_update_path(index, "pause"), message, related_paths=related_paths)


PROBLEM_CHECKS = (_check_batch_size, _check_room_for_surge, _check_pause)
WARNING_CHECKS = (
    GroupCheck(
        "update.maxUnavailable",
        when=lambda cluster, group: (
            1 < group.update.max_unavailable >= group.initial_size > 0 and not group.update.max_surge
        ),
        message="an update may replace all {group.initial_size} nodes of {group.name} at once; lower it unless that "
        "is intended",
    ),
)
