"""An account of moto as deployment sees it, and what of S3's and IAM's rules moto leaves out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket
from recorded import TestClock

from cfngen.deploy.aws.account import Account, connect
from cfngen.sandbox.moto_patches import speedups

NUMBER = "123456789012"  # moto's own account


class Calls:
    """The calls that leave an account's clients, and the way to refuse some of them.

    Attributes:
        names: operations in the order in which they were sent, e.g. `s3:PutObject`.
        arguments: what was sent with each.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.arguments: list[dict[str, Any]] = []
        self._refused: dict[str, tuple[int, str]] = {}

    def writes(self) -> list[str]:
        reads = ("Get", "Head", "List", "Describe")
        return [name for name in self.names if not name.split(":")[1].startswith(reads)]

    def refuse(self, operation: str, status: int = 403, code: str = "AccessDenied") -> None:
        """Have an operation of S3 refused, as by a policy."""
        self._refused[operation] = (status, code)

    def watch(self, session: boto3.Session) -> None:
        events = session.events
        events.register("before-parameter-build", self._sent)
        events.register_first("before-send", self._sending)

    def _sent(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.names.append(f"{model.service_model.service_name}:{model.name}")
        self.arguments.append(params)

    def _sending(self, request: Any, event_name: str, **_: Any) -> AWSResponse | None:
        operation = ":".join(event_name.split(".")[1:])
        if operation not in self._refused:
            return None
        status, code = self._refused[operation]
        body = "" if request.method == "HEAD" else f"<Error><Code>{code}</Code><Message>no</Message></Error>"
        return AWSResponse(request.url, status, {}, _Raw(body.encode()))


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body


def _unconditionally(bucket: Any, action: str, resource: str) -> PermissionResult:
    """What a bucket's policy says of an action; moto takes a refusal under a condition for one without."""
    policy = json.loads(bucket.policy or "{}")
    statements = policy.get("Statement", [])
    statements = [
        each for each in ([statements] if isinstance(statements, dict) else statements) if "Condition" not in each
    ]
    without = json.dumps({**policy, "Statement": statements})
    decided: PermissionResult = IAMPolicy(without).is_action_permitted(action, resource)
    return decided


@contextlib.contextmanager
def in_moto(region: str = "us-west-2") -> Iterator[tuple[Account, Calls]]:
    """An empty account of moto; no call leaves the process."""
    speedups.apply()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        patch.setattr(FakeBucket, "get_permission", _unconditionally)
        with mock_aws():
            session = boto3.Session(aws_access_key_id="testing", aws_secret_access_key="testing")
            account = connect(session, region, clock=TestClock(), attempts=1)
            calls = Calls()
            calls.watch(session)
            yield account, calls
