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
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cfngen.sandbox.api import Served, serving
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
        application = served.wsgi(DomainDispatcherApplication(create_backend_app))
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
    assert resource["PhysicalResourceId"] in {each["InternetGatewayId"] for each in gateways}
    assert code(cfn.describe_stacks, StackName="none") == "ValidationError"

    s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="mine", Key="a/b.json", Body=b"{}")
    assert api.faults.called("s3:PutObject", Bucket="mine", Key="a/b.json")
    assert s3.get_object(Bucket="mine", Key="a/b.json")["Body"].read() == b"{}"
    api.gaps.foreign.add("taken")
    assert code(s3.head_bucket, Bucket="taken") == "403"

    api.faults.throttle("DescribeStacks", times=1)
    assert code(cfn.describe_stacks) == "Throttling"
    api.faults.disconnect("DescribeStacks")
    with pytest.raises(ConnectionClosedError):
        cfn.describe_stacks()
    with api.permissions.enforcing(NOTHING) as credentials:
        assert code(client("ec2", url, credentials.access_key).describe_vpcs) == "UnauthorizedOperation"
    assert cfn.describe_stacks()["Stacks"]
