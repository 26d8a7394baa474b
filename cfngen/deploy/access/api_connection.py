"""The connection to an API server: urllib3, which botocore brings, with TLS as a cluster needs it.

The client's certificate is made for the occasion and never lies readable on a disk: Python loads certificates from
files only, so there is one for a moment, its key encrypted with a password that only this process knows.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import secrets
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from cfngen import __version__
from cfngen.deploy.access.certificates import KeyPair
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from urllib3 import PoolManager

CONNECT, READ = 5.0, 15.0  # seconds: an answer takes milliseconds, and a security group drops packets in silence


class KubernetesError(CfngenError):
    """The Kubernetes API did not answer as it should."""


class ApiUnreachableError(KubernetesError):
    """Nobody answers at the API's address."""


class WrongServerError(KubernetesError):
    """Who answers has no certificate of the cluster's authority."""


class CertificateRefusedError(KubernetesError):
    """The API server does not accept the client's certificate."""


class ForbiddenError(KubernetesError):
    """The API server knows the client, and does not let it."""


@dataclass(frozen=True)
class Endpoint:
    """Where the API server is.

    Attributes:
        url: under which it is known, and which its certificate is for.
        override: URL at which it really listens, if elsewhere.
        allowed: who may reach it, as the stack's parameter says; empty if not known.
    """

    url: str
    override: str = ""
    allowed: str = ""

    @property
    def host(self) -> str:
        """Name or address to connect to."""
        return urlsplit(self.override or self.url).hostname or ""

    @property
    def port(self) -> int:
        """Port to connect to."""
        return urlsplit(self.override or self.url).port or 443

    @property
    def tls_name(self) -> str:
        """Name that its certificate must bear where that is not the host connected to; else empty."""
        return (urlsplit(self.url).hostname or "") if self.override else ""

    @property
    def server(self) -> str:
        """URL to connect to."""
        return self.override or self.url

    @property
    def checks(self) -> str:
        """What to look at where nobody answers."""
        allowed = f" (it is {self.allowed})" if self.allowed else ""
        return (
            f"check that the stack's parameter ApiAllowedCidr{allowed} holds your public address, that nothing "
            f"between here and there blocks port {self.port}, and that the master runs."
        )


