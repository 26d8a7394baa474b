"""The gate that every client request passes before moto, both in process and in moto's server.

In process, moto answers botocore's `before-send` event (`BotocoreStubber`); its server is a WSGI application. Both are
wrapped here, as no single function inside moto sees the requests of all services.
"""

from __future__ import annotations

import contextlib
import http
import io
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.request import Request, normalize_request

from cfngen.sandbox.api.call_control import CallControl, Disconnected
from cfngen.sandbox.api.refusals import Answer, Refusal, internal_error, render, unmodelled
from cfngen.sandbox.api.requests import Call, read
from cfngen.sandbox.cloudformation import NotModelledError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Result = TypeVar("Result")  # what moto's caller expects
LOG = logging.getLogger(__name__)
Check = Callable[[Call], None]
Application = Callable[..., Iterable[bytes]]
DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


class Gate:
    """Asks the call control and then the checks about each call, and passes it on.

    Args:
        control: may refuse a call, or break its connection.
        checks: called with each call, in order; each may raise Refusal.
        services: functions that answer in place of moto, by the name of the service.
    """

    def __init__(
        self,
        control: CallControl,
        checks: Iterable[Check] = (),
        services: Mapping[str, Callable[[Request], Answer]] = {},
    ) -> None:
        self.control = control
        self.checks = tuple(checks)
        self.services = dict(services)

    def pass_through(
        self,
        request: Request,
        moto: Callable[[], Result],
        answer: Callable[[Answer], Result],
        *,
        sheltered: bool = False,
    ) -> Result:
        """Execute a request, or answer it with an error.

        Args:
            request: the request.
            moto: lets moto answer the request.
            answer: converts an answer to the type that moto's caller expects.
            sheltered: answer exceptions as errors of the service; otherwise they are raised, so that a test sees them.

        Raises:
            Disconnected: the connection is to be broken
        """

        def execute() -> Result:
            service = self.services.get(call.service)
            try:
                return answer(service(request)) if service else moto()
            except Exception as error:
                if not sheltered:
                    raise
                return answer(render(call, _failure(call, error)))

        call = read(request, self.control.time)
        if call.is_from_emulator:
            return execute()
        try:
            self.control.before_call(call)
            for check in self.checks:
                check(call)
        except Refusal as refusal:
            return answer(render(call, refusal))
        except Disconnected as lost:
            if lost.kind == "answer":
                execute()
                self.control.after_call(call)
            raise
        result = execute()
        self.control.after_call(call)
        return result

    @contextlib.contextmanager
    def in_process(self) -> Iterator[None]:
        """Put the gate in front of moto in this process."""
        original = BotocoreStubber.process_request

        def process(stubber: BotocoreStubber, request: AWSPreparedRequest) -> object:
            url = str(request.url)
            host = url.split("/")[2].split(":")[0]
            if not host.endswith(DOMAINS):
                return original(stubber, request)
            if hasattr(request.body, "read"):  # the gate and moto read it, and botocore when it retries
                stream, request.body = request.body, request.body.read()
                stream.seek(0)
            try:
                response: object = self.pass_through(
                    normalize_request(request), lambda: original(stubber, request), lambda answer: answer
                )
            except Disconnected as lost:
                error = EndpointConnectionError if lost.kind == "refused" else ConnectionClosedError
                raise error(endpoint_url=url, error=lost) from lost
            return response

        with mock.patch.object(BotocoreStubber, "process_request", process):
            yield

    def wsgi(self, application: Application) -> Application:
        """Return moto's server application with the gate in front of it.

        Args:
            application: moto's `DomainDispatcherApplication`.
        """

        def passing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            request = Request({**environ, "wsgi.input": io.BytesIO(body)})
            environ["wsgi.input"] = io.BytesIO(body)

            def answer(response: Answer) -> list[bytes]:
                status, headers, body = response
                start_response(f"{status} {http.HTTPStatus(status).phrase}", list(headers.items()))
                return [body.encode()]

            try:
                content: list[bytes] = self.pass_through(
                    request, lambda: list(application(environ, start_response)), answer, sheltered=True
                )
            except Disconnected as lost:
                # werkzeug's server would keep the connection open after a request that it could not answer.
                if connection := environ.get("werkzeug.socket"):
                    connection.shutdown(socket.SHUT_RDWR)
                raise ConnectionAbortedError(lost.kind) from lost
            return content

        return passing


def _failure(call: Call, error: Exception) -> Refusal:
    """Return the answer to an exception of the emulator or of moto."""
    if isinstance(error, (NotModelledError, NotImplementedError)):
        return unmodelled(error)
    LOG.error("%s failed", call.action, exc_info=error)
    return internal_error(call, error)
