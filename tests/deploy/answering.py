"""An AWS that answers as a test says; arguments and answers are checked against the services' models.

For what an emulator never answers: attributes that are missing, refusals in the middle, a list of everything a kind can
be. What a test does not speak of is empty, and what is written is only noted.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.validate import validate_parameters
from in_moto import NUMBER, StillClock

from cfngen.deploy.aws.account import Account

REGION = "us-west-2"
Answer = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


class RefusedError(Exception):
    """An answer that is an error of the service."""

    def __init__(self, code: str, message: str = "no", status: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


def refusing(code: str, message: str = "no", status: int = 400) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An answer that is always an error of the service."""

    def refuse(arguments: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError(code, message, status)

    return refuse


class Aws:
    """A region of an account.

    Attributes:
        answers: what answers an operation, e.g. `ec2:DescribeVpcs`; a function is called with the arguments.
        calls: each call's operation and arguments, in order.
        clock: the account's clock.
        account: the account.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.clock = StillClock()
        session = boto3.Session("AKIDEXAMPLE", "secret", region_name=REGION)
        session.events.register_first("before-parameter-build", self._sent)
        session.events.register_first("before-call", self._answer)
        caller = f"arn:aws:iam::{NUMBER}:user/alice"
        self.account = Account(NUMBER, REGION, "aws", caller, session, self.clock, attempts=1)

    def again(self) -> None:
        """Forget what was said and called."""
        self.answers.clear()
        self.calls.clear()
        self.clock.__init__()  # type: ignore[misc]

    def sent(self, operation: str) -> list[dict[str, Any]]:
        """The arguments of every call of an operation."""
        return [arguments for name, arguments in self.calls if name == operation]

    def writes(self) -> list[tuple[str, dict[str, Any]]]:
        reads = ("Get", "Head", "List", "Describe")
        return [(name, sent) for name, sent in self.calls if not name.split(":")[1].startswith(reads)]

    def _sent(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        # A body has been made a file by then.
        sent = {key: value.getvalue() if isinstance(value, BytesIO) else value for key, value in params.items()}
        self.calls.append((f"{model.service_model.service_name}:{model.name}", sent))

    def _answer(self, model: Any, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        name, arguments = self.calls[-1]
        answer = self.answers.get(name)
        try:
            parsed = answer(arguments) if callable(answer) else answer
        except RefusedError as error:
            told = {"Error": {"Code": error.code, "Message": error.message}, "ResponseMetadata": {}}
            return AWSResponse("https://aws", error.status, {}, None), told
        shape = model.output_shape
        if parsed is None:
            parsed = {key: [] for key, member in shape.members.items() if member.type_name == "list"} if shape else {}
        elif shape:
            validate_parameters({key: value for key, value in parsed.items() if not hasattr(value, "read")}, shape)
        return AWSResponse("https://aws", 200, {}, None), {**parsed, "ResponseMetadata": {}}


def filtered(arguments: dict[str, Any], name: str) -> list[str]:
    """The values that a call of EC2 asks for by a filter; the test fails where it does not."""
    filters = {each["Name"]: each["Values"] for each in arguments.get("Filters", arguments.get("Filter", ()))}
    if name not in filters:
        pytest.fail(f"not filtered by {name}: {filters}")
    values: list[str] = filters[name]
    return values


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
