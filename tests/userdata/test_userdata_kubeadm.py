"""kubeadm's and the kubelet's configuration, field by field against v1beta4."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.userdata import kubeadm, roles
from cfngen.userdata.deep_merge import merge

# Fields of https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/ that may stand at each place.
FIELDS = {
    "InitConfiguration": {
        "bootstrapTokens",
        "dryRun",
        "nodeRegistration",
        "localAPIEndpoint",
        "certificateKey",
        "skipPhases",
        "patches",
        "timeouts",
    },
    "ClusterConfiguration": {
        "etcd",
        "networking",
        "kubernetesVersion",
        "controlPlaneEndpoint",
        "apiServer",
        "controllerManager",
        "scheduler",
        "dns",
        "proxy",
        "certificatesDir",
        "imageRepository",
        "featureGates",
        "clusterName",
        "encryptionAlgorithm",
        "certificateValidityPeriod",
        "caCertificateValidityPeriod",
    },
    "JoinConfiguration": {
        "dryRun",
        "nodeRegistration",
        "caCertPath",
        "discovery",
        "controlPlane",
        "skipPhases",
        "patches",
        "timeouts",
    },
    "nodeRegistration": {
        "name",
        "criSocket",
        "taints",
        "kubeletExtraArgs",
        "ignorePreflightErrors",
        "imagePullPolicy",
        "imagePullSerial",
    },
}


def cluster(**data: Any) -> Cluster:
    return Cluster.model_validate(data)


def init(given: Cluster) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = kubeadm.init_documents(given)
    return first, second


def arguments(found: list[dict[str, str]]) -> dict[str, str]:
    assert all(set(each) == {"name", "value"} for each in found)
    return {each["name"]: each["value"] for each in found}


@pytest.mark.parametrize(
    "document",
    [*kubeadm.init_documents(Cluster()), kubeadm.join_configuration(NodeGroup())],
    ids=lambda row: str(row["kind"]),
)
def test_every_field_exists_in_v1beta4(document: dict[str, Any]) -> None:
    assert document["apiVersion"] == "kubeadm.k8s.io/v1beta4"
    assert set(document) - {"apiVersion", "kind"} <= FIELDS[document["kind"]]
    assert set(document.get("nodeRegistration", {})) <= FIELDS["nodeRegistration"]


def test_init_configuration_names_the_instance_and_its_fixed_address() -> None:
    document, _ = init(Cluster())
    assert document["localAPIEndpoint"] == {"advertiseAddress": "${privateAddress}", "bindPort": 443}
    registration = document["nodeRegistration"]
    assert registration["name"] == "${instanceId}"
    assert registration["criSocket"] == "unix:///run/containerd/containerd.sock"
    assert registration["taints"] == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    assert arguments(registration["kubeletExtraArgs"]) == {
        "cloud-provider": "external",
        "image-credential-provider-bin-dir": "/usr/local/bin",
        "image-credential-provider-config": "/etc/kubernetes/credential-providers.json",
        "node-ip": "${address}",
    }
    assert document["patches"] == {"directory": "/opt/cfngen/patches"}


def test_cluster_configuration_of_the_default_cluster() -> None:
    _, document = init(Cluster())
    assert document == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": "kubernetes",
        "kubernetesVersion": "v1.36.3",
        "controlPlaneEndpoint": "api.kubernetes.internal:443",
        "networking": {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.0.0.0/16", "dnsDomain": "cluster.local"},
        "apiServer": {
            "certSANs": ["${publicAddress}", "127.0.0.1", "localhost"],
            "extraArgs": [
                {"name": "audit-log-maxage", "value": "30"},
                {"name": "audit-log-maxbackup", "value": "10"},
                {"name": "audit-log-maxsize", "value": "100"},
                {"name": "audit-log-path", "value": "/var/log/kubernetes/audit/audit.log"},
                {"name": "audit-policy-file", "value": "/etc/kubernetes/audit-policy.json"},
                {"name": "encryption-provider-config", "value": "/etc/kubernetes/encryption.json"},
            ],
            "extraVolumes": [
                {
                    "name": "audit-policy",
                    "hostPath": "/etc/kubernetes/audit-policy.json",
                    "mountPath": "/etc/kubernetes/audit-policy.json",
                    "readOnly": True,
                    "pathType": "File",
                },
                {
                    "name": "audit-log",
                    "hostPath": "/var/log/kubernetes/audit",
                    "mountPath": "/var/log/kubernetes/audit",
                    "pathType": "DirectoryOrCreate",
                },
                {
                    "name": "encryption",
                    "hostPath": "/etc/kubernetes/encryption.json",
                    "mountPath": "/etc/kubernetes/encryption.json",
                    "readOnly": True,
                    "pathType": "File",
                },
            ],
        },
        "controllerManager": {
            "extraArgs": [
                {"name": "allocate-node-cidrs", "value": "true"},
                {"name": "cloud-provider", "value": "external"},
                {"name": "cluster-cidr", "value": "10.244.0.0/16"},
                {"name": "configure-cloud-routes", "value": "false"},
            ]
        },
        "etcd": {"local": {"dataDir": "/mnt/master/etcd"}},
    }


def test_certificate_holds_every_name_a_client_uses() -> None:
    _, document = init(cluster(api={"public": False, "additionalNames": ["api.example.com"], "port": 6443}))
    assert document["apiServer"]["certSANs"] == ["127.0.0.1", "localhost", "api.example.com"]
    assert document["controlPlaneEndpoint"] == "api.kubernetes.internal:6443"


def test_what_all_masters_share_names_none_of_them() -> None:
    """kubeadm puts the document into the cluster; each master's own address it adds itself."""
    for given in (
        Cluster(),
        cluster(controlPlane={"count": 3, "addresses": [f"172.20.0.{each}" for each in (9, 10, 11)]}),
    ):
        _, document = init(given)
        assert "${privateAddress}" not in json.dumps(document)


