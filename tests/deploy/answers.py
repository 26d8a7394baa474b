"""AWS's answers, written down by a test, for any service; questions and answers are checked against botocore's models.

For what a module asks of several services and does with the answers, where an emulator would have to be brought into
that state first. What has no answer is refused for lack of a permission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.validate import validate_parameters
from recorded import RefusedError, TestClock

from cfngen.deploy.aws.account import Account

Answer = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]] | RefusedError
DENIED = RefusedError("AccessDenied", "no", 403)

# Making a client takes longer than all that a test does with it.
_CLIENTS: dict[tuple[str, str], Any] = {}
_ANSWERING: dict[tuple[str, str], Answers] = {}


class Answers:
    """An account whose services answer what a test says.

    Attributes:
        given: the answer of each call, e.g. of `ec2:DescribeVpcs`.
        calls: what was sent, in order: the call and its arguments.
        account: the account.
    """

    def __init__(self, given: Mapping[str, Answer], *, region: str = "us-west-2", number: str = "123456789012") -> None:
        self.given = dict(given)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.clock = TestClock()
        self.account = Account(
            number, region, "aws", f"arn:aws:iam::{number}:user/operator", None, self.clock, _clients=_Clients(self)
        )

    def named(self, call: str) -> list[dict[str, Any]]:
        """Arguments of each call of an operation."""
        return [arguments for name, arguments in self.calls if name == call]

    @property
    def writes(self) -> list[str]:
        """Calls that change something."""
        reads = ("Get", "Head", "List", "Describe")
        return [name for name, _ in self.calls if not name.partition(":")[2].startswith(reads)]

    def answer(self, model: Any, arguments: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
        name = f"{model.service_model.service_name}:{model.name}"
        self.calls.append((name, arguments))
        answer: Any = self.given.get(name, DENIED)
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
        if model.output_shape is not None:
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
            _CLIENTS[key] = boto3.Session("AKIDEXAMPLE", "secret", region_name=key[1]).client(service)
            _CLIENTS[key].meta.events.register("before-parameter-build", _note)
            _CLIENTS[key].meta.events.register("before-call", lambda **sent: _answered(key, **sent))
        _ANSWERING[key] = self._answers
        return _CLIENTS[key]


def _note(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["arguments"] = dict(params)


def _answered(key: tuple[str, str], model: Any, context: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
    return _ANSWERING[key].answer(model, context["arguments"])
