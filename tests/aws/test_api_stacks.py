"""Stacks through CloudFormation's API, by ordinary clients of boto3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from checked_api import checked_api, session
from moto.core.utils import get_service_model
from served_api import Served
from small_stacks import TRUST

from cfngen.sandbox import api
from cfngen.sandbox.api.actions import ACTIONS
from cfngen.sandbox.cloudformation import CloudFormation

NETWORK = {
    "Description": "A network",
    "Parameters": {
        "Cidr": {"Type": "String", "Default": "10.0.0.0/16", "AllowedValues": ["10.0.0.0/16", "10.1.0.0/16"]},
        "Password": {"Type": "String", "NoEcho": True, "Default": "secret"},
    },
    "Resources": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Ref": "Cidr"}}},
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
        },
    },
    "Outputs": {"VpcId": {"Value": {"Ref": "Vpc"}, "Description": "Its id"}},
}
ROLE = {
    "Resources": {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": TRUST},
        }
    }
}
BODY = json.dumps(NETWORK)


@pytest.fixture
def served(cloud: CloudFormation) -> Iterator[Served]:
    with checked_api(cloud) as served:
        yield served


@pytest.fixture
def cfn(served: Served) -> Any:
    return session().client("cloudformation")


def refused(call: Any, **parameters: Any) -> tuple[str, str, int]:
    """Code, message and HTTP status of a refusal."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response = caught.value.response
    return response["Error"]["Code"], response["Error"]["Message"], response["ResponseMetadata"]["HTTPStatusCode"]


def created(cfn: Any, cloud: CloudFormation, name: str = "net", **arguments: Any) -> str:
    """Id of a stack that was created and has settled."""
    identity = cfn.create_stack(**{"StackName": name, "TemplateBody": BODY, **arguments})["StackId"]
    cloud.wait(cloud.stack(identity))
    return str(identity)


def test_every_action_is_one_of_the_api() -> None:
    assert set(ACTIONS) <= set(get_service_model("cloudformation").operation_names)


def test_created_stack_is_described_with_all_that_was_given(cfn: Any, cloud: CloudFormation) -> None:
    identity = created(
        cfn,
        cloud,
        Parameters=[{"ParameterKey": "Cidr", "ParameterValue": "10.1.0.0/16"}],
        Tags=[{"Key": "owner", "Value": "me"}],
        EnableTerminationProtection=True,
        NotificationARNs=["arn:aws:sns:us-west-2:123456789012:topic"],
    )
    [stack] = cfn.describe_stacks(StackName="net")["Stacks"]
    assert stack["StackId"] == identity
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert stack["Description"] == "A network"
    assert {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack["Parameters"]} == {
        "Cidr": "10.1.0.0/16",
        "Password": "****",
    }
    assert stack["Tags"] == [{"Key": "owner", "Value": "me"}]
    assert stack["EnableTerminationProtection"] is True
    assert stack["NotificationARNs"] == ["arn:aws:sns:us-west-2:123456789012:topic"]
    assert stack["DriftInformation"] == {"StackDriftStatus": "NOT_CHECKED"}
    assert stack["CreationTime"] == cloud.stack("net").created
    assert stack["LastOperations"][0]["OperationType"] == "CREATE_STACK"
    [output] = stack["Outputs"]
    assert (output["OutputKey"], output["Description"]) == ("VpcId", "Its id")
    assert output["OutputValue"].startswith("vpc-")
    assert "ParentId" not in stack


def test_deleted_stack_answers_by_its_id_only(cfn: Any, cloud: CloudFormation) -> None:
    identity = created(cfn, cloud)
    cfn.delete_stack(StackName="net")
    cloud.wait(cloud.stack(identity))
    assert cfn.describe_stacks(StackName=identity)["Stacks"][0]["StackStatus"] == "DELETE_COMPLETE"
    assert cfn.describe_stacks(StackName=identity)["Stacks"][0]["DeletionTime"] == cloud.stack(identity).deleted
    assert cfn.describe_stacks()["Stacks"] == []
    assert refused(cfn.describe_stacks, StackName="net") == (
        "ValidationError",
        "Stack with id net does not exist",
        400,
    )
    [summary] = cfn.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert summary["StackId"] == identity
    assert cfn.list_stacks(StackStatusFilter=["CREATE_COMPLETE"])["StackSummaries"] == []
    cfn.delete_stack(StackName="net")  # there is none, and AWS says nothing


