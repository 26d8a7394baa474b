"""Statements for what the cluster file names: buckets of access logs, topics, and references to stacks and parameters.

Fn::GetStackOutput needs cloudformation:DescribeStacks on the other stack, by the executing role (template reference of
the function, "RoleArn"). A parameter of the type AWS::SSM::Parameter::Value is read with ssm:GetParameters ("Specify
existing resources at runtime with CloudFormation-supplied parameter types", CloudFormation User Guide). cfngen makes
the same two calls before a deployment; operators may call DescribeStacks already.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import referenced_parts
from cfngen.cluster.sections.references import StackOutput, StoredParameter, with_account
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


def read_parameter_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement for the parameters of Parameter Store to which the cluster file refers, if it has any."""
    references = [part.reference for part in referenced_parts(cluster)]
    names = sorted({reference.name for reference in references if isinstance(reference, StoredParameter)})
    # The ARN of a parameter has the name behind `parameter`, with its slash.
    arns = [f"arn:{scope.partition}:ssm:{scope.region}:{scope.account}:parameter{name}" for name in names]
    return [allow(sid="References", actions="ssm:GetParameters", resources=arns)] if arns else []


def read_output_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement for the stacks whose outputs the cluster file refers to, if it has any."""
    references = [part.reference for part in referenced_parts(cluster)]
    stacks = sorted({reference.stack for reference in references if isinstance(reference, StackOutput)})
    stack_arn = f"arn:{scope.partition}:cloudformation:{scope.region}:{scope.account}:stack"
    arns = [f"{stack_arn}/{stack}/*" for stack in stacks]
    return [allow(sid="ReferencedStacks", actions="cloudformation:DescribeStacks", resources=arns)] if arns else []
