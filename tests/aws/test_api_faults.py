"""What goes wrong between a client and AWS, as boto3 tells it."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError
from fault_injection import Faults
from served_api import Served, serving

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START

BODY = json.dumps({"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}})
ONCE = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def served(cloud: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The API; botocore waits by the simulated clock."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=cloud.advance))
    with serving(cloud) as served:
        yield served


@pytest.fixture
def faults(served: Served) -> Faults:
    return served.faults


@functools.cache
def session() -> boto3.Session:
    """One for all tests, as it keeps the models of the services."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")


def client(service: str, config: Config | None = ONCE) -> Any:
    return session().client(service, config=config)


def error(call: Any, **parameters: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


CALLS = {
    "cloudformation": lambda: client("cloudformation").describe_stacks,
    "ec2": lambda: client("ec2").describe_vpcs,
    "s3": lambda: client("s3").list_buckets,
    "secretsmanager": lambda: client("secretsmanager").list_secrets,
    "iam": lambda: client("iam").list_users,
    "sts": lambda: client("sts").get_caller_identity,
    "servicequotas": lambda: lambda: client("service-quotas").list_service_quotas(ServiceCode="ec2"),
}


@pytest.mark.parametrize(
    ("service", "throttled", "expired", "invalid"),
    [
        ("cloudformation", ("Throttling", 400), ("ExpiredToken", 403), ("InvalidClientTokenId", 403)),
        ("ec2", ("RequestLimitExceeded", 503), ("RequestExpired", 400), ("AuthFailure", 401)),
        ("s3", ("SlowDown", 503), ("ExpiredToken", 400), ("InvalidAccessKeyId", 403)),
        (
            "secretsmanager",
            ("ThrottlingException", 400),
            ("ExpiredTokenException", 400),
            ("UnrecognizedClientException", 400),
        ),
        ("iam", ("Throttling", 400), ("ExpiredToken", 403), ("InvalidClientTokenId", 403)),
        ("sts", ("Throttling", 400), ("ExpiredToken", 403), ("InvalidClientTokenId", 403)),
    ],
)
def test_each_service_says_no_in_its_own_words(
    faults: Faults, service: str, throttled: tuple[str, int], expired: tuple[str, int], invalid: tuple[str, int]
) -> None:
    call = CALLS[service]()
    faults.throttle(times=1)
    assert error(call) == throttled
    faults.expire_credentials()
    assert error(call) == expired
    faults.renew_credentials()
    faults.invalidate_credentials()
    assert error(call) == invalid
    faults.renew_credentials()
    assert call()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_throttling_of_the_next_calls_of_an_operation(faults: Faults) -> None:
    cfn = client("cloudformation")
    faults.throttle("DescribeStacks", times=2)
    cfn.list_stacks()
    assert [error(cfn.describe_stacks)[0] for _ in range(2)] == ["Throttling"] * 2
    assert cfn.describe_stacks()["Stacks"] == []
    assert [each.refusal for each in faults.called("DescribeStacks")] == ["Throttling", "Throttling", ""]


def test_throttling_of_every_third_call(faults: Faults) -> None:
    cfn = client("cloudformation")
    faults.throttle("cloudformation:*", every=3)
    for _ in range(6):
        with contextlib.suppress(ClientError):
            cfn.describe_stacks()
    assert [call.refusal for call in faults.calls] == ["", "", "Throttling"] * 2


def test_throttling_for_a_while_is_outlasted_by_retries(faults: Faults, cloud: CloudFormation) -> None:
    faults.throttle(seconds=5)
    patient = client("cloudformation", Config(retries={"total_max_attempts": 20, "mode": "standard"}))
    assert patient.describe_stacks()["Stacks"] == []
    assert cloud.clock.now >= 5
    assert len(faults.called("DescribeStacks")) > 2


def test_credentials_end_after_some_calls_or_at_a_time(faults: Faults, cloud: CloudFormation) -> None:
    cfn = client("cloudformation")
    faults.expire_credentials(after=2)
    cfn.describe_stacks()
    cfn.list_stacks()
    assert error(cfn.describe_stacks)[0] == "ExpiredToken"
    assert error(client("ec2").describe_vpcs)[0] == "RequestExpired"
    faults.renew_credentials()
    faults.expire_credentials(at=SIMULATION_START + datetime.timedelta(seconds=60))
    cfn.describe_stacks()
    cloud.advance(60)
    assert error(cfn.describe_stacks)[0] == "ExpiredToken"


def test_the_engine_is_never_touched(faults: Faults, cloud: CloudFormation) -> None:
    faults.deny("ec2:*")
    faults.throttle("ec2:*")
    client("cloudformation").create_stack(StackName="net", TemplateBody=BODY)
    assert cloud.wait(cloud.stack("net")).status == "CREATE_COMPLETE"
    assert [call.action for call in faults.calls] == ["cloudformation:CreateStack"]


def test_a_denied_action_is_named_with_user_and_resource(faults: Faults) -> None:
    faults.deny("cloudformation:CreateChangeSet", "s3:PutObject")
    with pytest.raises(ClientError) as caught:
        client("cloudformation").create_change_set(StackName="k8s", ChangeSetName="c", TemplateBody=BODY)
    assert caught.value.response["Error"] == {
        "Type": "Sender",
        "Code": "AccessDenied",
        "Message": "User: arn:aws:iam::123456789012:user/operator is not authorized to perform: "
        "cloudformation:CreateChangeSet on resource: arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/* "
        "because no identity-based policy allows the cloudformation:CreateChangeSet action",
    }
    assert error(client("s3").put_object, Bucket="b", Key="k", Body=b"x") == ("AccessDenied", 403)
    assert client("cloudformation").describe_stacks()["Stacks"] == []
    faults.allow("s3:PutObject")
    assert error(client("s3").put_object, Bucket="b", Key="k", Body=b"x") == ("NoSuchBucket", 404)
    faults.lift()
    assert client("cloudformation").create_change_set(
        StackName="k8s", ChangeSetName="c", TemplateBody=BODY, ChangeSetType="CREATE"
    )


def test_lost_connections_look_as_they_do(faults: Faults, cloud: CloudFormation) -> None:
    cfn = client("cloudformation")
    faults.disconnect("DescribeStacks", kind="refused")
    with pytest.raises(EndpointConnectionError):
        cfn.describe_stacks()
    faults.disconnect("CreateStack")
    with pytest.raises(ConnectionClosedError):
        cfn.create_stack(StackName="net", TemplateBody=BODY)
    assert cloud.stacks() == []
    faults.disconnect("CreateStack", kind="answer")
    with pytest.raises(ConnectionClosedError):
        cfn.create_stack(StackName="net", TemplateBody=BODY)
    assert [stack.name for stack in cloud.stacks()] == ["net"]


def test_a_lost_answer_and_a_token_make_one_stack(faults: Faults, cloud: CloudFormation) -> None:
    patient = client("cloudformation", Config(retries={"total_max_attempts": 3, "mode": "standard"}))
    faults.disconnect("CreateStack", kind="answer")
    patient.create_stack(StackName="net", TemplateBody=BODY, ClientRequestToken="once")
    assert [stack.name for stack in cloud.stacks()] == ["net"]
    assert [each.refusal for each in faults.called("CreateStack", StackName="net")] == ["answer", ""]


def test_a_fault_of_the_service(faults: Faults) -> None:
    faults.fail("DescribeStacks")
    assert error(client("cloudformation").describe_stacks) == ("InternalFailure", 500)
    faults.refuse("DescribeVpcs", "Odd", "never seen")
    assert error(client("ec2").describe_vpcs) == ("Odd", 400)


def test_stale_reads_show_the_past_for_a_while(faults: Faults, cloud: CloudFormation) -> None:
    cfn = client("cloudformation")
    cloud.advance(100)
    cfn.create_stack(StackName="net", TemplateBody=BODY)
    cloud.wait(cloud.stack("net"))
    faults.stale(5, lasting=10)
    assert error(cfn.describe_stacks, StackName="net") == ("ValidationError", 400)
    assert cfn.describe_stacks()["Stacks"] == []
    cloud.advance(5)
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    cfn.delete_stack(StackName="net")
    assert cfn.describe_stacks(StackName="net")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    assert cfn.describe_stack_events(StackName="net")["StackEvents"][0]["ResourceStatus"] == "CREATE_COMPLETE"
    cloud.advance(10)
    assert cfn.describe_stacks()["Stacks"] == []


def test_something_happens_around_the_nth_call(faults: Faults, cloud: CloudFormation) -> None:
    cfn = client("cloudformation")
    order: list[str] = []
    faults.before("DescribeStacks", lambda: order.append("before second"), nth=2)
    faults.after("DescribeStacks", lambda: order.append(f"after first, {len(faults.calls)} calls"))
    cfn.describe_stacks()
    cfn.describe_stacks()
    cfn.describe_stacks()
    assert order == ["after first, 1 calls", "before second"]


def test_control_c_at_a_call_leaves_what_the_call_did(faults: Faults, cloud: CloudFormation) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    faults.after("CreateStack", interrupt)
    with pytest.raises(KeyboardInterrupt):
        client("cloudformation").create_stack(StackName="net", TemplateBody=BODY)
    assert [stack.name for stack in cloud.stacks()] == ["net"]


def test_another_deployer_gets_in_between(faults: Faults, cloud: CloudFormation) -> None:
    cfn = client("cloudformation")
    faults.before("CreateStack", lambda: cfn.create_stack(StackName="net", TemplateBody=BODY))
    assert error(cfn.create_stack, StackName="net", TemplateBody=BODY) == ("AlreadyExistsException", 400)


def test_calls_are_recorded_with_what_was_sent(faults: Faults, cloud: CloudFormation) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="of-a-test", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="of-a-test", Key="a/b.json", Body=b"{}", ContentType="application/json")
    client("secretsmanager").list_secrets(MaxResults=3)
    client("ec2").describe_instances(Filters=[{"Name": "vpc-id", "Values": ["vpc-1"]}])
    put, secrets, instances = faults.calls[1:]
    assert (put.action, put.parameters) == ("s3:PutObject", {"Bucket": "of-a-test", "Key": "a/b.json"})
    assert (secrets.action, secrets.parameters) == ("secretsmanager:ListSecrets", {"MaxResults": 3})
    assert instances.parameters["Filters"] == [{"Name": "vpc-id", "Values": ["vpc-1"]}]
    faults.clear()
    assert faults.calls == []


def test_bodies_arrive_whole_after_retries_too(faults: Faults) -> None:
    s3 = client("s3", Config(retries={"total_max_attempts": 3, "mode": "standard"}))
    s3.create_bucket(Bucket="of-a-test", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    for body in (b"bytes", io.BytesIO(b"stream")):
        faults.throttle("PutObject", times=2)
        s3.put_object(Bucket="of-a-test", Key="k", Body=body, ChecksumAlgorithm="SHA256")
        assert s3.get_object(Bucket="of-a-test", Key="k")["Body"].read() in (b"bytes", b"stream")
    assert s3.get_object(Bucket="of-a-test", Key="k")["Body"].read() == b"stream"
    assert len(faults.called("PutObject")) == 6


def test_everything_is_as_before_afterwards(cloud: CloudFormation) -> None:
    with serving(cloud) as served:
        served.faults.throttle()
    assert client("ec2").describe_vpcs()["Vpcs"]
    assert served.faults.calls == []