@dataclass(frozen=True)
class Answer:
    """What an API server answers.

    Attributes:
        status: of HTTP.
        body: the text.
        reason: the words beside the status.
    """

    status: int
    body: str
    reason: str = ""

    @property
    def message(self) -> str:
        """What an answer that is no success says: the message of its Status, or the reason."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            return str(json.loads(self.body)["message"])
        return " ".join(self.reason.split())


class ApiConnection:
    """A connection to the API server; close it when it is no longer needed.

    Args:
        endpoint: where the API server is.
        authority: PEM of the authority that its certificate must be of.
        client: certificate and key to show it.
    """

    def __init__(self, endpoint: Endpoint, authority: str, client: KeyPair) -> None:
        self.endpoint = endpoint
        self._pool = _pool(endpoint, _context(authority, client))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def request(self, method: str, path: str, query: Mapping[str, str] | None = None, *, accept: str) -> Answer:
        """Return what the API server answers, whatever its status.

        Nothing is tried again: what waits for the API asks it anew anyway.

        Args:
            method: of HTTP.
            path: beginning with a slash.
            query: keys and values.
            accept: media type of the answer.

        Raises:
            ApiUnreachableError: nobody answers.
            WrongServerError: somebody else does.
            CertificateRefusedError: TLS ends before there is an answer.
        """
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        try:
            response = self._pool.request(
                method,
                self.endpoint.server + path,
                fields=dict(query or {}) or None,
                headers={"Accept": accept, "User-Agent": f"cfngen/{__version__}"},
                timeout=Timeout(connect=CONNECT, read=READ),
                retries=False,
                redirect=False,
            )
        except HTTPError as error:
            raise _unanswered(error, self.endpoint) from error
        return Answer(response.status, response.data.decode(errors="replace"), response.reason or "")

    def refusal(self, answer: Answer) -> KubernetesError:
        """Return what an answer that is no success means."""
        server, message = self.endpoint.server, answer.message
        if answer.status == 401:
            return CertificateRefusedError(
                f"the Kubernetes API at {server} does not accept the certificate: {message}",
                hint="check this machine's clock, and that the secret holds the authority the masters run with.",
            )
        if answer.status == 403:
            return ForbiddenError(
                f"the Kubernetes API does not allow it: {message}",
                hint="only the group system:masters may do everything; bind a role to yours, or leave --group out.",
            )
        return KubernetesError(f"the Kubernetes API at {server} answers {answer.status}: {message}")


def proxy_of(endpoint: Endpoint) -> str:
    """Return the URL of the proxy that the environment names for an API server; empty for none.

    `NO_PROXY` may name ranges of addresses, as kubectl and curl understand it: the masters of a private cluster have
    nothing but addresses. An API server elsewhere than its URL says is on this machine.
    """
    proxies = getproxies()
    proxy = proxies.get("https", "")
    if not proxy or endpoint.override or proxy_bypass(f"{endpoint.host}:{endpoint.port}"):
        return ""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(endpoint.host)
        if any(address in network for network in _ranges(proxies.get("no", ""))):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _ranges(no_proxy: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for entry in no_proxy.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(entry.strip(), strict=False)


def _pool(endpoint: Endpoint, context: ssl.SSLContext) -> PoolManager:
    from urllib3 import PoolManager, ProxyManager, make_headers

    # Under which name the certificate is asked for, and is checked for: else the host's.
    name = endpoint.tls_name or None
    proxy = proxy_of(endpoint)
    if not proxy:
        return PoolManager(ssl_context=context, server_hostname=name)
    address = urlsplit(proxy)
    user = f"{unquote(address.username)}:{unquote(address.password or '')}" if address.username else None
    headers = make_headers(proxy_basic_auth=user) if user else None
    return ProxyManager(proxy, proxy_headers=headers, ssl_context=context, server_hostname=name)


def _context(authority: str, client: KeyPair) -> ssl.SSLContext:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    password = secrets.token_urlsafe(32)
    key = load_pem_private_key(client.private_key.encode(), None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    context = ssl.create_default_context(cadata=authority)
    with tempfile.TemporaryDirectory(prefix="cfngen-") as directory:  # only its owner may enter it
        file = Path(directory) / "client.pem"
        file.write_bytes(client.certificate.encode() + sealed)
        context.load_cert_chain(file, password=password)
    return context


def _unanswered(error: Exception, endpoint: Endpoint) -> KubernetesError:
    """Return what a request without an answer means."""
    from urllib3.exceptions import ProxyError, SSLError

    server = endpoint.server
    if isinstance(error, SSLError):
        message = " ".join(str(error).split())
        if "CERTIFICATE_VERIFY_FAILED" in message:
            return WrongServerError(
                f"who answers at {server} does not show a certificate of this cluster's authority: {message}",
                hint="check this machine's clock, and whether the stack is that of the cluster file.",
            )
        return CertificateRefusedError(
            f"no TLS connection to {server}: {message}",
            hint="a proxy or another server may stand in between; or it does not know the certificate's authority.",
        )
    if isinstance(error, ProxyError):
        return ApiUnreachableError(
            f"the proxy does not let us through to the Kubernetes API at {server}: {_reason(error)}",
            hint=f"HTTPS_PROXY names the proxy; name {endpoint.host} in NO_PROXY where the way needs none.",
        )
    return ApiUnreachableError(
        f"the Kubernetes API at {server} does not answer: {_reason(error)}", hint=endpoint.checks
    )


def _reason(error: Exception) -> str:
    """Return why there is no connection, without the names of urllib3's own objects."""
    from urllib3 import exceptions

    # "Connection refused" derives from the time-out of connecting, too.
    if isinstance(error, exceptions.ConnectTimeoutError) and not isinstance(error, exceptions.NewConnectionError):
        return f"no connection within {CONNECT:.0f} seconds"
    if isinstance(error, exceptions.ReadTimeoutError):
        return f"no answer within {READ:.0f} seconds"
    inner = error.__cause__ or error.__context__
    return str(getattr(inner, "strerror", None) or inner or error)
