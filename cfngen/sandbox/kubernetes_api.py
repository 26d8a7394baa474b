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

from cfngen.sandbox.certificates import Certificate
from cfngen.sandbox.json_types import JsonDict
from cfngen.sandbox.kubernetes_discovery import discovery_document, version_document
from cfngen.sandbox.kubernetes_requests import ApiRequest, RefusedError, answer, make_status, parse_path
from cfngen.sandbox.kubernetes_state import KubernetesState, Object
from cfngen.sandbox.kubernetes_tables import asks_for_table

HOST = "127.0.0.1"  # loopback only: the API must not be reachable from other machines
# kubeadm binds the second group, that of its admin.conf, to the role cluster-admin.
ADMINISTRATORS = frozenset({"system:masters", "kubeadm:cluster-admins"})
PUBLIC = frozenset({"/livez", "/readyz", "/healthz", "/version"})
HEALTH = frozenset({"/livez", "/readyz", "/healthz"})
IDLE_TIMEOUT_SECONDS = 30  # an idle connection is closed after this time
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h: by the real clock, certificates issued in simulated time may look
# expired. `Connection.caller` checks their validity.
NO_CHECK_TIME = 0x200000


@dataclass(frozen=True)
class Hooks:
    """What the API server needs to know of its cluster.

    Attributes:
        state: its objects.
        lock: held while they are read or changed.
        up: returns whether etcd has a quorum; called before each answer.
        created: called with each new object.
        deleted: called to delete an object, at once or later.
        speed: simulated seconds in a second of real time.
    """

    state: KubernetesState
    lock: AbstractContextManager[object]
    up: Callable[[], bool]
    created: Callable[[str, Object], None]
    deleted: Callable[[str, Object], None]
    speed: float = 1.0


class KubernetesApi:
    """One cluster's API; it listens until it is closed.

    Args:
        hooks: the cluster.
        authority: PEM of the authority of client certificates.
        serving: the serving certificate.
    """

    def __init__(self, hooks: Hooks, authority: str, serving: Certificate) -> None:
        connection = type("_Connection", (Connection,), {"hooks": hooks})
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
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        return f"https://{HOST}:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Connection(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    hooks: Hooks
    protocol_version = "HTTP/1.1"
    timeout = IDLE_TIMEOUT_SECONDS
    disable_nagle_algorithm = True  # head and body are written apart: the second would wait for the first's ACK
    server_version = "kube-apiserver"
    sys_version = ""

    def handle(self) -> None:
        """Answer requests until the client disconnects, or at once end a connection whose TLS handshake fails."""
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

    def do_GET(self) -> None:
        """Read."""
        self._answer()

    def do_POST(self) -> None:
        """Create."""
        self._answer()

    def do_PUT(self) -> None:
        """Replace."""
        self._answer()

    def do_PATCH(self) -> None:
        """Change."""
        self._answer()

    def do_DELETE(self) -> None:
        """Delete."""
        self._answer()

    def _answer(self) -> None:
        """Answer a request, or close the connection if etcd has no quorum."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.hooks.lock:
            if not self.hooks.up():
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

    def _respond(self, url: urllib.parse.SplitResult, body: bytes) -> tuple[int, Object | str]:
        """Return the status code and the body of the answer to a request."""
        path = url.path.rstrip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        self._authorise(path)
        if path in HEALTH:
            return 200, "ok"
        if path == "/version":
            return 200, version_document(self.hooks.state.version)
        if (document := discovery_document(path)) is not None:
            return 200, document
        content_type = (self.headers.get("Content-Type") or "application/json").partition(";")[0]
        table = asks_for_table(self.headers.get("Accept") or "")
        return answer(self.hooks, ApiRequest(self.command, parse_path(path), query, body, content_type, table))

    def _authorise(self, path: str) -> None:
        """Refuse a request of a caller who is no administrator, unless its path is public."""
        user, groups = self.caller()
        if path in PUBLIC or groups & ADMINISTRATORS:
            return
        verb = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[self.command]
        try:
            address = parse_path(path)
        except RefusedError:
            raise RefusedError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"') from None
        verb = "list" if verb == "get" and not address.name else verb
        scope = f'in the namespace "{address.namespace}"' if address.namespace else "at the cluster scope"
        raise RefusedError(
            403,
            "Forbidden",
            f'{address.group_resource} is forbidden: User "{user}" cannot {verb} resource "{address.plural}" in API '
            f'group "{address.kind.group}" {scope}',
        )

    def caller(self) -> tuple[str, frozenset[str]]:
        """Return the user and the groups in the client certificate, whose authority TLS has verified already.

        Raises:
            RefusedError: the certificate is expired, or not valid yet, by both the real and the simulated clock. At any
                speed, a certificate issued for an hour is valid for an hour of real time.
        """
        certificate = cast("JsonDict", cast("ssl.SSLSocket", self.connection).getpeercert() or {})
        if not certificate:
            return "system:anonymous", frozenset()
        begin, end = (ssl.cert_time_to_seconds(certificate[field]) for field in ("notBefore", "notAfter"))
        age = self.hooks.state.now().timestamp() - begin
        is_valid = 0 <= age <= (end - begin) * self.hooks.speed
        if not is_valid and not begin <= datetime.datetime.now(datetime.timezone.utc).timestamp() <= end:
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        subject = [pair for part in certificate["subject"] for pair in part]
        names = [value for key, value in subject if key == "commonName"]
        return names[0] if names else "", frozenset(value for key, value in subject if key == "organizationName")
