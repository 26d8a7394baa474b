"""The list of what instances must reach: complete, and no longer than the cluster needs."""

from __future__ import annotations

import fnmatch
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from cfngen import userdata
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import api_host
from cfngen.cluster.network.endpoints import service_hosts
from cfngen.templates import generate
from cfngen.userdata import addons
from cfngen.userdata.egress import REGISTRIES_BY_RELEASE, egress

CASES = Path(__file__).parents[1] / "golden" / "cases"
EVERY_ADDON: dict[str, Any] = {
    "clusterAutoscaler": {"enabled": True},
    "nodeTerminationHandler": {"enabled": True},
    "awsLoadBalancerController": {"enabled": True},
    "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
    "certManager": {"enabled": True},
    "headlamp": {"enabled": True},
    "fluentBit": {"enabled": True, "values": {"config": {"outputs": "[OUTPUT]\n    Name stdout\n"}}},
    "prometheus": {"enabled": True},
    "nvidiaDevicePlugin": {"enabled": True},
}
PLUGINS = ("vpc-routes", "cilium", "calico", "flannel", "amazon-vpc")
CLUSTERS = {
    **{case.name: case / "cluster.yaml" for case in sorted(CASES.iterdir()) if (case / "cluster.yaml").exists()},
    **{f"every add-on, {plugin}": {"network": {"plugin": plugin}, "addons": EVERY_ADDON} for plugin in PLUGINS},
}
URL = re.compile(r"https?://([A-Za-z0-9.*-]+)")
IMAGE = re.compile(r"\b((?:[a-z0-9-]+\.)+(?:io|aws|com|dev))/[a-z0-9./_-]+(?::|@sha256:)[A-Za-z0-9]")
# Hosts in user data and templates that nobody connects to from there, or that are the cluster's own.
NOT_CONTACTED = {
    "127.0.0.1": "the instance itself",
    "localhost": "the instance itself",
    "gitlab.com": "an issuer of tokens, which IAM reads",
    "kubernetes.io": "a page that a message names",
    "docs.aws.amazon.com": "a page that a description names",
    "token.actions.githubusercontent.com": "an issuer of tokens, which IAM reads",
    "kubernetes.default.svc.cluster.local": "the name of an issuer of tokens, at which nobody reads anything",
}


def _cluster(name: str) -> Cluster:
    source = CLUSTERS[name]
    return load(source, environ={}).cluster if isinstance(source, Path) else parse(source)


def _hosts(cluster: Cluster) -> set[str]:
    return {destination.host for destination in egress(cluster)}


def _is_listed(host: str, hosts: set[str]) -> bool:
    return any(fnmatch.fnmatch(host, listed) for listed in hosts)


def _texts(cluster: Cluster) -> Iterator[str]:
    """Everything that instances and CloudFormation get."""
    for role in userdata.roles(cluster):
        for text in role.files.values():
            yield text if isinstance(text, str) else json.dumps(text)
    for document in generate(cluster):
        yield from _strings(document.body)


