"""The connection to an API server: urllib3 (a dependency of botocore) with mutual TLS.

The client certificate is issued for one connection and never stored in plain text. Python loads client certificates
from files only, so a temporary file holds it for a moment, its key encrypted with a password only this process knows.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import secrets
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from cfngen import __version__
from cfngen.atomic_files import create_private_file
from cfngen.deploy.access.certificates import KeyPair
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from urllib3 import PoolManager

# In seconds. A connection that security groups do not allow is only noticed by a time-out: they drop packets silently.
CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 15.0


class KubernetesError(CfngenError):
    """The Kubernetes API returned an error."""

    code = "kubernetes-error"


class ApiUnreachableError(KubernetesError):
    """The API does not respond."""

    code = "kubernetes-unreachable"


class WrongServerError(KubernetesError):
    """The server's certificate was not issued by the cluster's certificate authority."""

    code = "kubernetes-wrong-server"


class CertificateRefusedError(KubernetesError):
    """The API server does not accept the client's certificate."""

    code = "kubernetes-unauthorized"


class ForbiddenError(KubernetesError):
    """The API server knows the client, but denies the request."""

    code = "kubernetes-forbidden"


@dataclass(frozen=True)
class Endpoint:
    """The address of an API server.

    Attributes:
        url: its URL, for which its certificate is issued.
        url_override: the URL at which it listens instead (in the sandbox); usually empty.
        allowed_cidr: CIDR block that may connect, from the stack's parameter; empty if it has none, as for an API that
            only the VPC and networks joined to it reach.
    """

    url: str
    url_override: str = ""
    allowed_cidr: str = ""

    @property
    def host(self) -> str:
        """Name or address to connect to."""
        return urlsplit(self.connect_url).hostname or ""

    @property
    def port(self) -> int:
        """Port to connect to."""
        return urlsplit(self.connect_url).port or 443

    @property
    def tls_name(self) -> str:
        """Name that the server's certificate must contain, if it is not the host to connect to; else empty."""
        return (urlsplit(self.url).hostname or "") if self.url_override else ""

    @property
    def connect_url(self) -> str:
        """URL to connect to."""
        return self.url_override or self.url

    @property
    def unreachable_hint(self) -> str:
        """A hint for the user: what to check if the API does not respond."""
        others = f"that no firewall blocks port {self.port}, and that the master is running."
        if self.allowed_cidr:
            parameter = f"the stack's parameter ApiAllowedCidr (currently {self.allowed_cidr})"
            return f"check that {parameter} contains your public address, {others}"
        return f"check that this machine has a way into the VPC (a VPN, or the bastion), {others}"


