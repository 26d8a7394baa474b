"""Network plug-ins in the cluster file: what does not go together is refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.checks import warnings
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

EXISTING = {
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
    "subnets": [
        {"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"},
        {"zone": "us-west-2b", "id": "subnet-0123456789abcdef1", "cidr": "10.20.16.0/20"},
    ],
    "serviceCidr": "10.250.0.0/16",
}
CHART = {"name": "antrea", "url": "https://charts.example.com/antrea-2.0.0.tgz", "sha256": "a" * 64}
OVERLAYS = ("cilium", "calico", "flannel")


def refusal(configuration: dict[str, Any]) -> str:
    with pytest.raises(ClusterFileError) as raised:
        parse(configuration)
    return str(raised.value)


def warned(configuration: dict[str, Any]) -> str:
    return "\n".join(map(str, warnings(parse(configuration))))


def of(plugin: str, **network: Any) -> dict[str, Any]:
    return {"network": {"plugin": plugin, **network}}


@pytest.mark.parametrize("plugin", ["vpc-routes", *OVERLAYS, "amazon-vpc", "none"])
def test_the_default_cluster_works_with_every_plugin(plugin: str) -> None:
    assert parse(of(plugin)).network.plugin == plugin


@pytest.mark.parametrize(
    ("plugin", "port"),
    [("cilium", 4240), ("cilium", 9964), ("calico", 5473), ("flannel", 8081), ("amazon-vpc", 61678)],
)
def test_api_on_a_port_that_the_plugin_takes_is_refused(plugin: str, port: int) -> None:
    """Its agents run on masters, in their network: the API server could not listen there."""
    assert refusal({**of(plugin), "api": {"port": port}}) == f"api.port: {port} is used by {plugin}; use 443 or 6443"
    other = "vpc-routes"
    assert parse({**of(other), "api": {"port": port}}).api.port == port, "no program of this plug-in listens there"


def test_pods_of_the_vpc_plugin_have_no_range_of_their_own() -> None:
    said = refusal(of("amazon-vpc", podCidr="10.244.0.0/16"))
    assert said == "network.podCidr: with amazon-vpc pods get addresses from the subnets; remove the key"


def test_the_unused_pod_range_may_overlap_the_vpc() -> None:
    network = {"vpc": {"cidr": "10.244.0.0/16"}, "serviceCidr": "10.0.0.0/16"}
    assert "overlaps" in refusal(of("cilium", **network))
    assert parse(of("amazon-vpc", **network)).network.vpc.cidr.prefixlen == 16


@pytest.mark.parametrize("plugin", [*OVERLAYS, "amazon-vpc", "none"])
def test_what_only_vpc_routes_use_is_refused_elsewhere(plugin: str) -> None:
    assert "remove the key" in refusal(of(plugin, nonMasqueradeCidr="10.0.0.0/8"))
    said = refusal(of(plugin, **EXISTING, routeTable="rtb-0123456789abcdef0"))
    assert said.startswith(f"network.routeTable: {plugin} adds no routes to the VPC")


@pytest.mark.parametrize("plugin", ["vpc-routes", "none"])
def test_values_need_a_chart(plugin: str) -> None:
    assert f"{plugin} has no Helm chart" in refusal(of(plugin, pluginValues={"mtu": 1400}))
    assert parse(of("cilium", pluginValues={"MTU": 1400})).network.plugin_values == {"MTU": 1400}


@pytest.mark.parametrize(("plugin", "port"), [("cilium", 4240), ("calico", 5473), ("flannel", 8081)])
def test_the_api_does_not_take_a_port_of_the_plugin(plugin: str, port: int) -> None:
    assert f"{port} is used by {plugin}" in refusal({**of(plugin), "api": {"port": port}})
    assert parse({"api": {"port": port}}).api.port == port


def test_subnets_too_small_for_pods_are_refused() -> None:
    nodes = [{"name": "nodes", "minSize": 30, "maxSize": 30}]
    said = refusal({**of("amazon-vpc"), "nodeGroups": nodes})
    assert said.startswith(
        "network.subnets: the subnets have 251 addresses for instances and pods, but 31 instances need 341 or more"
    )
    assert parse({**of("cilium"), "nodeGroups": nodes})


def test_subnets_that_growth_may_exhaust_are_warned_of() -> None:
    nodes = [{"name": "nodes", "minSize": 4, "maxSize": 40}]
    assert "may need 533 addresses or more" in warned({**of("amazon-vpc"), "nodeGroups": nodes})
    assert "addresses and more" not in warned({**of("cilium"), "nodeGroups": nodes})


def test_the_quota_of_routes_matters_where_there_are_routes() -> None:
    nodes = [{"name": "nodes", "minSize": 4, "maxSize": 90}]
    assert "Routes per route table" in warned({"nodeGroups": nodes})
    assert "Routes per route table" not in warned({**of("cilium"), "nodeGroups": nodes})


def test_calico_gives_smaller_blocks_to_more_nodes() -> None:
    nodes = [{"name": "nodes", "minSize": 1, "maxSize": 200}]
    few = {"podCidr": "10.244.0.0/18", "subnets": [{"zone": "us-west-2a", "cidr": "172.20.0.0/23"}]}
    assert "contains 64 ranges of /24" in refusal({**of("cilium", **few), "nodeGroups": nodes})
    assert parse({**of("calico", **few), "nodeGroups": nodes})


def test_without_a_plugin_somebody_must_install_one() -> None:
    assert "list its chart in addons.charts" in warned(of("none"))
    assert "addons.charts" not in warned({**of("none"), "addons": {"charts": [CHART]}})
