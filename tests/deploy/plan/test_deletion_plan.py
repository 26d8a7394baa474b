"""What a deletion finds out before it asks: whose stack it is, what goes, what stays, and what may be a namesake's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from answers import Answers, pairs
from aws_descriptions import NOW, OWNED, arn, instance, resource, running, stack, stacked
from recorded import RefusedError

from cfngen.deploy.aws.stacks import StackResource, find_last_deleted
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionPlan, DeletionRequest
from cfngen.deploy.plan.deletion.planning import plan_deletion
from cfngen.deploy.preflight.stack_checks import ForeignStackError

REQUEST = DeletionRequest("one", "one")
PARTS = {
    "nested stacks": "AWS::CloudFormation::Stack",
    "master volumes": "AWS::EC2::Volume",
    "Elastic IPs": "AWS::EC2::EIP",
    "load balancers": "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "Auto Scaling groups": "AWS::AutoScaling::AutoScalingGroup",
    "VPCs": "AWS::EC2::VPC",
    "subnets": "AWS::EC2::Subnet",
    "NAT gateways": "AWS::EC2::NatGateway",
    "security groups": "AWS::EC2::SecurityGroup",
    "secrets": "AWS::SecretsManager::Secret",
    "KMS keys": "AWS::KMS::Key",
    "roles": "AWS::IAM::Role",
    "key pairs": "AWS::EC2::KeyPair",
}


def found(aws: Answers, *members: StackResource, request: DeletionRequest = REQUEST, **described: Any) -> DeletionPlan:
    stacked(aws, stack(**described), resources={"one": members})
    return preview_with_refusal(aws.account, request)[0]


@pytest.mark.parametrize(("part", "kind"), PARTS.items())
def test_each_kind_that_goes_is_counted_under_its_name(aws: Answers, part: str, kind: str) -> None:
    there, gone = resource(arn("x"), type_name=kind), resource(arn("y"), "DELETE_COMPLETE", type_name=kind)
    assert [(each.kind, each.ids) for each in found(aws, there, gone).deleted_parts] == [(part, (arn("x"),))]


def test_what_has_no_kind_of_its_own_is_named_and_what_is_kept_is_not(aws: Answers) -> None:
    goes = found(
        aws,
        resource("rtb-1", name="RouteTable"),
        resource("bucket-1"),
        resource("policy", type_name="AWS::S3::BucketPolicy"),
        resource("acl-1", "DELETE_COMPLETE", type_name="AWS::EC2::NetworkAcl"),
    ).deleted_parts
    assert [(each.kind, each.ids) for each in goes] == [("other resources", ("RouteTable",))]


def test_machines_go_but_those_that_no_group_has_launched(aws: Answers) -> None:
    aws.given["ec2:DescribeInstances"] = running(
        instance("i-2", **OWNED, **{"aws:autoscaling:groupName": "group-1"}),
        instance("i-1", **OWNED, **{"aws:autoscaling:groupName": "group-1"}),
        instance("i-9"),
    )
    shown = found(aws, resource("vpc-1"), resource("group-1"))
    assert (shown.deleted_parts[0].kind, shown.deleted_parts[0].ids) == ("instances", ("i-1", "i-2"))
    assert [each.id for each in shown.blockers] == ["i-9"]


def test_what_is_known_of_the_stack_is_told(aws: Answers) -> None:
    secret = resource("arn-of-the-secret", type_name="AWS::SecretsManager::Secret", name="CaSecret")
    other = resource("arn-of-another", type_name="AWS::SecretsManager::Secret", name="JoinSecret")
    gone = resource("arn-of-a-former", "DELETE_COMPLETE", type_name="AWS::SecretsManager::Secret", name="CaSecret")
    shown = found(aws, secret, other, gone, EnableTerminationProtection=True)
    assert (shown.cluster, shown.stack, shown.stack_id, shown.status) == ("one", "one", arn("one"), "CREATE_COMPLETE")
    assert (shown.account, shown.region) == ("123456789012", "us-west-2")
    assert (shown.protected, shown.by_console, shown.authorities) == (True, False, ("arn-of-the-secret",))
    assert found(aws).protected is False


def test_what_stays_of_the_stack_is_told_before(aws: Answers) -> None:
    shown = found(
        aws,
        resource("vol-1"),
        resource("vol-2", "DELETE_COMPLETE"),
        resource("key-1"),
        resource("key-2", "DELETE_COMPLETE"),
        parameters={"KeyName": "alice"},
    )
    assert [(each.kind, each.id) for each in shown.retained] == [
        ("snapshot", "one of vol-1"),
        ("KMS key", "key-1"),
        ("key pair", "alice"),
    ]
    assert all(each.cost for each in shown.retained[:2])


VOLUME = {"VolumeId": "vol-9", "Size": 8, "Tags": pairs({**OWNED, "CSIVolumeName": "pvc-1"})}
SNAPSHOT = {"SnapshotId": "snap-9", "VolumeSize": 8, "Tags": pairs({**OWNED, "CSIVolumeSnapshotName": "copy"})}
LOGS = "/aws/containerinsights/one/application"


def claims(aws: Answers) -> None:
    """A volume and a snapshot of claims, templates, and a log group."""
    aws.given["ec2:DescribeVolumes"] = lambda sent: {
        "Volumes": [VOLUME] if sent["Filters"][0]["Name"].startswith("tag:kubernetes.io") else []
    }
    aws.given["ec2:DescribeSnapshots"] = lambda sent: {
        "Snapshots": [SNAPSHOT] if sent["Filters"][0]["Name"].startswith("tag:kubernetes.io") else []
    }
    version = {"Key": "one/a/vpc.json", "VersionId": "1", "Size": 2, "IsLatest": True}
    aws.given["s3:ListObjectVersions"] = {"Versions": [version, {**version, "VersionId": "2"}]}
    aws.given["logs:DescribeLogGroups"] = {"logGroups": [{"logGroupName": LOGS}]}


@pytest.mark.parametrize(
    ("wishes", "stays"),
    [
        ({}, ["volume", "snapshot", "templates", "log group"]),
        ({"delete_volumes": True}, ["snapshot", "templates", "log group"]),
        ({"delete_snapshots": True}, ["volume", "templates", "log group"]),
        ({"empty_bucket": True}, ["volume", "snapshot", "log group"]),
        ({"bucket": ""}, ["volume", "snapshot", "log group"]),
    ],
)
def test_what_nobody_asked_to_be_deleted_stays(aws: Answers, wishes: dict[str, Any], stays: list[str]) -> None:
    claims(aws)
    request = replace(REQUEST, **({"bucket": "templates"} | wishes))
    shown = found(aws, request=request)
    assert [each.kind for each in shown.retained] == stays
    assert [each.id for each in (*shown.volumes, *shown.snapshots)] == ["vol-9", "snap-9"]
    assert shown.objects == (2 if request.bucket else 0)
    told = (shown.delete_volumes, shown.delete_snapshots)
    assert told == (bool(wishes.get("delete_volumes")), bool(wishes.get("delete_snapshots")))
    assert (shown.name_conflict, shown.foreign_resources) == ("", ())


GROUP = {"GroupId": "sg-9", "GroupName": "web", "VpcId": "vpc-1", "Tags": pairs(OWNED)}
AT_HOME = (resource("vpc-1"), resource("group-1"))


@pytest.mark.parametrize(
    ("members", "network", "mine"),
    [(AT_HOME, "vpc-1", True), (AT_HOME, "vpc-2", False), ((resource("sg-1"),), "vpc-1", False)],
    ids=["in its network", "elsewhere", "without a network of its own"],
)
def test_what_may_be_a_living_namesakes_is_told_without_a_command(
    aws: Answers, members: tuple[StackResource, ...], network: str, mine: bool
) -> None:
    """Only what lies in its own network, or is attached to its own machines, is known to be its own."""
    claims(aws)
    aws.given["ec2:DescribeSecurityGroups"] = lambda sent: {
        "SecurityGroups": (
            [{**GROUP, "VpcId": network}] if not sent.get("Filters") or sent["Filters"][0]["Name"] == "vpc-id" else []
        )
    }
    ours = {**OWNED, "aws:autoscaling:groupName": "group-1"}
    aws.given["ec2:DescribeInstances"] = running(
        instance("i-7", vpc_id="vpc-7"), *([instance("i-1", **ours)] if members is AT_HOME else [])
    )
    request = replace(REQUEST, bucket="templates", delete_volumes=True)
    stacked(aws, stack(), resources={"one": members})
    surveyed = plan_deletion(aws.account, request)
    shown = surveyed.plan
    assert "i-7" in shown.name_conflict
    assert [each.id for each in shown.removed] == (["sg-9"] if mine else [])
    theirs = [*([] if mine else ["sg-9"]), "vol-9", "snap-9", "s3://templates/one/", LOGS]
    assert [each.id for each in shown.foreign_resources] == theirs
    assert not any(each.command for each in shown.foreign_resources)
    assert shown.foreign_resources[-2].why.startswith("2 object versions")
    assert [each.id for each in surveyed.contested] == [*([] if mine else ["sg-9"]), "vol-9"]
    assert not {"templates", "log group", "volume", "snapshot"} & {each.kind for each in shown.retained}
    both = plan_deletion(aws.account, replace(request, delete_volumes=False, delete_snapshots=True)).contested
    assert [each.id for each in both] == [*([] if mine else ["sg-9"]), "snap-9"]


def test_a_volume_that_its_machines_have_attached_is_its_own_beside_a_namesake(aws: Answers) -> None:
    aws.given["ec2:DescribeVolumes"] = lambda sent: {
        "Volumes": [VOLUME] if sent["Filters"][0]["Name"] in ("tag:kubernetes.io/cluster/one", "attachment.instance-id") else []  # noqa: E501
    }  # fmt: skip
    ours = {**OWNED, "aws:autoscaling:groupName": "group-1"}
    aws.given["ec2:DescribeInstances"] = running(instance("i-7", vpc_id="vpc-7"), instance("i-1", **ours))
    shown = found(aws, *AT_HOME)
    assert [each.id for each in shown.volumes] == ["vol-9"]
    assert shown.foreign_resources == ()


def test_a_stack_that_is_gone_has_nothing_that_goes_but_what_is_left_is_found(aws: Answers) -> None:
    gone = stack(status="DELETE_COMPLETE", DeletionTime=NOW)
    stacked(aws, gone, resources={"one": (resource("vol-1", "DELETE_COMPLETE"),)})
    describe: Any = aws.given["cloudformation:DescribeStacks"]
    aws.given["cloudformation:DescribeStacks"] = lambda sent: (
        RefusedError("ValidationError", "Stack with id one does not exist")
        if sent.get("StackName") == "one"
        else describe(sent)
        if sent
        else {"Stacks": []}
    )
    summary = {"StackName": "one", "StackId": arn("one"), "CreationTime": NOW, "StackStatus": "DELETE_COMPLETE"}
    aws.given["cloudformation:ListStacks"] = {"StackSummaries": [summary]}
    surveyed = plan_deletion(aws.account, REQUEST)
    assert (surveyed.stack, surveyed.plan.stack_id, surveyed.plan.status) == (None, "", "")
    assert (surveyed.plan.deleted_parts, surveyed.plan.blockers, surveyed.plan.authorities) == ((), (), ())
    assert surveyed.inventory.ids() == {"vol-1"}


def summary(name: str, **more: Any) -> dict[str, Any]:
    return {
        "StackName": name,
        "StackId": arn(more.pop("id", name)),
        "CreationTime": NOW,
        "StackStatus": "DELETE_COMPLETE",
        **more,
    }


@pytest.mark.parametrize(
    ("summaries", "chosen"),
    [
        ([summary("one", id="latest"), summary("one", id="earlier")], "latest"),
        ([summary("two", id="latest"), summary("one", id="earlier")], "earlier"),
        ([summary("one", id="latest", ParentId=arn("x")), summary("one", id="earlier")], "earlier"),
        ([summary("one", id="of two"), summary("one", id="earlier")], "earlier"),
        ([summary("one", id="untagged"), summary("one", id="earlier")], "untagged"),
        ([summary("one", id="forgotten"), summary("one", id="earlier")], "earlier"),
        ([summary("two", id="latest")], None),
        ([], None),
    ],
)
def test_of_deleted_stacks_the_clusters_latest_root_is_taken(
    aws: Answers, summaries: list[dict[str, Any]], chosen: str | None
) -> None:
    tags = {"of two": {"cfngen:cluster": "two"}, "untagged": {}}
    stacked(
        aws,
        *(
            stack(name, "DELETE_COMPLETE", tags=tags.get(name, {"cfngen:cluster": "one"}))
            for name in ("latest", "earlier", "of two", "untagged")
        ),
    )
    aws.given["cloudformation:ListStacks"] = {"StackSummaries": summaries}
    last = find_last_deleted(aws.account, REQUEST.stack_name, REQUEST.cluster)
    assert (last.name if last else None) == chosen
    assert aws.named("cloudformation:ListStacks") == [{"StackStatusFilter": ["DELETE_COMPLETE"]}]


def metadata(**about: Any) -> dict[str, Any]:
    return {"Metadata": json.dumps({"cfngen": about})}


@pytest.mark.parametrize(
    ("summary_of_template", "ours"),
    [
        (metadata(stack="cluster", cluster="one"), True),
        (metadata(stack="standalone", cluster="one"), True),
        (metadata(stack="vpc", cluster="one"), False),
        (metadata(stack="cluster", cluster="two"), False),
        (metadata(stack="cluster"), False),
        ({"Metadata": json.dumps({"cfngen": "yes"})}, False),
        ({"Metadata": "{}"}, False),
        ({}, False),
        (RefusedError("ValidationError"), False),
    ],
)
def test_a_stack_of_the_console_is_known_by_its_template(aws: Answers, summary_of_template: Any, ours: bool) -> None:
    aws.given["cloudformation:GetTemplateSummary"] = summary_of_template
    if ours:
        assert found(aws, tags={}).by_console is True
        assert aws.named("cloudformation:GetTemplateSummary")[0] == {"StackName": arn("one")}
        return
    with pytest.raises(ForeignStackError):
        found(aws, tags={})


def test_a_template_that_cannot_be_read_for_another_reason_is_an_error(aws: Answers) -> None:
    aws.given["cloudformation:GetTemplateSummary"] = RefusedError("AccessDenied")
    with pytest.raises(Exception, match="GetTemplateSummary") as refused:
        found(aws, tags={})
    assert not isinstance(refused.value, ForeignStackError)


@pytest.mark.parametrize("tags", [{"cfngen:cluster": "two"}, {"cfngen:cluster": "one", "x": "y"}])
def test_the_tag_decides_where_there_is_one(aws: Answers, tags: dict[str, str]) -> None:
    if tags["cfngen:cluster"] == "one":
        assert found(aws, tags=tags).by_console is False
    else:
        with pytest.raises(ForeignStackError, match="two"):
            found(aws, tags=tags)
    assert aws.named("cloudformation:GetTemplateSummary") == []


@pytest.mark.parametrize("root", [{"RootId": arn("top")}, {}])
def test_a_nested_stack_is_not_deleted_by_itself(aws: Answers, root: dict[str, str]) -> None:
    with pytest.raises(ForeignStackError, match="one is a nested stack") as refused:
        found(aws, ParentId=arn("parent"), **root)
    assert ("top" if root else "parent") in str(refused.value.hint)


@pytest.mark.parametrize(
    ("tags", "sets", "ours"),
    [
        ({"cfngen:cluster": "one"}, [], True),
        ({}, [{"cfngen:cluster": "one"}], True),
        ({}, [{"cfngen:cluster": "two"}, {"cfngen:cluster": "one"}], True),
        ({}, [{"cfngen:cluster": "two"}], False),
        ({}, [{"other": "one"}], False),
        ({}, [], False),
    ],
)
def test_an_empty_stack_is_the_clusters_by_its_tag_or_a_change_sets(
    aws: Answers, tags: dict[str, str], sets: list[dict[str, str]], ours: bool
) -> None:
    aws.given["cloudformation:ListChangeSets"] = {
        "Summaries": [{"ChangeSetId": f"arn:{number}"} for number in range(len(sets))]
    }
    aws.given["cloudformation:DescribeChangeSet"] = lambda sent: {
        "Tags": pairs(sets[int(sent["ChangeSetName"].removeprefix("arn:"))])
    }
    if ours:
        shown = found(aws, tags=tags, status="REVIEW_IN_PROGRESS")
        assert (shown.by_console, shown.status) == (False, "REVIEW_IN_PROGRESS")
        return
    with pytest.raises(ForeignStackError, match="it is empty, and none of its change sets") as refused:
        found(aws, tags=tags, status="REVIEW_IN_PROGRESS")
    assert "aws cloudformation delete-stack --region us-west-2 --stack-name one" in str(refused.value.hint)
