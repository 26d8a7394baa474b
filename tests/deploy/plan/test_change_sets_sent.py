"""What is sent to CloudFormation for a plan, and what is removed of it: to the last argument."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from recorded import CHANGE_SET, NOW, STACK_ID, Recorded, RefusedError, change, description, detail, request

from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.deployment.execution import PlanOutdatedError, ReplacementRefusedError, execute
from cfngen.deploy.plan.change_sets import UnplannableError, discard, make_plan
from cfngen.deploy.plan.plan import Plan

RESIZED = change("MasterAVolume", "AWS::EC2::Volume", detail("Size", "20", "40"))
ADDED = change("Vpc", "AWS::EC2::VPC", action="Add")
OTHER = CHANGE_SET.replace("cfngen-plan-one", "by-hand")
NO_CHANGES = {"Status": "FAILED", "StatusReason": "No updates are to be performed."}


def planned(api: Recorded, entry: Any = RESIZED, **more: Any) -> Plan:
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, entry)
    return make_plan(api.account, request(**more), report=lambda _: None)


def shell(cluster: str = "kubernetes", **more: Any) -> Recorded:
    """An account with an empty stack that a plan has left."""
    api = Recorded()
    assert api.stack
    tags = [{"Key": "cfngen:cluster", "Value": cluster}] if cluster else []
    api.stack |= {"StackStatus": "REVIEW_IN_PROGRESS", "Tags": tags, **more}
    return api


def refusing(code: str, *, times: int = 10_000, status: int = 400) -> Any:
    left = iter(range(times))

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        if next(left, None) is not None:
            raise RefusedError(code, status=status)
        return {}

    return answer


def test_everything_of_a_request_is_sent() -> None:
    api = Recorded()
    planned(
        api,
        parameters=({"ParameterKey": "A", "ParameterValue": "b"}, {"ParameterKey": "C", "UsePreviousValue": True}),
        capabilities=("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"),
        tags={"b": "2", "a": "1"},
        role_arn="arn:aws:iam::123456789012:role/deployer",
        notification_arns=("arn:topic",),
        note="by somebody",
    )
    [sent] = api.named("CreateChangeSet")
    assert sent == {
        "Action": "CreateChangeSet",
        "Version": "2010-05-15",
        "StackName": "kubernetes",
        "ChangeSetName": "cfngen-plan-one",
        "ChangeSetType": "UPDATE",
        "ClientToken": "one",
        "Description": "by somebody",
        "TemplateURL": "https://bucket.s3.us-west-2.amazonaws.com/kubernetes/0123/cluster.json",
        "Parameters.member.1.ParameterKey": "A",
        "Parameters.member.1.ParameterValue": "b",
        "Parameters.member.2.ParameterKey": "C",
        "Parameters.member.2.UsePreviousValue": "true",
        "Capabilities.member.1": "CAPABILITY_IAM",
        "Capabilities.member.2": "CAPABILITY_NAMED_IAM",
        "Tags.member.1.Key": "a",
        "Tags.member.1.Value": "1",
        "Tags.member.2.Key": "b",
        "Tags.member.2.Value": "2",
        "IncludeNestedStacks": "true",
        "RoleARN": "arn:aws:iam::123456789012:role/deployer",
        "NotificationARNs.member.1": "arn:topic",
    }


def test_what_was_not_asked_for_is_not_sent() -> None:
    api = Recorded()
    planned(api, notification_arns=None, on_failure="DELETE")
    [sent] = api.named("CreateChangeSet")
    assert sent["Description"] == "cfngen: the cluster kubernetes"
    named = {name.partition(".")[0] for name in sent}
    assert not named & {"RoleARN", "NotificationARNs", "OnStackFailure", "DeploymentConfig"}


def test_topics_that_are_to_go_are_sent_as_none() -> None:
    api = Recorded()
    planned(api, notification_arns=())
    assert api.named("CreateChangeSet")[0]["NotificationARNs"] == ""


@pytest.mark.parametrize(("length", "sent"), [(115, 127), (116, 128), (117, 128)])
def test_the_name_of_a_change_set_is_as_long_as_cloudformation_takes(length: int, sent: int) -> None:
    api = Recorded()
    planned(api, token="x" * length)
    assert len(api.named("CreateChangeSet")[0]["ChangeSetName"]) == sent


@pytest.mark.parametrize(("on_failure", "keep"), [("DO_NOTHING", "true"), ("ROLLBACK", "false"), ("DELETE", "false")])
def test_express_mode_says_itself_what_becomes_of_a_failure(on_failure: str, keep: str) -> None:
    api = Recorded(exists=False)
    execute(api.account, planned(api, ADDED, express=True, on_failure=on_failure))
    [sent] = api.named("CreateChangeSet")
    assert (sent["DeploymentConfig.Mode"], sent["DeploymentConfig.DisableRollback"]) == ("EXPRESS", keep)
    assert "OnStackFailure" not in sent
    assert "DisableRollback" not in api.named("ExecuteChangeSet")[0]


@pytest.mark.parametrize(
    ("exists", "on_failure", "on_stack", "disabled"),
    [
        (False, "ROLLBACK", None, "false"),
        (False, "DO_NOTHING", None, "true"),
        (False, "DELETE", "DELETE", None),
        (True, "ROLLBACK", None, "false"),
        (True, "DELETE", None, "false"),
    ],
)
def test_what_becomes_of_a_failure_is_said_in_one_place(
    exists: bool, on_failure: str, on_stack: str | None, disabled: str | None
) -> None:
    api = Recorded(exists=exists)
    plan = planned(api, RESIZED if exists else ADDED, on_failure=on_failure)
    execute(api.account, plan)
    assert api.named("CreateChangeSet")[0].get("OnStackFailure") == on_stack
    assert api.named("CreateChangeSet")[0]["ChangeSetType"] == ("UPDATE" if exists else "CREATE")
    assert api.named("ExecuteChangeSet")[0].get("DisableRollback") == disabled


@pytest.mark.parametrize(
    ("name", "age", "status", "execution", "removed"),
    [
        ("cfngen-plan-a", timedelta(hours=1, seconds=1), "CREATE_COMPLETE", "AVAILABLE", True),
        ("cfngen-plan-a", timedelta(hours=1), "CREATE_COMPLETE", "AVAILABLE", False),
        ("cfngen-plan-a", None, "CREATE_COMPLETE", "AVAILABLE", False),
        ("cfngen-plan-a", timedelta(0), "FAILED", "UNAVAILABLE", True),
        *(
            ("cfngen-plan-a", timedelta(0), "CREATE_COMPLETE", status, True)
            for status in ("EXECUTE_COMPLETE", "EXECUTE_FAILED", "OBSOLETE")
        ),
        ("cfngen-plan-one", timedelta(0), "CREATE_COMPLETE", "AVAILABLE", True),
        ("by-hand", timedelta(days=9), "FAILED", "OBSOLETE", False),
    ],
)
def test_change_sets_that_nobody_will_execute_make_room(
    name: str, age: timedelta | None, status: str, execution: str, removed: bool
) -> None:
    api = Recorded()
    summary = {"ChangeSetName": name, "ChangeSetId": OTHER, "Status": status, "ExecutionStatus": execution}
    api.summaries = [{**summary, **({"CreationTime": NOW - age} if age is not None else {})}]
    planned(api)
    assert [each["ChangeSetName"] for each in api.named("DeleteChangeSet")] == ([OTHER] if removed else [])
    assert api.named("ListChangeSets")[0]["StackName"] == "kubernetes"


def test_one_that_cannot_be_removed_keeps_nobody_from_planning() -> None:
    api = Recorded()
    api.summaries = [{"ChangeSetName": "cfngen-plan-a", "ChangeSetId": OTHER, "Status": "FAILED"}]
    api.change_sets[OTHER] = description(OTHER)
    api.answers["DeleteChangeSet"] = refusing("InvalidChangeSetStatus")
    assert planned(api).counts.update == 1


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_stack_has_no_change_sets_to_be_removed(exists: bool) -> None:
    api = Recorded(exists=exists)
    planned(api, RESIZED if exists else ADDED)
    assert len(api.named("ListChangeSets")) == exists


@pytest.mark.parametrize(("cluster", "ours"), [("kubernetes", True), ("another", False), ("", False)])
def test_an_empty_stack_goes_with_its_plan_unless_it_is_another_clusters(cluster: str, ours: bool) -> None:
    api = shell(cluster)
    plan = planned(api, ADDED)
    assert (plan.operation, plan.shell) == ("create", ours)
    discard(api.account, plan)
    assert len(api.named("DeleteStack")) == ours


@pytest.mark.parametrize(
    ("status", "summaries", "deleted"),
    [
        ("REVIEW_IN_PROGRESS", [], True),
        ("REVIEW_IN_PROGRESS", ["DELETE_COMPLETE", "DELETE_PENDING"], True),
        ("REVIEW_IN_PROGRESS", ["DELETE_COMPLETE", "CREATE_COMPLETE"], False),
        ("CREATE_IN_PROGRESS", [], False),
    ],
)
def test_a_stack_that_something_has_become_of_stays(status: str, summaries: list[str], deleted: bool) -> None:
    api = Recorded(exists=False)
    plan = planned(api, ADDED)
    assert api.stack
    api.stack["StackStatus"] = status
    api.summaries = [{"ChangeSetName": "x", "ChangeSetId": OTHER, "Status": summary} for summary in summaries]
    discard(api.account, plan)
    assert [each["StackName"] for each in api.named("DeleteStack")] == [STACK_ID] * deleted


def test_a_plan_with_nothing_to_do_takes_its_empty_stack_along() -> None:
    api = Recorded(exists=False)
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, **NO_CHANGES)
    plan = make_plan(api.account, request(express=True, on_failure="DELETE"), report=lambda _: None)
    assert plan == Plan("kubernetes", STACK_ID, "create", created=NOW, on_failure="DELETE", express=True)
    assert api.named("DeleteStack")
    assert CHANGE_SET not in api.change_sets


def test_a_stack_that_is_gone_meanwhile_needs_no_deletion() -> None:
    api = Recorded(exists=False)
    plan = planned(api, ADDED)
    api.stack = None
    said: list[Any] = []
    discard(api.account, plan, said.append)
    assert (api.named("DeleteStack"), said) == ([], [])


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"])
def test_where_nothing_can_be_planned_the_status_is_named(status: str) -> None:
    api = Recorded()
    assert api.stack
    api.stack["StackStatus"] = status
    with pytest.raises(UnplannableError) as raised:
        planned(api)
    assert (
        str(raised.value) == f"the stack kubernetes is in {status}; CloudFormation creates no change set in this status"
    )
    assert "`cfngen status`" in str(raised.value.hint)
    assert not api.named("CreateChangeSet")


@pytest.mark.parametrize("code", ["ChangeSetNotFound", "ChangeSetNotFoundException"])
@pytest.mark.parametrize(("seconds", "found"), [(30.0, True), (30.5, False)])
def test_reads_have_half_a_minute_to_show_a_new_change_set(code: str, seconds: float, found: bool) -> None:
    api = Recorded()
    times = iter([seconds - 1, None])

    def late(_: dict[str, Any]) -> dict[str, Any]:
        if api.clock.time < NOW + timedelta(seconds=seconds):
            # The first pause is a second long.
            api.clock.time = NOW + timedelta(seconds=next(times) or 0)
            raise RefusedError(code, status=404)
        if api.clock.time == NOW + timedelta(seconds=seconds) and len(api.named("DescribeChangeSet")) == 2:
            raise RefusedError(code, status=404)
        return description(CHANGE_SET, RESIZED)

    api.answers["DescribeChangeSet"] = late
    if found:
        assert make_plan(api.account, request(), report=lambda _: None).counts.update == 1
    else:
        with pytest.raises(AwsError):
            make_plan(api.account, request(), report=lambda _: None)


@pytest.mark.parametrize(("status", "looks"), [("DELETE_COMPLETE", 1), ("DELETE_FAILED", 1), ("", 2)])
def test_a_deletion_is_waited_for(status: str, looks: int) -> None:
    api = Recorded()
    plan = planned(api)
    before = len(api.named("DescribeChangeSet"))
    left = iter(["DELETE_IN_PROGRESS"] if not status else [])

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        now = next(left, status)
        if not now:
            raise RefusedError("ChangeSetNotFound", status=404)
        return description(CHANGE_SET, Status=now)

    api.answers["DescribeChangeSet"] = answer
    api.answers["DeleteChangeSet"] = lambda _: {}
    said: list[Any] = []
    discard(api.account, plan, said.append)
    assert len(api.named("DescribeChangeSet")) - before == looks
    assert (len(api.named("DeleteChangeSet")), said) == (1, [])


@pytest.mark.parametrize("code", ["InvalidChangeSetStatus", "InvalidChangeSetStatusException"])
@pytest.mark.parametrize(
    ("status", "words", "least"),
    [("CREATE_PENDING", "CloudFormation is still creating it", 100), ("CREATE_COMPLETE", "no", 0)],
)
def test_what_cannot_be_deleted_is_told(code: str, status: str, words: str, least: int) -> None:
    api = Recorded()
    plan = planned(api)
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, Status=status)
    api.answers["DeleteChangeSet"] = refusing(code)
    said: list[Any] = []
    slept = sum(api.clock.slept)
    discard(api.account, plan, said.append)
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text.startswith("a change set remains in the account: ")
    assert words in notice.text
    assert least <= sum(api.clock.slept) - slept < 130


def test_an_empty_stack_that_cannot_be_deleted_is_told() -> None:
    api = Recorded(exists=False)
    plan = planned(api, ADDED)
    api.answers["DeleteStack"] = refusing("AccessDenied")
    said: list[Any] = []
    discard(api.account, plan, said.append)
    assert said[0].text.startswith("an empty stack in REVIEW_IN_PROGRESS remains in the account: ")
    discard(api.account, plan)


@pytest.mark.parametrize(
    "code",
    ["ChangeSetNotFound", "ChangeSetNotFoundException", "InvalidChangeSetStatus", "InvalidChangeSetStatusException"],
)
def test_a_plan_that_was_overtaken_is_out_of_date_and_is_cleaned_up(code: str) -> None:
    api = Recorded()
    plan = planned(api)
    api.answers["ExecuteChangeSet"] = refusing(code)
    with pytest.raises(PlanOutdatedError, match="the plan of kubernetes can no longer be executed") as raised:
        execute(api.account, plan)
    assert "create a new plan" in raised.value.hint
    assert not plan.is_executed


def test_refusals_name_what_is_in_the_way() -> None:
    api = Recorded()
    entry = change("Eni", "AWS::EC2::NetworkInterface", detail("A", "1", "2", recreation="Always"), replacement="True")
    for how, words in (({"express": True}, "--express"), ({"on_failure": "DO_NOTHING"}, "without --on-failure keep")):
        with pytest.raises(ReplacementRefusedError, match="Eni may be replaced") as raised:
            execute(api.account, planned(api, entry, **how))
        assert not api.named("ExecuteChangeSet")
        assert words in str(raised.value.hint)
