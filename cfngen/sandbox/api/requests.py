"""A client's request as a call, and the errors that answer a refused one."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from botocore.exceptions import BotoCoreError
from moto.core.model import OperationModel
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from cfngen.sandbox.cloudformation.handlers.handler import EMULATOR_ACCESS_KEY
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.services.rules import parse_parameters
from cfngen.sandbox.untyped import JsonDict, JsonObject

# The credential in a signature, KEY/DATE/REGION/SERVICE/: access key, region and service.
CREDENTIAL_PATTERN = re.compile(r"Credential=([^/,]*)/[^/]*/([^/]*)/([^/]*)/")
# botocore's names of services, where the name in the signature is another one.
MODEL_NAMES = {"servicequotas": "service-quotas", "elasticloadbalancing": "elbv2", "monitoring": "cloudwatch"}


@dataclass(frozen=True)
class Call:
    """One call of an AWS API by a client; a retry is another call.

    Attributes:
        service: service in the signature, e.g. `cloudformation`.
        operation: e.g. `DescribeStacks`; empty if it is unknown.
        parameters: parameters by their names in the API; without the bodies of S3 objects.
        region: region in the signature.
        protocol: protocol of the service: ec2, query, json, rest-json or rest-xml.
        headers: HTTP headers with names in lower case.
        time: simulated time of the call.
        refusal: the error code of an injected fault; empty if the call was executed.
    """

    service: str
    operation: str
    parameters: JsonObject = field(default_factory=dict)
    region: str = ""
    key: str = ""
    protocol: str = "query"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    time: datetime.datetime | None = None
    refusal: str = ""

    @property
    def action(self) -> str:
        """Service and operation, e.g. `cloudformation:DescribeStacks`."""
        return f"{self.service}:{self.operation}"

    @property
    def is_from_emulator(self) -> bool:
        """Whether the emulator itself makes the call; faults and policies do not apply to it."""
        return self.key == EMULATOR_ACCESS_KEY


def parse_call(request: Request, time: datetime.datetime | None = None) -> Call:
    """Parse a request into a call.

    Args:
        request: the request, normalised by moto.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    match = CREDENTIAL_PATTERN.search(headers.get("authorization", ""))
    key, region, service = match.groups() if match else ("", "", request.host.split(".")[0])
    if key == EMULATOR_ACCESS_KEY:  # nobody checks these calls, so parsing their parameters would waste time
        return Call(service, "", key=key, region=region)
    protocol, operation_name = "query", ""
    parameters: JsonObject = {}
    with contextlib.suppress(BotoCoreError, NotFound, NotImplementedError):  # the service or the operation is unknown
        model = get_service_model(MODEL_NAMES.get(service, service))
        protocol = determine_request_protocol(model, request.content_type)
        operation, path_parameters = get_service_router(MODEL_NAMES.get(service, service)).match(request)
        parameters = _parameters(request, protocol, operation, path_parameters)
        operation_name = str(operation.name)
    return Call(
        service,
        operation_name,
        parameters,
        region=region,
        key=key,
        protocol=protocol,
        method=request.method,
        headers=headers,
        time=time,
    )


def _parameters(request: Request, protocol: str, operation: OperationModel, path_parameters: JsonObject) -> JsonDict:
    """Return the parameters of a request, without the content of an S3 object that it uploads."""
    if operation.has_streaming_input:
        return dict(path_parameters)
    return {**path_parameters, **parse_parameters(request, protocol, operation, path_parameters)}


REQUEST_ID = "5a4d2c1b-0000-4000-8000-000000000000"  # of every error response

Answer = tuple[int, dict[str, str], str]  # an HTTP response: status, headers, body


@dataclass(frozen=True)
class Refusal(Exception):  # noqa: N818 (a response of a service, not an error of this program)
    """An error response of a service, in the protocol of the service.

    The code of the same error differs with the protocol. For the query protocol see each API's "Common errors", for EC2
    its "Error codes", for S3 its "List of error codes"; services with a JSON protocol append `Exception`.

    Attributes:
        code: the error code, e.g. `AccessDenied`.
    """

    code: str
    message: str
    status: int = 400


def unsupported_feature(error: Exception) -> Refusal:
    """Return the error for a feature that the sandbox lacks; its status is below 500, so that clients do not retry."""
    return Refusal("NotModelled", f"the sandbox does not support this: {error}")


def internal_error(call: Call, error: Exception) -> Refusal:
    """Return the error for a bug in the sandbox itself, or in moto."""
    message = f"internal error of the sandbox in {call.action}: {type(error).__name__}: {error}"
    code = "InternalError" if call.protocol in ("ec2", "rest-xml") else "InternalFailure"
    return Refusal(code, message, status=500)


def render(call: Call, refusal: Refusal) -> Answer:
    """Return an error as an HTTP response in the call's protocol."""
    code, message = escape(refusal.code), escape(refusal.message)
    headers = {"x-amzn-requestid": REQUEST_ID, "content-type": "text/xml"}
    error = f"<Code>{code}</Code><Message>{message}</Message>"
    if call.method == "HEAD":  # no body; clients see the status only
        return refusal.status, headers, ""
    if call.protocol == "ec2":
        body = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
    elif call.protocol == "rest-xml":
        body = f"<Error>{error}<RequestId>{REQUEST_ID}</RequestId></Error>"
    elif call.protocol == "query":
        error = f"<Error><Type>{'Sender' if refusal.status < 500 else 'Receiver'}</Type>{error}</Error>"
        body = f"<ErrorResponse>{error}<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
    else:
        headers |= {"content-type": "application/json", "x-amzn-errortype": refusal.code}
        body = json.dumps({"__type": refusal.code, "message": refusal.message})
    return refusal.status, headers, body


# Reported for DescribeStackEvents (ansible/ansible#41840); the API reference says 1 MB. Assumed for the other lists.
PAGE_SIZE = 100


class Disconnected(Exception):  # noqa: N818 (what happened, not an error of a service)
    """Raised by a call control to break the connection of a call.

    Attributes:
        kind: `refused` if the connection cannot be opened, `closed` if it breaks before the call is executed, `answer`
            if it breaks after the call was executed, before the response.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class CallControl:
    """Lets every call be executed; the tests' fault injection overrides `before_call`, `after_call` and `stale_at`.

    Attributes:
        now: returns the seconds of the simulated clock; `serving` sets it.
        page_size: items on a page of CloudFormation's lists.
    """

    def __init__(self) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        self.page_size = PAGE_SIZE

    @property
    def time(self) -> datetime.datetime:
        """The simulated time."""
        return SIMULATION_START + datetime.timedelta(seconds=self.now())

    def before_call(self, call: Call) -> None:
        """Called with each call before it is executed.

        Raises:
            Refusal: the error response to send instead of executing the call
            Disconnected: the connection breaks
        """

    def after_call(self, call: Call) -> None:
        """Called with each call after it was executed, before the response is sent."""

    def stale_at(self, operation: str) -> datetime.datetime | None:
        """Return the past time whose state a stale read of CloudFormation shows; None for the current state."""
        return None
