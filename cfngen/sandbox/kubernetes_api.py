"""The Kubernetes API of a sandboxed cluster: HTTPS on loopback, with the cluster's own authority on both sides.

The serving certificate is issued by the cluster's authority. Who shows a client certificate of that authority whose
group is an administrators' one may do everything; others may ask for health and version, as with kubeadm's defaults.
A real API server answers 401 to a certificate of another authority; Python's TLS ends the connection instead.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import http.server
import json
import re
import ssl
import tempfile
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

from cfngen.sandbox.certificates import Issued
from cfngen.sandbox.kubernetes_state import KINDS, Kind, KubernetesState, Object

HOST = "127.0.0.1"  # never another: this is no API for anybody else
# kubeadm binds the second one, that of its own administrator's kubeconfig, to the same role.
ADMINISTRATORS = frozenset({"system:masters", "kubeadm:cluster-admins"})
PUBLIC = frozenset({"/livez", "/readyz", "/healthz", "/version"})
HEALTH = frozenset({"/livez", "/readyz", "/healthz"})
SECONDS = 30  # a silent connection is closed
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h: certificates made by the simulated clock look outdated to the real
# one. `Connection.caller` checks the time.
NO_CHECK_TIME = 0x200000


@dataclass(frozen=True)
class Hooks:
    """What the API server needs of its cluster.

    Attributes:
        state: its objects.
        lock: held while they are read or changed.
        up: whether its master runs, asked before each answer.
        created: told of each new object.
        deleted: asked to remove an object; it may take its time.
    """

    state: KubernetesState
    lock: AbstractContextManager[Any]
    up: Callable[[], bool]
    created: Callable[[str, Object], None]
    deleted: Callable[[str, Object], None]


class KubernetesApi:
    """One cluster's API, answering from the moment it is made until it is closed.

    Args:
        hooks: the cluster.
        authority: PEM of the authority that client certificates must be of.
        serving: certificate that it shows.
    """

    def __init__(self, hooks: Hooks, authority: str, serving: Issued) -> None:
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
        # The handshake is the connection's own affair: in accept() a silent client would hold up all others.
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


class RefusedError(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class Address:
    """What a path of the API names: a kind, perhaps a namespace, perhaps one object."""

    plural: str
    kind: Kind
    namespace: str
    name: str

    @property
    def of_group(self) -> str:
        """The kind as messages name it."""
        return f"{self.plural}.{self.kind.group}" if self.kind.group else self.plural


class Connection(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    hooks: Hooks
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    disable_nagle_algorithm = True  # head and body are written apart: the second would wait for the first's ACK
    server_version = "kube-apiserver"
    sys_version = ""

    def handle(self) -> None:
        """Answer until the client leaves; one that does not speak our TLS is gone at once."""
        try:
            super().handle()
        except (OSError, ssl.SSLError):
            self.close_connection = True

    def finish(self) -> None:
        """Close the connection, though the client may have done so before."""
        try:
            super().finish()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing."""

    def do_GET(self) -> None:
        """Read."""
        self._answer()

    def do_POST(self) -> None:
        """Create."""
        self._answer()

    def do_PATCH(self) -> None:
        """Change."""
        self._answer()

    def do_DELETE(self) -> None:
        """Delete."""
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.hooks.lock:
            if not self.hooks.up():
                self.close_connection = True
                return
            try:
                code, answer = self._respond(urllib.parse.urlsplit(self.path), body)
            except RefusedError as error:
                code, answer = error.code, _status("Failure", error.code, error.reason, str(error))
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _respond(self, url: urllib.parse.SplitResult, body: bytes) -> tuple[int, Any]:
        path = url.path.rstrip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        self._authorise(path)
        if path in HEALTH:
            return 200, "ok"
        if path == "/version":
            return 200, _version(self.hooks.state.version)
        if (found := discovery(path)) is not None:
            return 200, found
        return self._objects(_address(path), query, body)

    def _authorise(self, path: str) -> None:
        user, groups = self.caller()
        if path in PUBLIC or groups & ADMINISTRATORS:
            return
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[self.command]
        try:
            address = _address(path)
        except RefusedError:
            raise RefusedError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"') from None
        verb = "list" if verb == "get" and not address.name else verb
        where = f'in the namespace "{address.namespace}"' if address.namespace else "at the cluster scope"
        raise RefusedError(
            403,
            "Forbidden",
            f'{address.of_group} is forbidden: User "{user}" cannot {verb} resource "{address.plural}" in API group '
            f'"{address.kind.group}" {where}',
        )

    def caller(self) -> tuple[str, frozenset[str]]:
        """Return the user and the groups of the client's certificate, which TLS has found to be of the authority.

        Raises:
            RefusedError: it is outdated, or not valid yet, by this machine's clock and by the simulated one.
        """
        certificate = cast("dict[str, Any]", cast("ssl.SSLSocket", self.connection).getpeercert() or {})
        if not certificate:
            return "system:anonymous", frozenset()
        begin, end = (ssl.cert_time_to_seconds(certificate[each]) for each in ("notBefore", "notAfter"))
        clocks = (self.hooks.state.now(), datetime.datetime.now(datetime.timezone.utc))
        if not any(begin <= each.timestamp() <= end for each in clocks):
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        subject = [pair for part in certificate["subject"] for pair in part]
        names = [value for key, value in subject if key == "commonName"]
        return names[0] if names else "", frozenset(value for key, value in subject if key == "organizationName")

    def _objects(self, address: Address, query: Mapping[str, str], body: bytes) -> tuple[int, Object]:
        state, kind = self.hooks.state, address.kind
        if self.command == "POST" and not address.name:
            given = _parsed(body)
            if kind.namespaced:
                given.setdefault("metadata", {})["namespace"] = address.namespace or "default"
            if state.get(address.plural, given["metadata"]["name"], given["metadata"].get("namespace", "")):
                name = given["metadata"]["name"]
                raise RefusedError(409, "AlreadyExists", f'{address.of_group} "{name}" already exists')
            made = state.put(address.plural, given)
            self.hooks.created(address.plural, made)
            return 201, _typed(kind, made)
        if not address.name:
            if self.command != "GET":
                raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
            if query.get("watch") in ("1", "true"):
                raise RefusedError(405, "MethodNotAllowed", "the sandbox does not watch; list again")
            return 200, _list(state, address, query)
        found = state.get(address.plural, address.name, address.namespace)
        if found is None:
            raise RefusedError(404, "NotFound", f'{address.of_group} "{address.name}" not found')
        if self.command == "DELETE":
            self.hooks.deleted(address.plural, found)
            if state.get(address.plural, address.name, address.namespace) is None:
                return 200, _status("Success", 200)
        elif self.command == "PATCH":
            found = state.put(address.plural, _merged(found, _parsed(body)))
        elif self.command != "GET":
            raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
        return 200, _typed(kind, found)


