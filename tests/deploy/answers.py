"""AWS's answers, written down by a test, for any service; questions and answers are checked against botocore's models.

For what a module asks of several services and does with the answers, where an emulator would have to be brought into
that state first or never answers so: attributes that are missing, refusals in the middle, a list of everything a kind
can be. What has no answer is refused for lack of a permission, or is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.validate import validate_parameters
from recorded import RefusedError, TestClock

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import check_answers

Answer = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any] | RefusedError] | RefusedError
REGION = "us-west-2"
DENIED = RefusedError("AccessDenied", "no", 403)

# Making a client takes longer than all that a test does with it.
_CLIENTS: dict[tuple[str, str], Any] = {}
_ANSWERING: dict[tuple[str, str], Answers] = {}


class Answers:
    """An account whose services answer what a test says.

    Attributes:
        given: the answer of each call, e.g. of `ec2:DescribeVpcs`; a function is called with the arguments.
        otherwise: the answer of every other call; None is an empty one.
        calls: what was sent, in order: the call and its arguments.
        account: the account.
    """

    def __init__(
        self,
        given: Mapping[str, Answer],
        *,
        region: str = REGION,
        number: str = "123456789012",
        otherwise: Answer | None = DENIED,
    ) -> None:
        self.given = dict(given)
        self.otherwise = otherwise
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.clock = TestClock()
        self.account = Account(
            number, region, "aws", f"arn:aws:iam::{number}:user/operator", None, self.clock, _clients=_Clients(self)
        )

    def named(self, call: str) -> list[dict[str, Any]]:
        """Arguments of each call of an operation."""
        return [arguments for name, arguments in self.calls if name == call]

    def written(self) -> list[tuple[str, dict[str, Any]]]:
        """Calls that change something, with their arguments."""
        reads = ("Get", "Head", "List", "Describe")
        return [(name, sent) for name, sent in self.calls if not name.partition(":")[2].startswith(reads)]

    @property
    def writes(self) -> list[str]:
        """Calls that change something."""
        return [name for name, _ in self.written()]

    def answer(self, model: Any, arguments: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
        name = f"{model.service_model.service_name}:{model.name}"
        self.calls.append((name, arguments))
        answer: Any = self.given.get(name, self.otherwise)
        response = AWSResponse("https://recorded", 200, {}, None)
        try:
            if callable(answer):
                answer = answer(arguments)
            if isinstance(answer, RefusedError):
                raise answer
        except RefusedError as refusal:
            response.status_code = refusal.status
            error = {"Code": refusal.code, "Message": refusal.message}
            return response, {"Error": error, "ResponseMetadata": {"HTTPStatusCode": refusal.status}}
        if answer is None:
            members = model.output_shape.members if model.output_shape else {}
            answer = {key: [] for key, member in members.items() if member.type_name == "list"}
        elif model.output_shape is not None:
            validate_parameters({k: v for k, v in answer.items() if k != "Body"}, model.output_shape)
        return response, {**answer, "ResponseMetadata": {"HTTPStatusCode": 200}}


class _Clients(dict[str, Any]):
    """The clients of an account, which all tests share and which answer for one account at a time."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    def __contains__(self, service: object) -> bool:
        return True

    def __getitem__(self, service: str) -> Any:
        key = service, self._answers.account.region
        if key not in _CLIENTS:
            _CLIENTS[key] = check_answers(
                boto3.Session("AKIDEXAMPLE", "secret", region_name=key[1]).client(service)  # type: ignore[call-overload]
            )
            _CLIENTS[key].meta.events.register_first("before-parameter-build", _note)
            _CLIENTS[key].meta.events.register("before-call", lambda **sent: _answered(key, **sent))
        _ANSWERING[key] = self._answers
        return _CLIENTS[key]


def _note(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    # A body has been made a file by then.
    context["arguments"] = {
        key: value.getvalue() if isinstance(value, BytesIO) else value for key, value in params.items()
    }


def _answered(key: tuple[str, str], model: Any, context: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
    return _ANSWERING[key].answer(model, context["arguments"])


def filtered(arguments: dict[str, Any], name: str) -> list[str]:
    """The values that a call of EC2 asks for by a filter; the test fails where it does not."""
    filters = {each["Name"]: each["Values"] for each in arguments.get("Filters", arguments.get("Filter", ()))}
    if name not in filters:
        pytest.fail(f"not filtered by {name}: {filters}")
    values: list[str] = filters[name]
    return values


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
