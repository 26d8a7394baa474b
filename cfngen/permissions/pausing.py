"""Statements of an operator who pauses and resumes clusters.

They have a separate policy: whoever deploys need not be allowed to stop a cluster, and a job that runs every night need
not be allowed to deploy.

Conditions: "Actions, resources, and condition keys for Amazon EC2 Auto Scaling", Service Authorization Reference; "Tags
for security", Amazon EC2 Auto Scaling User Guide.
"""

from __future__ import annotations

from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def pause_statements(scope: Scope) -> list[Statement]:
    """Return the statements of `cfngen pause` and `resume`, in addition to those of an operator who only reads.

    `resume` also connects to the Kubernetes API, with the permissions of `cfngen kubeconfig`.
    """
    has_cluster_tag = if_resource_has_tag(scope)
    object_prefix = f"{scope.backup_bucket_arn}/{scope.cluster}/etcd/"
    return [
        allow(
            sid="SetSizes",
            actions="autoscaling:CompleteLifecycleAction autoscaling:UpdateAutoScalingGroup",
            resources=scope.auto_scaling_group_arns,
            condition=has_cluster_tag,
        ),
        # No other tag of a group may be changed, such as those that conditions rely on.
        allow(
            sid="KeepSizes",
            actions="autoscaling:CreateOrUpdateTags autoscaling:DeleteTags",
            resources=scope.auto_scaling_group_arns,
            condition={
                **has_cluster_tag,
                # `ForAllValues` is also true for a request without keys.
                "ForAllValues:StringEquals": {"aws:TagKeys": [PAUSED]},
                "Null": {"aws:TagKeys": "false"},
            },
        ),
        # A snapshot of etcd is taken first.
        allow(sid="AskForSnapshot", actions="s3:PutObject", resources=[f"{object_prefix}backup-request.json"]),
        allow(sid="FindSnapshot", actions="s3:GetObject", resources=[f"{object_prefix}hourly/*"]),
    ]
