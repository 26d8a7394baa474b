"""A cluster in the sandbox: what its instances do, say and leave behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from cryptography import x509
from sandboxed import MASTERS, NODES, Place, place, said

from cfngen.boot.master import certificate_authorities, join_information
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.kubernetes import certificates

STEP = re.compile(r"\[(\d+)/(\d+)\] ([a-z -]+?): (.*) \((\d+\.\d) s\)")


@pytest.fixture(scope="module")
def default() -> Iterator[tuple[Place, Stack]]:
    """The default cluster; tests only look at it."""
    with place() as where:
        yield where, where.create()


def test_the_default_cluster_is_created(default: tuple[Place, Stack]) -> None:
    where, stack = default
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert len(where.instances(MASTERS)) == 1
    assert len(where.instances(NODES)) == 4


def test_every_instance_is_a_ready_node(default: tuple[Place, Stack]) -> None:
    where, _ = default
    state = where.account.cluster("kubernetes").state
    ready = {
        node["metadata"]["name"]
        for node in state.list("nodes")
        if ("Ready", "True") in [(condition["type"], condition["status"]) for condition in node["status"]["conditions"]]
    }
    assert ready == set(where.account.machines.instances)
    ranges = [node["spec"]["podCIDR"] for node in state.list("nodes")]
    assert len(set(ranges)) == 5
    assert all(each.startswith("10.244.") for each in ranges)


def test_a_master_is_a_tainted_node_with_its_fixed_address(default: tuple[Place, Stack]) -> None:
    where, _ = default
    [instance] = where.instances(MASTERS)
    node = where.account.cluster("kubernetes").state.get("nodes", instance.id)
    assert node is not None
    assert node["spec"]["providerID"] == f"aws:///us-west-2a/{instance.id}"
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["node-role.kubernetes.io/control-plane"]
    assert {"type": "InternalIP", "address": "172.20.0.9"} in node["status"]["addresses"]
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "t3.medium"


def test_the_route_table_leads_to_the_pods_of_every_node(default: tuple[Place, Stack]) -> None:
    where, stack = default
    table = stack.resources["RouteTable"].physical_id
    [found] = client("ec2", "us-west-2").describe_route_tables(RouteTableIds=[table])["RouteTables"]
    nodes = where.account.cluster("kubernetes").state.list("nodes")
    assert {route["DestinationCidrBlock"] for route in found["Routes"]} == {
        "0.0.0.0/0",
        "172.20.0.0/16",
        *(node["spec"]["podCIDR"] for node in nodes),
    }


def test_system_pods_run_where_they_belong(default: tuple[Place, Stack]) -> None:
    where, _ = default
    [instance] = where.instances(MASTERS)
    pods = where.account.cluster("kubernetes").state.list("pods", "kube-system")
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    on_master = {pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == instance.id}
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert f"{name}-{instance.id}" in on_master
    assert any(each.startswith("cloud-controller-manager-") for each in on_master)
    names = [pod["metadata"]["name"] for pod in pods]
    assert sum(name.startswith("kube-proxy-") for name in names) == 5
    # The master is the first node, and CoreDNS tolerates its taint.
    assert sum(name.startswith("coredns-") for name in on_master) == 2


def test_the_authorities_are_in_their_secret_as_a_real_master_leaves_them(default: tuple[Place, Stack]) -> None:
    where, _ = default
    bundle = where.secret("caSecretArn")
    assert set(bundle) == {*certificate_authorities.CA_FILES, certificate_authorities.INITIALISED_AT}
    assert SIMULATION_START.strftime("%Y-%m-%dT") in bundle["initialised"]
    for name, subject in {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca", "etcd/ca": "etcd-ca"}.items():
        certificate = x509.load_pem_x509_certificate(bundle[f"{name}.crt"].encode())
        assert certificate.subject.rfc4514_string() == f"CN={subject}"
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert certificate.not_valid_before_utc <= SIMULATION_START + timedelta(minutes=5)
    assert bundle["sa.pub"].startswith("-----BEGIN PUBLIC KEY-----")


def test_certificates_end_when_those_of_a_real_master_do(default: tuple[Place, Stack]) -> None:
    where, _ = default
    bundle, now = where.secret("caSecretArn"), where.account.cloud.clock.time
    authority = x509.load_pem_x509_certificate(bundle["ca.crt"].encode())
    serving = x509.load_pem_x509_certificate(
        certificates.issue_server_certificate(bundle, ["localhost"], now).certificate.encode()
    )
    ends = {each: each.not_valid_after_utc - now for each in (authority, serving)}
    assert timedelta(days=9.9 * 365) < ends[authority] <= timedelta(days=10 * 365)
    assert timedelta(days=4.9 * 365) < ends[serving] <= timedelta(days=5 * 365)


def test_join_information_is_what_the_boot_program_publishes(default: tuple[Place, Stack]) -> None:
    where, _ = default
    found = where.secret("joinSecretArn")
    assert set(found) == {"endpoint", "addresses", "kubernetesVersion", "caHash", "token", "expires"}
    assert found["endpoint"] == "api.kubernetes.internal:443"
    assert found["addresses"] == ["172.20.0.9"]
    assert found["caHash"] == join_information.ca_hash(where.secret("caSecretArn")["ca.crt"])
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", found["token"])


def test_the_console_reads_like_that_of_the_boot_program(default: tuple[Place, Stack]) -> None:
    where, _ = default
    for group in (MASTERS, NODES):
        instance = where.instances(group)[0]
        wanted = ["identity", *instance.boot_data.configuration["steps"], "signal"]
        lines = said(instance)
        found = [match for match in map(STEP.fullmatch, lines) if match]
        assert [match[3] for match in found] == wanted
        assert [match[1] for match in found] == [str(number) for number in range(1, len(wanted) + 1)]
        assert {match[2] for match in found} == {str(len(wanted))}
        assert found[-1][4] == "signalled SUCCESS"
        assert lines[-1].startswith("done in ")
    token = where.secret("joinSecretArn")["token"].partition(".")[2]
    assert not any(token in line for instance in where.account.machines.instances.values() for line in instance.console)


def test_the_api_is_found_by_the_address_of_the_outputs(default: tuple[Place, Stack]) -> None:
    where, stack = default
    [found] = where.account.kubernetes_endpoints()
    assert (found.stack, found.api_endpoint) == ("k8s", stack.outputs["ApiEndpoint"])
    assert found.address.startswith("https://127.0.0.1:")


def test_public_parameters_name_images_and_others_do_not(default: tuple[Place, Stack]) -> None:
    where, _ = default
    stored = where.account.cloud.parameter_store
    name = "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id"
    [image] = client("ec2", "us-west-2").describe_images(ImageIds=[stored[name]])["Images"]
    assert (image["Description"], image["RootDeviceName"]) == ("Ubuntu 24.04.3 LTS", "/dev/sda1")
    assert stored[name] == stored[name]
    assert "/platform/images/node" not in stored
    assert stored.get("/platform/images/node") is None
