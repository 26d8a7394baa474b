"""What programs reach through the proxy and what without it, as Python's own reading of the variables has it."""

from __future__ import annotations

import urllib.request
from ipaddress import IPv4Network
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.network.proxy import direct_hosts, environment

PROXY = {"httpsProxy": "http://proxy.example.com:3128"}
ISOLATED = {"topology": "private", "nat": "none", "plugin": "cilium"}


def variables(network: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    return environment(parse({"network": {"proxy": PROXY, **(network or {})}, "api": {"public": False}, **more}))


def is_direct(host: str, no_proxy: str) -> bool:
    # Python's type stubs do not know this function, which urllib and botocore call.
    return bool(vars(urllib.request)["proxy_bypass_environment"](host, {"no": no_proxy}))


def test_without_a_proxy_there_are_no_variables() -> None:
    assert environment(parse({})) == {}


def test_plain_http_has_the_same_proxy_unless_it_has_its_own() -> None:
    assert variables()["HTTP_PROXY"] == variables()["HTTPS_PROXY"] == "http://proxy.example.com:3128"
    own = {"proxy": {**PROXY, "httpProxy": "http://packages.example.com:8080"}}
    assert variables(own)["HTTP_PROXY"] == "http://packages.example.com:8080"
    assert variables(own)["HTTPS_PROXY"] == "http://proxy.example.com:3128"


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "localhost",
        "127.0.0.1",
        "api.kubernetes.internal",
        "ip-172-20-0-9.us-west-2.compute.internal",
        "webhook.shop.svc",
        "kubernetes.default.svc.cluster.local",
    ],
)
def test_the_instance_and_the_cluster_are_reached_without_the_proxy(host: str) -> None:
    assert is_direct(host, variables()["NO_PROXY"])


@pytest.mark.parametrize(
    "host",
    ["ec2.us-west-2.amazonaws.com", "s3.us-west-2.amazonaws.com", "dl.k8s.io", "registry.k8s.io", "api.other.internal"],
)
def test_what_is_elsewhere_is_reached_through_the_proxy(host: str) -> None:
    assert not is_direct(host, variables()["NO_PROXY"])


def test_ranges_are_those_of_vpc_pods_and_services() -> None:
    hosts = variables({"podCidr": "100.64.0.0/10"})["NO_PROXY"].split(",")
    assert [host for host in hosts if "/" in host] == ["172.20.0.0/16", "10.0.0.0/16", "100.64.0.0/10"]
    # Pods of this plug-in have addresses of the VPC.
    hosts = variables({"plugin": "amazon-vpc"})["NO_PROXY"].split(",")
    assert [host for host in hosts if "/" in host] == ["172.20.0.0/16", "10.0.0.0/16"]


def test_domains_follow_region_and_cluster_file() -> None:
    hosts = direct_hosts(parse({"region": "us-east-1", "network": {"proxy": PROXY, "dnsDomain": "cluster.example"}}))
    assert ".ec2.internal" in hosts
    assert ".cluster.example" in hosts
    assert ".cluster.local" not in hosts


@pytest.mark.parametrize(
    "host",
    [
        "ec2.us-west-2.amazonaws.com",
        "cloudformation.us-west-2.amazonaws.com",
        "123456789012.dkr.ecr.us-west-2.amazonaws.com",
        "api.ecr.us-west-2.amazonaws.com",
        "sts.us-west-2.amazonaws.com",
        "backups.s3.us-west-2.amazonaws.com",
        "al2023-repos-us-west-2-de612dc2.s3.dualstack.us-west-2.amazonaws.com",
    ],
)
def test_services_with_endpoints_are_reached_without_the_proxy(host: str) -> None:
    with_endpoints = {**ISOLATED, "endpoints": {"additional": ["sts", "com.amazonaws.vpce.us-west-2.vpce-svc-1"]}}
    no_proxy = variables(with_endpoints)["NO_PROXY"]
    assert is_direct(host, no_proxy)
    assert "vpce" not in no_proxy
    assert not is_direct("route53.amazonaws.com", no_proxy)
    # Where cfngen creates no endpoints, the proxy is the way to these services.
    assert not is_direct(host, variables({**ISOLATED, "endpoints": {"create": False}})["NO_PROXY"])


def test_endpoint_of_s3_does_not_serve_existing_subnets() -> None:
    subnet = {"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.1.0.0/24"}
    existing = {
        **ISOLATED,
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.1.0.0/16"},
        "subnets": [subnet, {"zone": "us-west-2b", "cidr": "10.1.1.0/24"}],
    }
    no_proxy = variables(existing)["NO_PROXY"]
    assert not is_direct("s3.us-west-2.amazonaws.com", no_proxy)
    assert is_direct("ec2.us-west-2.amazonaws.com", no_proxy)


def test_services_in_china_have_another_domain() -> None:
    hosts = direct_hosts(parse({"region": "cn-north-1", "network": {**ISOLATED, "proxy": PROXY}}))
    assert "ec2.cn-north-1.amazonaws.com.cn" in hosts
    assert ".cn-north-1.compute.internal" in hosts


def test_every_range_of_the_vpc_is_direct() -> None:
    """Also one without a subnet of the cluster: databases of the VPC may be in it."""
    hosts = variables({"vpc": {"cidr": "10.1.0.0/16", "additionalCidrs": ["10.2.0.0/16"]}})["NO_PROXY"].split(",")
    assert {"10.1.0.0/16", "10.2.0.0/16"} <= set(hosts)


def test_users_exceptions_come_last_and_once() -> None:
    added = {"proxy": {**PROXY, "noProxy": [".corp.example.com", "10.200.0.0/16", "localhost"]}}
    hosts = variables(added)["NO_PROXY"].split(",")
    assert hosts[-2:] == [".corp.example.com", "10.200.0.0/16"]
    assert hosts.count("localhost") == 1
    assert is_direct("git.corp.example.com", ",".join(hosts))


@pytest.mark.parametrize(
    ("mirror", "is_listed"),
    [
        ("http://172.20.0.77:8080/files", True),
        ("http://10.200.1.7/files", True),
        ("http://192.0.2.7/files", False),
        ("https://mirror.example.com/files", False),
    ],
)
def test_mirror_at_an_address_within_a_range_is_named_itself(mirror: str, is_listed: bool) -> None:
    # Python does not look into ranges, and the boot program is in Python.
    no_proxy = variables({"proxy": {**PROXY, "noProxy": ["10.200.0.0/16"]}}, assets={"mirror": mirror})["NO_PROXY"]
    host = mirror.split("/")[2].partition(":")[0]
    assert is_direct(host, no_proxy) is is_listed


def test_ranges_are_written_as_go_reads_them() -> None:
    for host in variables()["NO_PROXY"].split(","):
        if "/" in host:
            assert str(IPv4Network(host)) == host
