"""Change sets through CloudFormation's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from checked_api import checked_api, session
from served_api import Served
from small_stacks import group

from cfngen.sandbox.cloudformation import CloudFormation

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Ref": "Cidr"}}}
TEMPLATE = {"Parameters": {"Cidr": {"Type": "String", "Default": "10.0.0.0/16"}}, "Resources": {"Vpc": VPC}}
BODY = json.dumps(TEMPLATE)
GATEWAY = {"Type": "AWS::EC2::InternetGateway"}
OTHER_CIDR = [{"ParameterKey": "Cidr", "ParameterValue": "10.1.0.0/16"}]
BUCKET = "bodies"


@pytest.fixture
def served(cloud: CloudFormation) -> Iterator[Served]:
    with checked_api(cloud) as served:
        yield served


@pytest.fixture
def cfn(served: Served) -> Any:
    return session().client("cloudformation")


def code(call: Any, **parameters: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    return str(caught.value.response["Error"]["Code"])


def settled(cfn: Any, cloud: CloudFormation, name: str = "one", **arguments: Any) -> dict[str, Any]:
    """A change set that has been worked out."""
    given = {"StackName": "net", "ChangeSetName": name, **arguments}
    if not given.get("UsePreviousTemplate"):
        given.setdefault("TemplateBody", BODY)
    identity = cfn.create_change_set(**given)["Id"]
    for _ in range(100):
        answer = cfn.describe_change_set(ChangeSetName=identity)
        if not answer["Status"].endswith(("_PENDING", "_IN_PROGRESS")):
            return dict(answer)
        cloud.advance(1)
    raise AssertionError(answer)


def executed(cfn: Any, cloud: CloudFormation, name: str = "one") -> str:
    cfn.execute_change_set(ChangeSetName=name, StackName="net")
    return str(cloud.wait(cloud.stack("net")).status)


def status(cfn: Any) -> str:
    return str(cfn.describe_stacks(StackName="net")["Stacks"][0]["StackStatus"])


def test_creation_by_change_set(cfn: Any, cloud: CloudFormation) -> None:
    answer = settled(cfn, cloud, ChangeSetType="CREATE", Tags=[{"Key": "owner", "Value": "me"}], Description="first")
    assert (answer["Status"], answer["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert (answer["ChangeSetName"], answer["Description"]) == ("one", "first")
    assert answer["Tags"] == [{"Key": "owner", "Value": "me"}]
    assert answer["Parameters"] == [{"ParameterKey": "Cidr", "ParameterValue": "10.0.0.0/16"}]
    [change] = answer["Changes"]
    assert change["ResourceChange"]["Action"] == "Add"
    assert change["ResourceChange"]["LogicalResourceId"] == "Vpc"
    assert status(cfn) == "REVIEW_IN_PROGRESS"
    assert cfn.get_template(StackName="net", ChangeSetName="one")["TemplateBody"] == TEMPLATE
    assert executed(cfn, cloud) == "CREATE_COMPLETE"
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["ChangeSetId"] == answer["ChangeSetId"]
    assert cfn.describe_change_set(StackName="net", ChangeSetName="one")["ExecutionStatus"] == "EXECUTE_COMPLETE"
    assert cfn.list_change_sets(StackName="net")["Summaries"] == []


def test_a_stack_under_review_hides_what_it_will_be(cfn: Any, cloud: CloudFormation) -> None:
    cloud.advance(60)
    settled(cfn, cloud, ChangeSetType="CREATE", Tags=[{"Key": "owner", "Value": "me"}])
    [stack] = cfn.describe_stacks(StackName="net")["Stacks"]
    assert (stack["StackStatus"], stack["StackStatusReason"]) == ("REVIEW_IN_PROGRESS", "User Initiated")
    assert stack["Tags"] == []
    assert not {"Parameters", "Capabilities", "ChangeSetId", "LastUpdatedTime"} & set(stack)
    assert code(cfn.get_template_summary, StackName="net") == "ValidationError"
    executed(cfn, cloud)
    [stack] = cfn.describe_stacks(StackName="net")["Stacks"]
    assert stack["Tags"] == [{"Key": "owner", "Value": "me"}]
    assert stack["LastUpdatedTime"] == cloud.clock.time


def test_who_names_no_change_set_or_no_stack_is_told(cfn: Any, cloud: CloudFormation) -> None:
    settled(cfn, cloud, ChangeSetType="CREATE")
    with pytest.raises(ClientError, match=r"Stack \[none\] does not exist"):
        cfn.describe_change_set(StackName="none", ChangeSetName="one")
    with pytest.raises(ClientError, match="StackName must be specified if ChangeSetName is not specified as an ARN"):
        cfn.describe_change_set(ChangeSetName="one")
    assert code(cfn.describe_change_set, StackName="net", ChangeSetName="two") == "ChangeSetNotFound"
    cfn.delete_change_set(StackName="net", ChangeSetName="two")  # no error: there is none to delete
    assert code(cfn.delete_change_set, StackName="none", ChangeSetName="one") == "ValidationError"
    assert code(cfn.list_change_sets, StackName="none") == "ValidationError"
    assert code(cfn.describe_events, ChangeSetName="one") == "ValidationError"
    with pytest.raises(ClientError, match="failed to satisfy constraint"):
        cfn.create_change_set(StackName="net", ChangeSetName="1st", TemplateBody=BODY)


def test_update_shows_values_only_where_they_are_asked_for(cfn: Any, cloud: CloudFormation) -> None:
    settled(cfn, cloud, ChangeSetType="CREATE")
    executed(cfn, cloud)
    answer = settled(cfn, cloud, "two", UsePreviousTemplate=True, Parameters=OTHER_CIDR)
    [bare] = answer["Changes"]
    assert (bare["ResourceChange"]["Action"], bare["ResourceChange"]["Replacement"]) == ("Modify", "True")
    assert "BeforeContext" not in bare["ResourceChange"]
    assert "BeforeValue" not in bare["ResourceChange"]["Details"][0]["Target"]
    full = cfn.describe_change_set(StackName="net", ChangeSetName="two", IncludePropertyValues=True)
    target = full["Changes"][0]["ResourceChange"]["Details"][0]["Target"]
    assert (target["BeforeValue"], target["AfterValue"]) == ("10.0.0.0/16", "10.1.0.0/16")
    assert target["RequiresRecreation"] == "Always"
    assert json.loads(full["Changes"][0]["ResourceChange"]["AfterContext"])
    assert executed(cfn, cloud, "two") == "UPDATE_COMPLETE"
    assert status(cfn) == "UPDATE_COMPLETE"


def test_changes_come_in_pages(cfn: Any, cloud: CloudFormation, served: Served) -> None:
    gateways = {f"Gateway{number}": GATEWAY for number in range(7)}
    settled(cfn, cloud, ChangeSetType="CREATE", TemplateBody=json.dumps({"Resources": gateways}))
    served.faults.page_size = 3
    pages = list(cfn.get_paginator("describe_change_set").paginate(StackName="net", ChangeSetName="one"))
    assert [len(page["Changes"]) for page in pages] == [3, 3, 1]
    found = [change["ResourceChange"]["LogicalResourceId"] for page in pages for change in page["Changes"]]
    assert sorted(found) == sorted(gateways)


def test_a_change_set_without_changes_fails(cfn: Any, cloud: CloudFormation) -> None:
    settled(cfn, cloud, ChangeSetType="CREATE")
    executed(cfn, cloud)
    answer = settled(cfn, cloud, "two")
    assert (answer["Status"], answer["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert "didn't contain changes" in answer["StatusReason"]
    assert code(cfn.execute_change_set, StackName="net", ChangeSetName="two") == "InvalidChangeSetStatus"
    with pytest.raises(cfn.exceptions.InvalidChangeSetStatusException):
        cfn.execute_change_set(StackName="net", ChangeSetName="two")
    assert [summary["ChangeSetName"] for summary in cfn.list_change_sets(StackName="net")["Summaries"]].count(
        "two"
    ) == 1
    cfn.delete_change_set(StackName="net", ChangeSetName="two")
    assert code(cfn.describe_change_set, StackName="net", ChangeSetName="two") == "ChangeSetNotFound"


def test_a_name_is_taken_until_its_change_set_is_deleted(cfn: Any, cloud: CloudFormation) -> None:
    settled(cfn, cloud, ChangeSetType="CREATE")
    repeated = {"StackName": "net", "ChangeSetName": "one", "TemplateBody": BODY, "ChangeSetType": "CREATE"}
    assert code(cfn.create_change_set, **repeated) == "AlreadyExistsException"
    cfn.delete_change_set(StackName="net", ChangeSetName="one")
    assert status(cfn) == "REVIEW_IN_PROGRESS"
    assert settled(cfn, cloud, ChangeSetType="CREATE")["Status"] == "CREATE_COMPLETE"


def test_change_sets_of_nested_stacks_are_linked(cfn: Any, cloud: CloudFormation) -> None:
    s3 = session().client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket=BUCKET, Key="net.json", Body=BODY.encode())
    url = f"https://{BUCKET}.s3.us-west-2.amazonaws.com/net.json"
    child = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
    root = settled(
        cfn,
        cloud,
        ChangeSetType="CREATE",
        TemplateBody=json.dumps({"Resources": {"Child": child}}),
        IncludeNestedStacks=True,
    )
    assert root["IncludeNestedStacks"] is True
    [change] = root["Changes"]
    nested = cfn.describe_change_set(ChangeSetName=change["ResourceChange"]["ChangeSetId"])
    assert (nested["ParentChangeSetId"], nested["RootChangeSetId"]) == (root["ChangeSetId"], root["ChangeSetId"])
    assert [change["ResourceChange"]["LogicalResourceId"] for change in nested["Changes"]] == ["Vpc"]


def test_rollback_is_chosen_once(cfn: Any, cloud: CloudFormation) -> None:
    settled(cfn, cloud, ChangeSetType="CREATE", OnStackFailure="DO_NOTHING")
    assert cfn.describe_change_set(StackName="net", ChangeSetName="one")["OnStackFailure"] == "DO_NOTHING"
    arguments = {"StackName": "net", "ChangeSetName": "one", "DisableRollback": True}
    assert code(cfn.execute_change_set, **arguments) == "ValidationError"


def test_a_token_makes_a_repeated_creation_one_change_set(cfn: Any, cloud: CloudFormation) -> None:
    arguments = {"StackName": "net", "ChangeSetName": "one", "TemplateBody": BODY, "ChangeSetType": "CREATE"}
    first = cfn.create_change_set(**arguments, ClientToken="t")["Id"]
    assert cfn.create_change_set(**arguments, ClientToken="t")["Id"] == first
    assert len(cfn.list_change_sets(StackName="net")["Summaries"]) == 1


def test_the_default_waiter_of_boto3_can_wait(cfn: Any, cloud: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.waiter.time.sleep", cloud.advance)
    cfn.create_change_set(StackName="net", ChangeSetName="one", TemplateBody=BODY, ChangeSetType="CREATE")
    cfn.get_waiter("change_set_create_complete").wait(StackName="net", ChangeSetName="one")
    assert cfn.describe_change_set(StackName="net", ChangeSetName="one")["Status"] == "CREATE_COMPLETE"


def test_what_early_validation_found_is_told_by_describe_events(cfn: Any, cloud: CloudFormation) -> None:
    wrong = {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16", "Colour": "blue"}}}
    answer = settled(cfn, cloud, ChangeSetType="CREATE", TemplateBody=json.dumps({"Resources": wrong}))
    assert answer["Status"] == "FAILED"
    assert "AWS::EarlyValidation" in answer["StatusReason"]
    response = cfn.describe_events(ChangeSetName=answer["ChangeSetId"], Filters={"FailedEvents": True})
    [event] = response["OperationEvents"]
    assert event["EventType"] == "VALIDATION_ERROR"
    assert event["LogicalResourceId"] == "Vpc"
    assert "Colour" in event["ValidationStatusReason"] + event["ValidationPath"]
    cfn.create_stack(StackName="direct", TemplateBody=json.dumps({"Resources": wrong}))
    cloud.advance(1)
    response = cfn.describe_events(StackName="direct", Filters={"FailedEvents": True})
    [event] = [event for event in response["OperationEvents"] if event["EventType"] == "VALIDATION_ERROR"]
    assert (event["OperationType"], event["ValidationPath"]) == ("CREATE_STACK", "/Resources/Vpc/Properties")


def test_express_mode_waits_for_no_signals_and_keeps_what_failed_unless_told(cfn: Any, cloud: CloudFormation) -> None:
    body = json.dumps({"Resources": group(1)})
    for name, failing, wanted in (
        ("ready", False, "CREATE_COMPLETE"),
        ("kept", True, "CREATE_FAILED"),
    ):
        if failing:
            cloud.fail("Group", "no room")
        cfn.create_change_set(
            StackName=name, ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=body,
            DeploymentConfig={"Mode": "EXPRESS", "DisableRollback": failing},
        )  # fmt: skip
        cloud.advance(10)
        cfn.execute_change_set(StackName=name, ChangeSetName="first")
        cloud.advance(1)
        assert cfn.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == wanted


def test_a_templates_address_may_be_quoted(cfn: Any) -> None:
    s3 = session().client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket=BUCKET, Key="my cluster/a+b.json", Body=BODY.encode())
    url = f"https://{BUCKET}.s3.us-west-2.amazonaws.com/my%20cluster/a%2Bb.json"
    assert cfn.get_template_summary(TemplateURL=url)["Parameters"][0]["ParameterKey"] == "Cidr"
