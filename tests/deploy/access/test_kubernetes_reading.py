"""The Kubernetes API of a deployed cluster, read with a certificate made for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from deployed import Place, allow_everything_but, place

from cfngen.deploy.access import api_connection, cluster_access, kubernetes
from cfngen.deploy.access.api_connection import (
    ApiUnreachableError,
    CertificateRefusedError,
    Endpoint,
    ForbiddenError,
    KubernetesError,
    WrongServerError,
    find_proxy,
)
from cfngen.deploy.access.authorities import (
    EmptySecretError,
    MalformedSecretError,
    MissingSecretError,
    SecretDeniedError,
    read_authority,
    read_join_information,
)
from cfngen.deploy.access.certificates import Identity, KeyPair, issue_client_certificate
from cfngen.deploy.access.cluster_access import NoEndpointError
from cfngen.deploy.access.kubernetes import KubernetesClient
from cfngen.deploy.access.kubernetes_objects import parse_readiness
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.stacks import NoStackError
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes import api as kubernetes_api
from cfngen.sandbox.kubernetes import certificates

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """The default cluster; a test that changes something puts it back."""
    with place() as made:
        made.create()
        yield made


@pytest.fixture(scope="module")
def endpoint(where: Place) -> Endpoint:
    stack = stacks.require_root_stack(where.account, where.name)
    return cluster_access.find_api_endpoint(stack, stacks.read_outputs(where.account, stack), where.override)


@pytest.fixture(scope="module")
def strangers(where: Place) -> dict[str, str]:
    """The authorities of another cluster."""
    return certificates.authorities(where.clock.now())


def authority_of(where: Place) -> KeyPair:
    stack = stacks.require_root_stack(where.account, where.name)
    return cluster_access.find_authority(where.account, stack, stacks.read_outputs(where.account, stack)).key_pair


@contextmanager
def reading(where: Place, endpoint: Endpoint, identity: Identity | None = None) -> Iterator[KubernetesClient]:
    authority = authority_of(where)
    pair = issue_client_certificate(authority, identity or Identity("alice"), now=where.clock.now(), duration=HOUR)
    with KubernetesClient(endpoint, authority.certificate, pair) as api:
        yield api


def test_the_api_is_found_through_the_stack(where, endpoint):
    assert endpoint.url.startswith("https://")
    assert endpoint.host == "127.0.0.1"
    assert endpoint.tls_name == endpoint.url.removeprefix("https://")
    assert endpoint.allowed_cidr == "203.0.113.7/32"


def test_everything_that_is_looked_at_can_be_read(where, endpoint):
    with reading(where, endpoint) as api:
        assert api.version() == "1.36.3"
        assert api.readiness().ready
        nodes = {node.instance_id: node for node in api.nodes()}
        pods = api.system_pods()
        assert api.load_balancers() == ()
        assert api.persistent_volumes() == ()
    [master] = where.instances("MasterAAutoScalingGroup")
    assert set(nodes) == {master, *where.instances("NodeGroupNodesAutoScalingGroup")}
    assert all(node.ready and node.initialised and node.routed and node.version == "1.36.3" for node in nodes.values())
    assert [name for name, each in nodes.items() if each.master] == [master]
    assert {"coredns", "etcd", "kube"} <= {pod.name.split("-")[0] for pod in pods}
    assert all(pod.ready for pod in pods)


def test_what_kubernetes_made_in_aws_is_listed(where, endpoint):
    state = where.kubernetes.state
    state.put(
        "services",
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"hostname": "web-1.elb.amazonaws.com"}]}},
        },
    )
    state.put(
        "persistentvolumes",
        {
            "metadata": {"name": "pvc-1"},
            "spec": {"claimRef": {"namespace": "shop", "name": "data"}},
            "status": {"phase": "Bound"},
        },
    )
    with reading(where, endpoint) as api:
        [service] = api.load_balancers()
        volumes = api.persistent_volumes()
    state.remove("services", "web", "shop")
    state.remove("persistentvolumes", "pvc-1")
    assert (service.namespace, service.name, service.hostname) == ("shop", "web", "web-1.elb.amazonaws.com")
    assert volumes == ("pvc-1",)


def test_long_lists_are_read_to_their_end(where, endpoint, monkeypatch):
    monkeypatch.setattr(kubernetes, "PAGE_SIZE", 2)
    with reading(where, endpoint) as api:
        assert len(api.nodes()) == 5


def test_a_server_that_is_not_ready_says_what_fails(where, endpoint, monkeypatch):
    checks = (
        "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
    )
    monkeypatch.setattr(kubernetes_api.Connection, "_respond", lambda *_: (500, checks))
    with reading(where, endpoint) as api:
        found = api.readiness()
    assert (found.ready, found.failing) == (False, ("etcd", "informer-sync"))


@pytest.mark.parametrize(("text", "ready"), [("ok", True), ("[+]ping ok\nreadyz check passed\n", True)])
def test_both_forms_of_a_ready_server_are_understood(text, ready):
    assert parse_readiness(text).ready is ready


def test_a_server_that_never_answers_like_kubernetes_is_told_apart(where, endpoint, monkeypatch):
    monkeypatch.setattr(kubernetes_api.Connection, "_respond", lambda *_: (200, ["a", "list"]))
    with reading(where, endpoint) as api, pytest.raises(WrongServerError, match="did not return a Kubernetes response"):
        api.nodes()


@pytest.mark.parametrize(
    ("no_proxy", "host", "proxy"),
    [
        ("", "203.0.113.10", "http://proxy.example.com:3128"),
        ("example.net,10.0.0.0/8", "203.0.113.10", "http://proxy.example.com:3128"),
        ("203.0.113.10", "203.0.113.10", ""),
        ("example.net, 172.20.0.0/16", "172.20.0.9", ""),
        (".elb.amazonaws.com", "api-1.elb.amazonaws.com", ""),
        ("*", "203.0.113.10", ""),
    ],
)
def test_the_proxy_of_the_environment_is_used_where_it_is_meant_to_be(no_proxy, host, proxy, monkeypatch):
    for name in ("https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.com:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert find_proxy(Endpoint(f"https://{host}")) == proxy


def test_an_api_on_this_machine_is_reached_past_any_proxy(where, endpoint, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with reading(where, endpoint) as api:
        assert api.nodes()


def test_a_proxy_that_does_not_answer_is_named_and_not_the_api(where, endpoint, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with (
        reading(where, Endpoint(endpoint.connect_url)) as api,
        pytest.raises(ApiUnreachableError, match="proxy") as refused,
    ):
        api.nodes()
    assert "NO_PROXY" in refused.value.hint


def test_a_refusal_of_the_server_is_quoted(where, endpoint, monkeypatch):
    monkeypatch.setattr(kubernetes_api.Connection, "_respond", lambda *_: (429, {"message": "too many requests"}))
    with (
        reading(where, endpoint) as api,
        pytest.raises(KubernetesError, match="responded with HTTP status 429: too many requests"),
    ):
        api.nodes()


def test_the_private_key_never_lies_readable_on_the_disk(where, endpoint, monkeypatch, tmp_path):
    written = []
    original = api_connection.create_private_file
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(
        api_connection, "create_private_file", lambda path, text: written.append(text) or original(path, text)
    )
    with reading(where, endpoint) as api:
        assert list(tmp_path.iterdir()) == []
        assert api.nodes()
    [text] = written
    assert "ENCRYPTED PRIVATE KEY" in text
    assert "BEGIN PRIVATE KEY" not in text


def test_nobody_at_the_address_says_what_to_check(where, endpoint):
    gone = replace(endpoint, url_override="https://127.0.0.1:1")
    with reading(where, gone) as api, pytest.raises(ApiUnreachableError, match="refused") as refused:
        api.version()
    assert "ApiAllowedCidr (currently 203.0.113.7/32)" in refused.value.hint
    assert "port 1," in refused.value.hint


def test_a_server_of_another_authority_is_not_talked_to(where, endpoint, strangers):
    pair = issue_client_certificate(authority_of(where), Identity("alice"), now=where.clock.now(), duration=HOUR)
    with (
        KubernetesClient(endpoint, strangers["ca.crt"], pair) as api,
        pytest.raises(WrongServerError, match="certificate of"),
    ):
        api.version()


def test_a_server_for_another_name_is_not_talked_to(where, endpoint):
    elsewhere = replace(endpoint, url="https://198.51.100.1")
    with reading(where, elsewhere) as api, pytest.raises(WrongServerError):
        api.version()


def test_a_certificate_of_another_authority_is_refused(where, endpoint, strangers):
    pair = issue_client_certificate(
        KeyPair(strangers["ca.crt"], strangers["ca.key"]), Identity("eve"), now=where.clock.now(), duration=HOUR
    )
    with (
        KubernetesClient(endpoint, authority_of(where).certificate, pair) as api,
        pytest.raises((CertificateRefusedError, ApiUnreachableError)),
    ):
        api.version()


def test_an_outdated_certificate_is_refused(where, endpoint):
    authority = authority_of(where)
    past = where.clock.now() - timedelta(days=30)
    pair = issue_client_certificate(authority, Identity("alice"), now=past, duration=HOUR)
    with (
        KubernetesClient(endpoint, authority.certificate, pair) as api,
        pytest.raises(CertificateRefusedError) as refused,
    ):
        api.version()
    assert "clock" in refused.value.hint


def test_who_is_no_administrator_is_not_let_in(where, endpoint):
    with reading(where, endpoint, Identity("bob", ("developers",))) as api:
        assert api.version() == "1.36.3"
        with pytest.raises(ForbiddenError, match='User "bob" cannot list resource "nodes"'):
            api.nodes()


def test_a_connection_for_the_occasion_is_an_administrators(where, endpoint):
    stack = stacks.require_root_stack(where.account, where.name)
    found = cluster_access.find_authority(where.account, stack, stacks.read_outputs(where.account, stack))
    with cluster_access.connect_as_administrator(endpoint, found, where.account.caller, where.clock.now()) as api:
        assert len(api.nodes()) == 5


def test_no_stack_is_said_to_be_none(where):
    with pytest.raises(NoStackError, match="no stack nowhere in us-west-2 of account 123456789012") as refused:
        stacks.require_root_stack(where.account, "nowhere")
    assert "cfngen deploy" in str(refused.value.hint)


def test_a_stack_of_something_else_has_no_api(where):
    stack = stacks.require_root_stack(where.account, where.name)
    with pytest.raises(NoEndpointError, match="has no output ApiEndpoint"):
        cluster_access.find_api_endpoint(stack, {})
    with pytest.raises(NoEndpointError, match="has no output CaSecretArn"):
        cluster_access.find_authority(where.account, stack, {})


def test_outputs_of_nested_stacks_serve_until_the_root_has_its_own(where):
    stack = stacks.require_root_stack(where.account, where.name)
    early = replace(stack, outputs={})
    found = stacks.read_outputs(where.account, early)
    assert found["ApiEndpoint"] == stack.outputs["ApiEndpoint"]
    assert found["CaSecretArn"] == stack.outputs["CaSecretArn"]


@contextmanager
def secret(where: Place, text: str | None) -> Iterator[str]:
    """A secret that holds a text, or nothing."""
    secrets = client("secretsmanager", where.cluster.region)
    given = {} if text is None else {"SecretString": text}
    arn = secrets.create_secret(Name=f"made-{abs(hash(text))}", **given)["ARN"]
    yield arn
    secrets.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


@pytest.mark.parametrize("text", [None, "{}"])
def test_an_empty_secret_means_that_the_cluster_is_not_initialised(text, where):
    with secret(where, text) as arn, pytest.raises(EmptySecretError, match="has not been initialised") as refused:
        read_authority(where.account, arn)
    assert "cfngen status" in str(refused.value.hint)


def test_a_missing_secret_is_said_to_be_missing(where):
    arn = "arn:aws:secretsmanager:us-west-2:123456789012:secret:nothing-AbCdEf"
    with pytest.raises(MissingSecretError, match="there is no secret"):
        read_authority(where.account, arn)


def test_a_secret_that_is_being_deleted_is_said_to_be(where):
    with secret(where, '{"ca.crt": "x"}') as arn:
        client("secretsmanager", where.cluster.region).delete_secret(SecretId=arn)
        with pytest.raises(MissingSecretError, match="deleted"):
            read_authority(where.account, arn)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PRIVATE", "does not contain JSON"),
        ("[1]", "does not contain a JSON object"),
        ('{"ca.crt": "PRIVATE"}', "lacks ca.key"),
        ('{"ca.crt": 1, "ca.key": 2}', "lacks ca.crt and ca.key"),
        ('{"ca.crt": "PRIVATE", "ca.key": "PRIVATE"}', "contains no certificate authority"),
    ],
)
def test_a_malformed_secret_is_described_and_not_quoted(text, reason, where):
    with secret(where, text) as arn, pytest.raises(MalformedSecretError, match=reason) as refused:
        read_authority(where.account, arn)
    assert "PRIVATE" not in str(refused.value)


def test_a_key_that_is_not_the_certificates_is_found(where, strangers):
    bundle = json.dumps({"ca.crt": authority_of(where).certificate, "ca.key": strangers["ca.key"]})
    with secret(where, bundle) as arn, pytest.raises(MalformedSecretError, match="not the key of"):
        read_authority(where.account, arn)


def test_a_denied_secret_names_the_permissions(where):
    stack = stacks.require_root_stack(where.account, where.name)
    arn = stack.outputs["CaSecretArn"]
    with where.served.permissions.enforcing(allow_everything_but("secretsmanager:GetSecretValue")) as credentials:
        account = where.connected(where.session_of(credentials))
        with pytest.raises(SecretDeniedError, match="has no permission to read the secret") as refused:
            read_authority(account, arn)
    assert account.caller in str(refused.value)
    assert "secretsmanager:GetSecretValue" in refused.value.hint
    assert "kms:Decrypt on its KMS key arn:aws:kms:us-west-2:" in refused.value.hint


def test_a_denied_secret_names_the_key_even_if_it_may_not_be_described(where):
    stack = stacks.require_root_stack(where.account, where.name)
    with where.served.permissions.enforcing(allow_everything_but("secretsmanager:*")) as credentials:
        account = where.connected(where.session_of(credentials))
        with pytest.raises(SecretDeniedError) as refused:
            read_authority(account, stack.outputs["CaSecretArn"])
    assert "SecretsKeyArn" in refused.value.hint


def test_join_information_says_when_the_token_ends(where):
    [arn] = [
        each["ARN"]
        for each in client("secretsmanager", where.cluster.region).list_secrets()["SecretList"]
        if "Join" in each["Name"]
    ]
    found = read_join_information(where.account, arn)
    assert found.endpoint.endswith(":443")
    assert timedelta(hours=23) < found.expires - where.clock.now() <= timedelta(hours=24)
    with secret(where, '{"expires": "tomorrow"}') as other, pytest.raises(MalformedSecretError):
        read_join_information(where.account, other)
