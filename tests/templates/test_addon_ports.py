"""What nodes may send to masters for the sake of add-ons: the ports that are asked, under every network plug-in."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from test_network_plugins import ALWAYS, OPEN, PLUGINS, rules

from cfngen.cluster.load import parse
from cfngen.cluster.network.network_plugins import PLUGINS as TABLE
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections.services import Addons
from cfngen.cluster.security_groups.addon_ports import LISTENERS
from cfngen.userdata import addons

MONITORED = {"enabled": True, "values": {"serviceMonitor": {"enabled": True}}}
ALL: dict[str, Any] = {
    "awsEbsCsiDriver": {"enabled": True, "values": {"controller": {"enableMetrics": True}}},
    "clusterAutoscaler": MONITORED,
    "nodeTerminationHandler": {"enabled": True},
    "awsLoadBalancerController": MONITORED,
    "externalDns": {**MONITORED, "zones": ["Z0123456789ABCDEFGHIJ"]},
    "certManager": {"enabled": True},
    "headlamp": {"enabled": True},
    "fluentBit": {"enabled": True, "values": {"config": {"outputs": "[OUTPUT]\n    Name stdout\n"}}},
    "prometheus": {"enabled": True},
}
PLAIN = {
    name: {key: value for key, value in addon.items() if key != "values" or name == "fluentBit"}
    for name, addon in ALL.items()
}
NODE_EXPORTER, CLUSTER_DNS = ("tcp", 9100, 9100), ("tcp", 9153, 9153)
# Pods' own packets are seen by security groups where no tunnel carries them.
UNTUNNELLED = ("vpc-routes", "amazon-vpc")
# On every master besides: kubeadm's ports, kube-proxy's, the cloud controller manager's.
OTHERS = (2379, 2380, 2381, 10248, 10249, 10250, 10256, 10257, 10258, 10259)


def opened(templates: Any, plugin: str, chosen: dict[str, Any], **more: Any) -> set[tuple[str, int | None, int | None]]:
    generated = templates({"network": {"plugin": plugin}, "addons": chosen, **more})
    return rules(generated, "MasterSecurityGroup", "NodeSecurityGroup") - ALWAYS - OPEN[plugin]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_prometheus_reaches_what_it_asks_on_masters(templates: Any, plugin: str) -> None:
    wanted = {NODE_EXPORTER, CLUSTER_DNS} if plugin in UNTUNNELLED else {NODE_EXPORTER}
    assert opened(templates, plugin, {"prometheus": {"enabled": True}}) == wanted
    assert opened(templates, plugin, {}) == set()


@pytest.mark.parametrize("plugin", PLUGINS)
def test_add_ons_open_what_nodes_ask_and_nothing_else(templates: Any, plugin: str) -> None:
    wanted = {NODE_EXPORTER, CLUSTER_DNS} if plugin in UNTUNNELLED else {NODE_EXPORTER}
    assert opened(templates, plugin, PLAIN) == wanted
    # Whose metrics are turned on is asked by Prometheus, on the masters' own addresses.
    metrics = {("tcp", port, port) for port in (3301, 3302, 3303, 3304, 3305, 7979, 8080, 8085)}
    assert opened(templates, plugin, ALL) == wanted | metrics
    # Add-ons with roles have addresses of their own, which a tunnel carries.
    with_roles = opened(templates, plugin, ALL, serviceAccountIssuer={})
    assert with_roles == (wanted | metrics if plugin in UNTUNNELLED else wanted)


def test_what_is_turned_off_opens_nothing(templates: Any) -> None:
    off = {"enabled": True, "values": {"nodeExporter": {"enabled": False}, "coreDns": {"enabled": False}}}
    assert opened(templates, "vpc-routes", {"prometheus": off}) == set()


def test_every_add_on_says_which_ports_of_masters_it_listens_on() -> None:
    assert set(LISTENERS) == set(Addons.model_fields) - {"charts"}


def test_pods_with_the_masters_network_have_known_ports() -> None:
    """What cfngen itself gives the host's network is in the table, under the key of its add-on."""
    releases = {release["name"]: release for release in addons.releases(parse({"addons": PLAIN}))}
    hosted = {
        name
        for name, each in releases.items()
        if json.loads(each["values"]).get("hostNetwork")
        or any(patch["spec"]["template"]["spec"].get("hostNetwork") for patch in each["patches"])
    }
    known = {
        field.replace("_", "-") for field, found in LISTENERS.items() if any(each.network == "host" for each in found)
    }
    assert hosted == {"aws-ebs-csi-driver", "cluster-autoscaler", "aws-load-balancer-controller", "external-dns"}
    assert hosted <= known


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_two_programs_of_a_master_want_one_port(plugin: str) -> None:
    by_addon = [{each.port for each in found if each.network == "host"} for found in LISTENERS.values()]
    ports = [*OTHERS, *TABLE[plugin].host_ports, *(port for found in by_addon for port in found)]
    assert [port for port, count in Counter(ports).items() if count > 1] == []


@pytest.mark.parametrize(("addon", "port"), [("prometheus", 9100), ("awsLoadBalancerController", 9443)])
def test_api_port_of_an_add_on_is_refused(addon: str, port: int) -> None:
    parse({"api": {"port": port}})
    with pytest.raises(ClusterFileError, match=f"{port} is used by addons.{addon}"):
        parse({"api": {"port": port}, "addons": {addon: {"enabled": True}}})