def test_users_cluster_configuration_is_merged_field_by_field() -> None:
    configuration = {
        "apiServer": {"extraArgs": [{"name": "audit-log-path", "value": "-"}]},
        "controllerManager": {
            "extraArgs": [{"name": "cluster-cidr", "value": "10.0.0.0/8"}, {"name": "v", "value": "4"}]
        },
        "imageRepository": "registry.example.com/k8s",
    }
    _, document = init(cluster(kubernetes={"clusterConfiguration": configuration}))
    assert document["apiServer"]["certSANs"][0] == "${publicAddress}"
    assert arguments(document["apiServer"]["extraArgs"])["audit-log-path"] == "-"
    assert "encryption-provider-config" in arguments(document["apiServer"]["extraArgs"])
    assert arguments(document["controllerManager"]["extraArgs"]) == {
        "allocate-node-cidrs": "true",
        "cloud-provider": "external",
        "cluster-cidr": "10.0.0.0/8",
        "configure-cloud-routes": "false",
        "v": "4",
    }
    assert document["imageRepository"] == "registry.example.com/k8s"
    assert document["etcd"] == {"local": {"dataDir": "/mnt/master/etcd"}}


def test_merging_changes_neither_side() -> None:
    base, override = {"a": {"b": 1}, "l": [{"name": "x", "v": 1}]}, {"a": {"c": 2}, "l": [{"name": "x", "w": 2}]}
    before = json.dumps([base, override])
    assert merge(base, override) == {"a": {"b": 1, "c": 2}, "l": [{"name": "x", "v": 1, "w": 2}]}
    assert json.dumps([base, override]) == before


@pytest.mark.parametrize(
    ("override", "expected"),
    [({"l": [3]}, {"l": [3]}), ({"l": []}, {"l": []}), ({"l": None}, {"l": None}), ({"l": {"a": 1}}, {"l": {"a": 1}})],
)
def test_other_lists_are_replaced(override: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merge({"l": [1, 2]}, override) == expected


def test_flag_that_is_given_twice_stays_twice() -> None:
    own = [{"name": "oidc", "value": "b"}, {"name": "oidc", "value": "a"}]
    assert merge({"l": [{"name": "v", "value": "2"}]}, {"l": own}) == {"l": [{"name": "v", "value": "2"}, *own]}
    assert merge({"l": own}, {"l": [{"name": "v", "value": "4"}]}) == {"l": [*own, {"name": "v", "value": "4"}]}
    assert merge({"l": own}, {"l": [{"name": "oidc", "value": "c"}]}) == {"l": [{"name": "oidc", "value": "c"}]}
    assert merge({"l": [{"name": "oidc", "value": "c"}]}, {"l": own}) == {"l": own}


def test_kubelet_of_every_role_gets_the_users_settings_so_that_a_change_rolls_every_group() -> None:
    given = cluster(kubernetes={"kubeletConfiguration": {"maxPods": 50, "evictionHard": {"memory.available": "1Gi"}}})
    for found in roles(given):
        settings = json.loads(found.files["role.json"])["kubeletPatch"]
        assert settings["maxPods"] == 50
        assert settings["evictionHard"] == {
            "imagefs.available": "10%",
            "memory.available": "1Gi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
        }
        assert settings["cgroupDriver"] == "systemd"
        assert settings["clusterDNS"] == ["10.0.0.10"]
        assert (settings["shutdownGracePeriod"], settings["shutdownGracePeriodCriticalPods"]) == ("30s", "10s")
        assert settings["rotateCertificates"] is True
        assert settings["serverTLSBootstrap"] is True


def test_join_configuration_leaves_discovery_to_the_instance() -> None:
    document = kubeadm.join_configuration(NodeGroup())
    assert "discovery" not in document
    assert document["nodeRegistration"]["name"] == "${instanceId}"


def test_the_certificate_names_the_internal_load_balancer_beside_the_public_one() -> None:
    def names(count: int, **api: Any) -> list[str]:
        return init(cluster(api=api, controlPlane={"count": count}))[1]["apiServer"]["certSANs"]

    assert names(3, internal=True)[:2] == ["${publicAddress}", "${internalAddress}"]
    # kubeadm adds the private address of a single master by itself.
    assert "${internalAddress}" not in names(1, internal=True)
    assert "${internalAddress}" not in names(3)


def test_the_certificate_has_the_apis_dns_name_once() -> None:
    api = {
        "dns": {"name": "api.example.com", "publicZone": {"id": "Z0123456789ABC"}},
        "additionalNames": ["api.example.com", "other.example.com"],
    }
    names = init(cluster(api=api))[1]["apiServer"]["certSANs"]
    assert [name for name in names if name.endswith(".example.com")] == ["api.example.com", "other.example.com"]
