"""The add-ons as Helm releases: which are on, where they run, what they are told."""

from __future__ import annotations

import gzip
import json
import math
import re
from importlib import resources
from typing import Any

import pytest

from cfngen.boot.state import fill
from cfngen.cluster.checks.addons import CFNGEN_RELEASES
from cfngen.cluster.load import parse
from cfngen.userdata import addons, roles

ON = {"enabled": True}
OPTIONAL = {
    "clusterAutoscaler": "cluster-autoscaler",
    "nodeTerminationHandler": "aws-node-termination-handler",
    "certManager": "cert-manager",
    "awsLoadBalancerController": "aws-load-balancer-controller",
    "externalDns": "external-dns",
    "headlamp": "headlamp",
    "fluentBit": "fluent-bit",
    "prometheus": "prometheus",
    "nvidiaDevicePlugin": "nvidia-device-plugin",
}
ALL: dict[str, Any] = {
    **dict.fromkeys(OPTIONAL, ON),
    "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ", "Z1111111111AAAAAAAAAA"]},
    "fluentBit": {"enabled": True, "values": {"config": {"outputs": "[OUTPUT]\n    Name stdout\n"}}},
}
CHART = {
    "name": "demo",
    "namespace": "shop",
    "url": "https://charts.example.com/demo-1.2.3.tgz",
    "sha256": "0" * 64,
    "values": {"replicas": 2},
}


# What the handler's settings are as values of its chart (values.yaml of aws/aws-node-termination-handler at v1.25.6).
HANDLER_VALUES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"spotInterruptions": False}, {"enableSpotInterruptionDraining": False}),
    ({"scheduledEvents": False}, {"enableScheduledEventDraining": False}),
    ({"rebalanceRecommendation": "cordon"}, {"enableRebalanceMonitoring": True, "enableRebalanceDraining": False}),
    ({"rebalanceRecommendation": "drain"}, {"enableRebalanceMonitoring": True, "enableRebalanceDraining": True}),
    ({"podGracePeriod": 60}, {"podTerminationGracePeriod": 60}),
    ({"nodeGracePeriod": 300}, {"nodeTerminationGracePeriod": 300}),
    # One's own values win.
    ({"scheduledEvents": False, "values": {"enableScheduledEventDraining": True}}, {}),
)


def releases(configured: dict[str, Any] | None = None, **more: Any) -> dict[str, dict[str, Any]]:
    cluster = parse({"addons": configured or {}, **more})
    return {each["name"]: each for each in addons.releases(cluster)}


