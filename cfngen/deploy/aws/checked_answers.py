"""Answers of AWS in which a missing member is no fault of cfngen.

The models of the services require few members of their answers, and AWS leaves out what it does not know. A list that
is left out is read as empty. Any other member that is read with `[...]` has to be there: its absence is an error of
AWS that names call and member. Members that may be absent are read with `get`, as ever.
"""

from __future__ import annotations

import json
from typing import Any

from cfngen.deploy.aws.errors import IncompleteAnswerError
from cfngen.deploy.aws.types import Client, JsonObject

_API_CALL = "_make_api_call"  # the one method of a client behind those of all operations, and behind paginators


class CheckedObject(dict[str, Any]):
    """An object in an answer of AWS.

    Attributes:
        shape: its shape in botocore's model of the service.
        operation: the call, e.g. `cloudformation:DescribeStacks`.
    """

    def __init__(self, members: dict[str, Any], shape: Any, operation: str) -> None:
        super().__init__(members)
        self.shape = shape
        self.operation = operation

    def __missing__(self, key: str) -> list[object]:
        # A key that the model does not have is an ordinary KeyError.
        if self.shape.type_name == "structure" and self.shape.members[key].type_name == "list":
            return []
        raise IncompleteAnswerError(self.operation, key)


def read_document(text: str, operation: str, member: str) -> JsonObject:
    """Return the JSON object in a text of an answer, such as a policy.

    Raises:
        IncompleteAnswerError: the text is no JSON object.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise IncompleteAnswerError(operation, f"JSON object as its {member}")
    return document


def check_answers(client: Client) -> Client:
    """Make a boto3 client answer with `CheckedObject`s, and return it."""
    call = getattr(client, _API_CALL)
    service = client.meta.service_model

    def call_and_check(operation_name: str, arguments: dict[str, Any]) -> Any:
        answer = call(operation_name, arguments)
        shape = service.operation_model(operation_name).output_shape
        return _checked(answer, shape, f"{service.service_name}:{operation_name}") if shape else answer

    # boto3 makes a class for each client, so there is none in the source that could be extended.
    setattr(client, _API_CALL, call_and_check)
    return client


def _checked(value: Any, shape: Any, operation: str) -> Any:
    """Return a value of an answer with its objects as `CheckedObject`s."""
    if shape.type_name == "list" and isinstance(value, list):
        return [_checked(item, shape.member, operation) for item in value]
    if not isinstance(value, dict) or shape.type_name not in ("structure", "map"):
        return value
    if shape.type_name == "map":
        items = {key: _checked(item, shape.value, operation) for key, item in value.items()}
    else:
        items = {
            key: _checked(item, shape.members[key], operation) if key in shape.members else item
            for key, item in value.items()
        }
    return CheckedObject(items, shape, operation)
