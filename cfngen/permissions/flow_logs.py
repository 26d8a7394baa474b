"""Statements for the VPC's flow log: of the role that delivers records, of CloudFormation's service role, of operators.

Calls: permissions of the handlers of AWS::EC2::FlowLog and AWS::Logs::LogGroup in the CloudFormation registry
(November 2026), without those for tags in records, data protection and index policies that are not used. Resources and
conditions: "Actions, resources, and condition keys" for Amazon EC2 and for Amazon CloudWatch Logs, Service
Authorization Reference.

Nobody gets `s3:PutBucketPolicy` on the bucket of the cluster file: AWS would use it to put its own policy in the place
of the bucket's ("Amazon S3 bucket permissions for flow logs", Amazon VPC User Guide).
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Expression, Statement, allow


def delivery_statements(log_group_arn: Expression) -> list[Statement]:
    """Return the statements of the role with which AWS writes records to the log group.

    They are those of "IAM role for publishing flow logs to CloudWatch Logs" in the Amazon VPC User Guide, without
    `logs:CreateLogGroup`: the group exists. DescribeLogGroups is a list of groups.

    Args:
        log_group_arn: ARN of the log group and everything in it, as `Fn::GetAtt` returns it.
    """
    return [
        allow(
            sid="WriteRecords",
            actions="logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
            resources=[log_group_arn],
        ),
        allow(sid="FindLogGroup", actions="logs:DescribeLogGroups"),
    ]


def flow_log_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role; empty if the cluster has no flow logs.

    A call that creates a flow log names the VPC, which may exist already and then does not have the cluster's tag, and
    the new flow log, which has no tags yet.
    """
    flow_logs = cluster.network.flow_logs
    if flow_logs is None:
        return []
    statements = [
        allow(sid="NewFlowLogs", actions="ec2:CreateFlowLogs", resources=scope.ec2_arns("vpc-flow-log/*", "vpc/*")),
        allow(
            sid="OwnFlowLogs",
            actions="ec2:DeleteFlowLogs",
            resources=scope.ec2_arns("vpc-flow-log/*"),
            condition=if_resource_has_tag(scope),
        ),
        # Log deliveries are no resources that a statement could name.
        allow(sid="LogDeliveries", actions="logs:CreateLogDelivery logs:DeleteLogDelivery"),
    ]
    if flow_logs.destination == "cloudWatchLogs":
        statements += [
            allow(sid="FindLogGroups", actions="logs:DescribeLogGroups logs:DescribeResourcePolicies"),
            allow(
                sid="LogGroups",
                actions="""
                    logs:CreateLogGroup logs:DeleteLogGroup logs:DeleteRetentionPolicy logs:DescribeIndexPolicies
                    logs:GetDataProtectionPolicy logs:ListTagsForResource logs:PutRetentionPolicy logs:TagResource
                    logs:UntagResource""",
                resources=scope.log_group_arns,
            ),
        ]
    return statements


def read_flow_log_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator, whose plans look whether the bucket exists.

    Drift detection reads the log group with the operator's permissions.
    """
    flow_logs = cluster.network.flow_logs
    if flow_logs is None:
        return []
    if flow_logs.bucket:
        bucket_arn = f"arn:{scope.partition}:s3:::{flow_logs.bucket}"
        return [allow(sid="FindFlowLogBucket", actions="s3:ListBucket", resources=[bucket_arn])]
    return [
        allow(
            sid="ReadLogGroups",
            actions="logs:DescribeIndexPolicies logs:GetDataProtectionPolicy logs:ListTagsForResource",
            resources=scope.log_group_arns,
        ),
        allow(sid="ReadLogPolicies", actions="logs:DescribeResourcePolicies"),
    ]
