"""Statements for access logs of the cluster's buckets, and for messages about its instances."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.references import with_account
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow


def record_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role; empty if the cluster file asks for neither.

    S3 writes access logs, and EC2 Auto Scaling sends messages, with permissions of their own.
    """
    statements = []
    if cluster.logging.bucket:
        issuer = cluster.service_account_issuer
        buckets = [
            *(scope.backup_bucket_arns if cluster.etcd.backups.creates_bucket else ()),
            *(scope.issuer_bucket_arns if issuer and issuer.creates_bucket else ()),
        ]
        statements.append(allow(sid="AccessLogs", actions="s3:PutBucketLogging", resources=buckets))
    if cluster.notifications.topic:
        statements.append(
            allow(
                sid="Notifications",
                actions="autoscaling:DeleteNotificationConfiguration autoscaling:PutNotificationConfiguration",
                resources=scope.auto_scaling_group_arns,
            )
        )
    return statements


def read_record_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator, whose plans look whether the bucket and the topic exist."""
    statements = []
    if cluster.logging.bucket:
        bucket_arn = f"arn:{scope.partition}:s3:::{cluster.logging.bucket}"
        statements.append(allow(sid="FindLogBucket", actions="s3:ListBucket", resources=[bucket_arn]))
    if cluster.notifications.topic:
        topic = with_account(cluster.notifications.topic, scope.account)
        statements.append(allow(sid="FindTopic", actions="sns:GetTopicAttributes", resources=[topic]))
    return statements
