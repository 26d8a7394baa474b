"""The Kubernetes API of a cluster, read through the official client.

The client's certificate is made for the occasion and never lies readable on a disk: Python loads certificates from
files only, so there is one for a moment, its key encrypted with a password that only this process knows.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cfngen.deploy.access import kubernetes_objects as objects
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubernetes_objects import LoadBalancer, Node, Pod, Readiness
from cfngen.errors import CfngenError

CONNECT, READ = 5.0, 15.0  # seconds: an answer takes milliseconds, and a security group drops packets in silence
PAGE = 500
SYSTEM = "kube-system"
Item = TypeVar("Item")


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


class Kubernetes:
    """A connection to the API server; close it, or use it in a `with` statement.

    Args:
        endpoint: where the API server is.
        authority: PEM of the authority that its certificate must be of.
        client: certificate and key to show it.
    """

    def __init__(self, endpoint: Endpoint, authority: str, client: KeyPair) -> None:
        from kubernetes.client import ApiClient, Configuration

        configuration = Configuration()
        configuration.host = endpoint.server
        configuration.retries = False  # the client's own default is three, each as long as the time-out
        configuration.tls_server_name = endpoint.tls_name or None
        if endpoint.override:
            configuration.proxy = None
        self.endpoint = endpoint
        self.api = ApiClient(configuration)
        self.api.rest_client.pool_manager.connection_pool_kw["ssl_context"] = _context(authority, client)

    def __enter__(self) -> Kubernetes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.api.rest_client.pool_manager.clear()
        self.api.close()

    def version(self) -> str:
        """Return the API server's version, e.g. `1.36.3`.

        Raises:
            KubernetesError: one of the errors above.
        """
        return objects.version(self._get("/version"))

    def readiness(self) -> Readiness:
        """Return whether the API server is ready, and which of its checks fail.

        Raises:
            KubernetesError: it does not answer.
        """
        from kubernetes.client import ApiException

        try:
            with _errors(self.endpoint):
                return objects.readiness(self._call("/readyz", {"verbose": "true"}, "str"))
        except KubernetesError as error:
            cause = error.__cause__
            # Not ready is an answer: 500 with the same list.
            if isinstance(cause, ApiException) and cause.status and cause.status >= 500 and cause.body:
                body = cause.body
                found = objects.readiness(body.decode(errors="replace") if isinstance(body, bytes) else str(body))
                return Readiness(False, found.failing)
            raise

    def nodes(self) -> tuple[Node, ...]:
        """Return every Node.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list("/api/v1/nodes", objects.node)

    def system_pods(self) -> tuple[Pod, ...]:
        """Return the pods of the cluster itself.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list(f"/api/v1/namespaces/{SYSTEM}/pods", objects.pod)

    def load_balancers(self) -> tuple[LoadBalancer, ...]:
        """Return the Services that have, or will have, a load balancer in AWS.

        Raises:
            KubernetesError: one of the errors above.
        """
        kinds = self._list("/api/v1/services", lambda item: (item.get("spec", {}).get("type"), item))
        return tuple(objects.load_balancer(item) for kind, item in kinds if kind == "LoadBalancer")

    def persistent_volumes(self) -> tuple[str, ...]:
        """Return the names of every PersistentVolume.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list("/api/v1/persistentvolumes", lambda item: str(item["metadata"]["name"]))

    def config_map(self, name: str) -> Mapping[str, str]:
        """Return what a ConfigMap of the cluster itself holds; nothing if there is none.

        Raises:
            KubernetesError: one of the errors above.
        """
        # By a list: where there is no such object a list is empty, and no error.
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps"
        found = self._get(path, {"fieldSelector": f"metadata.name={name}"}).get("items") or ()
        return dict(found[0].get("data") or {}) if found else {}

    def _list(self, path: str, make: Callable[[Mapping[str, Any]], Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        following = ""
        while True:
            query = {"limit": str(PAGE), **({"continue": following} if following else {})}
            answer = self._get(path, query)
            found.extend(make(each) for each in answer.get("items") or ())
            following = (answer.get("metadata") or {}).get("continue") or ""
            if not following:
                return tuple(found)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        with _errors(self.endpoint):
            answer = self._call(path, query or {}, "object")
        if not isinstance(answer, dict):
            raise WrongServerError(
                f"{self.endpoint.server}{path} does not answer as Kubernetes does", hint=_checks(self.endpoint)
            )
        return answer

    def _call(self, path: str, query: Mapping[str, str], kind: str) -> Any:
        return self.api.call_api(
            path,
            "GET",
            query_params=list(query.items()),
            header_params={"Accept": "application/json" if kind == "object" else "*/*"},
            response_types_map={200: kind},
            _return_http_data_only=True,
            _request_timeout=(CONNECT, READ),
        )


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


@contextlib.contextmanager
def _errors(endpoint: Endpoint) -> Iterator[None]:
    """Turn the errors of the client and of the connection into ours."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        raise _refused(error, endpoint) from error
    except AttributeError as error:
        # Where TLS fails there is no body, and version 36 of the client fails once more on decoding it.
        if not isinstance(error.__context__, ApiException):
            raise
        raise _refused(error.__context__, endpoint) from error
    except HTTPError as error:
        raise ApiUnreachableError(
            f"the Kubernetes API at {endpoint.server} does not answer: {_reason(error)}", hint=_checks(endpoint)
        ) from error


def _refused(error: Any, endpoint: Endpoint) -> KubernetesError:
    message = _message(error)
    if error.status == 401:
        return CertificateRefusedError(
            f"the Kubernetes API at {endpoint.server} does not accept the certificate: {message}",
            hint="check this machine's clock, and that the secret holds the authority the masters run with.",
        )
    if error.status == 403:
        return ForbiddenError(
            f"the Kubernetes API does not allow it: {message}",
            hint="only the group system:masters may do everything; bind a role to yours, or leave --group out.",
        )
    if error.status:
        return KubernetesError(f"the Kubernetes API at {endpoint.server} answers {error.status}: {message}")
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return WrongServerError(
            f"who answers at {endpoint.server} does not show a certificate of this cluster's authority: {message}",
            hint="check this machine's clock, and whether the stack is that of the cluster file.",
        )
    return CertificateRefusedError(
        f"no TLS connection to {endpoint.server}: {message}",
        hint="a proxy or another server may stand in between; or it does not know the certificate's authority.",
    )


def _checks(endpoint: Endpoint) -> str:
    """Return what to look at where nobody answers."""
    allowed = f" (it is {endpoint.allowed})" if endpoint.allowed else ""
    return (
        f"check that the stack's parameter ApiAllowedCidr{allowed} holds your public address, that nothing between "
        f"here and there blocks port {endpoint.port}, and that the master runs."
    )


def _reason(error: Exception) -> str:
    """Return why there is no connection, without the names of the client's own objects."""
    from urllib3 import exceptions

    # "Connection refused" derives from the time-out of connecting, too.
    if isinstance(error, exceptions.ConnectTimeoutError) and not isinstance(error, exceptions.NewConnectionError):
        return f"no connection within {CONNECT:.0f} seconds"
    if isinstance(error, exceptions.ReadTimeoutError):
        return f"no answer within {READ:.0f} seconds"
    inner = error.__cause__ or error.__context__
    return str(getattr(inner, "strerror", None) or inner or error)


def _message(error: Any) -> str:
    """Return what an answer that is no success says: the message of its Status, or the reason."""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        return str(json.loads(error.body)["message"])
    return " ".join(str(error.reason or "").split())
