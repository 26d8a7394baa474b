"""The same API from moto's server, on the loopback interface."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from moto.ec2.models import EC2Backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.secretsmanager.models import SecretsManagerBackend
from served_api import Served, serving
from werkzeug.serving import make_server

from cfngen.sandbox.cloudformation import CloudFormation

BODY = json.dumps({"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}})
ONCE = Config(retries={"total_max_attempts": 1})
NOTHING = {"Version": "2012-10-17", "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}


class QuietHandler(MotoRequestHandler):
    def log(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served(cloud: CloudFormation) -> Iterator[tuple[Served, str]]:
    with serving(cloud) as served:
        application = served.gate.wsgi(DomainDispatcherApplication(create_backend_app))
        server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=QuietHandler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


@functools.cache
def session() -> boto3.Session:
    """One for all tests, as it keeps the models of the services."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")


def client(service: str, url: str, key: str = "AKIAOPERATOROPERATOR") -> Any:
    return session().client(service, endpoint_url=url, config=ONCE, aws_access_key_id=key, aws_secret_access_key="s")


def code(call: Any, **parameters: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    return str(caught.value.response["Error"]["Code"])


def test_stacks_faults_and_policies_in_a_server(served: tuple[Served, str], cloud: CloudFormation) -> None:
    api, url = served
    cfn, s3 = client("cloudformation", url), client("s3", url)
    cfn.create_stack(StackName="net", TemplateBody=BODY)
    with api.service.lock:
        cloud.wait(cloud.stack("net"))
    [stack] = cfn.describe_stacks(StackName="net")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    [resource] = cfn.list_stack_resources(StackName="net")["StackResourceSummaries"]
    gateways = client("ec2", url).describe_internet_gateways()["InternetGateways"]
    assert resource["PhysicalResourceId"] in {gateway["InternetGatewayId"] for gateway in gateways}
    assert code(cfn.describe_stacks, StackName="none") == "ValidationError"

    s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="mine", Key="a/b.json", Body=b"{}")
    assert api.faults.called("s3:PutObject", Bucket="mine", Key="a/b.json")
    assert s3.get_object(Bucket="mine", Key="a/b.json")["Body"].read() == b"{}"
    api.moto_extensions.foreign_buckets.add("taken")
    assert code(s3.head_bucket, Bucket="taken") == "403"

    api.faults.throttle("DescribeStacks", times=1)
    assert code(cfn.describe_stacks) == "Throttling"
    api.faults.disconnect("DescribeStacks")
    with pytest.raises(ConnectionClosedError):
        cfn.describe_stacks()
    with api.permissions.enforcing(NOTHING) as credentials:
        assert code(client("ec2", url, credentials.access_key).describe_vpcs) == "UnauthorizedOperation"
    assert cfn.describe_stacks()["Stacks"]


def test_what_the_sandbox_does_not_do_is_an_error_of_the_service(served: tuple[Served, str]) -> None:
    _, url = served
    unknown = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
    with pytest.raises(ClientError, match=r"the sandbox does not support this: .*AWS::SQS::Queue") as caught:
        client("cloudformation", url).create_stack(StackName="queue", TemplateBody=unknown)
    assert caught.value.response["Error"]["Code"] == "NotModelled"
    assert code(client("cloudformation", url).describe_account_limits) == "NotModelled"
    ec2 = client("ec2", url)
    assert code(ec2.describe_capacity_blocks) == "NotModelled"
    assert code(client("ssm", url).describe_sessions, State="Active") == "NotModelled"


def test_a_fault_of_moto_is_an_error_of_the_service(
    served: tuple[Served, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("device")

    monkeypatch.setattr(EC2Backend, "detach_volume", broken)
    monkeypatch.setattr(SecretsManagerBackend, "list_secrets", broken)
    _, url = served
    with pytest.raises(ClientError, match="internal error of the sandbox in ec2:DetachVolume: KeyError") as caught:
        client("ec2", url).detach_volume(VolumeId="vol-0")
    answer = caught.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("InternalError", 500)
    assert code(client("secretsmanager", url).list_secrets) == "InternalFailure"
    assert "ec2:DetachVolume failed" in caplog.text
