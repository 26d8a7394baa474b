"""The sandbox's Kubernetes API, asked as kubectl asks: with its paths, headers and bodies."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cfngen.sandbox.kubernetes import certificates
from cfngen.sandbox.kubernetes.api import ClusterAccess, KubernetesApi
from cfngen.sandbox.kubernetes.service_account_tokens import TokenIssuer, token_issuer
from cfngen.sandbox.kubernetes.state import KubernetesState, Object
from cfngen.sandbox.kubernetes.system_objects import NodeFacts, create_cluster_objects, register_node
from cfngen.sandbox.kubernetes.tables import format_age
from cfngen.sandbox.services import json_web_tokens

# Later than this machine's clock, so that only the simulated time can make a certificate good.
START = datetime(2040, 1, 1, tzinfo=UTC)
SPEED = 12.0
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
CREATE = "?fieldManager=kubectl-create&fieldValidation=Strict"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {"name": "web", "creationTimestamp": None, "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"creationTimestamp": None, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx", "resources": {}}]},
        },
        "strategy": {},
    },
    "status": {},
}


@dataclasses.dataclass
class Kubectl:
    """A kubectl with an administrator's certificate for an hour, and the cluster that it talks to."""

    state: KubernetesState
    address: str
    context: ssl.SSLContext
    clock: list[datetime]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        host = urllib.parse.urlsplit(self.address).netloc
        data = None if body is None else json.dumps(body)
        sent = {"Accept": "application/json", "User-Agent": "kubectl/v1.36.3 (linux/amd64)"}
        sent |= {"Content-Type": "application/json"} if data else {}
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        with contextlib.closing(http.client.HTTPSConnection(host, context=self.context)) as connection:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def get(self, path: str) -> list[list[Any]]:
        """The table of `kubectl get`: the names of its columns, and its rows."""
        code, found = self("GET", path, Accept=TABLE)
        assert (code, found["kind"], found["apiVersion"]) == (200, "Table", "meta.k8s.io/v1"), found
        assert all(row["object"]["kind"] == "PartialObjectMetadata" for row in found["rows"])
        shown = [index for index, each in enumerate(found["columnDefinitions"]) if each["priority"] == 0]
        rows = [
            [column_definition["name"] for column_definition in found["columnDefinitions"]],
            *(row["cells"] for row in found["rows"]),
        ]
        return [[row[index] for index in shown] for row in rows]


@dataclasses.dataclass(frozen=True)
class Certificates:
    """Those of a cluster, and of an administrator for an hour; and what signs tokens of service accounts."""

    authority: str
    serving: certificates.Certificate
    client: certificates.Certificate
    tokens: TokenIssuer


@pytest.fixture(scope="module")
def issued() -> Certificates:
    bundle = certificates.authorities(START)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(certificates, "CERTIFICATE_VALIDITY", timedelta(hours=1))
        client = certificates.issue_client_certificate(bundle, "operator", "system:masters", START)
    serving = certificates.issue_server_certificate(bundle, {"127.0.0.1"}, START)
    tokens = token_issuer(
        {"apiServer": {"extraArgs": []}, "networking": {"dnsDomain": "cluster.local"}}, bundle, "https://203.0.113.7"
    )
    return Certificates(bundle["ca.crt"], serving, client, tokens)


