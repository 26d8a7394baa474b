"""A client of AWS that exists only in memory: functions of a test answer, botocore's models judge call and answer.

A call that boto3 would refuse fails here too: an operation that does not exist, an argument that is misspelt, missing
or of another type, a word that is none of an enumeration. What a test answers is held against the same models: members
that the operation never returns, error codes that the service does not have. A call that no test has scripted fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator

Answer = Callable[..., Any]
# Error codes that every operation of a service may answer with, whether its model lists them or not.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
# https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html
# https://docs.aws.amazon.com/AutoScaling/ec2/APIReference/CommonErrors.html
# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
# https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html
COMMON_ERRORS = {
    "ec2": {"UnauthorizedOperation", "RequestLimitExceeded", "InternalError", "Unavailable", "AuthFailure"},
    "cloudformation": {"AccessDenied", "Throttling", "ValidationError", "InternalFailure", "ServiceUnavailable"},
    "autoscaling": {"AccessDenied", "Throttling", "ValidationError", "InternalFailure", "ServiceUnavailable"},
    "s3": {
        "AccessDenied", "NoSuchBucket", "SlowDown", "InternalError", "ServiceUnavailable", "InvalidAccessKeyId",
        "PreconditionFailed", "ConditionalRequestConflict",
    },
    "secretsmanager": {"AccessDeniedException", "ThrottlingException", "InternalFailure", "ServiceUnavailable"},
}  # fmt: skip
# Calls and answers that were found to be right.
RIGHT: set[str] = set()


class Events:
    """The handlers of a client's events, which may add headers to a request."""

    def __init__(self) -> None:
        self.handlers: list[Callable[..., None]] = []

    def register(self, event: str, handler: Callable[..., None]) -> None:
        assert event == "before-call", "headers that are added later are not signed"
        self.handlers.append(handler)

    def unregister(self, event: str, handler: Callable[..., None]) -> None:
        self.handlers.remove(handler)

    def parameters(self, model: OperationModel) -> dict[str, str]:
        """Return the headers that handlers add to a request, by the names of the parameters that are sent in them."""
        headers: dict[str, str] = {}
        for handler in self.handlers:
            handler(params={"headers": headers}, model=model)
        members = model.input_shape.members if model.input_shape else {}
        names = {shape.serialization.get("name"): name for name, shape in members.items()}
        return {names[header]: value for header, value in headers.items()}


class Client:
    """A client of one service.

    Attributes:
        service: boto3's name of the service.
        answers: functions of operations, by `service.operation`; they return the answer, or `refusal`'s.
        before: called with the operation and its arguments before it is answered.
        meta: the client's events, as boto3's clients have them.
    """

    def __init__(
        self, service: str, answers: Mapping[str, Answer], before: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.service = service
        self.answers = answers
        self.before = before
        self.meta = SimpleNamespace(events=Events())

    def __getattr__(self, method: str) -> Answer:
        """Return the method of an operation, as boto3's clients have it."""
        model = operation(self.service, method)
        name = f"{self.service}.{method}"

        def call(**arguments: Any) -> dict[str, Any]:
            # A header counts as the parameter that newer versions of boto3 have for it.
            arguments |= self.meta.events.parameters(model)
            # boto3 checks arguments before anything is sent.
            check(f"the arguments of {name}", arguments, model.input_shape)
            self.before(name, arguments)
            if name not in self.answers:
                pytest.fail(f"nobody answers {name}({arguments})")
            answer: dict[str, Any] = self.answers[name](**arguments)
            if "Error" in answer:
                check_error(self.service, model, answer["Error"]["Code"])
                raise ClientError(answer, model.name)
            check(f"the answer of {name}", answer, model.output_shape)
            return answer

        return call


@functools.cache
def service_model(service: str) -> ServiceModel:
    """Return botocore's model of a service."""
    description = botocore.session.get_session().get_component("data_loader").load_service_model(service, "service-2")
    return ServiceModel(description, service)


@functools.cache
def operation(service: str, method: str) -> OperationModel:
    """Return the model of an operation by the name of boto3's method; a test that asks for another one fails."""
    names = [name for name in service_model(service).operation_names if xform_name(name) == method]
    if not names:
        pytest.fail(f"{service} has no operation {method}")
    return service_model(service).operation_model(names[0])


def check(what: str, value: Mapping[str, Any], shape: Shape | None) -> None:
    """Fail the test whose call or answer does not have the shape that botocore's model gives it."""
    if shape is None:
        assert not value, f"{what}: there are none, but here are {value}"
        return
    # Thousands of boots of some tests make the same calls.
    if (key := f"{what} {value}") in RIGHT:
        return
    report = ParamValidator().validate(value, shape)
    problems = [report.generate_report()] if report.has_errors() else list(other_words(value, shape))
    if problems:
        pytest.fail(f"{what}: " + "; ".join(problems))
    RIGHT.add(key)


def other_words(value: Any, shape: Shape) -> Iterator[str]:
    """Tell the texts in a value that are none of their enumerations, which boto3 leaves to the service."""
    if shape.type_name == "structure":
        for name, member in value.items():
            yield from other_words(member, shape.members[name])
    elif shape.type_name == "list":
        for member in value:
            yield from other_words(member, shape.member)
    elif shape.type_name == "map":
        for member in value.values():
            yield from other_words(member, shape.value)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{value!r} is none of {shape.name}'s {', '.join(shape.enum)}"


def check_error(service: str, model: OperationModel, code: str) -> None:
    """Fail the test that lets an operation answer with an error which its service does not have."""
    if model.http["method"] == "HEAD":
        # The answer to HEAD has no body, so botocore makes the code of the status.
        known = {"400", "403", "404", "412", "500", "503"}
    else:
        known = COMMON_ERRORS[service] | {shape.error_code for shape in model.error_shapes}
        if service == "ec2":
            # EC2's model lists no errors; those of a kind of resource begin with its name.
            known |= (
                {code} if code.startswith(("Invalid", "VolumeInUse", "IncorrectState", "AttachmentLimit")) else set()
            )
    if code not in known:
        pytest.fail(f"{model.name} never answers with {code}; it has {', '.join(sorted(known))}")
