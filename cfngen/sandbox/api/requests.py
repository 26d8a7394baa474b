"""Parses requests to any AWS service into a `Call`, before moto or the emulator handles them."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError
from moto.core.model import OperationModel
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from cfngen.sandbox import request_parameters
from cfngen.sandbox.json_types import JsonDict, JsonObject

# The access key of `cfngen.sandbox.cloudformation.client`, by which calls of the emulator itself are recognized.
EMULATOR_ACCESS_KEY = "testing"
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
        key: the access key.
        protocol: protocol of the service: ec2, query, json, rest-json or rest-xml.
        method: HTTP method.
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
    if (
        key == EMULATOR_ACCESS_KEY
    ):  # nobody checks calls of the emulator itself, so parsing their parameters would waste time
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
    return {**path_parameters, **request_parameters.parameters(request, protocol, operation, path_parameters)}
