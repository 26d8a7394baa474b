"""Checks of the VPC's flow logs: which keys go with which destination."""

from __future__ import annotations

from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.model import Cluster, FlowLogs

_DESTINATION = ("network.flowLogs.destination",)


def _logs_into(cluster: Cluster, destination: str) -> FlowLogs | None:
    flow_logs = cluster.network.flow_logs
    return flow_logs if flow_logs and flow_logs.destination == destination else None


PROBLEM_CHECKS = (
    KeyCheck(
        "network.flowLogs.bucket",
        when=lambda cluster: (logs := _logs_into(cluster, "s3")) and logs.bucket is None,
        message="is missing; enter the name of an existing bucket, or set destination to cloudWatchLogs",
        related=_DESTINATION,
    ),
    KeyCheck(
        "network.flowLogs.retentionDays",
        when=lambda cluster: (logs := _logs_into(cluster, "s3")) and logs.retention_days is not None,
        message="is for cloudWatchLogs; remove it, and give the bucket a lifecycle rule that deletes old records",
        related=_DESTINATION,
    ),
    KeyCheck(
        "network.flowLogs.bucket",
        when=lambda cluster: (logs := _logs_into(cluster, "cloudWatchLogs")) and logs.bucket is not None,
        message="is for the destination s3; remove it, or set destination to s3",
        related=_DESTINATION,
    ),
)
