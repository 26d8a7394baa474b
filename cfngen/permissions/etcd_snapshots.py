"""Statements of an operator for etcd's snapshots.

Taking and restoring snapshots has a separate policy, since not everybody who deploys should be allowed to do so. For an
existing bucket that the cluster file names, the owner of the bucket writes the policy.
"""

from __future__ import annotations

from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def read_bucket_statements(scope: Scope) -> list[Statement]:
    """Return the statements to read the bucket for status, drift and deletion, but not the snapshots themselves."""
    return [
        allow(
            sid="ReadBackups",
            actions="s3:Get*Configuration s3:GetBucket* s3:GetObject s3:ListBucket s3:ListTagsForResource",
            resources=[scope.backup_bucket_arn, f"{scope.backup_bucket_arn}/{scope.cluster}/etcd/restore.json"],
        )
    ]


def snapshot_statements(scope: Scope) -> list[Statement]:
    """Return the additional statements of an operator who takes and restores snapshots."""
    object_prefix = f"{scope.backup_bucket_arn}/{scope.cluster}/etcd/"
    return [
        allow(sid="Snapshots", actions="s3:GetObject", resources=[f"{object_prefix}*"]),
        allow(
            sid="AskMasters",
            actions="s3:DeleteObject s3:PutObject",
            resources=[f"{object_prefix}backup-request.json", f"{object_prefix}restore.json"],
        ),
        allow(
            sid="ReplaceMasters",
            actions="autoscaling:TerminateInstanceInAutoScalingGroup",
            resources=scope.auto_scaling_group_arns,
            condition=if_resource_has_tag(scope),
        ),
    ]
