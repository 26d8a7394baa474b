"""What holds where the cluster file says nothing: kube-up's default cluster, and what kube-up did not have."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.documents.schema import json_schema
from cfngen.cluster.load import parse
from cfngen.cluster.paths import dotted, leaves, lookup, parse_path

# Names, ranges, sizes and numbers of nodes are those of kube-up (cluster/aws/config-default.sh of Kubernetes 1.5); what
# it did not know is what the services and kubeadm do by default, and the types of today for those that are gone.
IN_EFFECT: dict[str, Any] = {
    "name": "kubernetes",
    "region": "us-west-2",
    "kubernetesVersion": "1.36.3",
    "network.topology": "public",
    "network.tagExisting": False,
    "network.endpoints.create": True,
    "network.vpc.cidr": "172.20.0.0/16",
    "network.vpc.name": "kubernetes-vpc",
    "network.subnets[0].zone": "us-west-2a",
    "network.subnets[0].cidr": "172.20.0.0/24",
    "network.plugin": "vpc-routes",
    "network.podCidr": "10.244.0.0/16",
    "network.serviceCidr": "10.0.0.0/16",
    "network.dnsServiceIp": "10.0.0.10",
    "network.dnsDomain": "cluster.local",
    "network.quotas.rulesPerSecurityGroup": 60,
    "network.quotas.securityGroupsPerInterface": 5,
    "api.port": 443,
    "api.public": True,
    "api.internal": False,
    "ssh.sessionManager": True,
    "image.distribution": "ubuntu-24.04",
    "controlPlane.instanceType": "t3.medium",
    "controlPlane.image.distribution": "ubuntu-24.04",
    "controlPlane.image.architecture": "amd64",
    "controlPlane.rootVolume.size": 20,
    "controlPlane.rootVolume.type": "gp3",
    "controlPlane.creationTimeout": 20,
    "controlPlane.containerd.snapshotter": "overlayfs",
    "controlPlane.instanceStorage": "raid0",
    "controlPlane.count": 1,
    "controlPlane.addresses[0]": "172.20.0.9",
    "controlPlane.capacityReservation": False,
    "controlPlane.auditLog.enabled": True,
    "controlPlane.auditLog.maxAge": 30,
    "controlPlane.auditLog.maxBackups": 10,
    "controlPlane.auditLog.maxSize": 100,
    "controlPlane.volume.size": 20,
    "controlPlane.volume.type": "gp3",
    "nodeGroups[0].instanceType": "t3.medium",
    "nodeGroups[0].image.distribution": "ubuntu-24.04",
    "nodeGroups[0].image.architecture": "amd64",
    "nodeGroups[0].rootVolume.size": 32,
    "nodeGroups[0].rootVolume.type": "gp3",
    "nodeGroups[0].creationTimeout": 20,
    "nodeGroups[0].containerd.snapshotter": "overlayfs",
    "nodeGroups[0].instanceStorage": "raid0",
    "nodeGroups[0].name": "nodes",
    "nodeGroups[0].minSize": 4,
    "nodeGroups[0].maxSize": 4,
    "nodeGroups[0].zones[0]": "us-west-2a",
    "nodeGroups[0].oneGroupPerZone": False,
    "nodeGroups[0].update.maxUnavailable": 1,
    "nodeGroups[0].update.maxSurge": 0,
    "nodeGroups[0].update.pause": 0,
    "nodeGroups[0].publicIp": True,
    "nodeGroups[0].drainTimeout": 5,
    "nodeGroups[0].autoscaler.enabled": True,
    "nodeGroups[0].rebalanceRecommendation": "ignore",
    "nodeGroups[0].capacityRebalance": False,
    "etcd.backups.enabled": True,
    "etcd.backups.interval": 15,
    "etcd.backups.hourlyDays": 7,
    "etcd.backups.dailyDays": 90,
    "addons.awsEbsCsiDriver.enabled": True,
    "addons.metricsServer.enabled": True,
    "addons.clusterAutoscaler.enabled": False,
    "addons.nodeTerminationHandler.enabled": False,
    "addons.nodeTerminationHandler.spotInterruptions": True,
    "addons.nodeTerminationHandler.scheduledEvents": True,
    "addons.nodeTerminationHandler.rebalanceRecommendation": "ignore",
    "addons.awsLoadBalancerController.enabled": False,
    "addons.externalDns.enabled": False,
    "addons.certManager.enabled": False,
    "addons.podIdentityWebhook.enabled": False,
    "iam.addonRoles": False,
    "iam.path": "/",
    "registry.only": False,
    "addons.headlamp.enabled": False,
    "addons.fluentBit.enabled": False,
    "addons.prometheus.enabled": False,
    "addons.nvidiaDevicePlugin.enabled": False,
}
# Keys that are left out altogether, or hold nothing.
EMPTY = [
    "network.vpc.id",
    "network.endpoints.additional",
    "network.endpoints.services",
    "network.nat",
    "network.flowLogs",
    "network.routes",
    "network.subnetSizes.instances",
    "network.subnetSizes.public",
    "network.subnets[0].natGateway",
    "network.subnets[0].public",
    "network.subnets[0].routeTable",
    "network.vpc.additionalCidrs",
    "network.subnets[0].id",
    "network.routeTable",
    "network.internetGateway",
    "network.dhcpOptions",
    "network.proxy",
    "network.securityGroups.apiLoadBalancer",
    "network.securityGroups.endpoints",
    "network.securityGroups.internalApiLoadBalancer",
    "network.securityGroups.masters",
    "network.securityGroups.nodes",
    "network.pluginValues",
    "network.nonMasqueradeCidr",
    "api.allowedCidrs",
    "api.allowedPrefixLists",
    "api.elasticIp",
    "api.additionalNames",
    "api.internalCidrs",
    "api.dns",
    "bastion",
    "logging.bucket",
    "notifications.topic",
    "ssh.keyName",
    "ssh.publicKey",
    "ssh.allowedCidrs",
    "ssh.allowedPrefixLists",
    *(f"image.{key}" for key in ("id", "ssmParameter", "architecture", "rootDevice")),
    *(
        f"{instances}.{key}"
        for instances in ("controlPlane", "nodeGroups[0]")
        for key in (
            "image.id",
            "image.ssmParameter",
            "image.rootDevice",
            "rootVolume.iops",
            "rootVolume.throughput",
            "rootVolume.kmsKey",
            "additionalSecurityGroups",
            "additionalPolicies",
            "policyStatements",
            "kubeletConfiguration",
            "containerd.registryMirrors",
            "containerd.configuration",
            "files",
            "units",
            "preBootCommands",
            "postBootCommands",
            "cloudConfig",
        )
    ),
    "controlPlane.auditLog.policy",
    *(f"controlPlane.volume.{key}" for key in ("iops", "throughput", "kmsKey")),
    *(
        f"nodeGroups[0].{key}"
        for key in (
            "desiredSize",
            "spotPrice",
            "iam",
            "labels",
            "taints",
            "targetGroups",
            "maxPods",
            "gpu",
            "prePulledImages",
            "volumes",
        )
    ),
    *(
        f"nodeGroups[0].autoscaler.{key}"
        for key in (
            "resources",
            "scaleDownUtilizationThreshold",
            "scaleDownGpuUtilizationThreshold",
            "scaleDownUnneededTime",
            "scaleDownUnreadyTime",
            "ignoreDaemonSetsUtilization",
        )
    ),
    "addons.clusterAutoscaler.expander",
    "addons.clusterAutoscaler.priorities",
    "controlPlane.ingress",
    "nodeGroups[0].ingress",
    *(f"addons.nodeTerminationHandler.{key}" for key in ("podGracePeriod", "nodeGracePeriod")),
    *(f"nodeGroups[0].{key}" for key in ("instanceTypes", "instanceRequirements", "instancesDistribution")),
    *(f"nodeGroups[0].{key}" for key in ("maxInstanceLifetime", "capacityReservation")),
    "etcd.backups.bucket",
    "etcd.backups.kmsKey",
    "etcd.backups.objectLock",
    "certificateAuthority.secret",
    "secrets.kmsKey",
    *(
        f"addons.{addon}.values"
        for addon in (
            "awsEbsCsiDriver",
            "metricsServer",
            "clusterAutoscaler",
            "nodeTerminationHandler",
            "awsLoadBalancerController",
            "externalDns",
            "certManager",
            "headlamp",
            "fluentBit",
            "prometheus",
            "nvidiaDevicePlugin",
        )
    ),
    "addons.externalDns.zones",
    "addons.certManager.zones",
    "addons.charts",
    *(f"iam.{key}" for key in ("permissionsBoundary", "masters", "nodes", "serviceAccounts")),
    "serviceAccountIssuer",
    "registry.repositories",
    "registry.push",
    "assets.mirror",
    "kubernetes.clusterConfiguration",
    "kubernetes.kubeletConfiguration",
    "tags",
]


def in_effect(data: dict[str, Any]) -> dict[str, Any]:
    return parse(data).model_dump(mode="json", by_alias=True)


def test_what_holds_where_nothing_is_said() -> None:
    values = {dotted(path): value for path, value in leaves(in_effect({}))}
    assert {key: value for key, value in values.items() if value not in (None, [], {})} == IN_EFFECT
    assert {key for key, value in values.items() if value in (None, [], {})} == set(EMPTY)


TYPES = ["m7i.large", "m6i.large"]
REQUIREMENTS = {"vcpus": {"min": 2, "max": 4}, "memory": {"min": 4}}
# A section of which only what is needed is said.
ITEMS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"nodeGroups": [{"taints": [{"key": "gpu", "effect": "NoSchedule"}]}]},
        "nodeGroups[0].taints[0]",
        {"key": "gpu", "value": "", "effect": "NoSchedule"},
    ),
    (
        {"controlPlane": {"files": [{"path": "/etc/motd", "content": "a"}]}},
        "controlPlane.files[0]",
        {"path": "/etc/motd", "content": "a", "mode": "0644"},
    ),
    (
        {"controlPlane": {"units": [{"name": "a.service", "content": "a"}]}},
        "controlPlane.units[0]",
        {"name": "a.service", "content": "a", "enable": True},
    ),
    (
        {"addons": {"charts": [{"name": "a", "url": "https://a/b.tgz", "sha256": "0" * 64}]}},
        "addons.charts[0]",
        {"name": "a", "namespace": "default", "url": "https://a/b.tgz", "sha256": "0" * 64, "values": {}},
    ),
    ({"addons": {"externalDns": {}}}, "addons.externalDns", {"enabled": False, "values": {}, "zones": []}),
    ({"addons": {"headlamp": {}}}, "addons.headlamp", {"enabled": False, "values": {}}),
    ({"addons": {"metricsServer": {}}}, "addons.metricsServer", {"enabled": True, "values": {}}),
    (
        {"network": {"quotas": {"rulesPerSecurityGroup": 100}}},
        "network.quotas",
        {"rulesPerSecurityGroup": 100, "securityGroupsPerInterface": 5},
    ),
    (
        {"etcd": {"backups": {"interval": 30}}},
        "etcd.backups",
        {
            "enabled": True,
            "interval": 30,
            "hourlyDays": 7,
            "dailyDays": 90,
            **dict.fromkeys(("bucket", "kmsKey", "objectLock")),
        },
    ),
    (
        {"nodeGroups": [{"rootVolume": {"type": "gp2"}}]},
        "nodeGroups[0].rootVolume",
        {"size": 32, "type": "gp2", "iops": None, "throughput": None, "kmsKey": None},
    ),
    *(
        (
            {"nodeGroups": [group]},
            "nodeGroups[0].instancesDistribution",
            {
                "onDemandBase": 0,
                "onDemandPercentage": percentage,
                "onDemandAllocationStrategy": on_demand,
                "spotAllocationStrategy": spot,
                "spotInstancePools": None,
            },
        )
        # EC2 Auto Scaling takes no order of types ("prioritized") where requirements choose the types.
        for group, percentage, on_demand, spot in [
            ({"instanceTypes": TYPES}, 100, "prioritized", None),
            ({"instancesDistribution": {}}, 100, "prioritized", None),
            ({"instanceTypes": TYPES, "spotPrice": "0.05"}, 0, "prioritized", "price-capacity-optimized"),
            ({"instancesDistribution": {"onDemandPercentage": 99}}, 99, "prioritized", "price-capacity-optimized"),
            ({"instancesDistribution": {"onDemandPercentage": 0}}, 0, "prioritized", "price-capacity-optimized"),
            ({"instanceRequirements": REQUIREMENTS}, 100, "lowest-price", None),
            (
                {"instanceRequirements": REQUIREMENTS, "instancesDistribution": {"onDemandPercentage": 50}},
                *(50, "lowest-price", "price-capacity-optimized"),
            ),
            (
                {
                    "instanceTypes": TYPES,
                    "instancesDistribution": {
                        "onDemandPercentage": 20,
                        "spotAllocationStrategy": "capacity-optimized",
                        "onDemandAllocationStrategy": "lowest-price",
                    },
                },
                *(20, "lowest-price", "capacity-optimized"),
            ),
        ]
    ),
    (
        {"registry": {"repositories": [{"name": "web"}]}},
        "registry.repositories[0]",
        {
            "name": "web",
            "existing": False,
            "immutableTags": True,
            "scanOnPush": True,
            "keepImages": None,
            "keepDays": None,
            "pullAccounts": [],
            "deleteWithCluster": False,
        },
    ),
    (
        {
            "registry": {
                "repositories": [{"name": "web"}],
                "push": [{"name": "web", "provider": "github", "project": "example/web"}],
            }
        },
        "registry.push[0]",
        {
            "name": "web",
            "provider": "github",
            "url": None,
            "project": "example/web",
            "ref": "refs/heads/main",
            "createProvider": False,
            "role": None,
            "repositories": [],
        },
    ),
    (
        {"controlPlane": {"volume": {"type": "gp2"}}},
        "controlPlane.volume",
        {"size": 20, "type": "gp2", "iops": None, "throughput": None, "kmsKey": None},
    ),
]


@pytest.mark.parametrize(("data", "key", "expected"), ITEMS, ids=[key for _, key, _ in ITEMS])
def test_what_holds_in_a_section_that_is_begun(data: dict[str, Any], key: str, expected: dict[str, Any]) -> None:
    assert lookup(in_effect(data), parse_path(key)) == expected


def test_an_editor_shows_the_defaults_that_hold() -> None:
    """The default of every key of the schema is in effect; but of a version the exact one, and what follows is said."""
    schema = json_schema()
    places: dict[str, list[Any]] = {}

    def collect(section: dict[str, Any], value: Any, name: str) -> None:
        # A key may also be null, or a reference to an output of Terraform.
        section = next((form for form in section.get("anyOf", ()) if "$ref" in form or "items" in form), section)
        if "$ref" in section:
            name = section["$ref"].rpartition("/")[2]
            section = schema["definitions"][name]
        if isinstance(value, list) and "items" in section:
            for item in value:
                collect(section["items"], item, name)
        for key, inner in section.get("properties", {}).items():
            if isinstance(value, dict) and key in value:
                if "default" in inner:
                    places.setdefault(f"{name}.{key}", []).append((inner["default"], value[key]))
                collect(inner, value[key], f"{name}.{key}")

    collect(schema, in_effect({}), "")
    wrong = {place: values for place, values in places.items() if any(shown != value for shown, value in values)}
    assert set(wrong) == {".kubernetesVersion", "Image.architecture", "Volume.size"}
    assert wrong[".kubernetesVersion"] == [("1.36", "1.36.3")]
    assert set(wrong["Image.architecture"]) == {(None, None), (None, "amd64")}, "the instance type's"
    assert set(wrong["Volume.size"]) == {(20, 20), (20, 32)}, "nodes have more on their root volumes"
    assert len(places) > 60
