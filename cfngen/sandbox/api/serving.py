"""Serves the emulator to boto3 clients, through a gate that every request passes before moto.

In process, moto answers botocore's `before-send` event (`BotocoreStubber`); its server is a WSGI application. Both are
wrapped here, as no single function inside moto sees the requests of all services.
"""

from __future__ import annotations

import contextlib
import functools
import http
import io
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError
from moto.core import botocore_stubber
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.request import Request, normalize_request

from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.api.requests import (
    Answer,
    Call,
    CallControl,
    Disconnected,
    Refusal,
    internal_error,
    parse_call,
    render,
    unsupported_feature,
)
from cfngen.sandbox.api.responses import Service
from cfngen.sandbox.cloudformation import CloudFormation, NotModelledError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


Result = TypeVar("Result")  # what moto's caller expects
LOG = logging.getLogger(__name__)
Check = Callable[[Call], None]  # raises Refusal if the call is not to be executed
Application = Callable[..., Iterable[bytes]]  # a WSGI application
AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass
class Gate:
    """Passes each call on to moto or to the emulator, unless the call control or a check refuses it.

    Args:
        control: called first; it may refuse a call, or break its connection.
        checks: called next with each call, in order; each may raise Refusal.
        services: functions that answer requests in place of moto, by the name of the service.
    """

    control: CallControl
    checks: tuple[Check, ...] = ()
    services: Mapping[str, Callable[[Request], Answer]] = field(default_factory=dict)

    def pass_through(
        self,
        request: Request,
        call_moto: Callable[[], Result],
        to_result: Callable[[Answer], Result],
        *,
        answer_exceptions: bool = False,
    ) -> Result:
        """Execute a request, or answer it with an error.

        Args:
            to_result: converts an HTTP response to the type that moto's caller expects.
            answer_exceptions: answer with an error of the service if an exception is raised; otherwise the exception
                propagates, so that a test sees it.

        Raises:
            Disconnected: the call control breaks the connection
        """
        call = parse_call(request, self.control.time)

        def execute() -> Result:
            service = self.services.get(call.service)
            try:
                return to_result(service(request)) if service else call_moto()
            except Exception as error:
                if not answer_exceptions:
                    raise
                return to_result(render(call, _failure(call, error)))

        return execute() if call.is_from_emulator else self._admit(call, execute, to_result)

    def _admit(self, call: Call, execute: Callable[[], Result], to_result: Callable[[Answer], Result]) -> Result:
        """Execute a client's call, unless the call control or a check refuses it."""
        try:
            self.control.before_call(call)
            for check in self.checks:
                check(call)
        except Refusal as refusal:
            return to_result(render(call, refusal))
        except Disconnected as disconnected:
            if disconnected.kind == "answer":  # only the response is lost
                execute()
                self.control.after_call(call)
            raise
        result = execute()
        self.control.after_call(call)
        return result

    @contextlib.contextmanager
    def in_process(self) -> Iterator[None]:
        """Put the gate in front of moto in this process."""
        process_with_moto = BotocoreStubber.process_request
        normalize_once = functools.lru_cache(maxsize=1)(normalize_request)  # the gate and moto ask for the same one

        def process_request(stubber: BotocoreStubber, request: AWSPreparedRequest) -> object:
            url = str(request.url)
            host = url.split("/")[2].split(":")[0]
            if not host.endswith(AWS_DOMAINS):
                return process_with_moto(stubber, request)
            # A stream is read three times: by the gate, by moto, and by botocore if it retries the request.
            if hasattr(request.body, "read"):
                stream, request.body = request.body, request.body.read()
                stream.seek(0)
            normalized = normalize_once(request)
            normalized.get_data()  # whoever reads it as a form first would leave nothing to others
            try:
                response: object = self.pass_through(
                    normalized,
                    call_moto=lambda: process_with_moto(stubber, request),
                    to_result=lambda answer: answer,
                )
            except Disconnected as disconnected:
                error = EndpointConnectionError if disconnected.kind == "refused" else ConnectionClosedError
                raise error(endpoint_url=url, error=disconnected) from disconnected
            return response

        with (
            mock.patch.object(BotocoreStubber, "process_request", process_request),
            mock.patch.object(botocore_stubber, "normalize_request", normalize_once),
        ):
            yield

    def wsgi(self, application: Application) -> Application:
        """Return moto's server application with the gate in front of it."""

        def gated_application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            request = Request({**environ, "wsgi.input": io.BytesIO(body)})
            environ["wsgi.input"] = io.BytesIO(body)

            def to_result(response: Answer) -> list[bytes]:
                status, headers, body = response
                start_response(f"{status} {http.HTTPStatus(status).phrase}", list(headers.items()))
                return [body.encode()]

            try:
                content: list[bytes] = self.pass_through(
                    request, lambda: list(application(environ, start_response)), to_result, answer_exceptions=True
                )
            except Disconnected as disconnected:
                # werkzeug's server would keep the connection open after a request that it could not answer.
                if connection := environ.get("werkzeug.socket"):
                    connection.shutdown(socket.SHUT_RDWR)
                raise ConnectionAbortedError(disconnected.kind) from disconnected
            return content

        return gated_application


def _failure(call: Call, error: Exception) -> Refusal:
    """Return the error response for an exception in the emulator or in moto, and log it if it is a bug."""
    if isinstance(error, (NotModelledError, NotImplementedError)):
        return unsupported_feature(error)
    LOG.error("%s failed", call.action, exc_info=error)
    return internal_error(call, error)


@dataclass(frozen=True)
class Served:
    """An account that is served to boto3 clients.

    Attributes:
        service: the emulators of all regions; a thread that advances the clock must hold its `lock`.
        moto_extensions: the state of the account that moto lacks, such as console outputs and quotas.
        gate: passes requests on to moto or to the emulators.
    """

    service: Service
    moto_extensions: MotoExtensions
    gate: Gate


@contextlib.contextmanager
def serving(
    clouds: Mapping[str, CloudFormation] | CloudFormation,
    *,
    control: CallControl | None = None,
    checks: Iterable[Check] = (),
) -> Iterator[Served]:
    """Serve emulators to ordinary boto3 clients, within `moto.mock_aws()`, until the end of the block.

    Clients in this process need no set-up; for moto's server see `Gate.wsgi`.

    Args:
        clouds: one emulator, or one for each region.
    """
    clouds_by_region = {clouds.region: clouds} if isinstance(clouds, CloudFormation) else dict(clouds)
    control = control or CallControl()
    clock = next(iter(clouds_by_region.values())).clock
    control.now = lambda: clock.now
    service, extensions = Service(clouds_by_region, control), MotoExtensions()
    extensions.time = lambda: clock.time
    extensions.public_parameters = lambda region: service.cloud(region).parameter_store
    gate = Gate(control, (*checks, extensions.check_bucket_owner), {"cloudformation": service.respond})
    with extensions.patched(), gate.in_process():
        yield Served(service, extensions, gate)
