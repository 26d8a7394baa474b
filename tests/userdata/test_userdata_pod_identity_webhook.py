"""The pod identity webhook: which pods are shown to it, what becomes of them without it, and what it knows of roles."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest

from cfngen.cluster.iam.service_accounts import ServiceAccount, role_name
from cfngen.cluster.load import parse
from cfngen.cluster.security_groups.addon_ports import LISTENERS
from cfngen.releases import POD_IDENTITY_WEBHOOK_IMAGE
from cfngen.userdata import downloads, egress, pod_identity_webhook, references, role_configuration

ACCOUNTS: list[dict[str, Any]] = [
    {"namespace": "shop", "name": "web", "additionalPolicies": ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"]},
    {"namespace": "shop", "name": "orders", "role": "arn:aws:iam::123456789012:role/teams/orders"},
    {"namespace": "kube-system", "name": "log-shipper", "role": "arn:aws:iam::123456789012:role/logs"},
]
FILE: dict[str, Any] = {"serviceAccountIssuer": {}, "iam": {"serviceAccounts": ACCOUNTS}}
ALONE: dict[str, Any] = {"serviceAccountIssuer": {}}
# CEL's operators in Python, which binds them in the same order: + before in and !=, these before && and ||.
OPERATORS = {"&&": " and ", "||": " or "}


def objects(file: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The objects of the webhook in masters' configuration, by kind."""
    found = {item["kind"]: item for item in pod_identity_webhook.manifests(parse(file))}
    assert len(found) == len(pod_identity_webhook.manifests(parse(file)))
    return found


def pod(file: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = objects(file)["DaemonSet"]["spec"]["template"]["spec"]
    return spec


def flags(file: dict[str, Any]) -> dict[str, str]:
    arguments = (text.removeprefix("--").partition("=") for text in pod(file)["containers"][0]["args"])
    return {name: value for name, _, value in arguments}


def value(expression: str, namespace: str, account: str | None) -> bool | None:
    """Evaluate one of the webhook's CEL expressions for a pod; None: an error, as the pod lacks a field."""
    for operator, word in OPERATORS.items():
        expression = expression.replace(operator, word)
    expression = re.sub(r"!(?=\()", " not ", expression)
    expression = expression.replace("has(object.spec.serviceAccountName)", repr(account is not None))
    expression = expression.replace("request.namespace", "namespace").replace("object.spec.serviceAccountName", "name")
    tree = ast.parse(expression.strip(), mode="eval")
    names = {"namespace": namespace} | ({} if account is None else {"name": account})
    try:
        return bool(eval(compile(tree, "expression", "eval"), {"__builtins__": {}}, names))
    except NameError:
        return None


def policies(file: dict[str, Any], namespace: str, account: str | None) -> list[str]:
    """The failure policies of the webhooks to which a pod is shown."""
    shown = []
    for webhook in pod_identity_webhook.configuration(parse(file))["webhooks"]:
        # A condition that is false skips the webhook, also if another one is an error.
        results = [value(condition["expression"], namespace, account) for condition in webhook["matchConditions"]]
        if False not in results:
            assert None not in results, f"{webhook['name']}: {account}"
            shown.append(webhook["failurePolicy"])
    return shown


@pytest.mark.parametrize(
    ("namespace", "account", "expected"),
    [
        ("shop", "web", ["Fail"]),
        ("shop", "orders", ["Fail"]),
        ("shop", "default", ["Ignore"]),
        ("shop", "we", ["Ignore"]),
        ("other", "web", ["Ignore"]),
        # A broken webhook must not keep the cluster from healing.
        ("kube-system", "log-shipper", ["Ignore"]),
        ("kube-system", "coredns", []),
        ("kube-system", "pod-identity-webhook", []),
        ("kube-system", "web", []),
        # Mirror pods of static pods.
        ("kube-system", None, []),
        ("shop", None, []),
    ],
)
def test_pods_are_shown_to_one_webhook_or_none(namespace: str, account: str | None, expected: list[str]) -> None:
    assert policies(FILE, namespace, account) == expected


def test_without_accounts_in_the_cluster_file_no_pod_is_ever_refused() -> None:
    assert policies(ALONE, "shop", "web") == ["Ignore"]
    assert policies(ALONE, "kube-system", "log-shipper") == []
    assert [each["failurePolicy"] for each in pod_identity_webhook.configuration(parse(ALONE))["webhooks"]] == [
        "Ignore"
    ]


def test_api_servers_call_the_webhook_beside_them_and_do_not_wait_long() -> None:
    for webhook in pod_identity_webhook.configuration(parse(FILE))["webhooks"]:
        assert webhook["clientConfig"]["url"] == f"https://127.0.0.1:{flags(FILE)['port']}/mutate"
        assert webhook["timeoutSeconds"] <= 5
        assert webhook["admissionReviewVersions"] == ["v1beta1", "v1"]
        assert webhook["rules"][0]["operations"] == ["CREATE"]


def test_it_knows_the_roles_of_the_cluster_file() -> None:
    config = json.loads(objects(FILE)["ConfigMap"]["data"]["config"])
    name = role_name(parse(FILE), ServiceAccount("shop", "web"))
    assert {account: entry["RoleARN"] for account, entry in config.items()} == {
        "shop/web": f"arn:aws:iam::${{accountId}}:role/{name}",
        "shop/orders": "arn:aws:iam::123456789012:role/teams/orders",
        "kube-system/log-shipper": "arn:aws:iam::123456789012:role/logs",
    }
    settings = {(entry["Audience"], entry["UseRegionalSTS"], entry["TokenExpiration"]) for entry in config.values()}
    assert settings == {("sts.amazonaws.com", True, 86400)}
    assert json.loads(objects(ALONE)["ConfigMap"]["data"]["config"]) == {}


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("eu-central-1", "aws")]
)
def test_roles_are_those_of_the_regions_partition(region: str, partition: str) -> None:
    zones = [{"zone": f"{region}{letter}"} for letter in "ab"]
    account = {"namespace": "shop", "name": "web"}
    file = {**FILE, "region": region, "network": {"subnets": zones}, "iam": {"serviceAccounts": [account]}}
    [entry] = json.loads(objects(file)["ConfigMap"]["data"]["config"]).values()
    assert entry["RoleARN"].startswith(f"arn:{partition}:iam::${{accountId}}:role/")
    assert flags(file)["aws-default-region"] == region