def values(release: str, configured: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(releases(configured, **more)[release]["values"])
    return found


def test_storage_and_metrics_are_on_unless_turned_off() -> None:
    assert list(releases()) == ["aws-ebs-csi-driver", "metrics-server"]
    assert releases({"metricsServer": {"enabled": False}, "awsEbsCsiDriver": {"enabled": False}}) == {}


@pytest.mark.parametrize(("field", "name"), OPTIONAL.items())
def test_optional_add_on_is_installed_when_asked_for(field: str, name: str) -> None:
    assert name not in releases()
    assert name in releases({field: ALL[field]})


@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36"])
def test_every_add_on_has_a_chart_for_every_minor(version: str) -> None:
    found = releases(ALL, kubernetesVersion=version)
    assert set(found) == {"aws-ebs-csi-driver", "metrics-server", *OPTIONAL.values()}
    assert values("cluster-autoscaler", ALL, kubernetesVersion=version)["image"]["tag"].startswith(f"v{version}.")


@pytest.mark.parametrize("plugin", ["vpc-routes", "cilium", "calico", "flannel", "amazon-vpc"])
def test_names_of_own_releases_are_not_to_be_had_by_charts(plugin: str) -> None:
    assert set(releases(ALL, network={"plugin": plugin})) <= CFNGEN_RELEASES


def autoscaler(*groups: str, **settings: Any) -> dict[str, Any]:
    """The values of cluster-autoscaler's chart, in a cluster with some node groups."""
    listed = [{"name": name} for name in groups]
    return values("cluster-autoscaler", {"clusterAutoscaler": {"enabled": True, **settings}}, nodeGroups=listed)


def test_cluster_autoscaler_chooses_by_itself_unless_told_otherwise() -> None:
    found = autoscaler("nodes")
    assert "expanderPriorities" not in found
    assert "expander" not in found["extraArgs"]


def test_expanders_are_tried_in_the_order_of_the_cluster_file() -> None:
    arguments = {"scan-interval": "30s", "skip-nodes-with-local-storage": False}
    found = autoscaler("nodes", expander=["most-pods", "least-waste"], values={"extraArgs": arguments})
    assert found["extraArgs"] == {
        "balance-similar-node-groups": True,
        "expander": "most-pods,least-waste",
        **arguments,
    }


# CloudFormation names a group after its stack and logical id (`cfngen.permissions.scope`).
def test_priorities_match_the_names_of_their_groups_and_of_no_others() -> None:
    found = autoscaler(
        "gpu", "gpu-spot", "spot", expander=["priority"], priorities={"50": ["gpu-spot"], "10": ["gpu", "spot"]}
    )
    names = {
        group: f"blue-NodeGroup{group}Stack-1AB2CD3EF4GH5-NodeGroup{group}AutoScalingGroup-Z0Y1X2W3V4U5"
        for group in ("Gpu", "GpuSpot", "Spot")
    }
    matching = {
        priority: {group for group, name in names.items() for pattern in patterns if re.search(pattern, name)}
        for priority, patterns in found["expanderPriorities"].items()
    }
    assert matching == {"50": {"GpuSpot"}, "10": {"Gpu", "Spot"}}


def test_users_values_win_at_any_depth() -> None:
    given = {"controller": {"replicaCount": 3}, "storageClasses": [{"name": "default", "reclaimPolicy": "Retain"}]}
    found = values("aws-ebs-csi-driver", {"awsEbsCsiDriver": {"values": given}})
    assert found["controller"]["replicaCount"] == 3
    assert found["controller"]["region"] == "us-west-2"
    [storage_class] = found["storageClasses"]
    assert storage_class["reclaimPolicy"] == "Retain"
    assert storage_class["parameters"]["encrypted"] == "true"


def test_any_chart_can_be_listed() -> None:
    found = releases({"charts": [CHART]})["demo"]
    assert (found["namespace"], found["version"]) == ("shop", "1.2.3")
    assert json.loads(found["values"]) == {"replicas": 2}
    assert found["chart"]["url"] == CHART["url"]
    assert found["chart"]["sha256"] == CHART["sha256"]


def test_mirror_holds_the_charts_as_well() -> None:
    found = releases({"charts": [CHART]}, assets={"mirror": "https://mirror.example.com/k8s"})
    assert found["demo"]["chart"]["url"] == "https://mirror.example.com/k8s/charts.example.com/demo-1.2.3.tgz"
    assert all(each["chart"]["url"].startswith("https://mirror.example.com/k8s/") for each in found.values())


def test_values_are_the_same_on_every_master() -> None:
    # Facts are filled into the configuration on the instance; what a chart calls ${zone} is not one of them.
    config = {"addons": list(releases({"charts": [{**CHART, "values": {"pattern": "${zone} $${x}"}}]}).values())}
    filled = fill(config, {"zone": "us-west-2a", "x": "y"})
    assert filled == config
    assert json.loads(filled["addons"][-1]["values"]) == {"pattern": "${zone} $${x}"}


def test_new_volumes_are_encrypted_and_made_where_their_pod_runs() -> None:
    [storage_class] = values("aws-ebs-csi-driver")["storageClasses"]
    assert storage_class["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert storage_class["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
    assert storage_class["allowVolumeExpansion"] is True


def test_what_add_ons_make_bears_the_tag_that_permissions_ask_for() -> None:
    more = {"name": "prod", "tags": {"team": "a=b", "cost=centre": "7"}}
    ebs = values("aws-ebs-csi-driver", ALL, **more)["controller"]
    # The driver reads its tags from one flag, as key=value.
    assert ebs["extraVolumeTags"] == {"KubernetesCluster": "prod", "team": "a=b"}
    assert ebs["k8sTagClusterId"] == "prod"
    balancers = values("aws-load-balancer-controller", ALL, **more)
    assert balancers["defaultTags"] == {"KubernetesCluster": "prod", "team": "a=b", "cost=centre": "7"}


def test_volumes_leave_room_for_the_interfaces_that_bear_pods_addresses() -> None:
    # The driver sees neither interfaces nor the root volume where it asks Kubernetes only.
    types = json.loads(
        gzip.decompress(resources.files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes())
    )
    networks = [each["NetworkInfo"] for each in types.values() if each["NetworkInfo"]["Ipv4AddressesPerInterface"] > 1]
    assert len(networks) > 500
    pods = 110 + 2  # and two that the plug-in keeps ready
    needed = max(
        min(card["MaximumNetworkInterfaces"], math.ceil(pods / (network["Ipv4AddressesPerInterface"] - 1)))
        for network in networks
        for card in network["NetworkCards"][:1]
    )
    node = values("aws-ebs-csi-driver", network={"plugin": "amazon-vpc"})["node"]
    assert node["reservedVolumeAttachments"] == needed - 1 + 1
    assert "reservedVolumeAttachments" not in values("aws-ebs-csi-driver")["node"]


def test_a_limit_of_the_users_own_stands_alone() -> None:
    # The chart refuses both.
    own = {"awsEbsCsiDriver": {"values": {"node": {"volumeAttachLimit": 20}}}}
    node = values("aws-ebs-csi-driver", own, network={"plugin": "amazon-vpc"})["node"]
    assert node["volumeAttachLimit"] == 20
    assert "reservedVolumeAttachments" not in node


def pod_of(name: str) -> dict[str, Any]:
    """What a chart and its patches say of the pods that call AWS."""
    release = releases(ALL)[name]
    given = json.loads(release["values"])
    found = {**given, **given.get("controller", {})}
    for patch in release["patches"]:
        found.update(patch["spec"]["template"]["spec"])
    return found


@pytest.mark.parametrize(
    "name", ["aws-ebs-csi-driver", "cluster-autoscaler", "aws-load-balancer-controller", "external-dns"]
)
def test_what_calls_aws_runs_on_masters_with_their_network(name: str) -> None:
    pod = pod_of(name)
    assert pod["hostNetwork"] is True
    assert pod["dnsPolicy"] == "Default"
    assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    assert pod["tolerations"][0]["key"] == "node-role.kubernetes.io/control-plane"


def test_pods_with_host_ports_are_as_many_as_masters_and_at_most_two() -> None:
    three = {
        "controlPlane": {"count": 3},
        "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
    }
    assert values("aws-load-balancer-controller", ALL)["replicaCount"] == 1
    assert values("aws-load-balancer-controller", ALL, **three)["replicaCount"] == 2
    strategy = values("aws-load-balancer-controller", ALL)["updateStrategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_services_do_not_depend_on_the_load_balancer_controller_unasked() -> None:
    assert values("aws-load-balancer-controller", ALL)["enableServiceMutatorWebhook"] is False


def test_external_dns_writes_to_the_given_zones_only() -> None:
    found = values("external-dns", ALL, name="prod")
    assert found["extraArgs"] == ["--zone-id-filter=Z0123456789ABCDEFGHIJ", "--zone-id-filter=Z1111111111AAAAAAAAAA"]
    assert found["txtOwnerId"] == "prod"


def test_autoscaler_looks_for_the_tags_that_node_groups_bear() -> None:
    found = values("cluster-autoscaler", ALL, name="prod")
    assert found["autoDiscovery"] == {"clusterName": "prod"}
    assert found["awsRegion"] == "us-west-2"


def test_what_waits_for_a_node_is_installed_last() -> None:
    # The hook of Prometheus's chart is a pod; with no node Helm waits for it until its time-out.
    assert list(releases({**ALL, "charts": [CHART]}))[-2:] == ["demo", "prometheus"]


def test_prometheus_keeps_its_data_on_a_volume_if_there_can_be_one() -> None:
    assert "storageSpec" in values("prometheus", ALL)["prometheus"]["prometheusSpec"]
    without = {**ALL, "awsEbsCsiDriver": {"enabled": False}}
    assert "storageSpec" not in values("prometheus", without)["prometheus"]["prometheusSpec"]


def test_headlamp_has_no_rights_of_its_own() -> None:
    # Its chart binds its account to cluster-admin unless told otherwise.
    found = values("headlamp", ALL)
    assert found["clusterRoleBinding"] == {"create": False}
    assert found["config"]["unsafeUseServiceAccountToken"] is False


def test_metrics_server_verifies_kubelets_whose_certificates_the_cluster_signs() -> None:
    assert values("metrics-server")["args"] == []
    own = {"kubernetes": {"kubeletConfiguration": {"serverTLSBootstrap": False}}}
    assert values("metrics-server", **own)["args"] == ["--kubelet-insecure-tls"]


def test_masters_have_helm_and_know_the_releases() -> None:
    master = next(each for each in roles(parse({"addons": {"charts": [CHART]}})) if each.role == "master")
    role = {**json.loads(master.files["config.json"]), **json.loads(master.files["role.json"])}
    assert [each["name"] for each in role["addons"]] == ["aws-ebs-csi-driver", "metrics-server", "demo"]
    tools = {tuple(each["members"]): each["folder"] for each in role["assets"] if "members" in each}
    assert tools == {("*/helm",): "/usr/local/bin", ("*/etcdctl", "*/etcdutl"): "/usr/local/bin"}
    assert role["tasks"]["addons"] == {"add-ons": "master.addons.apply"}
    assert {"boot/master/addons.py", "boot/master/helm.py", "boot/master/lease.py"} <= set(master.files)
    assert "journal+console" in master.files["files/etc/systemd/system/cfngen-addons.service.d/console.conf"]


def test_nodes_have_neither() -> None:
    node = next(each for each in roles(parse({})) if each.role != "master")
    role = {**json.loads(node.files["config.json"]), **json.loads(node.files["role.json"])}
    assert "addons" not in role
    assert not [each for each in role["assets"] if "members" in each]


def test_gpus_of_a_group_turn_the_device_plugin_on() -> None:
    group = {"name": "gpu", "instanceType": "g6.xlarge", "gpu": "nvidia"}
    assert "nvidia-device-plugin" in releases(nodeGroups=[group])
    off = {"nvidiaDevicePlugin": {"enabled": False}}
    assert "nvidia-device-plugin" not in releases(off, nodeGroups=[group])


def test_the_device_plugin_runs_on_gpu_nodes_whatever_their_taints() -> None:
    found = values("nvidia-device-plugin", {"nvidiaDevicePlugin": ON})
    assert found["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert found["tolerations"] == [{"operator": "Exists"}]


def test_gpus_are_shared_as_the_users_values_say() -> None:
    config = {"map": {"default": "version: v1"}}
    given = {"nvidiaDevicePlugin": {"enabled": True, "values": {"config": config}}}
    assert values("nvidia-device-plugin", given)["config"] == config


@pytest.mark.parametrize(("settings", "values"), HANDLER_VALUES)
def test_settings_of_the_termination_handler_are_values_of_its_chart(
    settings: dict[str, Any], values: dict[str, Any]
) -> None:
    def handler_values(**settings: Any) -> dict[str, Any]:
        release = releases({"nodeTerminationHandler": {**ON, **settings}})["aws-node-termination-handler"]
        return dict(json.loads(release["values"]))

    default = handler_values()
    assert handler_values(**settings) == {**default, **values}
    # In each case only cfngen's drain service acts on a termination by Auto Scaling, and completes it.
    assert {"name": "ENABLE_ASG_LIFECYCLE_DRAINING", "value": "false"} in handler_values(**settings)["extraEnv"]
