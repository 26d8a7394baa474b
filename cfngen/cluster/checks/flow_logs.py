"""Checks of the VPC's flow logs: which keys go with which destination."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_FLOW_LOGS_PATH: Path = ("network", "flowLogs")
_DESTINATION_PATH: Path = (*_FLOW_LOGS_PATH, "destination")


def _check_keys_of_destination(cluster: Cluster) -> Iterator[Problem]:
    """Check that a bucket is named if the records go to one, and only then; and the same for the log group's key."""
    flow_logs = cluster.network.flow_logs
    if flow_logs is None:
        return
    if flow_logs.destination == "s3":
        if flow_logs.bucket is None:
            message = "is missing; enter the name of an existing bucket, or set destination to cloudWatchLogs"
            yield Problem((*_FLOW_LOGS_PATH, "bucket"), message, related_paths=(_DESTINATION_PATH,))
        if flow_logs.retention_days is not None:
            message = "is for cloudWatchLogs; remove it, and give the bucket a lifecycle rule that deletes old records"
            yield Problem((*_FLOW_LOGS_PATH, "retentionDays"), message, related_paths=(_DESTINATION_PATH,))
    elif flow_logs.bucket is not None:
        message = "is for the destination s3; remove it, or set destination to s3"
        yield Problem((*_FLOW_LOGS_PATH, "bucket"), message, related_paths=(_DESTINATION_PATH,))


PROBLEM_CHECKS = (_check_keys_of_destination,)
