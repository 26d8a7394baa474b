"""The API as its client asks it: paths, pages, refusals, and what is said where nobody answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from urllib3 import exceptions

from cfngen import __version__
from cfngen.deploy.access import api_connection
from cfngen.deploy.access.api_connection import (
    ApiResponse,
    ApiUnreachableError,
    CertificateRefusedError,
    Endpoint,
    ForbiddenError,
    KubernetesError,
    WrongServerError,
)
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubernetes import KubernetesClient

URL = "https://api.example:6443"


class Pool:
    """urllib3's pool, which answers as it is told.

    Attributes:
        answers: status and body by method and path; of several each once.
        asked: every request.
    """

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[Any]] = {}
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []
        self.options: list[dict[str, Any]] = []
        self.cleared = 0

    def request(self, method: str, url: str, **options: Any) -> Any:
        assert url.startswith(URL)
        self.asked.append((method, url.removeprefix(URL), options.pop("fields") or {}))
        self.options.append(options)
        answers = self.answers[method, url.removeprefix(URL)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body, *reason = answer
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        return type("Response", (), {"status": status, "data": data, "reason": reason[0] if reason else None})()

    def clear(self) -> None:
        self.cleared += 1


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    made = Pool()
    monkeypatch.setattr(api_connection, "_make_ssl_context", lambda authority, client: None)
    monkeypatch.setattr(api_connection, "_make_connection_pool", lambda endpoint, context: made)
    return made


@pytest.fixture
def api(pool: Pool) -> KubernetesClient:
    return KubernetesClient(Endpoint(URL), "", KeyPair("", ""))


def test_a_request_says_who_asks_and_is_not_repeated(pool: Pool, api: KubernetesClient) -> None:
    pool.answers["GET", "/version"] = [(200, {"gitVersion": "v1.36.3"})]
    with api as opened:
        assert opened.version() == "1.36.3"
    [options] = pool.options
    assert options["headers"] == {"Accept": "application/json", "User-Agent": f"cfngen/{__version__}"}
    assert (options["retries"], options["redirect"]) == (False, False)
    assert 1 <= options["timeout"].connect_timeout < options["timeout"].read_timeout <= 60
    assert pool.cleared == 1


def test_long_lists_are_read_page_by_page(pool: Pool, api: KubernetesClient) -> None:
    pages = [
        {"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "further"}},
        {"items": None, "metadata": {"continue": "last"}},
        {"items": [{"metadata": {"name": "b"}}], "metadata": {"continue": ""}},
    ]
    pool.answers["GET", "/api/v1/persistentvolumes"] = [(200, page) for page in pages]
    assert api.persistent_volumes() == ("a", "b")
    queries = [query for _, _, query in pool.asked]
    assert [query.get("continue") for query in queries] == [None, "further", "last"]
    assert len({query["limit"] for query in queries}) == 1
    pool.answers["GET", "/api/v1/persistentvolumes"] = [(200, {"metadata": None})]
    assert api.persistent_volumes() == ()


def test_each_kind_of_object_is_asked_for_at_its_path(pool: Pool, api: KubernetesClient) -> None:
    named = {"metadata": {"name": "x", "namespace": "default"}}
    for path in ("nodes", "namespaces/kube-system/pods"):
        pool.answers["GET", f"/api/v1/{path}"] = [(200, {"items": [named]})]
    services = [{**named, "spec": {"type": kind}} for kind in ("ClusterIP", "LoadBalancer")] + [named]
    pool.answers["GET", "/api/v1/services"] = [(200, {"items": services})]
    assert [node.name for node in api.nodes()] == ["x"]
    assert [pod.name for pod in api.system_pods()] == ["x"]
    assert [(load_balancer.namespace, load_balancer.name) for load_balancer in api.load_balancers()] == [
        ("default", "x")
    ]


@pytest.mark.parametrize(
    ("items", "data"),
    [([{"data": {"a": "b"}}], {"a": "b"}), ([{"data": None}], {}), ([{}], {}), ([], {}), (None, {})],
)
def test_a_config_map_that_is_not_there_is_empty(
    pool: Pool, api: KubernetesClient, items: Any, data: dict[str, str]
) -> None:
    pool.answers["GET", "/api/v1/namespaces/kube-system/configmaps"] = [(200, {"items": items})]
    assert api.config_map("extra") == data
    assert pool.asked[0][2] == {"fieldSelector": "metadata.name=extra"}


@pytest.mark.parametrize(("status", "refused"), [(200, False), (202, False), (404, False), (403, True), (409, True)])
def test_a_service_that_is_gone_already_is_deleted(
    pool: Pool, api: KubernetesClient, status: int, refused: bool
) -> None:
    pool.answers["DELETE", "/api/v1/namespaces/default/services/web"] = [(status, {"message": "no"})]
    if refused:
        with pytest.raises(KubernetesError, match="no"):
            api.delete_service("default", "web")
    else:
        api.delete_service("default", "web")
    assert pool.options[0]["headers"]["Accept"] == "application/json"


@pytest.mark.parametrize(
    ("status", "body", "ready", "failing"),
    [
        (200, "[+]ping ok\nreadyz check passed", True, ()),
        (500, "[-]etcd failed: reason withheld\nreadyz check failed", False, ("etcd",)),
        (503, "nothing of the kind", False, ()),
    ],
)
def test_a_server_that_is_not_ready_has_answered(
    pool: Pool, api: KubernetesClient, status: int, body: str, ready: bool, failing: tuple[str, ...]
) -> None:
    pool.answers["GET", "/readyz"] = [(status, body)]
    readiness = api.readiness()
    assert (readiness.ready, readiness.failing) == (ready, failing)
    assert pool.asked == [("GET", "/readyz", {"verbose": "true"})]


@pytest.mark.parametrize(("status", "body"), [(500, ""), (499, "x"), (401, "x")])
def test_any_other_answer_is_a_refusal(pool: Pool, api: KubernetesClient, status: int, body: str) -> None:
    pool.answers["GET", "/readyz"] = [(status, body, "why")]
    with pytest.raises(KubernetesError, match="why"):
        api.readiness()


@pytest.mark.parametrize("body", ["<html>", "[1]", "null"])
def test_who_does_not_answer_as_kubernetes_does_is_another(pool: Pool, api: KubernetesClient, body: str) -> None:
    pool.answers["GET", "/version"] = [(200, body)]
    with pytest.raises(WrongServerError, match="did not return a Kubernetes response") as wrong:
        api.version()
    assert wrong.value.hint == Endpoint(URL).unreachable_hint


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, CertificateRefusedError, "does not accept the certificate: because"),
        (403, ForbiddenError, "denied the request: because"),
        (404, KubernetesError, "responded with HTTP status 404: because"),
        (201, KubernetesError, "responded with HTTP status 201: because"),
    ],
)
def test_a_refusal_is_told_by_its_kind(
    pool: Pool, api: KubernetesClient, status: int, kind: type[Exception], words: str
) -> None:
    pool.answers["GET", "/version"] = [(status, {"message": "because"})]
    with pytest.raises(kind, match=words) as refused:
        api.version()
    assert type(refused.value) is kind


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ApiResponse(403, '{"message": "because"}', "Forbidden"), "because"),
        (ApiResponse(403, '{"status": "Failure"}', "Forbidden"), "Forbidden"),
        (ApiResponse(403, "[1]", "Not\n  allowed"), "Not allowed"),
        (ApiResponse(403, "<html>", "Forbidden"), "Forbidden"),
        (ApiResponse(403, ""), ""),
    ],
)
def test_what_an_answer_says_is_its_message_or_the_words_beside_its_status(answer: ApiResponse, message: str) -> None:
    assert answer.message == message


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            exceptions.SSLError("CERTIFICATE_VERIFY_FAILED\n  no"),
            WrongServerError,
            "authority: CERTIFICATE_VERIFY_FAILED no",
        ),
        (exceptions.SSLError("WRONG_VERSION"), CertificateRefusedError, "no TLS connection to .*: WRONG_VERSION"),
        (
            exceptions.ProxyError("x", OSError("refused")),
            ApiUnreachableError,
            "the proxy refused the connection",
        ),
        (exceptions.ConnectTimeoutError(None, "x"), ApiUnreachableError, "no connection within 5 seconds"),
        (exceptions.ReadTimeoutError(None, "x", "y"), ApiUnreachableError, "no answer within 15 seconds"),  # type: ignore[arg-type]
        (
            caused(exceptions.NewConnectionError(None, "x"), OSError(111, "Connection refused")),  # type: ignore[arg-type]
            ApiUnreachableError,
            "does not answer: Connection refused",
        ),
        (caused(exceptions.ProtocolError("x"), ValueError("broken off")), ApiUnreachableError, "broken off"),
        (exceptions.ProtocolError("cut"), ApiUnreachableError, "cut"),
    ],
)
def test_where_nobody_answers_it_is_said_why(
    pool: Pool, api: KubernetesClient, error: Exception, kind: type[Exception], words: str
) -> None:
    pool.answers["GET", "/version"] = [error]
    with pytest.raises(kind, match=words) as refused:
        api.version()
    assert type(refused.value) is kind


@pytest.mark.parametrize(
    ("endpoint", "host", "port", "server", "tls_name"),
    [
        (Endpoint("https://api.example"), "api.example", 443, "https://api.example", ""),
        (Endpoint(URL), "api.example", 6443, URL, ""),
        (Endpoint(URL, "https://127.0.0.1:7443"), "127.0.0.1", 7443, "https://127.0.0.1:7443", "api.example"),
        (Endpoint(""), "", 443, "", ""),
    ],
)
def test_where_the_server_listens_and_which_name_it_bears(
    endpoint: Endpoint, host: str, port: int, server: str, tls_name: str
) -> None:
    assert (endpoint.host, endpoint.port, endpoint.connect_url, endpoint.tls_name) == (host, port, server, tls_name)
    assert f"port {port}" in endpoint.unreachable_hint


def test_who_may_reach_it_is_said_where_it_is_known() -> None:
    assert (
        "ApiAllowedCidr (currently 192.0.2.0/24) contains"
        in Endpoint(URL, allowed_cidr="192.0.2.0/24").unreachable_hint
    )
    without = Endpoint(URL).unreachable_hint
    assert "a way into the VPC" in without
    assert "ApiAllowedCidr" not in without


def test_a_name_that_is_not_known_here_is_what_is_advised_about(pool: Pool, api: KubernetesClient) -> None:
    unknown = socket.gaierror(-2, "Name or service not known")
    pool.answers["GET", "/version"] = [caused(exceptions.NewConnectionError(None, "x"), unknown)]  # type: ignore[arg-type]
    with pytest.raises(ApiUnreachableError, match="does not answer: Name or service not known") as raised:
        api.version()
    assert "the name servers of this machine do not know api.example: " in raised.value.hint
    assert "ApiAllowedCidr" not in raised.value.hint


def test_bytes_that_are_no_text_are_no_failure(pool: Pool, api: KubernetesClient) -> None:
    pool.answers["GET", "/readyz"] = [(503, b"\xff")]
    assert api.readiness().ready is False
