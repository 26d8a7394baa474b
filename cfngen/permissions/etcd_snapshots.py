"""Statements of an operator for etcd's snapshots.

Taking and restoring snapshots needs a policy of its own, since not everybody who deploys should be allowed to.
For a bucket that does not belong to the stack, the owner of that bucket writes the policy.
"""

from __future__ import annotations

from cfngen.permissions.scope import Scope, tagged
from cfngen.permissions.statements import Statement, allow


def read_bucket(scope: Scope) -> list[Statement]:
    """Return the statements to read the bucket for status, drift and deletion, but not the snapshots themselves."""
    return [
        allow(
            "ReadBackups",
            "s3:Get*Configuration s3:GetBucket* s3:GetObject s3:ListBucket s3:ListTagsForResource",
            [scope.backups, f"{scope.backups}/{scope.cluster}/etcd/restore.json"],
        )
    ]


def take_and_restore(scope: Scope) -> list[Statement]:
    """Return the additional statements of an operator who takes and restores snapshots."""
    objects = f"{scope.backups}/{scope.cluster}/etcd/"
    return [
        allow("Snapshots", "s3:GetObject", [f"{objects}*"]),
        allow(
            "AskMasters", "s3:DeleteObject s3:PutObject", [f"{objects}backup-request.json", f"{objects}restore.json"]
        ),
        allow("ReplaceMasters", "autoscaling:TerminateInstanceInAutoScalingGroup", scope.groups, tagged(scope)),
    ]
