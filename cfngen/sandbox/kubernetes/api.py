"""The Kubernetes API of a sandboxed cluster: HTTPS on the loopback interface.

The cluster's authority issues the serving certificate and the client certificates. A client certificate of an
administrators' group allows everything; other clients may read health and version only, as with kubeadm's defaults. A
real API server answers 401 to a client certificate of another authority; Python's TLS closes the connection instead.
"""

from __future__ import annotations

import datetime
import http.server
import json
import ssl
import tempfile
import threading
import urllib.parse
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

from cfngen.sandbox.kubernetes.certificates import Certificate
from cfngen.sandbox.kubernetes.discovery import discovery_document, version_document
from cfngen.sandbox.kubernetes.requests import ApiRequest, Cluster, answer, make_status, parse_path
from cfngen.sandbox.kubernetes.service_account_tokens import TokenIssuer
from cfngen.sandbox.kubernetes.state import Object, RefusedError
from cfngen.sandbox.kubernetes.tables import asks_for_table
from cfngen.sandbox.untyped import JsonDict

HOST = "127.0.0.1"  # loopback only: the API must not be reachable from other machines
# kubeadm binds the second group, that of its admin.conf, to the role cluster-admin.
ADMINISTRATOR_GROUPS = frozenset({"system:masters", "kubeadm:cluster-admins"})
HEALTH_PATHS = frozenset({"/livez", "/readyz", "/healthz"})
PUBLIC_PATHS = HEALTH_PATHS | {"/version"}  # paths that clients without permissions may read
IDLE_TIMEOUT_SECONDS = 30  # an idle connection is closed after this time
POLL_SECONDS = 0.05  # between two checks of the server whether it was closed
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h: by the real clock, certificates issued in simulated time may look
# expired. `Connection.caller` checks their validity.
NO_CHECK_TIME = 0x200000


@dataclass(frozen=True)
class ClusterAccess(Cluster):
    """What the API server needs of its cluster.

    Attributes:
        lock: held while objects are read or changed.
        has_quorum: returns whether etcd has a quorum; called before each request is answered.
        token_issuer: returns what the API server signs tokens of service accounts with.
        speed: simulated seconds in a second of real time.
    """

    lock: AbstractContextManager[object]
    has_quorum: Callable[[], bool]
    token_issuer: Callable[[], TokenIssuer]
    speed: float = 1.0


class KubernetesApi:
    """The HTTPS server of one cluster's API; it listens from its creation until `close`.

    Args:
        authority: certificate (PEM) of the authority that issues client certificates.
    """

    def __init__(self, access: ClusterAccess, authority: str, serving: Certificate) -> None:
        # http.server takes a class and creates an object of it for each connection, so the class has the attribute.
        connection = type("_Connection", (Connection,), {"access": access})
        self._server = http.server.ThreadingHTTPServer((HOST, 0), connection)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= NO_CHECK_TIME
        context.load_verify_locations(cadata=authority)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # Python loads a key from a file only
            file.write(serving.key + serving.certificate)
            file.flush()
            context.load_cert_chain(file.name)
        # The connection's own thread does the handshake: in accept() a silent client would block all others.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": POLL_SECONDS}, daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """The server's URL."""
        return f"https://{HOST}:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Connection(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    access: ClusterAccess
    protocol_version = "HTTP/1.1"
    timeout = IDLE_TIMEOUT_SECONDS
    disable_nagle_algorithm = True  # else the body, which is written after the head, would wait for the head's ACK
    server_version = "kube-apiserver"
    sys_version = ""

    def handle(self) -> None:
        """Answer requests until the client disconnects; close the connection if the TLS handshake fails."""
        try:
            super().handle()
        except (OSError, ssl.SSLError):
            self.close_connection = True

    def finish(self) -> None:
        """Close the connection, even if the client has closed it already."""
        try:
            super().finish()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing."""

    def _answer(self) -> None:
        """Answer a request, or close the connection if etcd has no quorum."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.access.lock:
            if not self.access.has_quorum():
                self.close_connection = True
                return
            try:
                code, content = self._respond(urllib.parse.urlsplit(self.path), body)
            except RefusedError as error:
                code, content = error.code, make_status("Failure", error.code, error.reason, str(error))
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(code)
        self.send_header(
            "Content-Type", "text/plain; charset=utf-8" if isinstance(content, str) else "application/json"
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class calls them so

    def _respond(self, url: urllib.parse.SplitResult, body: bytes) -> tuple[int, Object | str]:
        path = url.path.rstrip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        self._authorise(path)
        if path in HEALTH_PATHS:
            return 200, "ok"
        if path == "/version":
            return 200, version_document(self.access.state.version)
        if (document := discovery_document(path) or self.access.token_issuer().document(path)) is not None:
            return 200, document
        if self.command == "POST":
            token_request = self.access.token_issuer().answer(self.access.state, path, body)
            if token_request is not None:
                return 201, token_request
        content_type = (self.headers.get("Content-Type") or "application/json").partition(";")[0]
        request = ApiRequest(
            method=self.command,
            path=parse_path(path),
            query=query,
            body=body,
            content_type=content_type,
            wants_table=asks_for_table(self.headers.get("Accept") or ""),
        )
        return answer(self.access, request)

    def _authorise(self, path: str) -> None:
        """Refuse a request of a caller who is not an administrator, unless its path is public."""
        user, groups = self.caller()
        if path in PUBLIC_PATHS or groups & ADMINISTRATOR_GROUPS:
            return
        verb = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[self.command]
        try:
            object_path = parse_path(path)
        except RefusedError:
            raise RefusedError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"') from None
        verb = "list" if verb == "get" and not object_path.name else verb
        scope = f'in the namespace "{object_path.namespace}"' if object_path.namespace else "at the cluster scope"
        raise RefusedError(
            403,
            "Forbidden",
            f'{object_path.group_resource} is forbidden: User "{user}" cannot {verb} resource "{object_path.plural}" '
            f'in API group "{object_path.kind.group}" {scope}',
        )

    def caller(self) -> tuple[str, frozenset[str]]:
        """Return the user and the groups in the client certificate, whose authority TLS has verified already.

        A certificate counts as valid if it is valid by the real clock or by the simulated one. By the simulated clock,
        its validity period is multiplied by the speed, so that a certificate issued for an hour is valid for an hour
        of real time.

        Raises:
            RefusedError: the certificate is expired or not valid yet.
        """
        certificate = cast("JsonDict", cast("ssl.SSLSocket", self.connection).getpeercert() or {})
        if not certificate:
            return "system:anonymous", frozenset()
        start, end = (ssl.cert_time_to_seconds(certificate[field]) for field in ("notBefore", "notAfter"))
        simulated_age = self.access.state.now().timestamp() - start
        is_valid_in_simulation = 0 <= simulated_age <= (end - start) * self.access.speed
        is_valid_in_real_time = start <= datetime.datetime.now(datetime.UTC).timestamp() <= end
        if not is_valid_in_simulation and not is_valid_in_real_time:
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        attributes = [attribute for part in certificate["subject"] for attribute in part]  # pairs of name and value
        users = [value for name, value in attributes if name == "commonName"]
        groups = frozenset(value for name, value in attributes if name == "organizationName")
        return users[0] if users else "", groups