@pytest.fixture
def kubectl(issued: Certificates, tmp_path: Path) -> Iterator[Kubectl]:
    clock = [START]
    state = KubernetesState(lambda: clock[0], "1.36.3")
    create_cluster_objects(state, service_address="10.0.0.1", dns_address="10.0.0.10")
    for name, master in (("i-1", True), ("i-2", False)):
        where = ("us-west-2a", "t3.medium", "amd64", "172.20.0.9", "", "")
        register_node(state, NodeFacts(name, *where, master, "Debian 13", {"containerd": "2.3.4"}))
        state.set_ready(name, master)

    def deleted(kind: str, item: Object) -> None:
        state.remove(kind, item["metadata"]["name"], item["metadata"].get("namespace", ""))

    access = ClusterAccess(
        state=state,
        lock=threading.RLock(),
        has_quorum=lambda: True,
        on_created=lambda kind, item: None,
        delete_object=deleted,
        token_issuer=lambda: issued.tokens,
        speed=SPEED,
    )
    api = KubernetesApi(access, issued.authority, issued.serving)
    context = ssl.create_default_context(cadata=issued.authority)
    for name, text in (("client.crt", issued.client.certificate), ("client.key", issued.client.key)):
        (tmp_path / name).write_text(text)
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    made = Kubectl(state, api.address, context, clock)
    try:
        yield made
    finally:
        api.close()


def test_a_short_lived_certificate_lasts_by_its_owners_clock(kubectl: Kubectl) -> None:
    for minutes in (0, 30, 59):
        kubectl.clock[0] = START + timedelta(minutes=minutes) * SPEED
        assert kubectl("GET", "/api/v1/nodes")[0] == 200
    kubectl.clock[0] = START + timedelta(minutes=66) * SPEED
    assert kubectl("GET", "/api/v1/nodes")[0] == 401


def test_nodes_have_the_usual_columns(kubectl: Kubectl) -> None:
    kubectl.clock[0] += timedelta(minutes=5, seconds=12)
    kubectl.state.get("nodes", "i-2")["spec"]["unschedulable"] = True
    assert kubectl.get("/api/v1/nodes?limit=500") == [
        ["Name", "Status", "Roles", "Age", "Version"],
        ["i-1", "Ready", "control-plane", "5m12s", "v1.36.3"],
        ["i-2", "NotReady,SchedulingDisabled", "<none>", "5m12s", "v1.36.3"],
    ]
    _, wide = kubectl("GET", "/api/v1/nodes/i-1", Accept=TABLE)
    assert [
        column_definition["name"] for column_definition in wide["columnDefinitions"] if column_definition["priority"]
    ] == [
        "Internal-IP",
        "External-IP",
        "OS-Image",
        "Kernel-Version",
        "Container-Runtime",
    ]
    expected = ["172.20.0.9", "<none>", "Debian 13", "6.8.0-1021-aws", "containerd://2.3.4"]
    assert wide["rows"][0]["cells"][5:] == expected


def test_a_config_map_is_created_shown_and_deleted(kubectl: Kubectl) -> None:
    body = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "written-later", "creationTimestamp": None, "namespace": "default"},
    }
    code, made = kubectl("POST", CONFIG_MAPS + CREATE, body)
    assert (code, made["kind"], made["metadata"]["name"]) == (201, "ConfigMap", "written-later")
    assert made["metadata"]["creationTimestamp"] == "2040-01-01T00:00:00Z"
    assert made["metadata"]["uid"]
    code, again = kubectl("POST", CONFIG_MAPS + CREATE, body)
    assert (code, again["message"]) == (409, 'configmaps "written-later" already exists')
    named = f"{CONFIG_MAPS}/written-later"
    assert kubectl.get(named) == [["Name", "Data", "Age"], ["written-later", 0, "0s"]]
    code, gone = kubectl("DELETE", named, {"propagationPolicy": "Background"})
    assert (code, gone["status"], gone["details"]["uid"]) == (200, "Success", made["metadata"]["uid"])
    code, missing = kubectl("GET", named, Accept=TABLE)
    assert (code, missing["message"]) == (404, 'configmaps "written-later" not found')


