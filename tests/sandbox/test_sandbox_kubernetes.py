"""The Kubernetes API of the sandbox, asked over loopback by the official client as an administrator asks a real one."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import official_client
import pytest
import urllib3
from cluster_objects import set_waiting
from sandboxed import NODES, Place, place

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.kubernetes import certificates
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster


@dataclasses.dataclass(frozen=True)
class Reached:
    """A cluster, and a folder for certificates."""

    where: Place
    cluster: KubernetesCluster
    address: str
    folder: Path

    def configuration(self, issued: certificates.Certificate | None) -> official_client.Configuration:
        """Settings of a client that shows a certificate, or none."""
        made = official_client.Configuration()
        made.host, made.proxy, made.retries = self.address, None, False
        authority = self.folder / "ca.crt"
        authority.write_text(self.cluster.bundle["ca.crt"])
        made.ssl_ca_cert = str(authority)
        if issued:
            files = [(self.folder / "client.crt", issued.certificate), (self.folder / "client.key", issued.key)]
            for file, text in files:
                file.write_text(text)
            made.cert_file, made.key_file = (str(file) for file, _ in files)
        return made

    @contextlib.contextmanager
    def api(
        self, *, group: str = "system:masters", anonymous: bool = False, now: datetime = SIMULATION_START
    ) -> Iterator[Any]:
        """The official client, with a certificate of the cluster's authority."""
        issued = (
            None if anonymous else certificates.issue_client_certificate(self.cluster.bundle, "operator", group, now)
        )
        with official_client.ApiClient(self.configuration(issued)) as made:
            yield made

    @contextlib.contextmanager
    def core(self, **how: Any) -> Iterator[Any]:
        with self.api(**how) as made:
            yield official_client.CoreV1Api(made)


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """The default cluster; tests leave nothing behind in it."""
    with place() as where:
        assert where.create().status == "CREATE_COMPLETE"
        cluster = where.account.cluster("kubernetes")
        yield Reached(where, cluster, where.account.address(cluster), tmp_path_factory.mktemp("certificates"))


def test_an_administrator_lists_what_a_cluster_has(reached: Reached) -> None:
    with reached.core() as core:
        nodes = core.list_node().items
        assert {node.metadata.name for node in nodes} == set(reached.where.account.machines.instances)
        assert {node.status.node_info.kubelet_version for node in nodes} == {"v1.36.3"}
        assert all(
            condition.status == "True"
            for node in nodes
            for condition in node.status.conditions
            if condition.type == "Ready"
        )
        everywhere = core.list_pod_for_all_namespaces().items
        pods = core.list_namespaced_pod("kube-system").items
        assert [each.metadata.name for each in everywhere] == [pod.metadata.name for pod in pods]
        assert {pod.status.phase for pod in pods} == {"Running"}
        services = core.list_service_for_all_namespaces().items
        assert {(service.metadata.name, service.spec.cluster_ip) for service in services} == {
            ("kubernetes", "10.0.0.1"),
            ("kube-dns", "10.0.0.10"),
        }
        assert core.list_persistent_volume().items == []
        assert "kube-system" in {item.metadata.name for item in core.list_namespace().items}


def test_other_groups_of_the_api_answer_too(reached: Reached) -> None:
    with reached.api() as api:
        sets = official_client.AppsV1Api(api).list_daemon_set_for_all_namespaces().items
        assert [each.metadata.name for each in sets] == ["cloud-controller-manager"]
        assert official_client.VersionApi(api).get_code().git_version == "v1.36.3"
        groups = {group.name for group in official_client.ApisApi(api).get_api_versions().groups}
        assert "apps" in groups
        resources = official_client.CoreV1Api(api).get_api_resources().resources
        assert {"nodes", "pods", "services"} <= {resource.name for resource in resources}


def test_lists_are_selected_and_come_in_pages(reached: Reached) -> None:
    with reached.core() as core:
        [master] = core.list_node(label_selector="node-role.kubernetes.io/control-plane").items
        assert core.list_node(label_selector="!node-role.kubernetes.io/control-plane,kubernetes.io/os=linux").items
        on_master = core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={master.metadata.name}").items
        assert {each.spec.node_name for each in on_master} == {master.metadata.name}
        first = core.list_node(limit=3)
        rest = core.list_node(limit=3, _continue=first.metadata._continue)
        assert (len(first.items), len(rest.items)) == (3, 2)
        assert first.metadata.remaining_item_count == 2


def test_what_tests_change_the_client_sees(reached: Reached) -> None:
    state, name = reached.cluster.state, reached.where.instances(NODES)[0].id
    pod = next(pod for pod in state.list("pods") if pod["spec"]["nodeName"] == name)["metadata"]["name"]
    state.set_ready(name, False, "KubeletNotReady", "container runtime is down")
    set_waiting(state, pod, "CrashLoopBackOff")
    with reached.core() as core:
        [condition] = [condition for condition in core.read_node(name).status.conditions if condition.type == "Ready"]
        assert (condition.status, condition.message) == ("False", "container runtime is down")
        [container] = core.read_namespaced_pod(pod, "kube-system").status.container_statuses
        assert (container.state.waiting.reason, container.ready) == ("CrashLoopBackOff", False)
        state.set_ready(name, True)
        core.patch_node(name, {"spec": {"unschedulable": True}})
        assert core.read_node(name).spec.unschedulable is True
        core.patch_node(name, {"spec": {"unschedulable": None}})
        assert not core.read_node(name).spec.unschedulable


