"""Every row of the tables that the checks read: what each one refuses, and its neighbours that are accepted."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from cfngen.cluster.checks import warnings
from cfngen.cluster.load import parse
from cfngen.cluster.paths import dotted, leaves
from cfngen.cluster.problems import ClusterFileError

DIGEST = "0" * 64
URL = "https://charts.example.com/a-1.0.0.tgz"
ACCOUNT = "123456789012"


def refusals(configuration: dict[str, Any]) -> list[str]:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error).splitlines()
    return []


def refusal(configuration: dict[str, Any]) -> str:
    return "\n".join(refusals(configuration))


def warned(configuration: dict[str, Any]) -> list[str]:
    return [str(warning) for warning in warnings(parse(configuration))]


def group(**more: Any) -> dict[str, Any]:
    return {"nodeGroups": [{"name": "n", **more}]}


@pytest.mark.parametrize(
    ("port", "whose"),
    [
        (22, "SSH"),
        (2379, "etcd"),
        (2380, "etcd"),
        (2381, "etcd's metrics"),
        (10248, "the kubelet's health check"),
        (10249, "kube-proxy's metrics"),
        (10250, "the kubelet"),
        (10256, "kube-proxy's health check"),
        (10257, "kube-controller-manager"),
        (10258, "the cloud controller manager"),
        (10259, "kube-scheduler"),
        (30000, "the ports of services (30000 to 32767)"),
        (32767, "the ports of services (30000 to 32767)"),
        # Add-ons that are on by default: the health of the EBS CSI controller (its chart's values).
        (9808, "addons.awsEbsCsiDriver, whose pods use the masters' network"),
    ],
)
def test_a_port_of_masters_that_somebody_listens_on(port: int, whose: str) -> None:
    assert refusals({"api": {"port": port}}) == [f"api.port: {port} is used by {whose}; use 443 or 6443"]


@pytest.mark.parametrize("port", [21, 23, 2378, 2382, 10247, 10251, 10255, 10260, 29999, 32768])
def test_the_ports_beside_them_are_free(port: int) -> None:
    assert parse({"api": {"port": port}}).api.port == port


# The charts' own values and templates: what listens in the masters' network, by add-on.
@pytest.mark.parametrize(
    ("addon", "port"),
    [
        ("clusterAutoscaler", 8085),
        ("awsLoadBalancerController", 9443),
        ("awsLoadBalancerController", 61779),
        ("awsLoadBalancerController", 8080),
        ("externalDns", 7979),
        ("prometheus", 9100),
    ],
)
def test_a_port_of_an_add_on_is_taken_where_it_is_on(addon: str, port: int) -> None:
    zones = {"zones": ["Z0123456789"]} if addon == "externalDns" else {}
    whose = f"addons.{addon}, whose pods use the masters' network"
    on = {"api": {"port": port}, "addons": {addon: {"enabled": True, **zones}}}
    assert refusals(on) == [f"api.port: {port} is used by {whose}; use 443 or 6443"]
    assert parse({"api": {"port": port}}).api.port == port


@pytest.mark.parametrize("port", [23443, 23444])
def test_a_port_of_the_pod_identity_webhook_is_taken_where_it_is_on(port: int) -> None:
    on = {"api": {"port": port}, "addons": {"podIdentityWebhook": {"enabled": True}}, "serviceAccountIssuer": {}}
    whose = "addons.podIdentityWebhook, whose pods use the masters' network"
    assert refusals(on) == [f"api.port: {port} is used by {whose}; use 443 or 6443"]


@pytest.mark.parametrize("port", [3301, 3302, 3303, 3304, 3305])
def test_a_port_that_the_ebs_driver_may_listen_on_is_taken(port: int) -> None:
    assert "is used by addons.awsEbsCsiDriver" in refusal({"api": {"port": port}})
    off = {"api": {"port": port}, "addons": {"awsEbsCsiDriver": {"enabled": False}}}
    assert parse(off).api.port == port


def test_a_port_of_pods_alone_is_free_for_the_api() -> None:
    assert parse({"api": {"port": 9153}, "addons": {"prometheus": {"enabled": True}}}).api.port == 9153


# Each listens on every instance that it runs on: Cilium's system requirements, Calico's network requirements, the
# agents' own flags (flannel's health check, the VPC CNI's introspection and metrics).
@pytest.mark.parametrize(
    ("plugin", "ports"),
    [
        ("cilium", (4240, 4244, 9234, 9878, 9879, 9890, 9891, 9963, 9964)),
        ("calico", (5473, 9098, 9099)),
        ("flannel", (8081,)),
        ("amazon-vpc", (8162, 8163, 50051, 50052, 61678, 61679)),
    ],
)
def test_a_port_of_the_network_plugin(plugin: str, ports: tuple[int, ...]) -> None:
    said = [refusal({"network": {"plugin": plugin}, "api": {"port": port}}) for port in ports]
    assert said == [f"api.port: {port} is used by {plugin}; use 443 or 6443" for port in ports]


@pytest.mark.parametrize(
    "name",
    [
        "aws-ebs-csi-driver",
        "aws-load-balancer-controller",
        "aws-node-termination-handler",
        "aws-vpc-cni",
        "calico",
        "calico-crds",
        "cert-manager",
        "cilium",
        "cluster-autoscaler",
        "external-dns",
        "flannel",
        "fluent-bit",
        "headlamp",
        "metrics-server",
        "prometheus",
    ],
)
def test_a_name_that_one_of_cfngens_own_releases_has(name: str) -> None:
    chart = {"name": name, "url": URL, "sha256": DIGEST}
    reason = f"{name} is the name of a Helm release that cfngen installs; use another name"
    assert refusals({"addons": {"charts": [{**chart, "name": "mine"}, chart]}}) == [f"addons.charts[1].name: {reason}"]


# "IANA IPv4 Special-Purpose Address Registry": no host has these, or every host has them for itself.
@pytest.mark.parametrize(
    ("cidr", "reserved"),
    [
        ("0.0.0.0/16", "0.0.0.0/8, this host"),
        ("0.255.0.0/16", "0.0.0.0/8, this host"),
        ("127.0.0.0/16", "127.0.0.0/8, loopback"),
        ("127.255.0.0/16", "127.0.0.0/8, loopback"),
        ("169.254.0.0/16", "169.254.0.0/16, link-local addresses, where instances find their metadata"),
        ("224.0.0.0/16", "224.0.0.0/3, multicast and reserved addresses"),
        ("255.255.0.0/16", "224.0.0.0/3, multicast and reserved addresses"),
    ],
)
@pytest.mark.parametrize("key", ["network.podCidr", "network.serviceCidr", "network.vpc.cidr"])
def test_a_range_that_no_host_may_have(key: str, cidr: str, reserved: str) -> None:
    *_, name = key.split(".")
    network = {"vpc": {"cidr": cidr}} if "vpc" in key else {name: cidr}
    said = f"{key}: {cidr} overlaps {reserved}; use a private range such as 10.0.0.0/16"
    assert said in refusals({"network": network})


@pytest.mark.parametrize("cidr", ["1.0.0.0/16", "126.255.0.0/16", "128.0.0.0/16", "169.253.0.0/16", "223.255.0.0/16"])
def test_the_ranges_beside_them_are_usable(cidr: str) -> None:
    assert str(parse({"network": {"podCidr": cidr}}).network.pod_cidr) == cidr


# Prefix lengths: "VPC CIDR blocks", "Subnet CIDR blocks" (Amazon VPC User Guide); kubeadm's
# MaximumBitsForServiceSubnet and MinimumAddressesInServiceSubnet; the range allocator's sixteen bits.
@pytest.mark.parametrize(
    ("key", "widest", "smallest", "base"),
    [
        ("network.vpc.cidr", 16, 28, "172.20.0.0"),
        ("network.subnets[0].cidr", 16, 28, "172.20.0.0"),
        ("network.podCidr", 8, 24, "12.0.0.0"),
        ("network.serviceCidr", 12, 28, "192.0.0.0"),
    ],
)
def test_how_wide_and_how_small_a_range_may_be(key: str, widest: int, smallest: int, base: str) -> None:
    def said(prefix: int) -> list[str]:
        cidr = f"{base}/{prefix}"
        network: dict[str, Any] = {key.rpartition(".")[2]: cidr}
        if "vpc" in key:
            network = {"vpc": {"cidr": f"172.16.0.0/{prefix}" if prefix < 16 else cidr}}
        elif "subnets" in key:
            network = {"subnets": [{"cidr": f"172.16.0.0/{prefix}" if prefix < 16 else cidr}]}
        return [text for text in refusals({"network": network}) if f"{key}: " in text and " is a /" in text]

    assert [len(said(prefix)) for prefix in (widest - 1, widest, smallest, smallest + 1)] == [1, 0, 0, 1]
    assert f" is a /{widest - 1}; " in said(widest - 1)[0]


# kubeadm's and the kubelet's fields (kubeadm.k8s.io/v1beta4, kubelet.config.k8s.io/v1beta1) that follow from others.
@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("clusterConfiguration.apiVersion", "remove it"),
        ("clusterConfiguration.kind", "remove it"),
        ("clusterConfiguration.kubernetesVersion", "use kubernetesVersion"),
        ("clusterConfiguration.clusterName", "use name"),
        ("clusterConfiguration.controlPlaneEndpoint", "use api"),
        ("clusterConfiguration.certificatesDir", "remove it"),
        ("clusterConfiguration.networking.podSubnet", "use network.podCidr"),
        ("clusterConfiguration.networking.serviceSubnet", "use network.serviceCidr"),
        ("clusterConfiguration.networking.dnsDomain", "use network.dnsDomain"),
        (
            "clusterConfiguration.etcd.local.dataDir",
            "remove it, etcd's data is on the master's volume (controlPlane.volume)",
        ),
        ("clusterConfiguration.etcd.external", "remove it, etcd runs on the masters"),
        ("clusterConfiguration.apiServer.certSANs", "use api.additionalNames"),
        ("kubeletConfiguration.apiVersion", "remove it"),
        ("kubeletConfiguration.kind", "remove it"),
        ("kubeletConfiguration.clusterDNS", "use network.dnsServiceIp"),
        ("kubeletConfiguration.clusterDomain", "use network.dnsDomain"),
        ("kubeletConfiguration.providerID", "remove it"),
    ],
)
def test_a_key_of_kubernetes_own_files_that_follows_from_another(path: str, instead: str) -> None:
    value: Any = "x"
    for part in reversed(path.split(".")):
        value = {part: value}
    assert refusals({"kubernetes": value}) == [f"kubernetes.{path}: cfngen sets this key itself; {instead}"]
    section, _, key = path.partition(".")
    if section == "kubeletConfiguration":
        for where, configuration in (
            ("controlPlane", {"controlPlane": {section: {key: "x"}}}),
            ("nodeGroups[0]", group(**{section: {key: "x"}})),
        ):
            assert refusals(configuration) == [f"{where}.{path}: cfngen sets this key itself; {instead}"]


@pytest.mark.parametrize(
    ("component", "flag", "instead"),
    [
        ("controllerManager", "cluster-cidr", "use network.podCidr"),
        ("controllerManager", "allocate-node-cidrs", "remove it"),
        ("controllerManager", "node-cidr-mask-size", "remove it, each node gets a /24"),
        ("controllerManager", "cloud-provider", "remove it"),
        ("apiServer", "service-cluster-ip-range", "use network.serviceCidr"),
        ("apiServer", "secure-port", "use api.port"),
        ("apiServer", "cloud-provider", "remove it, Kubernetes no longer has this flag"),
    ],
)
def test_a_flag_that_follows_from_another_key(component: str, flag: str, instead: str) -> None:
    def of(name: str) -> dict[str, Any]:
        return {"kubernetes": {"clusterConfiguration": {name: {"extraArgs": [{"name": flag, "value": "x"}]}}}}

    where = f"kubernetes.clusterConfiguration.{component}.extraArgs[0].name"
    assert refusals(of(component)) == [f"{where}: cfngen sets --{flag} itself; {instead}"]
    assert refusals(of("scheduler")) == []


@pytest.mark.parametrize("component", ["apiServer", "controllerManager", "scheduler", "etcd.local"])
def test_flags_of_every_component_are_names_and_texts(component: str) -> None:
    def of(arguments: Any) -> dict[str, Any]:
        value: Any = {"extraArgs": arguments}
        for part in reversed(component.split(".")):
            value = {part: value}
        return {"kubernetes": {"clusterConfiguration": value}}

    where = f"kubernetes.clusterConfiguration.{component}.extraArgs"
    form = "a flag has a name and a value; write it as `{name: …, value: …}`"
    assert refusals(of({"v": "4"})) == [
        f"{where}: kubeadm.k8s.io/v1beta4 requires a list here; write each flag as `- {{name: …, value: …}}`"
    ]
    assert refusals(of(["v=4"])) == [f"{where}[0]: {form}"]
    assert refusals(of([{"name": "v"}])) == [f"{where}[0]: {form}"]
    assert refusals(of([{"name": "v", "value": "4", "x": ""}])) == [f"{where}[0]: {form}"]
    assert refusals(of([{"name": "v", "value": "2"}, {"name": "v", "value": 4}])) == [
        f"{where}[1].value: the value of a flag must be text; put it in quotes"
    ]
    assert refusals(of([])) == []


OWN_STACK = yaml.safe_load("""
  name: blue
  network:
    topology: private
    plugin: cilium
    vpc: {id: stack:blue.A, cidr: 10.20.0.0/16}
    serviceCidr: 10.250.0.0/16
    subnets:
      - {zone: us-west-2a, id: stack:blue.B, cidr: 10.20.0.0/20, public: {id: stack:blue.C}}
      - {zone: us-west-2b, cidr: 10.20.16.0/20, natGateway: stack:blue.D, public: {id: stack:blue.E}}
      - {zone: us-west-2c, cidr: 10.20.32.0/20, routeTable: stack:blue.F, public: {cidr: 10.20.48.0/26}}
    internetGateway: stack:blue.G
    securityGroups:
      masters: stack:blue.H
      nodes: stack:blue.I
      apiLoadBalancer: stack:blue.J
      internalApiLoadBalancer: stack:blue.K
      endpoints: stack:blue.L
    routes:
      - {destination: 10.64.0.0/16, transitGateway: stack:blue.M}
      - {destination: 10.65.0.0/16, peeringConnection: stack:blue.N}
      - {destination: 10.66.0.0/16, vpnGateway: stack:blue.O}
      - {destination: 10.67.0.0/16, networkInterface: stack:blue.P}
  api:
    internal: true
    dns: {name: api.example.com, publicZone: {id: stack:blue.Q}, privateZone: {id: stack:blue.R}}
  controlPlane: {count: 3, additionalSecurityGroups: [stack:blue.S]}
  nodeGroups: [{name: a}, {name: b, additionalSecurityGroups: [stack:blue.T, stack:blue.U]}]
""")


def test_every_reference_is_told_by_its_key_and_what_it_stands_for() -> None:
    own = r"(.+): (stack:blue\..) is an output of this cluster's own stack.* if cfngen creates the (.+)"
    said = [match.groups() for line in refusals(OWN_STACK) if (match := re.fullmatch(own, line))]
    assert {key: reference for key, reference, _ in said} == {
        dotted(path): value for path, value in leaves(OWN_STACK) if str(value).startswith("stack:")
    }
    assert [noun for *_, noun in said] == [
        "VPC",
        "internet gateway",
        "subnet",
        "subnet",
        "NAT gateway",
        "subnet",
        "route table",
        *["security group"] * 5,
        "transit gateway",
        "VPC peering connection",
        "virtual private gateway",
        "network interface",
        *["security group"] * 3,
        "hosted zone",
        "hosted zone",
    ]
