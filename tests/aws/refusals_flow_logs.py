"""Flow logs."""

from __future__ import annotations

from typing import Any

from ec2_parts import CONDITION, VPC, code, ec2, guide, only, operation, ref, resource, seen
from refusal import Creation, Refusal, Resources, ServiceCall, Update
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client

BUCKET = "example-flow-logs"
DENIED = seen("awsdocs/amazon-vpc-user-guide#28", "https://github.com/awsdocs/amazon-vpc-user-guide/pull/28")
PERMISSIONS = guide("flow-logs-s3-permissions", "Amazon S3 bucket permissions for flow logs")


def flow_log(**properties: Any) -> dict[str, Any]:
    """A flow log of a VPC in a bucket, unless told otherwise."""
    common = {"ResourceType": "VPC", "ResourceId": ref("Vpc"), "TrafficType": "ALL"}
    destination = {"LogDestinationType": "s3", "LogDestination": f"arn:aws:s3:::{BUCKET}/folder/"}
    return resource("FlowLog", **{**common, **destination, **properties})


def _in_bucket(**properties: Any) -> Resources:
    """Make a bucket, and return a VPC with a flow log in it."""
    location = {"LocationConstraint": REGION}
    client("s3", REGION).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=location)
    return {"Vpc": VPC, "It": flow_log(**properties)}


def _in_bucket_of_others() -> Resources:
    """Make a bucket whose policy lets nobody deliver logs, and return a VPC with a flow log in it."""
    resources = _in_bucket()
    statement = (
        f'{{"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::{BUCKET}/*"}}'
    )
    policy = f'{{"Version": "2012-10-17", "Statement": [{statement}]}}'
    client("s3", REGION).put_bucket_policy(Bucket=BUCKET, Policy=policy)
    return resources


def without_traffic() -> dict[str, Any]:
    it = flow_log()
    del it["Properties"]["TrafficType"]
    return it


def _delete_missing(_: CloudFormation) -> None:
    ec2().delete_flow_logs(FlowLogIds=["fl-0123456789abcdef0"])


ROWS = [
    Refusal(
        "AWS::EC2::FlowLog", "a bucket that does not exist",
        f"Access Denied for LogDestination: {BUCKET}. Please check LogDestination permission",
        DENIED, "seen", only(Vpc=VPC, It=flow_log()),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "a bucket whose policy does not let AWS deliver logs",
        f"Access Denied for LogDestination: {BUCKET}. Please check LogDestination permission",
        f"{PERMISSIONS}; {DENIED}", CONDITION, Creation(_in_bucket_of_others, fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "another interval than 60 or 600 seconds", "Invalid Flow Log Max Aggregation Interval",
        operation("CreateFlowLogs", "MaxAggregationInterval"), CONDITION,
        Creation(lambda: _in_bucket(MaxAggregationInterval=300), fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "a VPC that does not exist", "does not exist",
        code("InvalidVpcID.NotFound"), CONDITION,
        Creation(lambda: _in_bucket(ResourceId="vpc-0123456789abcdef0"), fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "another interval, while the flow log with the old one is there",
        "There is an existing Flow Log with the same configuration and log destination.",
        code("FlowLogAlreadyExists"), "assumed",
        Update(
            lambda: _in_bucket(MaxAggregationInterval=600),
            lambda first: {**first, "It": flow_log(MaxAggregationInterval=60)},
            fails="It",
        ),
    ),
    Refusal(
        "ec2:DeleteFlowLogs", "a flow log that does not exist", "InvalidFlowLogId.NotFound",
        code("InvalidFlowLogId.NotFound"), CONDITION, ServiceCall(_delete_missing),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "a role for the delivery to a bucket",
        "DeliverLogsPermissionArn is not applicable for s3 delivery",
        seen("aws-secure-environment-accelerator#1111",
             "https://github.com/aws-samples/aws-secure-environment-accelerator/issues/1111"), "seen",
        Creation(lambda: _in_bucket(DeliverLogsPermissionArn="arn:aws:iam::123456789012:role/logs"), fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "both a log group and another destination",
        "Please only provide LogGroupName or only provide LogDestination.",
        seen("localstack/localstack, test_ec2.snapshot.json",
             "https://github.com/localstack/localstack/blob/main/tests/aws/services/ec2/test_ec2.snapshot.json"),
        "seen", Creation(lambda: _in_bucket(LogGroupName="logs"), fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "no destination", "LogDestination can't be empty if LogGroupName is not provided.",
        operation("CreateFlowLogs", "LogDestination"), CONDITION,
        Creation(lambda: {"Vpc": VPC, "It": flow_log(LogDestination="")}, fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "the name of a role in place of its ARN", "is not the ARN of a role",
        operation("CreateFlowLogs", "DeliverLogsPermissionArn"), CONDITION,
        Creation(lambda: {"Vpc": VPC, "It": resource(
            "FlowLog", ResourceType="VPC", ResourceId=ref("Vpc"), TrafficType="ALL", LogGroupName="logs",
            DeliverLogsPermissionArn="logs")}, fails="It"),
    ),
    Refusal(
        "AWS::EC2::FlowLog", "no word of which traffic", "The request must contain the parameter TrafficType",
        operation("CreateFlowLogs", "TrafficType"), CONDITION,
        Creation(lambda: {"Vpc": VPC, "It": without_traffic()}, fails="It"),
    ),
]  # fmt: skip
