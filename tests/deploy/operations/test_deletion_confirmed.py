"""A deletion from its question to its report: what is said to be lost, what is refused, in which order things go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from answers import Answers, pairs
from aws_descriptions import NOW, OWNED, Asked, Deletions, arn, instance, resource, running, stack
from recorded import RefusedError

from cfngen.deploy.messages.message import Event, Notice, Step
from cfngen.deploy.operations.deletion.execution import delete, preview_with_refusal
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionPlan, DeletionRequest
from cfngen.deploy.preflight.blockers import OccupiedError
from cfngen.deploy.preflight.stack_checks import BusyError, SameNameClusterError
from cfngen.errors import CfngenError

CA = resource("arn-of-the-authorities", type_name="AWS::SecretsManager::Secret", name="CaSecret")
VPC = resource("vpc-1")
LIVES = "the stack one (CREATE_COMPLETE) is deleted, with every instance of the cluster"


def deleted(deletions: Deletions, asked: Asked, drain: Any = None, **wishes: Any) -> Deleted:
    request = DeletionRequest("one", "one", **wishes)
    choose: Callable[[], AuthorityCopy] = lambda: AuthorityCopy("destroy")  # noqa: E731
    return delete(deletions.aws.account, request, asked.waiting, delete_services=drain, choose_authority_copy=choose)


def claims(aws: Answers, volumes: int = 1, snapshots: int = 0) -> None:
    """Volumes and snapshots of claims."""
    tags = pairs({**OWNED, "CSIVolumeName": "pvc", "CSIVolumeSnapshotName": "copy"})
    by_tag: Callable[[dict[str, Any]], bool] = lambda sent: "kubernetes.io/cluster" in sent["Filters"][0]["Name"]  # noqa: E731
    aws.given["ec2:DescribeVolumes"] = lambda sent: {
        "Volumes": [
            {"VolumeId": f"vol-c{number}", "Size": 8, "Tags": tags} for number in range(volumes) if by_tag(sent)
        ]
    }
    aws.given["ec2:DescribeSnapshots"] = lambda sent: {
        "Snapshots": [
            {"SnapshotId": f"snap-c{number}", "VolumeSize": 8, "Tags": tags}
            for number in range(snapshots)
            if by_tag(sent)
        ]
    }


def groups(aws: Answers, *ids: str, made_for: dict[str, str] = OWNED) -> None:
    """Security groups in the network, until they are deleted."""
    left = list(ids)

    def describe(sent: dict[str, Any]) -> dict[str, Any]:
        listed = not sent.get("Filters") or sent["Filters"][0]["Name"] == "vpc-id"
        described = [{"GroupId": each, "GroupName": "web", "VpcId": "vpc-1", "Tags": pairs(made_for)} for each in left]
        return {"SecurityGroups": described if listed else []}

    def remove(sent: dict[str, Any]) -> dict[str, Any]:
        left.remove(sent["GroupId"])
        return {}

    aws.given["ec2:DescribeSecurityGroups"] = describe
    aws.given["ec2:DeleteSecurityGroup"] = remove


def templates(aws: Answers, number: int = 2, others: int = 0) -> None:
    """Versions of the cluster's templates, and of others', in the bucket; those deleted are gone."""
    left = [f"one/{each}" for each in range(number)] + [f"two/{each}" for each in range(others)]

    def versions(sent: dict[str, Any]) -> dict[str, Any]:
        return {
            "Versions": [{"Key": each, "VersionId": "1", "Size": 1} for each in left if each.startswith(sent["Prefix"])]
        }

    def remove(sent: dict[str, Any]) -> dict[str, Any]:
        for each in sent["Delete"]["Objects"]:
            left.remove(each["Key"])
        return {}

    aws.given["s3:ListObjectVersions"] = versions
    aws.given["s3:DeleteObjects"] = remove


def question(deletions: Deletions, asked: Asked, **wishes: Any) -> Any:
    """What is asked; the answer is no."""
    asked.agrees = False
    deletions.describe(deletions.begins)
    with pytest.raises(DeclinedError):
        deleted(deletions, asked, **wishes)
    assert deletions.aws.written() == []
    [only] = asked.questions
    return only


def test_deleting_a_living_cluster_needs_its_name(deletions: Deletions) -> None:
    questions = question(deletions, Asked())
    assert (questions.text, questions.consequences) == ("Delete the cluster one and everything in it?", (LIVES,))
    assert (questions.dangerous, questions.name) == (True, "one")


def test_all_that_is_lost_is_said(deletions: Deletions) -> None:
    deletions.protected, deletions.members = True, (CA, VPC)
    claims(deletions.aws, 2, 1)
    groups(deletions.aws, "sg-1", "sg-2")
    templates(deletions.aws)
    deletions.aws.given["ec2:DescribeSubnets"] = {"Subnets": [{"SubnetId": "subnet-9", "VpcId": "vpc-1"}]}
    deletions.aws.given["secretsmanager:GetSecretValue"] = {"SecretString": "secret"}
    wishes = {"delete_volumes": True, "delete_snapshots": True, "bucket": "mine", "empty_bucket": True}
    questions = question(deletions, Asked(), **wishes, delete_bucket=True, even_if_occupied=True)
    assert questions.consequences == (
        LIVES,
        "its termination protection is disabled",
        AuthorityCopy("destroy").consequence,
        "the network is retained because other resources use it, and it may lose its internet access",
        "2 security groups that Kubernetes created are deleted too",
        "2 volumes of claims and 1 snapshot of claims are deleted too, with all data",
        "2 object versions in s3://mine/one/ are deleted",
        "the bucket mine is deleted if it is empty by then",
    )


@pytest.mark.parametrize(
    ("volumes", "wishes", "words"),
    [
        (1, {}, "1 volume of claims remains, and continues to be billed"),
        (2, {}, "2 volumes of claims remain, and continue to be billed"),
        (1, {"delete_volumes": True}, "1 volume of claims is deleted too, with all data"),
    ],
)
def test_volumes_of_claims_are_remarked_on_or_go(
    deletions: Deletions, volumes: int, wishes: dict[str, Any], words: str
) -> None:
    claims(deletions.aws, volumes)
    assert question(deletions, Asked(), **wishes).consequences == (LIVES, words)


def test_what_the_console_made_is_said_to_be_somebody_elses(
    deletions: Deletions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aws_descriptions.stack", lambda **more: stack(**more, tags={}))
    metadata = '{"cfngen": {"stack": "cluster", "cluster": "one"}}'
    deletions.aws.given["cloudformation:GetTemplateSummary"] = {"Metadata": metadata}
    questions = question(deletions, Asked())
    assert questions.text == "Delete one, which was created from cfngen's templates but not by `cfngen deploy`?"
    assert questions.consequences == (
        LIVES,
        "it was created in the console, and whoever created it may not know of its deletion",
    )


def test_an_empty_stack_needs_no_name(deletions: Deletions) -> None:
    deletions.begins = "REVIEW_IN_PROGRESS"
    questions = question(deletions, Asked())
    assert questions.text.startswith("Delete the empty stack one and the change sets in it?")
    assert (questions.dangerous, questions.name, questions.consequences) == (False, "", ())


def test_what_is_left_beside_an_empty_stack_needs_a_name(deletions: Deletions) -> None:
    deletions.begins = "REVIEW_IN_PROGRESS"
    claims(deletions.aws)
    questions = question(deletions, Asked(), delete_volumes=True)
    assert questions.text == "Delete what is left of the cluster one?"
    assert questions.consequences == ("1 volume of claims is deleted too, with all data",)


def test_a_deletion_under_way_is_not_asked_for_again(deletions: Deletions) -> None:
    deletions.begins, deletions.members, asked = "DELETE_IN_PROGRESS", (CA,), Asked()
    deletions.describe(deletions.begins)
    assert deleted(deletions, asked).succeeded
    assert asked.questions == []
    assert deletions.aws.named("secretsmanager:GetSecretValue") == []


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        ("UPDATE_IN_PROGRESS", True),
        ("ROLLBACK_IN_PROGRESS", True),
        ("CREATE_IN_PROGRESS", False),
        ("UPDATE_ROLLBACK_FAILED", False),
    ],
)
def test_another_operation_is_not_disturbed(deletions: Deletions, status: str, refused: bool) -> None:
    deletions.describe(status)
    shown, refusal = preview_with_refusal(deletions.aws.account, DeletionRequest("one", "one"))
    assert (shown.status, isinstance(refusal, BusyError)) == (status, refused)


def test_what_a_deletion_would_refuse_is_known_before(deletions: Deletions) -> None:
    deletions.members = (VPC,)
    deletions.describe("CREATE_COMPLETE")
    aws, request = deletions.aws, DeletionRequest("one", "one")
    assert preview_with_refusal(aws.account, request)[1] is None
    aws.given["ec2:DescribeSubnets"] = {"Subnets": [{"SubnetId": "subnet-9", "VpcId": "vpc-1"}]}
    assert isinstance(preview_with_refusal(aws.account, request)[1], OccupiedError)
    assert preview_with_refusal(aws.account, replace(request, even_if_occupied=True))[1] is None
    claims(aws)
    aws.given["ec2:DescribeInstances"] = running(instance("i-9", vpc_id="vpc-9"))
    wish = replace(request, even_if_occupied=True, delete_volumes=True)
    assert isinstance(preview_with_refusal(aws.account, wish)[1], SameNameClusterError)
    with pytest.raises(SameNameClusterError):
        deleted(deletions, Asked(), even_if_occupied=True, delete_volumes=True)


def test_the_report_says_what_went_and_what_stays(deletions: Deletions) -> None:
    deletions.members, asked = (VPC, resource("vol-1"), resource("key-1")), Asked()
    deletions.describe("CREATE_COMPLETE")
    deletions.aws.given["kms:DescribeKey"] = RefusedError("NotFoundException")
    claims(deletions.aws, 1, 1)
    groups(deletions.aws, "sg-1")
    templates(deletions.aws, 2)
    times = (NOW, NOW + timedelta(seconds=90))
    deletions.events = [(1, Event("e", time, "one", (), "one", "", "AWS::X", "DELETE_IN_PROGRESS")) for time in times]
    done = deleted(deletions, asked, bucket="mine")
    assert (done.cluster, done.region, done.stack, done.stack_id) == ("one", "us-west-2", "one", arn("one"))
    assert (done.status, done.succeeded, done.in_progress, done.seconds) == ("", True, False, 90)
    assert [each.id for each in done.removed] == ["sg-1"]
    assert [each.kind for each in done.retained] == ["volume", "snapshot", "templates"]
    assert {each.kind for each in done.counted} == {"volumes", "VPCs"}
    assert (done.orphans, done.blockers, done.objects, done.bucket_deleted) == ((), (), 0, False)
    assert isinstance(asked.told[0], DeletionPlan)
    order = [name for name, _ in deletions.aws.written()]
    assert order == ["ec2:DeleteSecurityGroup", "cloudformation:DeleteStack"]


def test_data_goes_last_and_only_if_told(deletions: Deletions) -> None:
    deletions.members, asked = (VPC,), Asked()
    deletions.describe("CREATE_COMPLETE")
    claims(deletions.aws, 1, 1)
    templates(deletions.aws, 2)
    wishes = {"delete_volumes": True, "delete_snapshots": True, "empty_bucket": True, "delete_bucket": True}
    done = deleted(deletions, asked, bucket="mine", **wishes)
    assert [name for name, _ in deletions.aws.written()] == [
        "cloudformation:DeleteStack",
        "ec2:DeleteVolume",
        "ec2:DeleteSnapshot",
        "s3:DeleteObjects",
        "s3:DeleteBucket",
    ]
    assert {each.id for each in done.removed} == {"vol-c0", "snap-c0"}
    assert (done.objects, done.bucket_deleted, done.retained) == (2, True, ())
    assert Step("deleting 2 object versions in s3://mine/one/") in asked.told


@pytest.mark.parametrize(
    ("wishes", "number", "others", "calls", "bucket_deleted", "said"),
    [
        ({"empty_bucket": True}, 0, 0, [], False, False),
        ({"empty_bucket": True}, 1, 0, ["s3:DeleteObjects"], False, False),
        ({"delete_bucket": True}, 0, 0, ["s3:DeleteBucket"], True, False),
        ({"delete_bucket": True}, 1, 0, [], False, True),
        ({"empty_bucket": True, "delete_bucket": True}, 1, 1, ["s3:DeleteObjects"], False, True),
        ({}, 1, 0, [], False, False),
    ],
)
def test_the_bucket_goes_only_if_told_and_empty(
    deletions: Deletions,
    wishes: dict[str, bool],
    number: int,
    others: int,
    calls: list[str],
    bucket_deleted: bool,
    said: bool,
) -> None:
    asked = Asked()
    deletions.describe("CREATE_COMPLETE")
    templates(deletions.aws, number, others)
    done = deleted(deletions, asked, bucket="mine", **wishes)
    assert [name for name, _ in deletions.aws.written() if name.startswith("s3:")] == calls
    assert done.bucket_deleted is bucket_deleted
    notices = [each.text for each in asked.told if isinstance(each, Notice)]
    assert notices == (["the bucket mine was not deleted: it contains other objects"] if said else [])


def test_who_does_not_wait_is_told_that_it_goes_on(deletions: Deletions) -> None:
    deletions.describe("CREATE_COMPLETE")
    deletions.aws.given["cloudformation:DeleteStack"] = lambda sent: deletions.describe("DELETE_IN_PROGRESS") or {}  # type: ignore[func-returns-value]
    done = deleted(deletions, Asked(), detach=True)
    assert (done.in_progress, done.succeeded, done.status, done.counted) == (True, False, "DELETE_IN_PROGRESS", ())
    assert (done.retained, deletions.since) == ((), [])


def test_a_deletion_that_failed_says_what_is_in_the_way(deletions: Deletions) -> None:
    failed = resource("vpc-1", "DELETE_FAILED", reason="has dependencies", name="Vpc")
    deletions.members, deletions.ends = (failed,), ["DELETE_FAILED"]
    asked = Asked()
    deletions.describe("CREATE_COMPLETE")
    come = {"Subnets": [{"SubnetId": "subnet-9", "VpcId": "vpc-1"}]}
    deletions.aws.given["cloudformation:DeleteStack"] = lambda sent: (
        deletions.aws.given.update({"ec2:DescribeSubnets": come}) or {}  # type: ignore[func-returns-value]
    )
    asked.agrees = True
    done = deleted(deletions, asked)
    assert (done.succeeded, done.status, [each.id for each in done.blockers]) == (False, "DELETE_FAILED", ["subnet-9"])
    assert [each.id for each in done.retained] == ["vpc-1"]


def test_a_search_that_is_refused_meanwhile_is_told_and_no_failure(deletions: Deletions) -> None:
    failed = resource("vpc-1", "DELETE_FAILED", name="Vpc")
    deletions.members, deletions.ends, asked = (failed,), ["DELETE_FAILED"] * 3 + ["DELETE_COMPLETE"], Asked()
    deletions.describe("CREATE_COMPLETE")

    def deny(sent: dict[str, Any]) -> dict[str, Any]:
        deletions.aws.given["ec2:DescribeNetworkInterfaces"] = RefusedError("UnauthorizedOperation", "not any more")
        return {}

    deletions.aws.given["cloudformation:DeleteStack"] = deny
    with pytest.raises(CfngenError, match="not any more"):
        # The last sweep, of what is gone, must not be skipped in silence.
        deleted(deletions, asked)
    texts = [each.text for each in asked.told if isinstance(each, Notice)]
    assert sum(text.startswith("resources that Kubernetes created could not be deleted: ") for text in texts) == 3
    assert sum(text.startswith("what blocks the deletion could not be determined: ") for text in texts) == 3


@pytest.mark.parametrize(
    ("machines", "answer", "notices"),
    [
        (True, lambda report: (), []),
        (
            True,
            lambda report: ("default/web", "default/api"),
            ["Kubernetes has not deleted the load balancers of default/web, default/api in time"],
        ),
        (False, lambda report: ("default/web",), []),
    ],
)
def test_kubernetes_is_asked_while_there_are_machines(
    deletions: Deletions, machines: bool, answer: Any, notices: list[str]
) -> None:
    deletions.members, asked = (VPC, resource("group-1")), Asked()
    deletions.describe("CREATE_COMPLETE")
    if machines:
        ours = {**OWNED, "aws:autoscaling:groupName": "group-1"}
        deletions.aws.given["ec2:DescribeInstances"] = running(instance("i-1", **ours))
    deleted(deletions, asked, drain=answer)
    assert [each.text for each in asked.told if isinstance(each, Notice)] == notices
    assert (Step("asking Kubernetes to delete its load balancers") in asked.told) is machines


def test_an_api_that_cannot_be_asked_is_told(deletions: Deletions) -> None:
    deletions.members, asked = (VPC, resource("group-1")), Asked()
    deletions.describe("CREATE_COMPLETE")
    ours = {**OWNED, "aws:autoscaling:groupName": "group-1"}
    deletions.aws.given["ec2:DescribeInstances"] = running(instance("i-1", **ours))

    def fail(report: Any) -> tuple[str, ...]:
        raise CfngenError("nobody answers")

    assert deleted(deletions, asked, drain=fail).succeeded
    [notice] = [each.text for each in asked.told if isinstance(each, Notice)]
    assert notice == "Kubernetes could not be requested to delete its load balancers: nobody answers"


@pytest.mark.parametrize("how", ["file", "destroy", None])
def test_authorities_are_copied_after_consent_and_before_anything_goes(
    deletions: Deletions, tmp_path: Path, how: Any
) -> None:
    deletions.members, asked = (CA,), Asked()
    deletions.describe("CREATE_COMPLETE")
    deletions.aws.given["secretsmanager:GetSecretValue"] = {"SecretString": "secret"}
    path = tmp_path / "authorities.json"
    done = deleted(deletions, asked, authorities=AuthorityCopy(how, path) if how else None)
    assert path.exists() is (how == "file")
    assert [each.id for each in done.retained if "copy" in each.kind] == ([str(path)] if how == "file" else [])
    [consent] = asked.questions
    assert any("certificate authorities" in text for text in consent.consequences)


def test_who_destroys_them_need_not_be_able_to_read_them(deletions: Deletions) -> None:
    deletions.members = (CA,)
    deletions.describe("CREATE_COMPLETE")
    deletions.aws.given["secretsmanager:GetSecretValue"] = RefusedError("AccessDeniedException")
    assert deleted(deletions, Asked(), authorities=AuthorityCopy("destroy")).succeeded
    deletions.describe("CREATE_COMPLETE")
    with pytest.raises(CfngenError, match="no copy of the certificate authorities can be kept"):
        deleted(deletions, Asked())


def test_where_there_is_nothing_nothing_is_asked_and_the_time_is_ones_own(deletions: Deletions) -> None:
    asked = Asked()
    deletions.aws.given["cloudformation:DescribeStacks"] = lambda sent: (
        RefusedError("ValidationError", "Stack with id one does not exist") if sent else {"Stacks": []}
    )
    done = deleted(deletions, asked)
    assert (done.succeeded, done.stack_id, done.status, done.seconds, asked.questions) == (True, "", "", 0, [])