def test_a_namespace_goes_with_what_is_in_it(kubectl: Kubectl) -> None:
    there = "/apis/apps/v1/namespaces/demo/deployments"
    assert kubectl("POST", there + CREATE, DEPLOYMENT)[0] == 404
    space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "demo"}, "spec": {}, "status": {}}
    assert kubectl("POST", "/api/v1/namespaces" + CREATE, space)[0] == 201
    assert ["demo", "Active", "0s"] in kubectl.get("/api/v1/namespaces")
    assert kubectl("POST", there + CREATE, DEPLOYMENT)[0] == 201
    assert kubectl.get(there) == [["Name", "Ready", "Up-to-date", "Available", "Age"], ["web", "0/2", 0, 0, "0s"]]
    assert kubectl("DELETE", "/api/v1/namespaces/demo")[0] == 200
    assert kubectl.state.list("deployments") == []
    code, kept = kubectl("DELETE", "/api/v1/namespaces/kube-system")
    assert (code, kept["reason"]) == (403, "Forbidden")
    assert kubectl.state.list("pods", "kube-system")


def test_a_rehearsal_leaves_nothing(kubectl: Kubectl) -> None:
    body = {"metadata": {"name": "tried"}}
    assert kubectl("POST", f"{CONFIG_MAPS}{CREATE}&dryRun=All", body)[0] == 201
    assert kubectl("GET", f"{CONFIG_MAPS}/tried")[0] == 404


def test_a_secrets_texts_are_encoded(kubectl: Kubectl) -> None:
    kubectl("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "key"}, "stringData": {"a": "b"}})
    kept = kubectl.state.get("secrets", "key", "default")
    assert kept is not None
    assert (kept["data"], kept["type"]) == ({"a": base64.b64encode(b"b").decode()}, "Opaque")
    assert "stringData" not in kept


def test_what_a_file_holds_may_be_replaced_unless_it_is_outdated(kubectl: Kubectl) -> None:
    _, made = kubectl("POST", CONFIG_MAPS, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    named = f"{CONFIG_MAPS}/one"
    code, second = kubectl("PUT", named, {**made, "data": {"b": "2"}})
    assert (code, second["data"], second["metadata"]["uid"]) == (200, {"b": "2"}, made["metadata"]["uid"])
    code, late = kubectl("PUT", named, {**made, "data": {}})
    assert (code, late["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("path", "body", "headers", "code"),
    [
        (CONFIG_MAPS, {"metadata": {"name": "Upper"}}, {}, 422),
        (CONFIG_MAPS, {"metadata": {}}, {}, 422),
        (CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "kube-system"}}, {}, 400),
        (CONFIG_MAPS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}, {}, 400),
        (CONFIG_MAPS, {"metadata": {"name": "a"}}, {"Content_Type": "application/vnd.kubernetes.protobuf"}, 415),
        (CONFIG_MAPS, ["no object"], {}, 400),
        ("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}}, {}, 404),
    ],
    ids=["name", "no name", "namespace", "kind", "protobuf", "list", "no namespace"],
)
def test_what_a_real_api_server_refuses_is_refused(
    kubectl: Kubectl, path: str, body: Any, headers: dict[str, str], code: int
) -> None:
    before = kubectl.state.list("configmaps")
    refused, status = kubectl("POST", path, body, **headers)
    assert (refused, status["kind"], status["status"]) == (code, "Status", "Failure")
    assert kubectl.state.list("configmaps") == before


@pytest.mark.parametrize(
    ("method", "path", "media_type", "words"),
    [
        (
            "POST",
            CONFIG_MAPS,
            "application/vnd.kubernetes.protobuf",
            "does not support application/vnd.kubernetes.protobuf - accepted media types include: application/json; ",
        ),
        ("PATCH", f"{CONFIG_MAPS}/new", "application/apply-patch+yaml", "server-side apply: leave out --server-side"),
    ],
)
def test_what_the_sandbox_cannot_write_is_refused_with_what_it_can(
    kubectl: Kubectl, method: str, path: str, media_type: str, words: str
) -> None:
    code, status = kubectl(method, path, {"metadata": {"name": "new"}}, Content_Type=media_type)
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")
    assert words in status["message"]


def test_kubectl_finds_kinds_by_their_short_names(kubectl: Kubectl) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    assert kubectl("GET", "/api?timeout=32s", Accept=aggregated)[1]["versions"] == ["v1"]
    groups = kubectl("GET", "/apis?timeout=32s", Accept=aggregated)[1]["groups"]
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    kinds = {
        short: resource["name"]
        for path in paths
        for resource in kubectl("GET", path)[1]["resources"]
        for short in resource.get("shortNames", [])
    }
    assert kinds.items() >= {"cm": "configmaps", "deploy": "deployments", "no": "nodes", "ns": "namespaces"}.items()


@pytest.mark.parametrize(
    ("group", "version", "kind"), [("", "v1", "ConfigMap"), ("apps", "v1", "Deployment"), ("", "v1", "Namespace")]
)
def test_a_file_is_validated_by_the_server(kubectl: Kubectl, group: str, version: str, kind: str) -> None:
    """As `QueryParamVerifierV3` of cli-runtime looks for it; without, kubectl would ask for the second schema."""
    paths = kubectl("GET", "/openapi/v3?timeout=32s")[1]["paths"]
    root = f"apis/{group}/{version}" if group else f"api/{version}"
    schema = kubectl("GET", paths[root]["serverRelativeURL"])[1]
    named = {"group": group, "version": version, "kind": kind}
    patches = [path["patch"] for path in schema["paths"].values() if "patch" in path]
    [patch] = [patch for patch in patches if patch["x-kubernetes-group-version-kind"] == named]
    assert ("fieldValidation", "query") in {(parameter["name"], parameter["in"]) for parameter in patch["parameters"]}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (312, "5m12s"), (600, "10m"), (10799, "179m"), (10800, "3h"),
        (12000, "3h20m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (187200, "2d4h"), (864000, "10d"),
        (63072000, "2y"), (63158400, "2y1d"), (252288000, "8y"),
    ],
)  # fmt: skip
def test_ages_read_as_those_of_kubectl(seconds: int, text: str) -> None:
    assert format_age(seconds) == text


