"""A sandbox is its starter's only: whatever has not its token gets no answer, and does nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cfngen.sandbox.api import serving
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.process.control_api import (
    CONTROL_PATH,
    HOST,
    STATUS_PATH,
    SandboxGoneError,
    SandboxState,
    request_report,
)
from cfngen.sandbox.process.server import Sandbox
from cfngen.sandbox.process.session import SandboxSession

REGION = "us-west-2"
ANYBODY = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
TRUST = {"Version": "2012-10-17", "Statement": [ANYBODY]}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with open_emulated_account(REGION) as account, serving({REGION: account.cloud}) as api:
        served = Sandbox({REGION: account}, api.gate.wsgi(DomainDispatcherApplication(create_backend_app)), 1.0)
        served.start()
        yield served
        served.close()


def state(sandbox: Sandbox, token: str) -> SandboxState:
    return SandboxState(sandbox.endpoint, 1, token, 1.0)


def test_it_listens_on_this_machine_alone(sandbox: Sandbox) -> None:
    assert HOST == "127.0.0.1"
    assert sandbox.endpoint.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("path", [CONTROL_PATH, STATUS_PATH])
@pytest.mark.parametrize("token", ["", "of another"])
def test_nobody_else_reads_or_commands_it(sandbox: Sandbox, path: str, token: str) -> None:
    fault = {"region": REGION, "resource": "nodes", "step": "downloads", "message": "no"}
    for command in ({}, fault):
        with pytest.raises(SandboxGoneError):
            request_report(state(sandbox, token), path=path, **command)
    assert sandbox.status()["faults"] == []
    assert request_report(state(sandbox, sandbox.token), path=path)["token"] == sandbox.token


def answered(sandbox: Sandbox, path: str, **headers: str) -> tuple[str, bytes]:
    """What the sandbox answers to a request of a program of its own."""
    seen: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "wsgi.input": io.BytesIO(), "HTTP_HOST": HOST, **headers}
    environ |= {"wsgi.url_scheme": "http", "SERVER_NAME": HOST, "SERVER_PORT": "1"}
    body = b"".join(sandbox.answer(environ, lambda status, _: seen.append(status)))
    return seen[0], body


@pytest.mark.parametrize("path", [CONTROL_PATH, STATUS_PATH, "/", "/moto-api/data.json", "/bucket/key"])
def test_a_refusal_tells_nothing(sandbox: Sandbox, path: str) -> None:
    status, body = answered(sandbox, path)
    assert status == "403 Forbidden"
    assert sandbox.token.encode() not in body
    assert json.loads(body) == {} if path.startswith(CONTROL_PATH) else b"InvalidClientTokenId" in body


@pytest.mark.parametrize("service", ["s3", "sts", "secretsmanager", "cloudformation", "ec2", "route53"])
def test_services_answer_to_the_token_only(sandbox: Sandbox, service: str) -> None:
    operations = {
        "s3": "list_buckets", "sts": "get_caller_identity", "secretsmanager": "list_secrets",
        "cloudformation": "list_stacks", "ec2": "describe_vpcs", "route53": "list_hosted_zones",
    }  # fmt: skip
    for token in (None, "of another"):
        session = SandboxSession(sandbox.endpoint, token or "", REGION)
        with pytest.raises(ClientError) as refused:
            getattr(session.client(service), operations[service])()
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    own = SandboxSession(sandbox.endpoint, sandbox.token, REGION).client(service)
    assert getattr(own, operations[service])()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_role_that_its_starter_assumed_may_call(sandbox: Sandbox) -> None:
    own = SandboxSession(sandbox.endpoint, sandbox.token, REGION)
    role = own.client("iam").create_role(RoleName="tried", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    given = own.client("sts").assume_role(RoleArn=role, RoleSessionName="trial")["Credentials"]
    session = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], REGION)
    caller = session.client("sts", endpoint_url=sandbox.endpoint).get_caller_identity()["Arn"]
    assert caller.endswith("assumed-role/tried/trial")
