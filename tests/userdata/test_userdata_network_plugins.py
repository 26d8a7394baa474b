"""What instances are told of the network plug-in: flags, files, services, steps and the charts that masters install."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.userdata import UserData, addons, cloud_controller, kubeadm, roles

PLUGINS = ("vpc-routes", "cilium", "calico", "flannel", "amazon-vpc", "none")
RANGE = "10.96.0.0/14"


def cluster(plugin: str, **data: Any) -> Any:
    network = {"plugin": plugin, **({} if plugin == "amazon-vpc" else {"podCidr": RANGE}), **data.pop("network", {})}
    return parse({"name": "prod", **data, "network": network})


def told(plugin: str, role: str = "master", **data: Any) -> UserData:
    return {each.role: each for each in roles(cluster(plugin, **data))}[role]


def config(found: UserData) -> dict[str, Any]:
    return {**json.loads(found.files["config.json"]), **json.loads(found.files["role.json"])}


def controller_flags(plugin: str) -> dict[str, str]:
    [daemon] = [each for each in cloud_controller.manifests(cluster(plugin)) if each["kind"] == "DaemonSet"]
    [container] = daemon["spec"]["template"]["spec"]["containers"]
    return dict(flag.removeprefix("--").split("=", 1) for flag in container["args"])


def settings(plugin: str) -> dict[str, Any]:
    return next(
        document for document in kubeadm.init_documents(cluster(plugin)) if document["kind"] == "ClusterConfiguration"
    )


def manager_flags(plugin: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in settings(plugin)["controllerManager"]["extraArgs"]}


def charts(plugin: str, **data: Any) -> dict[str, Any]:
    """Values of the plug-in's charts, which are the essential ones."""
    found = addons.releases(cluster(plugin, **data))
    return {each["name"]: json.loads(each["values"]) for each in found if each["essential"]}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_route_controller_runs_only_where_pods_have_routes(plugin: str) -> None:
    flags = controller_flags(plugin)
    if plugin == "vpc-routes":
        assert (flags["configure-cloud-routes"], flags["cluster-cidr"]) == ("true", RANGE)
    else:
        # Its default is true, and without a range it would end the program.
        assert flags["configure-cloud-routes"] == "false"
        assert not {"cluster-cidr", "allocate-node-cidrs"} & set(flags)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_nodes_are_given_ranges_where_the_plugin_uses_them(plugin: str) -> None:
    wanted = plugin not in ("calico", "amazon-vpc")
    assert manager_flags(plugin)["allocate-node-cidrs"] == ("true" if wanted else "false")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_range_of_pods_is_known_where_there_is_one(plugin: str) -> None:
    found = (settings(plugin)["networking"].get("podSubnet"), manager_flags(plugin).get("cluster-cidr"))
    assert found == ((None, None) if plugin == "amazon-vpc" else (RANGE, RANGE))


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_containerd_writes_a_configuration_only_where_there_is_no_plugin_that_does(plugin: str, role: str) -> None:
    found = told(plugin, role)
    routes = plugin == "vpc-routes"
    assert ("files/etc/containerd/cni.template" in found.files) is routes
    assert ("conf_template" in found.files["files/etc/containerd/config.toml"]) is routes
    assert "/etc/cni/net.d" in found.files["files/etc/containerd/config.toml"]


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_masquerading_is_the_plugins_own_business(plugin: str, role: str) -> None:
    found = told(plugin, role)
    routes = plugin == "vpc-routes"
    assert ("files/etc/systemd/system/cfngen-masquerade.service" in found.files) is routes
    assert config(found)["services"] == ["containerd", *(["cfngen-masquerade"] if routes else [])]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_controllers_configuration_names_a_route_table_where_one_is_written_to(plugin: str) -> None:
    found = told(plugin)
    routes = plugin == "vpc-routes"
    assert ("RouteTableID" in found.files["files/etc/kubernetes/cloud.config"]) is routes
    assert ("routeTableId" in found.files["user-data.py"]) is routes


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_distribution_leaves_the_plugins_routes_and_rules_alone(plugin: str, role: str) -> None:
    found = told(plugin, role)
    steps = list(config(found)["steps"])
    if plugin in ("cilium", "amazon-vpc"):
        assert "ManageForeignRoutes=no" in found.files["files/etc/systemd/networkd.conf.d/40-cfngen.conf"]
        assert steps.index("settings") < steps.index("pod network") < steps.index("services")
    else:
        assert "pod network" not in steps
        assert not [path for path in found.files if "systemd/networkd" in path]


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_nobody_gives_the_hosts_end_of_a_pods_interface_another_address_later(plugin: str, role: str) -> None:
    file = told(plugin, role).files["files/etc/systemd/network/99-default.link.d/40-cfngen.conf"]
    assert file == "[Link]\nMACAddressPolicy=none\n"


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        ("vpc-routes", []),
        ("cilium", ["cilium"]),
        ("calico", ["calico-crds", "calico"]),
        ("flannel", ["flannel"]),
        ("amazon-vpc", ["aws-vpc-cni"]),
        ("none", []),
    ],
)
@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36"])
def test_the_plugin_is_installed_before_all_else(plugin: str, names: list[str], version: str) -> None:
    found = addons.releases(cluster(plugin, kubernetesVersion=version))
    assert [each["name"] for each in found[: len(names)]] == names
    assert [each["name"] for each in found if each["essential"]] == names
    assert all(len(each["chart"]["sha256"]) == 64 for each in found)