TOKEN_REQUEST = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
TOKENS = "/api/v1/namespaces/default/serviceaccounts/web/token"


def test_create_token(kubectl: Kubectl) -> None:
    kubectl("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "web"}})
    code, made = kubectl("POST", TOKENS, {**TOKEN_REQUEST, "spec": {"audiences": None, "expirationSeconds": None}})
    assert (code, made["kind"], made["spec"]["expirationSeconds"]) == (201, "TokenRequest", 3600)
    token = json_web_tokens.parse(made["status"]["token"])
    [key] = kubectl("GET", "/openid/v1/jwks")[1]["keys"]
    assert token.header == {"alg": "RS256", "kid": key["kid"]}
    assert json_web_tokens.is_signed_by(token, key)
    discovery = kubectl("GET", "/.well-known/openid-configuration")[1]
    assert token.claims["iss"] == discovery["issuer"] == "https://kubernetes.default.svc.cluster.local"
    assert discovery["jwks_uri"] == "https://203.0.113.7/openid/v1/jwks"
    assert token.claims["sub"] == "system:serviceaccount:default:web"
    assert token.claims["aud"] == ["https://kubernetes.default.svc.cluster.local"]
    assert token.claims["exp"] == START.timestamp() + 3600


@pytest.mark.parametrize(
    ("path", "seconds", "code"),
    [(TOKENS.replace("web", "other"), 3600, 404), (TOKENS.replace("default", "other"), 3600, 404), (TOKENS, 599, 422)],
)
def test_a_token_that_is_refused(kubectl: Kubectl, path: str, seconds: int, code: int) -> None:
    kubectl("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "web"}})
    answered, status = kubectl("POST", path, {**TOKEN_REQUEST, "spec": {"expirationSeconds": seconds}})
    assert (answered, status["kind"]) == (code, "Status")
