"""The VPC's flow log, and where it goes: a log group with the role that writes to it, or an existing bucket."""

from __future__ import annotations

from awacs.aws import Allow, ArnLike, Condition, PolicyDocument, Principal, SourceAccount, SourceArn, StringEquals
from awacs.aws import Statement as TrustStatement
from awacs.sts import AssumeRole
from troposphere import GetAtt, Ref, Sub, ec2, iam, logs

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import FLOW_LOG_ROLE
from cfngen.cluster.sections.flow_logs import FlowLogs
from cfngen.permissions.network import flow_log_delivery_statements
from cfngen.templates.iam_properties import iam_path, permissions_boundary
from cfngen.templates.stack import RETAINED_ONCE_CREATED, PropertyValue, Stack
from cfngen.templates.tagging import tags


def add_flow_log(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> None:
    """Add the flow log of the VPC if the cluster file asks for one."""
    flow_logs = cluster.network.flow_logs
    if flow_logs is None:
        return
    if flow_logs.destination == "s3":
        # The format and the partitions of the files are AWS's defaults: text, by day.
        destination: dict[str, PropertyValue] = {
            "LogDestinationType": "s3",
            "LogDestination": Sub(f"arn:${{AWS::Partition}}:s3:::{flow_logs.bucket}/{cluster.name}/"),
        }
    else:
        log_group = _add_log_group(stack, cluster, flow_logs)
        role = _add_delivery_role(stack, cluster, log_group)
        destination = {
            "LogDestinationType": "cloud-watch-logs",
            "LogGroupName": Ref(log_group),
            "DeliverLogsPermissionArn": GetAtt(role, "Arn"),
        }
    stack.add(
        ec2.FlowLog(
            "FlowLog",
            ResourceType="VPC",
            ResourceId=vpc,
            TrafficType=flow_logs.traffic.upper(),
            MaxAggregationInterval=flow_logs.interval,
            Tags=tags(cluster, f"{cluster.name}-flow-log"),
            **destination,
        )
    )


def _add_log_group(stack: Stack, cluster: Cluster, flow_logs: FlowLogs) -> logs.LogGroup:
    """Add the log group. CloudWatch Logs always encrypts what is in it, without a KMS key with a key of its own.

    What happened in the network may be asked after the cluster is gone, and the retention limits what the group costs.
    If the stack's creation fails, the group has nothing in it and is deleted.
    """
    return stack.add(
        logs.LogGroup(
            "FlowLogGroup",
            RetentionInDays=flow_logs.retention_days,
            Tags=tags(cluster, f"{cluster.name}-flow-log"),
            **RETAINED_ONCE_CREATED,
        )
    )


def _add_delivery_role(stack: Stack, cluster: Cluster, log_group: logs.LogGroup) -> iam.Role:
    """Add the role with which AWS writes the records to the log group.

    The trust policy is from "IAM role for publishing flow logs to CloudWatch Logs", Amazon VPC User Guide: only
    flow logs of this account and region may use the role.
    """
    used_by_flow_logs = TrustStatement(
        Effect=Allow,
        Principal=Principal("Service", "vpc-flow-logs.amazonaws.com"),
        Action=[AssumeRole],
        Condition=Condition(
            [
                StringEquals({SourceAccount: Ref("AWS::AccountId")}),
                ArnLike({SourceArn: Sub("arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:vpc-flow-log/*")}),
            ]
        ),
    )
    return stack.add(
        iam.Role(
            FLOW_LOG_ROLE,
            Description=f"flow log of the Kubernetes cluster {cluster.name}",
            AssumeRolePolicyDocument=PolicyDocument(Version="2012-10-17", Statement=[used_by_flow_logs]),
            Policies=[
                iam.Policy(
                    PolicyName="delivery",
                    PolicyDocument={
                        "Version": "2012-10-17",
                        "Statement": flow_log_delivery_statements([GetAtt(log_group, "Arn")]),
                    },
                )
            ],
            Tags=tags(cluster, f"{cluster.name} flow log"),
            **iam_path(cluster),
            **permissions_boundary(cluster.iam.permissions_boundary),
        )
    )