@pytest.mark.parametrize("plugin", ["cilium", "calico", "amazon-vpc"])
def test_agents_find_the_api_by_its_name_before_services_work(plugin: str) -> None:
    text = json.dumps(charts(plugin, api={"port": 6443}))
    assert "api.prod.internal" in text
    assert "6443" in text


@pytest.mark.parametrize("plugin", ["calico", "flannel"])
def test_the_range_is_the_plugins_to_give_out(plugin: str) -> None:
    assert RANGE in json.dumps(charts(plugin))


def test_cilium_works_beside_kube_proxy() -> None:
    values = charts("cilium")["cilium"]
    assert values["kubeProxyReplacement"] == "false"
    assert (values["ipam"]["mode"], values["tunnelProtocol"]) == ("kubernetes", "vxlan")
    assert values["hubble"] == {"enabled": False}


def test_one_master_has_one_operator() -> None:
    # A second one would wait for a second instance, and with it the chart.
    three = {"controlPlane": {"count": 3}, "network": {"subnets": [{"zone": f"us-west-2{each}"} for each in "abc"]}}
    assert charts("cilium")["cilium"]["operator"]["replicas"] == 1
    assert charts("cilium", **three)["cilium"]["operator"]["replicas"] == 2


def test_calico_tunnels_and_speaks_no_bgp() -> None:
    network = charts("calico")["calico"]["installation"]["calicoNetwork"]
    assert network["bgp"] == "Disabled"
    assert [each["encapsulation"] for each in network["ipPools"]] == ["VXLAN"]


def test_interfaces_of_pods_bear_the_tags_that_permissions_rest_on() -> None:
    values = charts("amazon-vpc", tags={"team": "a"})["aws-vpc-cni"]
    tags = json.loads(values["env"]["ADDITIONAL_ENI_TAGS"])
    assert tags == {"KubernetesCluster": "prod", "kubernetes.io/cluster/prod": "owned", "team": "a"}
    # Without it the plug-in would ask for subnets, which it has no permission for.
    assert values["env"]["ENABLE_SUBNET_DISCOVERY"] == "false"


def test_own_values_are_merged_over_cfngens() -> None:
    network = {"pluginValues": {"hubble": {"relay": {"enabled": True}}, "k8s": {"requireIPv4PodCIDR": False}}}
    values = charts("cilium", network=network)["cilium"]
    assert values["hubble"] == {"enabled": False, "relay": {"enabled": True}}
    assert values["k8s"] == {"requireIPv4PodCIDR": False}
    assert values["ipam"] == {"mode": "kubernetes"}


def test_own_values_are_for_the_program_not_for_its_definitions() -> None:
    found = charts("calico", network={"pluginValues": {"whisker": {"enabled": True}}})
    assert found["calico-crds"] == {}
    assert found["calico"]["whisker"] == {"enabled": True}


def test_prefixes_are_known_to_the_count_of_pods() -> None:
    found = config(told("amazon-vpc", network={"pluginValues": {"env": {"ENABLE_PREFIX_DELEGATION": "true"}}}))
    assert found["podNetwork"]["prefixes"] is True
    assert config(told("amazon-vpc"))["podNetwork"]["prefixes"] is False


def test_nodes_are_awaited_unless_nobody_installs_a_plugin() -> None:
    chart = {"name": "antrea", "url": "https://charts.example.com/antrea.tgz", "sha256": "a" * 64}
    assert config(told("none", "nodes-nodes"))["podNetwork"]["awaited"] is False
    assert config(told("none", "nodes-nodes", addons={"charts": [chart]}))["podNetwork"]["awaited"] is True
    assert config(told("cilium", "nodes-nodes"))["podNetwork"]["awaited"] is True


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_shutdown_is_graceful_unless_it_would_leave_interfaces_behind(plugin: str) -> None:
    wanted = ("0s", "0s") if plugin == "amazon-vpc" else ("30s", "10s")
    for role in ("master", "nodes-nodes"):
        found = config(told(plugin, role))["kubeletPatch"]
        assert (found["shutdownGracePeriod"], found["shutdownGracePeriodCriticalPods"]) == wanted
