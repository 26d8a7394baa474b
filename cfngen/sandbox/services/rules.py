"""The registry of the validation rules of services, and the patches that make moto check them.

Every request to moto, in process or to its server, passes `BaseResponse.call_action`; requests to S3 pass
`S3Response._bucket_response` and `_key_response`. The patched functions check the operation's rules first.
"""

from __future__ import annotations

import contextlib
import datetime
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

from moto.core.exceptions import ServiceException
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.responses import ActionResult, BaseResponse
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from moto.s3.exceptions import S3ClientError
from moto.s3.responses import S3Response
from werkzeug.exceptions import NotFound

from cfngen.sandbox.services.modelled_parameters import MODELLED, unmodelled_parameter
from cfngen.sandbox.untyped import Expression, JsonDict, JsonObject, MotoBackend, MotoModel, MotoResponse

Rule = Callable[["PendingCall"], None]  # raises Refused if the service refuses the call
Clock = Callable[[], float]  # returns seconds of simulated time
MotoFunction = Callable[..., object]  # a method of moto, or what replaces it

NOT_MODELLED = "NotModelled"  # the code of the emulator's own refusals; no service has it

CLOCK_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)  # the date at which clocks show 0

_RULES: dict[tuple[str, str], list[Rule]] = defaultdict(list)  # by service and operation
_CLOCKS: dict[str, Clock] = {}  # by region


class Refused(Exception):  # noqa: N818 (a response of the service, not an error of this program)
    """Raised by a rule, and by what else refuses something: the service refuses the call.

    Attributes:
        code: the service's error code, e.g. `InvalidParameterValue`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


def invalid_value(message: str) -> Refused:
    """Return EC2's error for a parameter with an invalid value."""
    return Refused("InvalidParameterValue", message)


def validation_error(message: str) -> Refused:
    """Return the error of Auto Scaling, Elastic Load Balancing and others for what is invalid."""
    return Refused("ValidationError", message)


class _MotoError(ServiceException):
    """A refusal in the form of moto's own errors, which moto looks up in the model of the service."""


@dataclass(frozen=True)
class PendingCall:
    """A call that moto is about to execute, as rules see it.

    Attributes:
        service: botocore's name of the service, e.g. `ec2`, `elbv2`.
        operation: e.g. `AttachVolume`.
        parameters: parameters by their names in the API, with the types of the service's model.
    """

    service: str
    operation: str
    parameters: JsonObject
    region: str
    backend: MotoBackend

    def get(self, name: str, default: Expression = None) -> Expression:
        """Return the value of a parameter, or the default if the call does not have it."""
        return self.parameters.get(name, default)

    @property
    def time(self) -> float:
        """Seconds of simulated time, as the region's clock shows them."""
        return time_in(self.region)


def rule(service: str, *operations: str) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a function as a rule: it is called before operations, and may raise Refused."""

    def register(function: Rule) -> Rule:
        for operation in operations:
            _RULES[service, operation].append(function)
        return function

    return register


def set_clock(region: str, clock: Clock) -> None:
    """Set the clock of a region; replaces an earlier one."""
    _CLOCKS[region] = clock


def time_in(region: str) -> float:
    """Return the seconds of a region's clock; 0 for a region without a clock."""
    return _CLOCKS[region]() if region in _CLOCKS else 0.0


def times_by_region() -> dict[str, float]:
    """Return the seconds of all clocks by region, as the time of changes to global services."""
    return {region: clock() for region, clock in _CLOCKS.items()}


@contextlib.contextmanager
def checking_rules() -> Iterator[None]:
    """Patch moto in this process to check the rules; does nothing if they are checked already."""
    if getattr(BaseResponse.call_action, "checks_rules", False):
        yield
        return
    with (
        mock.patch.object(BaseResponse, "call_action", _with_check(BaseResponse.call_action)),
        mock.patch.object(S3Response, "_bucket_response", _with_check_of_s3(S3Response._bucket_response)),  # noqa: SLF001
        mock.patch.object(S3Response, "_key_response", _with_check_of_s3(S3Response._key_response)),  # noqa: SLF001
    ):
        yield


def _with_check(original: MotoFunction) -> MotoFunction:
    def check_and_call_action(response: MotoResponse) -> object:
        try:
            _check(response, response._get_action(), response.normalized_request)  # noqa: SLF001
        except (Refused, ServiceException) as refused:
            # A ServiceException means that moto does not find an object that a rule looks up.
            error = _MotoError(refused.code, refused.message) if isinstance(refused, Refused) else refused
            with warnings.catch_warnings():  # moto warns about codes that are in no model, e.g. AccessDenied
                warnings.simplefilter("ignore", UserWarning)
                status, headers, body = response.serialized(ActionResult(error))
            return status, *response._enrich_response({**headers, "status": str(status)}, body)  # noqa: SLF001
        return original(response)

    setattr(check_and_call_action, "checks_rules", True)  # noqa: B010 - functions have no such attribute for mypy
    return check_and_call_action


def _with_check_of_s3(original: MotoFunction) -> MotoFunction:
    def check_and_respond(response: MotoResponse, request: object, *arguments: object, **options: object) -> object:
        try:
            operation, path_parameters = get_service_router("s3").match(response.normalized_request)
            _check(response, str(operation.name), response.normalized_request, path_parameters)
        except NotFound:
            pass  # no operation of S3 has this path; moto answers that
        except Refused as refused:
            raise S3ClientError(refused.code, refused.message) from refused
        return original(response, request, *arguments, **options)

    return check_and_respond


def _check(
    response: MotoResponse, operation: str, request: MotoModel, path_parameters: Mapping[str, str] | None = None
) -> None:
    """Check the parameters and the rules of an operation before moto executes it.

    Args:
        path_parameters: the parameters in the path of the URL; None for those that moto found there.
    """
    service = response.boto3_service_name
    rules = _RULES.get((service, operation), ())
    if not rules and f"{service}.{operation}" not in MODELLED:
        return
    model = get_service_model(service)
    protocol = determine_request_protocol(model, request.content_type)
    if path_parameters is None:
        path_parameters = response.uri_match
    parameters = parse_parameters(request, protocol, model.operation_model(operation), path_parameters)
    if name := unmodelled_parameter(service, operation, parameters):
        raise Refused(NOT_MODELLED, f"the emulator does not model parameter {name} of call {operation}")
    call = PendingCall(service, operation, parameters, response.region, _backend(response, service))
    for check_rule in rules:
        check_rule(call)


def parse_parameters(
    request: Request, protocol: str, operation: OperationModel, path_parameters: JsonObject
) -> JsonDict:
    """Return the parameters of a request, normalised by moto, by their names in the API, without those in the path.

    Args:
        path_parameters: the parameters in the path of the URL, by name.
    """
    parser: Any = PROTOCOL_PARSERS[protocol](operation, map_type=dict)
    parsed: JsonDict = parser.parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.get_data(cache=True),
            "url_path": request.path,
            "url_params": path_parameters,
        }
    )
    return parsed


def _backend(response: BaseResponse, service: str) -> MotoBackend:
    from moto.backends import get_backend

    # By region, or by partition for a global service such as IAM.
    backends: MotoBackend = get_backend(service)[response.current_account]  # type: ignore[call-overload]
    return backends[response.region] if response.region in backends else backends[response.partition]