def test_a_forced_deletion_is_shown(cfn: Any, cloud: CloudFormation) -> None:
    identity = created(cfn, cloud)
    gateway = {"InternetGatewayId": cloud.stack("net").resources["Gateway"].physical_id}
    ec2 = session().client("ec2")
    ec2.detach_internet_gateway(**gateway, VpcId=cloud.stack("net").resources["Vpc"].physical_id)
    ec2.attach_internet_gateway(**gateway, VpcId=ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"])
    cfn.delete_stack(StackName="net")
    cloud.wait(cloud.stack(identity))
    [failed] = cfn.describe_stacks(StackName=identity)["Stacks"]
    assert (failed["StackStatus"], failed.get("DeletionMode")) == ("DELETE_FAILED", None)
    cfn.delete_stack(StackName="net", DeletionMode="FORCE_DELETE_STACK")
    cloud.wait(cloud.stack(identity))
    [deleted] = cfn.describe_stacks(StackName=identity)["Stacks"]
    assert (deleted["StackStatus"], deleted["DeletionMode"]) == ("DELETE_COMPLETE", "FORCE_DELETE_STACK")


def test_a_page_of_events_has_a_hundred(cloud: CloudFormation) -> None:
    handles = {f"Handle{number}": {"Type": "AWS::CloudFormation::WaitConditionHandle"} for number in range(40)}
    with api.serving(cloud):
        client = session().client("cloudformation")
        created(client, cloud, TemplateBody=json.dumps({"Resources": handles}))
        pages = client.get_paginator("describe_stack_events").paginate(StackName="net")
        assert [len(page["StackEvents"]) for page in pages] == [100, len(cloud.stack("net").events) - 100]


def test_resources_events_and_lists_come_in_pages(cfn: Any, cloud: CloudFormation, served: Served) -> None:
    identity = created(cfn, cloud)
    served.faults.page_size = 2
    for operation, items, key, wanted in (
        ("list_stack_resources", "StackResourceSummaries", "LogicalResourceId", {"Vpc", "Gateway", "Attachment"}),
        ("describe_stack_events", "StackEvents", "EventId", {event.id for event in cloud.stack(identity).events}),
        ("describe_events", "OperationEvents", "EventId", {event.id for event in cloud.stack(identity).events}),
    ):
        pages = list(cfn.get_paginator(operation).paginate(StackName="net"))
        found = [each[key] for page in pages for each in page[items]]
        assert set(found) == wanted
        assert len(found) == len(wanted)
        assert all(len(page[items]) <= 2 for page in pages)
    for name in ("b", "c"):
        created(cfn, cloud, name)
    pages = list(cfn.get_paginator("describe_stacks").paginate())
    assert [[stack["StackName"] for stack in page["Stacks"]] for page in pages] == [["c", "b"], ["net"]]
    assert refused(cfn.describe_stack_events, StackName="net", NextToken="nonsense")[0] == "ValidationError"


def test_events_are_newest_first_and_carry_the_operation(cfn: Any, cloud: CloudFormation) -> None:
    operation = cfn.create_stack(StackName="net", TemplateBody=BODY, ClientRequestToken="mine")["OperationId"]
    cloud.wait(cloud.stack("net"))
    pages = cfn.get_paginator("describe_stack_events").paginate(StackName="net")
    events = pages.build_full_result()["StackEvents"]
    assert (events[0]["LogicalResourceId"], events[0]["ResourceStatus"]) == ("net", "CREATE_COMPLETE")
    assert (events[-1]["LogicalResourceId"], events[-1]["ResourceStatus"]) == ("net", "CREATE_IN_PROGRESS")
    assert {event["OperationId"] for event in events} == {operation}
    assert {event["ClientRequestToken"] for event in events} == {"mine"}
    pages = cfn.get_paginator("describe_events").paginate(OperationId=operation)
    of_operation = pages.build_full_result()["OperationEvents"]
    assert [each["EventId"] for each in of_operation] == [event["EventId"] for event in events]
    assert {each["OperationType"] for each in of_operation} == {"CREATE_STACK"}
    assert {each["EventType"] for each in of_operation} == {"STACK_EVENT"}


def test_failed_events_alone_show_the_cause(cfn: Any, cloud: CloudFormation) -> None:
    cloud.fail("Gateway", "no more gateways")
    identity = created(cfn, cloud)
    assert cfn.describe_stacks(StackName=identity)["Stacks"][0]["StackStatus"] == "ROLLBACK_COMPLETE"
    operation_events = cfn.describe_events(StackName=identity, Filters={"FailedEvents": True})["OperationEvents"]
    assert ("Gateway", "no more gateways") in {
        (operation_event["LogicalResourceId"], operation_event["ResourceStatusReason"])
        for operation_event in operation_events
    }
    assert {operation_event["ResourceStatus"] for operation_event in operation_events} == {"CREATE_FAILED"}


def test_one_resource_and_resources_by_their_physical_id(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    detail = cfn.describe_stack_resource(StackName="net", LogicalResourceId="Vpc")["StackResourceDetail"]
    assert (detail["ResourceType"], detail["ResourceStatus"]) == ("AWS::EC2::VPC", "CREATE_COMPLETE")
    stack_resources = cfn.describe_stack_resources(PhysicalResourceId=detail["PhysicalResourceId"])["StackResources"]
    assert {stack_resource["LogicalResourceId"] for stack_resource in stack_resources} == {
        "Vpc",
        "Gateway",
        "Attachment",
    }
    [one] = cfn.describe_stack_resources(StackName="net", LogicalResourceId="Vpc")["StackResources"]
    assert one["PhysicalResourceId"] == detail["PhysicalResourceId"]
    assert refused(cfn.describe_stack_resource, StackName="net", LogicalResourceId="X")[0] == "ValidationError"


def test_nested_stacks_name_parent_and_root(cfn: Any, cloud: CloudFormation) -> None:
    s3 = session().client("s3")
    s3.create_bucket(Bucket="bodies", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="bodies", Key="net.json", Body=BODY.encode())
    url = "https://bodies.s3.us-west-2.amazonaws.com/net.json"
    child = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
    root = created(cfn, cloud, "root", TemplateBody=json.dumps({"Resources": {"Child": child}}))
    [summary] = cfn.list_stack_resources(StackName="root")["StackResourceSummaries"]
    [nested] = cfn.describe_stacks(StackName=summary["PhysicalResourceId"])["Stacks"]
    assert (nested["ParentId"], nested["RootId"]) == (root, root)
    assert {stack["StackName"] for stack in cfn.describe_stacks()["Stacks"]} == {"root", nested["StackName"]}


def test_templates_are_given_back_and_summarised(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    assert cfn.get_template(StackName="net")["TemplateBody"] == NETWORK
    summary = cfn.get_template_summary(TemplateBody=BODY)
    assert summary["ResourceTypes"] == [
        "AWS::EC2::InternetGateway",
        "AWS::EC2::VPC",
        "AWS::EC2::VPCGatewayAttachment",
    ]
    by_name = {parameter["ParameterKey"]: parameter for parameter in summary["Parameters"]}
    assert by_name["Cidr"]["DefaultValue"] == "10.0.0.0/16"
    assert by_name["Cidr"]["ParameterConstraints"] == {"AllowedValues": ["10.0.0.0/16", "10.1.0.0/16"]}
    assert by_name["Password"]["NoEcho"] is True
    assert cfn.get_template_summary(StackName="net")["Parameters"] == summary["Parameters"]
    assert cfn.validate_template(TemplateBody=json.dumps(ROLE))["Capabilities"] == ["CAPABILITY_IAM"]
    assert refused(cfn.validate_template, TemplateBody="{")[0] == "ValidationError"


def test_refusals_bear_the_codes_of_the_api(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    assert refused(cfn.create_stack, StackName="net", TemplateBody=BODY)[::2] == ("AlreadyExistsException", 400)
    with pytest.raises(cfn.exceptions.AlreadyExistsException):
        cfn.create_stack(StackName="net", TemplateBody=BODY)
    assert refused(cfn.create_stack, StackName="role", TemplateBody=json.dumps(ROLE)) == (
        "InsufficientCapabilitiesException",
        "Requires capabilities : [CAPABILITY_IAM]",
        400,
    )
    assert refused(cfn.describe_change_set, ChangeSetName="none", StackName="net")[::2] == ("ChangeSetNotFound", 404)
    with pytest.raises(cfn.exceptions.ChangeSetNotFoundException):
        cfn.describe_change_set(ChangeSetName="none", StackName="net")
    assert refused(cfn.update_stack, StackName="net", TemplateBody=BODY)[:2] == (
        "ValidationError",
        "No updates are to be performed.",
    )


def test_each_action_has_its_words_for_a_stack_that_is_not_there(cfn: Any) -> None:
    for call, arguments, words in (
        (cfn.describe_stacks, {}, "Stack with id none does not exist"),
        (cfn.get_template, {}, "Stack with id none does not exist"),
        (cfn.list_stack_resources, {}, "Stack with id none does not exist"),
        (cfn.describe_stack_events, {}, "Stack [none] does not exist"),
        (cfn.describe_stack_resource, {"LogicalResourceId": "Vpc"}, "Stack 'none' does not exist"),
    ):
        assert refused(call, StackName="none", **arguments) == ("ValidationError", words, 400)
    assert refused(cfn.create_stack, StackName="none")[1] == "Either Template URL or Template Body must be specified."
    assert "at 'stackName' failed to satisfy constraint" in refused(cfn.describe_stacks, StackName="no_such")[1]


def test_a_token_makes_a_repeated_call_one_call(cfn: Any, cloud: CloudFormation) -> None:
    first = cfn.create_stack(StackName="net", TemplateBody=BODY, ClientRequestToken="t1")
    assert cfn.create_stack(StackName="net", TemplateBody=BODY, ClientRequestToken="t1")["StackId"] == first["StackId"]
    assert refused(cfn.delete_stack, StackName="net", ClientRequestToken="t1")[0] == "TokenAlreadyExistsException"
    assert len(cloud.stacks()) == 1


def test_termination_protection_and_stack_policy(cfn: Any, cloud: CloudFormation) -> None:
    identity = created(cfn, cloud, EnableTerminationProtection=True)
    assert refused(cfn.delete_stack, StackName="net")[0] == "ValidationError"
    answer = cfn.update_termination_protection(StackName="net", EnableTerminationProtection=False)
    assert answer["StackId"] == identity
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["EnableTerminationProtection"] is False
    assert "StackPolicyBody" not in cfn.get_stack_policy(StackName="net")
    policy = {"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}
    cfn.set_stack_policy(StackName="net", StackPolicyBody=json.dumps(policy))
    assert json.loads(cfn.get_stack_policy(StackName="net")["StackPolicyBody"]) == policy


def test_update_cancel_and_rollback_reach_the_engine(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    more = {**NETWORK, "Resources": {**NETWORK["Resources"], "Second": {"Type": "AWS::EC2::InternetGateway"}}}
    cfn.update_stack(StackName="net", TemplateBody=json.dumps(more))
    cloud.wait(cloud.stack("net"))
    [stack] = cfn.describe_stacks(StackName="net")["Stacks"]
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    assert stack["LastUpdatedTime"] == cloud.stack("net").updated
    assert [last_operation["OperationType"] for last_operation in stack["LastOperations"]] == [
        "UPDATE_STACK",
        "CREATE_STACK",
    ]
    assert refused(cfn.cancel_update_stack, StackName="net")[0] == "ValidationError"
    assert refused(cfn.rollback_stack, StackName="net")[0] == "ValidationError"
    assert refused(cfn.continue_update_rollback, StackName="net")[0] == "ValidationError"
    cloud.fail("Third", "not today")
    third = {**more, "Resources": {**more["Resources"], "Third": {"Type": "AWS::EC2::InternetGateway"}}}
    cfn.update_stack(StackName="net", TemplateBody=json.dumps(third), DisableRollback=True)
    cloud.wait(cloud.stack("net"))
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["StackStatus"] == "UPDATE_FAILED"
    cfn.rollback_stack(StackName="net")
    cloud.wait(cloud.stack("net"))
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


def test_drift_is_found_and_shown(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    detection = cfn.detect_stack_drift(StackName="net")["StackDriftDetectionId"]
    status = cfn.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
    assert status["DetectionStatus"] == "DETECTION_COMPLETE"
    assert status["StackDriftStatus"] == "IN_SYNC"
    drifts = cfn.describe_stack_resource_drifts(StackName="net")["StackResourceDrifts"]
    assert "Vpc" in {drift["LogicalResourceId"] for drift in drifts}


def test_exports_and_imports(cfn: Any, cloud: CloudFormation) -> None:
    exporting = {**NETWORK, "Outputs": {"VpcId": {"Value": {"Ref": "Vpc"}, "Export": {"Name": "the-vpc"}}}}
    identity = created(cfn, cloud, TemplateBody=json.dumps(exporting))
    [export] = cfn.list_exports()["Exports"]
    assert (export["Name"], export["ExportingStackId"]) == ("the-vpc", identity)
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["Outputs"][0]["ExportName"] == "the-vpc"
    assert refused(cfn.list_imports, ExportName="the-vpc") == (
        "ValidationError",
        "Export 'the-vpc' is not imported by any stack.",
        400,
    )


def test_another_region_has_no_stacks(cfn: Any, cloud: CloudFormation) -> None:
    created(cfn, cloud)
    elsewhere = session().client("cloudformation", region_name="eu-west-1")
    assert elsewhere.describe_stacks()["Stacks"] == []


def test_what_is_not_part_of_the_double_ends_the_test(cfn: Any) -> None:
    with pytest.raises(NotImplementedError, match="DescribeAccountLimits"):
        cfn.describe_account_limits()
