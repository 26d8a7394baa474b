"""Statements for parts of a network that not every cluster has: NAT gateways, VPC endpoints, flow logs, added tags.

They form separate policies, since all statements of the service role together exceed the size of one managed policy.
Public subnets, Elastic IPs and route tables of private clusters need only what public clusters need.

Calls: permissions of the handlers of AWS::EC2::NatGateway, AWS::EC2::VPCEndpoint, AWS::EC2::FlowLog and
AWS::Logs::LogGroup in the CloudFormation registry (November 2026), without those for tags in records, data protection
and index policies that are not used. Resources and conditions: "Actions, resources, and condition keys" for Amazon EC2
and for Amazon CloudWatch Logs, Service Authorization Reference.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import SUBNET_ROLES, added_tags_note, shared_with
from cfngen.cluster.network.endpoints import interface_endpoints
from cfngen.cluster.network.topology import created_subnets, is_private
from cfngen.cluster.sections.references import known_id
from cfngen.permissions.ec2_resources import existing_part_statements, tag_new_statements
from cfngen.permissions.role_changes import pass_flow_log_role_statement
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Condition, Expression, Statement, allow


def needs_private_network_statements(cluster: Cluster) -> bool:
    """Return whether CloudFormation may create NAT gateways or VPC endpoints for a cluster.

    This does not depend on `network.nat`: an update that removes the NAT gateways still has to delete them.
    """
    return is_private(cluster) and bool(created_subnets(cluster) or interface_endpoints(cluster))


def private_network_statements(scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for NAT gateways and VPC endpoints.

    One call needs permission for each resource that it names: for the new resource, which has no tags yet; for parts of
    the network that the cluster file names as existing; and for resources that the templates create, which have the
    cluster's tag.
    """
    endpoint_use = "ec2:CreateVpcEndpoint ec2:ModifyVpcEndpoint"
    return [
        allow(sid="NewNatGateways", actions="ec2:CreateNatGateway", resources=scope.ec2_arns("natgateway/*")),
        allow(sid="NewEndpoints", actions="ec2:CreateVpcEndpoint", resources=scope.ec2_arns("vpc-endpoint/*")),
        allow(
            sid="OwnGatewaysAndEndpoints",
            actions=f"ec2:CreateNatGateway ec2:DeleteNatGateway ec2:DeleteVpcEndpoints {endpoint_use}",
            resources=scope.ec2_arns("*"),
            condition=if_resource_has_tag(scope),
        ),
        *existing_part_statements(
            scope,
            {
                "security-group": endpoint_use,
                "subnet": f"ec2:CreateNatGateway {endpoint_use}",
                "vpc": "ec2:CreateVpcEndpoint",
            },
            sid="GatewaysAndEndpointsInExisting",
        ),
        *tag_new_statements(scope, "natgateway", "vpc-endpoint", sid="TagNewGatewaysAndEndpoints"),
        # The reference names this as a dependent action of ec2:CreateVpcEndpoint: the names of services resolve to an
        # endpoint by a hosted zone of AWS, which EC2 associates with the VPC. Its id is not known.
        allow(
            sid="EndpointNames",
            actions="route53:AssociateVPCWithHostedZone",
            resources=[f"arn:{scope.partition}:route53:::hostedzone/*"],
        ),
    ]


def flow_log_delivery_statements(log_group_arns: Sequence[Expression]) -> list[Statement]:
    """Return the statements of the role that delivers records to the log group.

    They are from "IAM role for publishing flow logs to CloudWatch Logs" in the Amazon VPC User Guide, without
    `logs:CreateLogGroup`: the group exists. DescribeLogGroups is a list of groups.

    Args:
        log_group_arns: ARN of the log group and everything in it, as `Fn::GetAtt` returns it, or patterns for it.
    """
    return [
        allow(
            sid="WriteRecords",
            actions="logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
            resources=log_group_arns,
        ),
        allow(sid="FindLogGroup", actions="logs:DescribeLogGroups"),
    ]


def flow_log_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role; empty if the cluster has no flow logs.

    Nobody gets `s3:PutBucketPolicy` on the bucket of the cluster file: AWS would use it to put its own policy in the
    place of the bucket's ("Amazon S3 bucket permissions for flow logs", Amazon VPC User Guide).

    A call that creates a flow log names the VPC, which may exist already and then does not have the cluster's tag, and
    the new flow log, which has no tags yet.
    """
    flow_logs = cluster.network.flow_logs
    if flow_logs is None:
        return []
    statements = [
        allow(sid="NewFlowLogs", actions="ec2:CreateFlowLogs", resources=scope.ec2_arns("vpc-flow-log/*")),
        allow(
            sid="OwnFlowLogs",
            actions="ec2:CreateFlowLogs ec2:DeleteFlowLogs",
            resources=scope.ec2_arns("vpc-flow-log/*", "vpc/*"),
            condition=if_resource_has_tag(scope),
        ),
        *existing_part_statements(scope, {"vpc": "ec2:CreateFlowLogs"}, sid="FlowLogsOfExistingVpc"),
        *tag_new_statements(scope, "vpc-flow-log", sid="TagNewFlowLogs"),
        # Log deliveries are no resources that a statement could name.
        allow(sid="LogDeliveries", actions="logs:CreateLogDelivery logs:DeleteLogDelivery"),
    ]
    if flow_logs.destination == "cloudWatchLogs":
        statements += [
            pass_flow_log_role_statement(scope),
            allow(
                sid="FindLogGroups",
                actions="logs:DescribeIndexPolicies logs:DescribeLogGroups logs:DescribeResourcePolicies",
            ),
            allow(
                sid="LogGroups",
                actions="""
                    logs:CreateLogGroup logs:DeleteLogGroup logs:DeleteRetentionPolicy logs:GetDataProtectionPolicy
                    logs:ListTagsForResource logs:PutRetentionPolicy logs:TagResource logs:UntagResource""",
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
            actions="logs:GetDataProtectionPolicy logs:ListTagsForResource",
            resources=scope.log_group_arns,
        ),
        allow(sid="ReadLogPolicies", actions="logs:DescribeIndexPolicies logs:DescribeResourcePolicies"),
    ]


def subnet_tag_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements to add tags to existing subnets, and to remove the cluster's own.

    They are empty without `network.tagExisting`. `ForAllValues` is also true for a request without keys, and DeleteTags
    without keys deletes all tags of a resource (API reference, DeleteTags), so a request must have keys.
    """
    # What a reference leads to is not known here, so any subnet stands for it.
    subnet_ids = dict.fromkeys(
        known_id(subnet_id) or "*"
        for subnet in cluster.network.subnets
        for subnet_id in (subnet.id, subnet.public.id if subnet.public else None)
        if subnet_id
    )
    if not cluster.network.tag_existing or not subnet_ids:
        return []
    arns = scope.ec2_arns(*(f"subnet/{subnet_id}" for subnet_id in subnet_ids))
    own_keys = [shared_with(cluster.name), added_tags_note(cluster.name)]
    return [
        allow(
            sid="TagSubnets", actions="ec2:CreateTags", resources=arns, condition=_only_keys([*SUBNET_ROLES, *own_keys])
        ),
        allow(sid="UntagSubnets", actions="ec2:DeleteTags", resources=arns, condition=_only_keys(own_keys)),
    ]


def _only_keys(keys: Sequence[str]) -> Condition:
    """Return the condition that a request names tags by key, and no others than these."""
    return {"ForAllValues:StringEquals": {"aws:TagKeys": list(keys)}, "Null": {"aws:TagKeys": "false"}}
