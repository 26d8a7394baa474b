"""The VPC's flow log: where it is, who may write its records, and what stays of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of
from cfngen.templates import generate, vpc

LOG_GROUP = {"destination": "cloudWatchLogs"}
BUCKET = {"destination": "s3", "bucket": "example-flow-logs"}
EXISTING: dict[str, Any] = {
    "plugin": "cilium",
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
    "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}],
}


def resources(flow_logs: dict[str, Any] | None, network: dict[str, Any] | None = None, **file: Any) -> dict[str, Any]:
    """Return the resources of the VPC stack; empty if there is no such stack."""
    keys = {"flowLogs": flow_logs} if flow_logs else {}
    stack = vpc.build(parse({**file, "network": {**(network or {}), **keys}}))
    return dict(stack.document().body["Resources"]) if stack else {}


def test_a_cluster_has_no_flow_log_unless_it_asks_for_one() -> None:
    assert not [logical_id for logical_id in resources(None) if "FlowLog" in logical_id]
    assert resources(None, EXISTING) == {}


def test_a_log_group_gets_the_records_of_a_created_vpc() -> None:
    found = resources({**LOG_GROUP, "traffic": "reject", "interval": 60, "retentionDays": 365})
    properties = found["FlowLog"]["Properties"]
    assert properties["ResourceId"] == {"Ref": "Vpc"}
    assert properties["LogGroupName"] == {"Ref": "FlowLogGroup"}
    assert (properties["TrafficType"], properties["MaxAggregationInterval"]) == ("REJECT", 60)
    assert found["FlowLogGroup"]["Properties"]["RetentionInDays"] == 365


def test_records_are_kept_for_ninety_days_and_outlive_the_cluster() -> None:
    group = resources(LOG_GROUP)["FlowLogGroup"]
    assert group["Properties"]["RetentionInDays"] == 90
    assert (group["DeletionPolicy"], group["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_only_flow_logs_of_the_account_may_use_the_role_and_only_for_the_group() -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    role = resources(LOG_GROUP, iam={"permissionsBoundary": boundary})["FlowLogRole"]["Properties"]
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert "vpc-flow-log/*" in json.dumps(trust["Condition"]["ArnLike"])
    assert role["PermissionsBoundary"] == boundary
    [write, _] = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert write["Resource"] == [{"Fn::GetAtt": ["FlowLogGroup", "Arn"]}]


def test_a_bucket_gets_the_records_under_the_clusters_name_without_a_role() -> None:
    found = resources(BUCKET, name="one")
    destination = {"Fn::Sub": "arn:${AWS::Partition}:s3:::example-flow-logs/one/"}
    assert found["FlowLog"]["Properties"]["LogDestination"] == destination
    assert not {"FlowLogGroup", "FlowLogRole"} & found.keys()


@pytest.mark.parametrize("flow_logs", [LOG_GROUP, BUCKET])
def test_an_existing_vpc_gets_a_stack_for_the_flow_log_that_no_other_depends_on(flow_logs: dict[str, Any]) -> None:
    found = resources(flow_logs, EXISTING)
    assert found["FlowLog"]["Properties"]["ResourceId"] == {"Ref": "VpcId"}
    documents = {
        document.name: document.body for document in generate(parse({"network": {**EXISTING, "flowLogs": flow_logs}}))
    }
    others = {name: resource for name, resource in documents["cluster"]["Resources"].items() if name != "VpcStack"}
    assert "VpcStack" not in json.dumps(others)


def policy(flow_logs: dict[str, Any], grantee: str) -> dict[str, dict[str, Any]]:
    """Return the statements of a grantee, by their names."""
    cluster = parse({"network": {"flowLogs": flow_logs}})
    [grant] = [grant for grant in grants(cluster, scope_of(cluster)) if grant.name == grantee]
    return {statement["Sid"]: dict(statement) for statement in grant.statements}


def test_cloudformation_makes_log_groups_of_the_cluster_only() -> None:
    found = policy(LOG_GROUP, "execution")
    assert found["LogGroups"]["Resource"] == [
        "arn:aws:logs:us-west-2:*:log-group:kubernetes-VpcStack-*",
        "arn:aws:logs:us-west-2:*:log-group:kubernetes-FlowLogGroup-*",
    ]
    assert found["OwnFlowLogs"]["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "kubernetes"}}


def test_nobody_may_overwrite_the_policy_of_a_bucket() -> None:
    cluster = parse({"network": {"flowLogs": BUCKET}, "etcd": {"backups": {"bucket": "example-backups"}}})
    for grant in grants(cluster, scope_of(cluster)):
        for statement in grant.statements:
            may_change = any(action in ("s3:*", "s3:PutBucketPolicy") for action in statement["Action"])
            assert not (may_change and "arn:aws:s3:::example-flow-logs" in statement["Resource"])
    assert policy(BUCKET, "operator")["FindFlowLogBucket"]["Resource"] == ["arn:aws:s3:::example-flow-logs"]