@dataclass(frozen=True)
class ApiResponse:
    """A response of the API server."""

    status: int
    body: str
    reason: str = ""

    @property
    def message(self) -> str:
        """The error message of a response: from its Status object, or else the HTTP reason phrase."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            return str(json.loads(self.body)["message"])
        return " ".join(self.reason.split())


class ApiConnection:
    """A connection to the API server; close it when it is no longer needed.

    Args:
        ca_certificate: PEM of the certificate authority that issued the API server's certificate.
    """

    def __init__(self, endpoint: Endpoint, ca_certificate: str, client: KeyPair) -> None:
        self.endpoint = endpoint
        self._pool = _make_connection_pool(endpoint, _make_ssl_context(ca_certificate, client))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def request(self, method: str, path: str, query: Mapping[str, str] | None = None, *, accept: str) -> ApiResponse:
        """Send a request; return the response, whatever its status.

        There are no retries: callers that wait for the API poll it anyway.

        Raises:
            ApiUnreachableError: the API server does not answer.
            WrongServerError: the server's certificate was not issued by the cluster's certificate authority.
            CertificateRefusedError: the TLS handshake fails.
        """
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        try:
            response = self._pool.request(
                method,
                self.endpoint.connect_url + path,
                fields=dict(query or {}) or None,
                headers={"Accept": accept, "User-Agent": f"cfngen/{__version__}"},
                timeout=Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=READ_TIMEOUT_SECONDS),
                retries=False,
                redirect=False,
            )
        except HTTPError as error:
            raise _error_without_response(error, self.endpoint) from error
        return ApiResponse(response.status, response.data.decode(errors="replace"), response.reason or "")

    def error_for_response(self, response: ApiResponse) -> KubernetesError:
        """Return the error for a response with another status than the caller expects."""
        url, message = self.endpoint.connect_url, response.message
        if response.status == 401:
            return CertificateRefusedError(
                f"the Kubernetes API at {url} does not accept the certificate: {message}",
                hint="check this machine's clock, and that the secret holds the authority the masters run with.",
            )
        if response.status == 403:
            return ForbiddenError(
                f"the Kubernetes API denied the request: {message}",
                hint="only the group system:masters has all permissions; bind a role to your group, or omit --group.",
            )
        return KubernetesError(f"the Kubernetes API at {url} responded with HTTP status {response.status}: {message}")


def find_proxy(endpoint: Endpoint) -> str:
    """Return the URL of the proxy for connections to an API server, from the environment; empty if there is none.

    `NO_PROXY` may contain CIDR blocks, as for kubectl and curl, since masters of a private cluster have IP addresses
    only. An API server with an override listens on this machine, so it needs no proxy.
    """
    proxies = getproxies()
    proxy = proxies.get("https", "")
    if not proxy or endpoint.url_override or proxy_bypass(f"{endpoint.host}:{endpoint.port}"):
        return ""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(endpoint.host)
        if any(address in network for network in _no_proxy_networks(proxies.get("no", ""))):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _no_proxy_networks(no_proxy: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for entry in no_proxy.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(entry.strip(), strict=False)


def _make_connection_pool(endpoint: Endpoint, ssl_context: ssl.SSLContext) -> PoolManager:
    from urllib3 import PoolManager, ProxyManager, make_headers

    # The name for SNI and for checking the certificate; None means the host of the URL.
    server_hostname = endpoint.tls_name or None
    proxy = find_proxy(endpoint)
    if not proxy:
        return PoolManager(ssl_context=ssl_context, server_hostname=server_hostname)
    proxy_url = urlsplit(proxy)
    credentials = f"{unquote(proxy_url.username)}:{unquote(proxy_url.password or '')}" if proxy_url.username else None
    headers = make_headers(proxy_basic_auth=credentials) if credentials else None
    return ProxyManager(proxy, proxy_headers=headers, ssl_context=ssl_context, server_hostname=server_hostname)


def _make_ssl_context(ca_certificate: str, client: KeyPair) -> ssl.SSLContext:
    """Return a TLS context that trusts only the cluster's authority and presents the client certificate."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    password = secrets.token_urlsafe(32)
    key = load_pem_private_key(client.private_key.encode(), None)
    encrypted_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    context = ssl.create_default_context(cadata=ca_certificate)
    with tempfile.TemporaryDirectory(prefix="cfngen-") as directory:  # only its owner may enter it
        file = Path(directory) / "client.pem"
        create_private_file(file, client.certificate + encrypted_key.decode())
        context.load_cert_chain(file, password=password)
    return context


def _error_without_response(error: Exception, endpoint: Endpoint) -> KubernetesError:
    from urllib3.exceptions import ProxyError, SSLError

    url = endpoint.connect_url
    if isinstance(error, SSLError):
        message = " ".join(str(error).split())
        if "CERTIFICATE_VERIFY_FAILED" in message:
            return WrongServerError(
                f"the certificate of the server at {url} was not issued by this cluster's certificate "
                f"authority: {message}",
                hint="check this machine's clock, and whether the stack is that of the cluster file.",
            )
        return CertificateRefusedError(
            f"no TLS connection to {url}: {message}",
            hint="a proxy or another server may intercept the connection; or the server does not trust the "
            "certificate.",
        )
    if isinstance(error, ProxyError):
        return ApiUnreachableError(
            f"the proxy refused the connection to the Kubernetes API at {url}: {_failure_reason(error)}",
            hint=f"HTTPS_PROXY names the proxy; if none is needed, add {endpoint.host} to NO_PROXY.",
        )
    is_unresolved = isinstance(error.__cause__ or error.__context__, socket.gaierror)
    return ApiUnreachableError(
        f"the Kubernetes API at {url} does not answer: {_failure_reason(error)}",
        hint=_unresolved_hint(endpoint.host) if is_unresolved else endpoint.unreachable_hint,
    )


def _unresolved_hint(host: str) -> str:
    return (
        f"the name servers of this machine do not know {host}: a name in a private hosted zone is only known in its "
        "VPC, so run this there, or let your name servers ask those of the VPC (a Route 53 Resolver endpoint)."
    )


def _failure_reason(error: Exception) -> str:
    """Return why the connection failed, without the names of urllib3's objects."""
    from urllib3 import exceptions

    # urllib3's NewConnectionError ("connection refused") is a subclass of ConnectTimeoutError.
    if isinstance(error, exceptions.ConnectTimeoutError) and not isinstance(error, exceptions.NewConnectionError):
        return f"no connection within {CONNECT_TIMEOUT_SECONDS:.0f} seconds"
    if isinstance(error, exceptions.ReadTimeoutError):
        return f"no answer within {READ_TIMEOUT_SECONDS:.0f} seconds"
    inner = error.__cause__ or error.__context__
    return str(getattr(inner, "strerror", None) or inner or error)