def test_a_service_is_deleted_with_its_balancer(reached: Reached) -> None:
    account, elb = reached.where.account, client("elb", "us-west-2")
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    with reached.core() as core:
        core.create_namespaced_service("default", {"metadata": {"name": "web"}, "spec": spec})
        assert len(elb.describe_load_balancers()["LoadBalancerDescriptions"]) == 1
        core.delete_namespaced_service("web", "default")
        assert core.read_namespaced_service("web", "default").metadata.deletion_timestamp
        account.advance(20)
        with pytest.raises(official_client.ApiException) as caught:
            core.read_namespaced_service("web", "default")
    assert caught.value.status == 404
    assert json.loads(caught.value.body)["message"] == 'services "web" not found'
    assert elb.describe_load_balancers()["LoadBalancerDescriptions"] == []


def test_without_a_certificate_only_health_and_version_are_public(reached: Reached) -> None:
    with reached.core(anonymous=True) as core:
        with pytest.raises(official_client.ApiException) as caught:
            core.list_node()
        assert caught.value.status == 403
        words = 'User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope'
        assert words in json.loads(caught.value.body)["message"]
    parts = urllib.parse.urlsplit(reached.address)
    context = ssl.create_default_context(cadata=reached.cluster.bundle["ca.crt"])
    for path in ("/livez", "/readyz"):
        connection = http.client.HTTPSConnection(parts.netloc, context=context)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"ok")
        connection.close()


def test_a_certificate_of_another_group_may_not(reached: Reached) -> None:
    with reached.core(group="system:nodes") as core, pytest.raises(official_client.ApiException) as caught:
        core.list_namespaced_pod("kube-system")
    assert caught.value.status == 403
    assert 'User "operator" cannot list resource "pods"' in json.loads(caught.value.body)["message"]


def test_a_certificate_of_another_authority_is_refused(reached: Reached) -> None:
    other = certificates.issue_client_certificate(
        certificates.authorities(SIMULATION_START), "operator", "system:masters", SIMULATION_START
    )
    shown = reached.configuration(other)
    context = ssl.create_default_context(cadata=reached.cluster.bundle["ca.crt"])
    context.load_cert_chain(shown.cert_file, shown.key_file)
    connection = http.client.HTTPSConnection(urllib.parse.urlsplit(reached.address).netloc, context=context)
    # With TLS 1.3 a client hears of it when it writes or when it reads, whichever comes later.
    with contextlib.closing(connection), pytest.raises(OSError):  # noqa: PT011, PT012
        connection.request("GET", "/livez")
        connection.getresponse()


@pytest.mark.parametrize("now", [SIMULATION_START, datetime.now(UTC)])
def test_certificates_are_good_by_the_simulated_clock_or_the_real_one(
    reached: Reached, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_VALIDITY", timedelta(hours=1))
    with reached.core(now=now) as core:
        assert core.list_node().items


def test_an_outdated_certificate_is_refused(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_VALIDITY", timedelta(hours=1))
    with (
        reached.core(now=SIMULATION_START - timedelta(days=2)) as core,
        pytest.raises(official_client.ApiException) as caught,
    ):
        core.list_node()
    assert caught.value.status == 401


def test_the_serving_certificate_is_for_the_addresses_of_the_cluster(reached: Reached) -> None:
    names = reached.cluster.server_names()
    references = reached.cluster.references
    assert {"127.0.0.1", "kubernetes", "10.0.0.1", references["privateAddress"], references["publicAddress"]} <= names
    configuration = reached.configuration(None)
    configuration.tls_server_name = "kubernetes"
    with official_client.ApiClient(configuration) as api:
        assert official_client.VersionApi(api).get_code().minor == "36"


def test_paths_that_do_not_exist_are_not_found(reached: Reached) -> None:
    with reached.api() as api, pytest.raises(official_client.ApiException) as caught:
        official_client.CustomObjectsApi(api).list_cluster_custom_object("example.com", "v1", "things")
    assert caught.value.status == 404


def test_a_cluster_whose_master_is_gone_does_not_answer(reached: Reached) -> None:
    account = reached.where.account
    [master] = [instance.id for instance in account.machines.instances.values() if instance.boot_data.master]
    with reached.core() as core:
        assert core.list_node().items
        client("ec2", account.region).terminate_instances(InstanceIds=[master])
        with pytest.raises((urllib3.exceptions.HTTPError, OSError)):
            core.list_node()
        account.advance(200)
        assert len(core.list_node().items) == 5
