"""What etcd's snapshots take of an operator.

Who takes and restores them needs a document of its own; not everybody who deploys should.
Statements for a bucket that is not the stack's are written for that bucket by whoever owns it.
"""

from __future__ import annotations

from typing import Any

from cfngen.deploy.policies.policy_statements import Place, allow, tagged


def reading(place: Place) -> list[dict[str, Any]]:
    """Return what status, drift and the account of a deletion read; what is in a snapshot is not among it."""
    return [
        allow(
            "ReadBackups",
            "s3:Get*Configuration s3:GetBucket* s3:GetObject s3:ListBucket s3:ListTagsForResource",
            [place.backups, f"{place.backups}/{place.cluster}/etcd/restore.json"],
        )
    ]


def operating(place: Place) -> list[dict[str, Any]]:
    """Return the statements of somebody who takes and restores snapshots, beside those of the operator."""
    objects = f"{place.backups}/{place.cluster}/etcd/"
    return [
        allow("Snapshots", "s3:GetObject", [f"{objects}*"]),
        allow(
            "AskMasters", "s3:DeleteObject s3:PutObject", [f"{objects}backup-request.json", f"{objects}restore.json"]
        ),
        allow("ReplaceMasters", "autoscaling:TerminateInstanceInAutoScalingGroup", place.groups, tagged(place)),
    ]
