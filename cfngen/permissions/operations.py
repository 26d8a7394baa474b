"""Statements of an operator for operations with policies of their own: snapshots of etcd, replacing instances, pausing.

Not everybody who deploys should be allowed to do these; a job that pauses every night need not be allowed to deploy.
Resources and conditions: "Actions, resources, and condition keys for Amazon EC2" and the same page for Auto Scaling,
Service Authorization Reference; "Tags for security", Amazon EC2 Auto Scaling User Guide.
"""

from __future__ import annotations

from cfngen.cluster.naming.names import snapshot_prefixes
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.permissions.role_changes import if_passed_to
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Condition, Statement, allow


def read_bucket_statements(scope: Scope) -> list[Statement]:
    """Return the statements to read the bucket for status, drift and deletion, but not the snapshots themselves."""
    key = scope.own_backup_key
    return [
        allow(
            sid="ReadBackups",
            actions="s3:Get*Configuration s3:GetBucket* s3:GetObject s3:ListBucket s3:ListTagsForResource",
            resources=[*scope.backup_bucket_arns, f"{scope.backup_bucket_arn}/{scope.cluster}/etcd/restore.json"],
        ),
        *_lock_statements(scope),
        *_bucket_key_statements(scope, "ReadBackupsKey", "kms:Decrypt"),
        # A plan looks whether the key exists and can encrypt.
        *([allow(sid="CheckBackupKey", actions="kms:DescribeKey", resources=[key])] if key else []),
    ]


def _lock_statements(scope: Scope) -> list[Statement]:
    """Return the permission to read how long snapshots are locked, which a deletion says; empty if they are not."""
    if not scope.locks_snapshots:
        return []
    snapshots = [f"{scope.backup_bucket_arn}/{prefix}*" for prefix in snapshot_prefixes(scope.cluster)]
    return [allow(sid="ReadLocks", actions="s3:GetObjectRetention", resources=snapshots)]


def _bucket_key_statements(scope: Scope, sid: str, actions: str) -> list[Statement]:
    """Return the permission to use the user's own key of the bucket, for this bucket only; empty without such a key."""
    if not scope.own_backup_key:
        return []
    only_this_bucket: Condition = {
        "StringLike": {
            "kms:EncryptionContext:aws:s3:arn": [scope.backup_bucket_arn, f"{scope.backup_bucket_arn}/*"],
            "kms:ViaService": f"s3.{scope.region}.*",
        }
    }
    return [allow(sid=sid, actions=actions, resources=[scope.own_backup_key], condition=only_this_bucket)]


def snapshot_statements(scope: Scope) -> list[Statement]:
    """Return the additional statements of an operator who takes and restores snapshots.

    For an existing bucket that the cluster file names, the owner of the bucket writes the policy.
    """
    object_prefix = f"{scope.backup_bucket_arn}/{scope.cluster}/etcd/"
    return [
        allow(sid="Snapshots", actions="s3:GetObject", resources=[f"{object_prefix}*"]),
        allow(
            sid="AskMasters",
            actions="s3:DeleteObject s3:PutObject",
            resources=[f"{object_prefix}backup-request.json", f"{object_prefix}restore.json"],
        ),
        *_bucket_key_statements(scope, "SnapshotsKey", "kms:Decrypt kms:GenerateDataKey"),
        allow(
            sid="ReplaceMasters",
            actions="autoscaling:TerminateInstanceInAutoScalingGroup",
            resources=scope.auto_scaling_group_arns,
            condition=if_resource_has_tag(scope),
        ),
    ]


def replacement_statements(scope: Scope) -> list[Statement]:
    """Return the statements to replace instances, and to give a master another instance type.

    Only the latter needs more than the permission to terminate instances. Whoever gives an Auto Scaling group a launch
    template must be allowed to run instances from it, to tag them and their volumes, and to pass their role ("Control
    Amazon EC2 launch template usage in Auto Scaling groups", Amazon EC2 Auto Scaling User Guide).
    """
    made_roles = scope.instance_role_arns if scope.makes_roles else []
    launch_templates = scope.ec2_arns("launch-template/*")
    return [
        allow(
            sid="ReplaceInstances",
            actions="autoscaling:TerminateInstanceInAutoScalingGroup autoscaling:UpdateAutoScalingGroup",
            resources=scope.auto_scaling_group_arns,
        ),
        allow(
            sid="NewTypes",
            actions="ec2:CreateLaunchTemplateVersion",
            resources=launch_templates,
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="LaunchNewTypes",
            actions="ec2:RunInstances",
            condition={"ArnLike": {"ec2:LaunchTemplate": launch_templates[0]}},
        ),
        allow(
            sid="TagNewInstances",
            actions="ec2:CreateTags",
            resources=scope.ec2_arns("instance/*", "network-interface/*", "volume/*"),
            condition={"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        ),
        allow(
            sid="PassRoleToInstances",
            actions="iam:PassRole",
            resources=[*made_roles, *scope.existing_roles],
            condition=if_passed_to("ec2"),
        ),
    ]


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
        *_bucket_key_statements(scope, "SnapshotsKey", "kms:Decrypt kms:GenerateDataKey"),
    ]
