"""Flow logs in plans and deletions: what a change of them means, what a failure says, and what stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from answers import Answers
from cloud import Cloud
from deleting import Operator as Remover
from deployments import ALLOWED, Operator
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import find_flow_log_groups
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.preflight.existing.services import find_bucket_problems

LOG_GROUP = {"destination": "cloudWatchLogs", "retentionDays": 30}
BUCKET = {"destination": "s3", "bucket": "example-flow-logs"}
EXISTING: dict[str, Any] = {
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
    "subnets": [{"zone": "us-west-2a", "cidr": "10.20.0.0/20"}],
    "internetGateway": "igw-0123456789abcdef0",
}


def meaning(
    type_: str,
    action: str = "update",
    network: dict[str, Any] | None = None,
    logical_id: str = "It",
    **values: tuple[Any, Any],
) -> Impact | None:
    """Return what a change means; `values` are old and new values of properties."""
    replaces = type_ == "AWS::EC2::FlowLog" and action == "update"
    replacement = Replacement.WILL if replaces else Replacement.NO
    properties = tuple(
        PropertyChange(f"/Properties/{name}", old, new, known=True) for name, (old, new) in values.items()
    )
    change = Change(logical_id, "id", type_, action, replacement, "", properties)
    listed = ResourceChange(action.title(), logical_id, "id", type_)
    return ImpactAssessment(parse({"network": network or {}})).of_resource(change, listed)


@pytest.mark.parametrize(
    ("impact", "danger", "words"),
    [
        (meaning("AWS::EC2::FlowLog", "add"), Danger.NONE, "connections in the VPC are recorded from now on; each GB"),
        (meaning("AWS::EC2::FlowLog", "add", EXISTING), Danger.NONE, "from now on, also those of others in it"),
        (meaning("AWS::EC2::FlowLog", "remove"), Danger.DISRUPTIVE, "are no longer recorded"),
        (
            meaning("AWS::EC2::FlowLog", MaxAggregationInterval=(600, 60)),
            Danger.DISRUPTIVE,
            "EC2 may refuse the new one while the old one records the same traffic in the same place",
        ),
        (
            meaning("AWS::EC2::FlowLog", TrafficType=("ALL", "REJECT"), MaxAggregationInterval=(600, 60)),
            Danger.NONE,
            "the flow log is replaced; existing records stay",
        ),
        (meaning("AWS::Logs::LogGroup", "remove"), Danger.NONE, "the old one is kept with its records"),
        (
            meaning("AWS::Logs::LogGroup", RetentionInDays=("90", "30")),
            Danger.DISRUPTIVE,
            "older than 30 days are deleted",
        ),
        (
            meaning("AWS::Logs::LogGroup", RetentionInDays=("3", "1")),
            Danger.DISRUPTIVE,
            "older than 1 day are deleted",
        ),
        (meaning("AWS::Logs::LogGroup", RetentionInDays=("30", "90")), Danger.NONE, "kept for another time"),
        (
            meaning("AWS::IAM::Role", logical_id="FlowLogRole", Policies=("old", "new")),
            Danger.NONE,
            "permissions of the flow log change",
        ),
    ],
)
def test_a_change_is_told_in_words(impact: Impact | None, danger: Danger, words: str) -> None:
    assert impact is not None
    assert words in impact.text
    assert (impact.danger, impact.fails) == (danger, False)


@pytest.mark.parametrize(("code", "is_missing"), [("404", True), ("NoSuchBucket", True), ("403", False)])
def test_a_bucket_that_does_not_exist_is_told_and_one_that_may_not_be_looked_at_is_not(
    aws: Answers, code: str, *, is_missing: bool
) -> None:
    aws.given["s3:HeadBucket"] = RefusedError(code)
    problems = list(map(str, find_bucket_problems(aws.account, parse({"network": {"flowLogs": BUCKET}}))))
    assert [problem.partition(": ")[0] for problem in problems] == (["network.flowLogs.bucket"] if is_missing else [])


def test_only_log_groups_of_the_stacks_flow_logs_are_listed(aws: Answers) -> None:
    names = [
        "one-VpcStack-1ABC-FlowLogGroup-2DEF",
        "one-FlowLogGroup-3GHI",
        "one-two-VpcStack-1ABC-FlowLogGroup-2DEF",
        "one-application",
    ]
    groups = [{"logGroupName": name, "retentionInDays": 30, "storedBytes": 2**30} for name in names]
    aws.given["logs:DescribeLogGroups"] = {"logGroups": groups}
    found = find_flow_log_groups(aws.account, "one")
    assert [resource.id for resource in found] == names[:2]
    assert found[0].why == "records of the VPC's flow log; each is deleted after 30 days"
    assert "1.00 GiB" in found[0].cost
    aws.given["logs:DescribeLogGroups"] = RefusedError("AccessDeniedException")
    assert find_flow_log_groups(aws.account, "one") == ()


@pytest.mark.drill
def test_records_outlive_the_cluster(cloud: Cloud) -> None:
    operator = Operator(cloud)
    file = {"network": {"flowLogs": LOG_GROUP}, "nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 1}]}
    plan = operator.plan(file, flags=ALLOWED)
    assert plan.creation is not None
    assert {"flow log of the VPC", "log group of the flow log"} <= {item.what for item in plan.creation.items}
    assert "vended logs" in {cost.what for cost in plan.creation.costs}
    assert operator.deploy(file).succeeded
    cloud.clock.sleep(600)
    assert operator.deploy({**file, "network": {}}).succeeded
    deleted = Remover(connect(cloud.session, cloud.cluster.region, clock=cloud.clock)).deletes()
    assert deleted.succeeded
    [group] = [resource for resource in deleted.retained if resource.kind == "log group"]
    assert "FlowLogGroup" in group.id
    assert group.command.startswith("aws logs delete-log-group")  # type: ignore[union-attr]


@pytest.mark.drill
def test_a_bucket_of_someone_else_is_looked_for_before_anything_is_created(cloud: Cloud) -> None:
    operator = Operator(cloud)
    with pytest.raises(ForeignObjectsError, match="there is no bucket example-flow-logs"):
        operator.deploy({"network": {"flowLogs": BUCKET}})
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="example-flow-logs", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": "arn:aws:s3:::example-flow-logs/*",
    }
    s3.put_bucket_policy(
        Bucket="example-flow-logs", Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    )
    finished = operator.deploy({"network": {"flowLogs": BUCKET}})
    assert finished.status == "ROLLBACK_COMPLETE"
    told = " ".join(str(message) for message in operator.messages)
    assert "its policy does not let AWS deliver logs" in told