PATH = re.compile(
    r"(?:/api|/apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


def _address(path: str) -> Address:
    """Return what a path names.

    Raises:
        RefusedError: the API has nothing there.
    """
    if match := PATH.fullmatch(path):
        kind = KINDS.get(match["plural"])
        if kind and (kind.group, kind.version) == (match["group"] or "", match["version"]):
            return Address(match["plural"], kind, match["namespace"] or "", urllib.parse.unquote(match["name"] or ""))
    raise RefusedError(404, "NotFound", "the server could not find the requested resource")


def _list(state: KubernetesState, address: Address, query: Mapping[str, str]) -> Object:
    items = [
        each
        for each in state.list(address.plural, address.namespace)
        if _matches(query.get("labelSelector", ""), each["metadata"].get("labels") or {})
        and _matches(query.get("fieldSelector", ""), each, _field)
    ]
    metadata: Object = {"resourceVersion": state.resource_version}
    begin = _position(query.get("continue", ""))
    end = begin + int(query.get("limit") or 0) if int(query.get("limit") or 0) else len(items)
    if end < len(items):
        metadata["continue"] = base64.urlsafe_b64encode(str(end).encode()).decode()
        metadata["remainingItemCount"] = len(items) - end
    kind = address.kind
    return {
        "apiVersion": kind.api_version,
        "kind": f"{kind.name}List",
        "metadata": metadata,
        "items": [_typed(kind, each) for each in items[begin:end]],
    }


def _position(text: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(text) or 0)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(400, "BadRequest", "continue key is not valid") from error


REQUIREMENT = re.compile(r"\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*")


def _matches(selector: str, item: Mapping[str, Any], value: Callable[[Any, str], str | None] = dict.get) -> bool:
    """Return whether an item is selected; equality and bare label names are understood."""
    for part in filter(None, selector.split(",")):
        if match := REQUIREMENT.fullmatch(part):
            if (value(item, match[1]) == match[3]) == (match[2] == "!="):
                return False
        elif part.startswith("!") == (value(item, part.lstrip("!")) is not None):
            return False
    return True


def _field(item: Any, path: str) -> str | None:
    for key in path.split("."):
        item = item.get(key, "") if isinstance(item, Mapping) else ""
    return str(item)


def _parsed(body: bytes) -> Object:
    try:
        return cast("Object", json.loads(body))
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"the body of the request was not understood: {error}") from error


def _merged(item: Any, patch: Any) -> Any:
    """Return an object with a JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    old = item if isinstance(item, dict) else {}
    changed = {key: _merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in old.items() if key not in patch} | changed


def _typed(kind: Kind, item: Object) -> Object:
    return {**item, "apiVersion": kind.api_version, "kind": kind.name}


def _status(status: str, code: int, reason: str = "", message: str = "") -> Object:
    said = {key: value for key, value in {"reason": reason, "message": message}.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status, **said, "code": code}


def _version(version: str) -> Object:
    major, minor, *_ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def discovery(path: str) -> Object | None:
    """Return what the API says of itself under a path, for clients that ask what kinds it has."""
    groups = sorted({(each.group, each.version) for each in KINDS.values()})
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = {
            group: {"groupVersion": f"{group}/{version}", "version": version} for group, version in groups if group
        }
        listed = [{"name": group, "versions": [each], "preferredVersion": each} for group, each in versions.items()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    for group, version in groups:
        if path == (f"/apis/{group}/{version}" if group else f"/api/{version}"):
            resources = [
                {
                    "name": plural,
                    "singularName": kind.name.lower(),
                    "namespaced": kind.namespaced,
                    "kind": kind.name,
                    "verbs": ["create", "delete", "get", "list", "patch"],
                }
                for plural, kind in KINDS.items()
                if kind.group == group
            ]
            name = f"{group}/{version}" if group else version
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}
    return None