def _strings(value: Any) -> Iterator[str]:
    """Every string of a template."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


@functools.cache
def _hosts_in(text: str) -> frozenset[str]:
    """The hosts that a text names; most texts are the same in most clusters."""
    patterns = (URL, IMAGE) if "/" in text else ()  # a packed program, the longest of all texts, has no slash
    return frozenset(match for pattern in patterns for match in pattern.findall(text))


def _issuers(cluster: Cluster) -> set[str]:
    """The issuers of tokens: names in tokens, and of the documents that AWS reads, but instances do not."""
    issuer = cluster.service_account_issuer
    own = urlsplit(issuer.url).hostname if issuer and issuer.url else None
    return {f"kubernetes.default.svc.{cluster.network.dns_domain}", *([own] if own else [])}


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_host_of_user_data_and_templates_is_listed(name: str) -> None:
    cluster = _cluster(name)
    found = {host for text in _texts(cluster) for host in _hosts_in(text)}
    assert "dl.k8s.io" in found or cluster.assets.mirror
    contacted = {host for host in found if host not in NOT_CONTACTED and not host.endswith(".internal")}
    # Of the outputs, for people; instances have the name in /etc/hosts: see below.
    contacted -= {cluster.api.dns.name} if cluster.api.dns else set()
    contacted -= _issuers(cluster)
    hosts = _hosts(cluster)
    assert {host for host in contacted if not _is_listed(host, hosts)} == set()


def test_add_ons_with_roles_may_call_from_nodes_as_well() -> None:
    zones = {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]}
    addon_settings = {**EVERY_ADDON, "certManager": zones}
    without, with_roles = (
        {destination.host: destination for destination in egress(parse(data))}
        for data in ({"addons": EVERY_ADDON}, {"addons": addon_settings, "serviceAccountIssuer": {}})
    )
    for host in ("ec2.us-west-2.amazonaws.com", "elasticloadbalancing.us-west-2.amazonaws.com"):
        assert without[host].sources == ("masters",)
        assert with_roles[host].sources == ("masters", "nodes")
    [route53] = [destination for host, destination in with_roles.items() if host.startswith("route53")]
    assert route53.reasons == ("external-dns", "cert-manager")


@pytest.mark.parametrize("name", ["api-dns-private", "api-dns-public"])
def test_instances_reach_the_api_by_the_name_in_their_own_hosts_file(name: str) -> None:
    cluster = _cluster(name)
    texts = [json.dumps(text) for role in userdata.roles(cluster) for text in role.files.values()]
    urls = {match for text in texts for match in URL.findall(text)}
    assert cluster.api.dns
    assert cluster.api.dns.name not in urls
    assert any(api_host(cluster) in text for text in texts)


@pytest.mark.parametrize("name", [name for name in CLUSTERS if name.startswith("every add-on")])
def test_every_service_that_a_role_may_call_is_listed_for_its_instances(name: str) -> None:
    cluster = _cluster(name)
    [body] = [document.body for document in generate(cluster) if document.name == "standalone"]
    sources_by_host = {destination.host: destination.sources for destination in egress(cluster)}
    for logical_id, resource in body["Resources"].items():
        if resource["Type"] not in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
            continue
        text = json.dumps(resource["Properties"].get("Policies") or resource["Properties"].get("PolicyDocument"))
        services = set(re.findall(r'"([a-z0-9-]+):[A-Z*][A-Za-z*]*"', text))
        assert services
        # Instances use keys through EBS, Secrets Manager and S3 only.
        for service in services - {"kms", "aws"}:
            host, *_ = service_hosts({"ecr": "ecr.api"}.get(service, service), cluster.region)
            role = "nodes" if logical_id.startswith("Node") else "masters"
            assert role in sources_by_host.get(host, ()), (logical_id, service)


@pytest.mark.parametrize("region", ["us-west-2", "eu-central-1", "cn-north-1", "us-gov-west-1"])
@pytest.mark.parametrize(
    ("service", "client"),
    [
        ("autoscaling", "autoscaling"),
        ("cloudformation", "cloudformation"),
        ("ec2", "ec2"),
        ("ecr.api", "ecr"),
        ("elasticloadbalancing", "elbv2"),
        ("secretsmanager", "secretsmanager"),
        ("ssm", "ssm"),
        ("logs", "logs"),
        ("s3", "s3"),
        ("iam", "iam"),
        ("route53", "route53"),
        ("acm", "acm"),
        ("cognito-idp", "cognito-idp"),
    ],
)
def test_hosts_of_services_are_those_that_clients_call(service: str, client: str, region: str) -> None:
    made = boto3.client(client, region_name=region, aws_access_key_id="id", aws_secret_access_key="key")
    assert service_hosts(service, region)[0] == made.meta.endpoint_url.removeprefix("https://")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_registries_of_every_chart_are_known(plugin: str) -> None:
    names = {
        release["name"] for release in addons.releases(parse({"network": {"plugin": plugin}, "addons": EVERY_ADDON}))
    }
    assert names <= set(REGISTRIES_BY_RELEASE)


def test_with_a_mirror_nothing_is_downloaded_elsewhere() -> None:
    hosts = _hosts(parse({"assets": {"mirror": "http://mirror.example.com:8080/k8s"}}))
    assert "mirror.example.com" in hosts
    assert not hosts & {"dl.k8s.io", "cdn.dl.k8s.io", "github.com", "get.helm.sh", "artifacts.k8s.io"}
    [mirror] = [item for item in egress(parse({"assets": {"mirror": "http://mirror.example.com:8080/k8s"}}))
                if item.host == "mirror.example.com"]  # fmt: skip
    assert (mirror.port, mirror.sources) == (8080, ("masters", "nodes"))


def test_proxies_are_listed_for_everybody() -> None:
    proxy = {"httpsProxy": "http://proxy.example.com:3128", "httpProxy": "http://packages.example.com:8080"}
    found = {item.host: item for item in egress(parse({"network": {"proxy": proxy}}))}
    for host, port, reason in (
        ("proxy.example.com", 3128, "proxy for HTTPS"),
        ("packages.example.com", 8080, "proxy for HTTP"),
    ):
        assert (found[host].port, found[host].sources, found[host].reasons) == (port, ("masters", "nodes"), (reason,))
    del proxy["httpProxy"]
    [one] = [item for item in egress(parse({"network": {"proxy": proxy}})) if item.host == "proxy.example.com"]
    assert one.reasons == ("proxy for HTTPS", "proxy for HTTP")


def test_charts_and_mirrors_of_the_cluster_file_are_listed() -> None:
    chart = {"name": "agent", "url": "https://charts.example.com/agent-1.0.0.tgz", "sha256": "0" * 64}
    cluster = parse(
        {
            "addons": {"charts": [chart]},
            "nodeGroups": [{"containerd": {"registryMirrors": {"docker.io": ["https://registry.example.com:5000"]}}}],
            "kubernetes": {"clusterConfiguration": {"imageRepository": "images.example.com/kubernetes"}},
        }
    )
    found = {item.host: (item.port, item.sources) for item in egress(cluster)}
    assert found["charts.example.com"] == (443, ("masters",))
    assert found["registry.example.com"] == (5000, ("nodes",))
    assert found["images.example.com"] == (443, ("masters", "nodes"))


@pytest.mark.parametrize(
    ("image", "instance_type", "expected"),
    [
        ("ubuntu-24.04", "t3.medium", {"us-west-2.ec2.archive.ubuntu.com", "security.ubuntu.com"}),
        ("ubuntu-24.04", "t4g.medium", {"us-west-2.ec2.ports.ubuntu.com", "ports.ubuntu.com"}),
        ("debian-13", "t3.medium", {"cdn-aws.deb.debian.org"}),
        ("amazon-linux-2023", "t3.medium", {"al2023-repos-us-west-2-de612dc2.s3.dualstack.us-west-2.amazonaws.com"}),
    ],
)
def test_packages_come_from_the_distribution(image: str, instance_type: str, expected: set[str]) -> None:
    instances = {"image": {"distribution": image}, "instanceType": instance_type}
    cluster = parse({"controlPlane": instances, "nodeGroups": [instances]})
    packages = {item.host for item in egress(cluster) if any("packages of" in reason for reason in item.reasons)}
    assert packages == expected


def test_each_host_and_port_is_listed_once() -> None:
    listed = [(item.host, item.port, item.protocol) for item in egress(parse({"addons": EVERY_ADDON}))]
    assert len(listed) == len(set(listed))