def test_accounts_id_is_passed_only_if_a_role_is_made() -> None:
    assert "accountId" in references.of_master(parse(FILE))
    assert "accountId" not in references.of_master(
        parse({**FILE, "iam": {"serviceAccounts": ACCOUNTS[1:], "addonRoles": False}})
    )
    off = {**FILE, "addons": {"podIdentityWebhook": {"enabled": False}}, "iam": {**FILE["iam"], "addonRoles": False}}
    assert "accountId" not in references.of_master(parse(off))


def test_it_runs_on_masters_without_the_pod_network() -> None:
    spec = pod(FILE)
    assert spec["hostNetwork"] is True
    assert spec["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    environment = {item["name"]: item["value"] for item in spec["containers"][0]["env"]}
    assert environment == {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert spec["securityContext"]["runAsNonRoot"] is True
    ports = {listener.port for listener in LISTENERS["pod_identity_webhook"]}
    assert {int(flags(FILE)["port"]), int(flags(FILE)["metrics-port"])} == ports


def test_it_reads_the_certificate_that_masters_make() -> None:
    spec = pod(FILE)
    [volume] = spec["volumes"]
    assert volume["secret"]["secretName"] == "pod-identity-webhook"
    [mount] = spec["containers"][0]["volumeMounts"]
    assert (flags(FILE)["tls-cert"], flags(FILE)["tls-key"]) == tuple(
        f"{mount['mountPath']}/tls.{name}" for name in ("crt", "key")
    )


def test_it_may_read_service_accounts_and_its_own_namespaces_config_maps_only() -> None:
    rules = {kind: objects(FILE)[kind]["rules"] for kind in ("Role", "ClusterRole")}
    read = ["get", "list", "watch"]
    assert rules == {
        "Role": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": read}],
        "ClusterRole": [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": read}],
    }


def test_other_webhooks_are_other_objects_when_a_list_changes() -> None:
    digests = {
        objects(file)["DaemonSet"]["metadata"]["annotations"]["cfngen/configuration"]
        for file in (FILE, ALONE, {**FILE, "iam": {"serviceAccounts": ACCOUNTS[1:]}})
    }
    assert len(digests) == 3


def test_turned_off_there_is_nothing_of_it() -> None:
    off = {**ALONE, "addons": {"podIdentityWebhook": {"enabled": False}}}
    for file in ({}, off):
        assert pod_identity_webhook.manifests(parse(file)) == []
        role = role_configuration.roles(parse(file))[0]
        assert "podIdentityWebhook" not in json.loads(role.files["role.json"])
        assert "boot/master/pod_identity_webhook.py" not in role.files
        assert "files/etc/systemd/system/cfngen-webhook.timer" not in role.files


def test_masters_delete_a_former_one_only_where_there_may_be_one() -> None:
    off = {**ALONE, "addons": {"podIdentityWebhook": {"enabled": False}}}
    steps = {
        name: json.loads(role_configuration.roles(parse(file))[0].files["config.json"])["steps"]
        for name, file in {"off": off, "on": ALONE, "never": {}}.items()
    }
    assert "former webhook" in steps["off"]
    assert "former webhook" not in steps["on"]
    assert "pod identity webhook" in steps["on"]
    assert not {"former webhook", "pod identity webhook"} & set(steps["never"])


def test_its_registry_is_listed_for_mirrors_and_firewalls() -> None:
    registry = POD_IDENTITY_WEBHOOK_IMAGE.partition("/")[0]
    assert registry in downloads.of_cluster(parse(ALONE)).registries
    assert registry not in downloads.of_cluster(parse({})).registries
    reasons = {reason for each in egress.egress(parse(ALONE)) for reason in each.reasons}
    assert "pod identity webhook" in reasons
