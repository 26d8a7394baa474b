"""What masters are told so that pods can have roles: the API server's issuers, tokens and variables of components."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.boot.master.addons import digest
from cfngen.boot.state import fill
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.userdata import addons, cloud_controller, kubeadm, roles
from cfngen.userdata.references import of_master

ON = {"enabled": True}
ZONES = ["Z0123456789ABCDEFGHIJ"]
ADDONS = {
    "clusterAutoscaler": ON,
    "awsLoadBalancerController": ON,
    "externalDns": {"enabled": True, "zones": ZONES},
    "certManager": {"enabled": True, "zones": ZONES},
}
WITHOUT_ROLES = {"iam": {"addonRoles": False}, "addons": {**ADDONS, "certManager": ON}}
# By release, the patched object and its container, as the pinned charts' templates name them.
PATCHED = {
    "aws-vpc-cni": ("DaemonSet", "aws-node", "aws-node"),
    "aws-ebs-csi-driver": ("Deployment", "ebs-csi-controller", "ebs-plugin"),
    "cluster-autoscaler": ("Deployment", "cluster-autoscaler", "aws-cluster-autoscaler"),
    "cert-manager": ("Deployment", "cert-manager", "cert-manager-controller"),
    "aws-load-balancer-controller": (
        "Deployment",
        "aws-load-balancer-controller",
        "aws-load-balancer-controller",
    ),
    "external-dns": ("Deployment", "external-dns", "external-dns"),
}
FACTS = {"accountId": "123456789012", "vpcId": "vpc-0123456789abcdef0", "issuer": "d1.cloudfront.net"}
TOKEN = {"serviceAccountToken": {"audience": "sts.amazonaws.com", "expirationSeconds": 86400, "path": "token"}}
FOLDER = "/var/run/secrets/sts.amazonaws.com/serviceaccount"


def cluster_of(issuer: dict[str, Any] | None = None, **more: Any) -> Cluster:
    return parse({"addons": ADDONS, **more, "serviceAccountIssuer": issuer or {}})


def releases(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {release["name"]: fill(release, FACTS) for release in addons.releases(cluster)}


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


def api_server_flags(cluster: Cluster) -> list[tuple[str, str]]:
    arguments = fill(kubeadm.init_documents(cluster)[1], FACTS)["apiServer"]["extraArgs"]
    return [(argument["name"], argument["value"]) for argument in arguments]


def issuers(cluster: Cluster) -> list[str]:
    return [value for name, value in api_server_flags(cluster) if name == "service-account-issuer"]


def test_api_server_signs_with_the_issuer_and_accepts_kubeadms_own() -> None:
    cluster = cluster_of(network={"dnsDomain": "one.local"})
    assert issuers(cluster) == ["https://d1.cloudfront.net", "https://kubernetes.default.svc.one.local"]
    assert ("service-account-jwks-uri", "https://d1.cloudfront.net/openid/v1/jwks") in api_server_flags(cluster)


def test_api_server_that_does_not_sign_with_the_issuer_yet_accepts_its_tokens() -> None:
    assert issuers(cluster_of({"signTokens": False}, addons={})) == [
        "https://kubernetes.default.svc.cluster.local",
        "https://d1.cloudfront.net",
    ]


def test_ones_own_flags_neither_lose_nor_double_the_issuers() -> None:
    own = [{"name": "audit-log-maxage", "value": "7"}, {"name": "v", "value": "4"}]
    configuration = {"clusterConfiguration": {"apiServer": {"extraArgs": own}}}
    without_issuer = api_server_flags(parse({"kubernetes": configuration}))
    flags = api_server_flags(cluster_of(kubernetes=configuration))
    assert flags[: len(without_issuer)] == without_issuer
    assert [name for name, _ in flags[len(without_issuer) :]] == [
        "service-account-issuer",
        "service-account-issuer",
        "service-account-jwks-uri",
    ]
    assert ("audit-log-maxage", "7") in flags


def test_cluster_without_issuer_has_no_flag_of_it() -> None:
    assert not [name for name, _ in api_server_flags(parse({})) if "service-account" in name]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({}, set()),
        ({"serviceAccountIssuer": {}, "addons": {}}, {"issuer", "issuerBucket", "accountId"}),
        ({"serviceAccountIssuer": {}, "addons": ADDONS}, {"issuer", "issuerBucket", "accountId", "vpcId"}),
        ({"serviceAccountIssuer": {"signTokens": False}}, {"issuer", "issuerBucket"}),
        (
            {"serviceAccountIssuer": {"discovery": "url", "url": "https://a.example.com"}, "addons": {}},
            {"issuer"},
        ),
        (
            {
                "serviceAccountIssuer": {"discovery": "url", "url": "https://a.example.com"},
                "addons": {},
                "iam": {"addonRoles": True},
            },
            {"issuer", "accountId"},
        ),
    ],
)
def test_user_data_has_the_references_that_are_used(data: dict[str, Any], names: set[str]) -> None:
    assert {"issuer", "issuerBucket", "accountId", "vpcId"} & set(of_master(parse(data))) == names


@pytest.mark.parametrize(
    ("issuer", "publishes"),
    [
        ({}, True),
        ({"discovery": "bucket"}, True),
        ({"discovery": "url", "url": "https://a.example.com", "bucket": "documents"}, True),
        ({"discovery": "url", "url": "https://a.example.com"}, False),
    ],
)
def test_masters_publish_the_documents_unless_the_user_does(issuer: dict[str, Any], publishes: bool) -> None:
    master = roles(cluster_of(issuer, iam={"addonRoles": True}))[0]
    config, role = (json.loads(master.files[name]) for name in ("config.json", "role.json"))
    titles = list(config["steps"])
    assert ("issuer documents" in titles) is publishes
    assert ("issuer" in role["tasks"]) is publishes
    assert ("files/etc/systemd/system/cfngen-issuer.timer" in master.files) is publishes
    assert ("boot/master/issuer_documents.py" in master.files) is publishes
    if publishes:
        position = titles.index("issuer documents")
        assert titles[position - 1 : position + 2] == ["control plane", "issuer documents", "add-ons"]


def test_module_of_the_documents_is_packed_only_where_it_is_used() -> None:
    assert all("issuer" not in path for role in roles(parse({})) for path in role.files)


@pytest.mark.parametrize("plugin", ["cilium", "amazon-vpc"])
def test_every_component_with_a_role_has_a_token_and_names_its_role(plugin: str) -> None:
    cluster = cluster_of(network={"plugin": plugin})
    for name, release in releases(cluster).items():
        if name not in PATCHED:
            assert release["patches"] == []
            continue
        kind, workload, container_name = PATCHED[name]
        [patch] = release["patches"]
        assert (patch["kind"], patch["metadata"]["name"]) == (kind, workload)
        assert patch["metadata"]["namespace"] == release["namespace"]
        pod = patch["spec"]["template"]["spec"]
        [container] = pod["containers"]
        [volume] = pod["volumes"]
        assert container["name"] == container_name
        assert volume["projected"]["sources"] == [TOKEN]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": FOLDER, "readOnly": True}]
        account = {"aws-vpc-cni": "aws-node", "aws-ebs-csi-driver": "ebs-csi-controller-sa"}.get(name, name)
        role = f"{cluster.name}.us-west-2.{release['namespace']}.{account}"
        variables = environment(container)
        assert variables.pop("VPC_ID", "") == ("vpc-0123456789abcdef0" if "balancer" in name else "")
        assert variables == {
            "AWS_ROLE_ARN": f"arn:aws:iam::123456789012:role/{role}",
            "AWS_WEB_IDENTITY_TOKEN_FILE": f"{FOLDER}/token",
            "AWS_REGION": "us-west-2",
            "AWS_STS_REGIONAL_ENDPOINTS": "regional",
        }


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("eu-west-1", "aws")]
)
def test_roles_are_those_of_the_partition_and_the_audience_is_the_same_everywhere(region: str, partition: str) -> None:
    cluster = cluster_of(region=region, addons={})
    [patch] = releases(cluster)["aws-ebs-csi-driver"]["patches"]
    pod = patch["spec"]["template"]["spec"]
    assert environment(pod["containers"][0])["AWS_ROLE_ARN"].startswith(f"arn:{partition}:iam::123456789012:role/")
    assert pod["volumes"][0]["projected"]["sources"] == [TOKEN]


def test_add_ons_with_roles_prefer_masters_and_need_neither_them_nor_their_network() -> None:
    for name in ("aws-ebs-csi-driver", "cluster-autoscaler", "aws-load-balancer-controller", "external-dns"):
        release = releases(cluster_of())[name]
        values = json.loads(release["values"])
        place = values.get("controller", values)
        assert "nodeSelector" not in place, name
        assert place["tolerations"][0]["key"] == "node-role.kubernetes.io/control-plane"
        [preference] = place["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert preference["preference"]["matchExpressions"] == [
            {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
        ]
        assert "hostNetwork" not in json.dumps(release), name


def test_load_balancer_controller_is_told_its_vpc_and_keeps_its_pods_apart() -> None:
    values = json.loads(releases(cluster_of())["aws-load-balancer-controller"]["values"])
    assert values["vpcId"] == "$(VPC_ID)"
    assert values["region"] == "us-west-2"
    assert "preferredDuringSchedulingIgnoredDuringExecution" in values["affinity"]["podAntiAffinity"]


def test_every_master_has_the_same_releases() -> None:
    """What differs among masters, such as their address, is in no value and no patch."""
    own = [{**FACTS, "privateAddress": f"172.20.0.{number}", "instanceId": f"i-{number}"} for number in (1, 2)]
    for release in addons.releases(cluster_of()):
        assert digest(fill(release, own[0])) == digest(fill(release, own[1]))
        assert "${" not in json.dumps(fill(release, own[0]))


def daemon_set(cluster: Cluster) -> dict[str, Any]:
    [found] = [each for each in cloud_controller.manifests(cluster) if each["kind"] == "DaemonSet"]
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return fill(pod, FACTS)


def test_cloud_controller_manager_stays_on_masters_and_uses_its_role() -> None:
    pod = daemon_set(cluster_of())
    [container] = pod["containers"]
    assert pod["hostNetwork"]
    assert "node-role.kubernetes.io/control-plane" in pod["nodeSelector"]
    assert environment(container)["AWS_ROLE_ARN"].endswith(".us-west-2.kube-system.cloud-controller-manager")
    assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {FOLDER}
    assert [volume["projected"]["sources"] for volume in pod["volumes"] if "projected" in volume] == [[TOKEN]]
    assert daemon_set(parse({})) == daemon_set(cluster_of(**WITHOUT_ROLES))


@pytest.mark.parametrize("plugin", ["cilium", "amazon-vpc"])
def test_roles_that_are_taken_back_leave_nothing_in_the_charts_objects(plugin: str) -> None:
    """Server-side apply removes what an earlier patch of the same object set and this one does not."""
    with_roles = releases(cluster_of(network={"plugin": plugin}))
    without_roles = releases(cluster_of(**WITHOUT_ROLES, network={"plugin": plugin}))
    plain = releases(parse({"addons": WITHOUT_ROLES["addons"], "network": {"plugin": plugin}}))
    for name, release in with_roles.items():
        assert [patch["metadata"] for patch in without_roles[name]["patches"]] == [
            patch["metadata"] for patch in release["patches"]
        ]
        assert "AWS_ROLE_ARN" not in json.dumps(without_roles[name])
        assert without_roles[name]["values"] == plain[name]["values"]


def test_cert_manager_without_zones_has_no_role() -> None:
    release = releases(cluster_of(addons={"certManager": ON}))["cert-manager"]
    assert "AWS_ROLE_ARN" not in json.dumps(release)
