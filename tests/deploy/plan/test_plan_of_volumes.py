"""Data volumes that are larger than their stack believes, and failures that are tried again: what is read and sent."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import NOW, STACK_ID, Recorded, RefusedError

from cfngen.deploy.aws import volumes
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.stacks import StackTree, require_stack
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.operations.deployment import execution
from cfngen.deploy.plan import change_sets
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight import masters as preflight_masters

NESTED, VOLUME = "AWS::CloudFormation::Stack", "AWS::EC2::Volume"
MASTERS = STACK_ID.replace("stack/kubernetes/", "stack/kubernetes-MasterStack-1/")


def resource(logical_id: str, type_: str, physical_id: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    return {
        "LogicalResourceId": logical_id,
        "ResourceType": type_,
        "PhysicalResourceId": physical_id,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": NOW,
    }


class Account:
    """An account with a master's stack, whose volumes have sizes of their own.

    Attributes:
        sizes: GiB of each volume that EC2 knows.
        asked: the ids that EC2 was asked for.
        refusal: code of the error with which EC2 refuses to tell; none if empty.
    """

    def __init__(self, believed: str = "20", **sizes: int) -> None:
        self.api = Recorded()
        assert self.api.stack
        self.api.stack["Parameters"] = [{"ParameterKey": "MasterVolumeSize", "ParameterValue": believed}]
        self.sizes = sizes
        self.asked: list[str] = []
        self.refusal = ""
        self.resources = {
            STACK_ID: [resource("MasterStack", NESTED, MASTERS)],
            MASTERS: [
                *(resource(f"Master{name}", VOLUME, name) for name in sizes),
                resource("MasterGoneVolume", VOLUME, "gone", "DELETE_COMPLETE"),
                resource("MasterRole", "AWS::IAM::Role", "role"),
            ],
        }
        self.api.answers["ListStackResources"] = lambda sent: {
            "StackResourceSummaries": self.resources.get(sent["StackName"], [])
        }
        ec2 = self.api.account.session.client("ec2", region_name="us-west-2")
        ec2.meta.events.register("before-call.ec2.DescribeVolumes", self._volumes)
        self.api.account._clients["ec2"] = ec2

    def _volumes(self, params: dict[str, Any], **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse

        body = params["body"]
        assert body["Filter.1.Name"] == "volume-id"
        self.asked = [value for name, value in body.items() if name.startswith("Filter.1.Value")]
        if self.refusal:
            error = {"Error": {"Code": self.refusal, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
            return AWSResponse("https://recorded", 403, {}, None), error
        there = [{"VolumeId": name, "Size": size} for name, size in self.sizes.items() if name in self.asked]
        answer = {"Volumes": there, "ResponseMetadata": {"HTTPStatusCode": 200}}
        return AWSResponse("https://recorded", 200, {}, None), answer

    def truth(self, wanted: str = "20") -> preflight_masters.VolumeFindings:
        stack = require_stack(self.api.account, "kubernetes")
        deployed = StackTree(self.api.account, stack)
        return preflight_masters.check_volume_sizes(deployed, {"MasterVolumeSize": wanted} if wanted else {})


def test_sizes_are_those_of_the_volumes_that_are_there() -> None:
    account = Account(a=20, b=40)
    deployed = StackTree(account.api.account, require_stack(account.api.account, "kubernetes"))
    assert volumes.read_volume_sizes(deployed) == {"a": 20, "b": 40}
    assert account.asked == ["a", "b"]


def test_without_volumes_ec2_is_not_asked() -> None:
    account = Account()
    assert account.truth() == preflight_masters.VolumeFindings()
    assert account.asked == []


@pytest.mark.parametrize(
    ("believed", "wanted", "size"),
    [
        ("20", "20", 20),
        ("20", "20", 19),
        ("20", "40", 20),
        ("", "20", 40),
        ("x", "20", 40),
        ("20", "", 40),
        ("20", "x", 40),
    ],
)
def test_nothing_is_said_where_the_stack_is_right_or_sizes_are_not_known(believed: str, wanted: str, size: int) -> None:
    assert Account(believed, a=size).truth(wanted) == preflight_masters.VolumeFindings()


LARGER = "a has 40 GiB and b has 30 GiB already, though the stack records 20: a rollback could not shrink it"


def test_a_volume_that_is_larger_than_the_stack_says_is_told() -> None:
    told = Account(b=30, a=40, c=20).truth("20")
    [notice] = told.notices
    assert (notice.text, told.impacts) == (LARGER, ())
    assert notice.hint.startswith("set controlPlane.volume.size to 40, so that the stack records the actual size")


@pytest.mark.parametrize("wanted", ["21", "39", "10"])
def test_less_than_a_volume_has_is_refused(wanted: str) -> None:
    told = Account(b=30, a=40).truth(wanted)
    words = f"{LARGER}. EBS cannot shrink volumes: controlPlane.volume.size must be at least 40, not {wanted}"
    assert told == preflight_masters.VolumeFindings(impacts=(Impact(words, Danger.DISRUPTIVE, fails=True),))


@pytest.mark.parametrize("wanted", ["40", "41"])
def test_as_much_as_a_volume_has_brings_the_stack_in_line(wanted: str) -> None:
    told = Account(b=30, a=40).truth(wanted)
    [meaning] = told.impacts
    assert meaning == Impact(f"{LARGER}; the update records the actual size in the stack, or grows the volume further")
    assert told.notices == ()


def test_who_may_not_ask_is_told_that_it_is_not_known() -> None:
    account = Account(a=40)
    account.refusal = "UnauthorizedOperation"
    [notice] = account.truth().notices
    assert notice.text.endswith("ec2:DescribeVolumes is denied")
    account.refusal = "InternalError"
    with pytest.raises(AwsError):
        account.truth()


@pytest.mark.parametrize(
    ("root", "masters", "names"),
    [
        ("CREATE_FAILED", "UPDATE_FAILED", ("MasterStack/MasterRole",)),
        ("UPDATE_FAILED", "CREATE_COMPLETE", ("MasterStack",)),
        ("CREATE_COMPLETE", "CREATE_COMPLETE", ("kubernetes",)),
        ("CREATE_COMPLETE", "DELETE_FAILED", ("MasterStack/MasterRole",)),
    ],
)
def test_what_failed_is_named_where_it_lies_deepest(root: str, masters: str, names: tuple[str, ...]) -> None:
    account = Account()
    account.resources = {
        STACK_ID: [resource("MasterStack", NESTED, MASTERS, root)],
        MASTERS: [resource("MasterRole", "AWS::IAM::Role", "role", masters), resource("X", VOLUME, "x")],
    }
    assert change_sets.find_failed(account.api.account, STACK_ID) == names


@pytest.mark.parametrize("parameters", [["Image", "Size"], []])
def test_what_failed_is_tried_again_with_what_the_stack_has_and_rollback_off(parameters: list[str]) -> None:
    api = Recorded()
    assert api.stack
    api.stack |= {"Capabilities": ["CAPABILITY_IAM"]} if parameters else {}
    api.stack["Parameters"] = [{"ParameterKey": name, "ParameterValue": "x"} for name in parameters]
    api.answers["UpdateStack"] = lambda _: {"StackId": STACK_ID}
    plan = Plan("kubernetes", STACK_ID, "update", retries=("MasterStack/MasterRole",))
    execution.retry(api.account, plan)
    assert plan.is_executed
    assert [each["StackName"] for each in api.named("DescribeStacks")] == [STACK_ID]
    [sent] = api.named("UpdateStack")
    token = sent.pop("ClientRequestToken")
    assert token.startswith("cfngen-retry-")
    expected = {
        "Action": "UpdateStack",
        "Version": "2010-05-15",
        "StackName": STACK_ID,
        "UsePreviousTemplate": "true",
        "DisableRollback": "true",
    }
    for place, name in enumerate(parameters, 1):
        expected |= {f"Parameters.member.{place}.ParameterKey": name}
        expected |= {f"Parameters.member.{place}.UsePreviousValue": "true"}
    expected |= {"Capabilities.member.1": "CAPABILITY_IAM"} if parameters else {"Capabilities": "", "Parameters": ""}
    assert sent == expected


def test_a_retry_that_is_refused_is_an_error_of_aws() -> None:
    api = Recorded()

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("ValidationError", "no")

    api.answers["UpdateStack"] = refused
    with pytest.raises(AwsError):
        execution.retry(api.account, Plan("kubernetes", STACK_ID, "update", retries=("x",)))
