"""The audit log: which requests it tells of, and that the user decides.

Requests are judged here as the API server does: the first rule that fits decides (audit.k8s.io/v1).
"""

from __future__ import annotations

import fnmatch
import json
from typing import Any

import pytest

from cfngen.boot.master import encryption
from cfngen.cluster.model import Cluster
from cfngen.userdata import audit, kubeadm, roles

PERSON: dict[str, Any] = {"user": "alice", "groups": ["system:authenticated"]}
KUBELET: dict[str, Any] = {"user": "system:node:i-1", "groups": ["system:nodes", "system:authenticated"]}
CONTROLLER: dict[str, Any] = {"user": "system:kube-controller-manager", "groups": ["system:authenticated"]}
DRIVER: dict[str, Any] = {
    "user": "system:serviceaccount:kube-system:ebs-csi",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
}
WORKLOAD: dict[str, Any] = {
    "user": "system:serviceaccount:shop:web",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
}


def cluster(**log: Any) -> Cluster:
    return Cluster.model_validate({"controlPlane": {"auditLog": log}})


def level(who: dict[str, Any], verb: str, resource: str = "", group: str = "", url: str = "") -> str:
    """Return the level that a request is logged at."""
    for rule in audit.policy(Cluster())["rules"]:
        if "users" in rule and who["user"] not in rule["users"]:
            continue
        if "userGroups" in rule and not set(who["groups"]) & set(rule["userGroups"]):
            continue
        if "verbs" in rule and verb not in rule["verbs"]:
            continue
        if "resources" in rule and not any(
            group == each["group"] and resource in each["resources"] for each in rule["resources"]
        ):
            continue
        if "nonResourceURLs" in rule and not any(fnmatch.fnmatch(url, each) for each in rule["nonResourceURLs"]):
            continue
        return str(rule["level"])
    return "None"


@pytest.mark.parametrize(
    ("who", "verb", "resource"),
    [
        (PERSON, "create", "pods"),
        (PERSON, "delete", "namespaces"),
        (PERSON, "get", "secrets"),
        (PERSON, "get", "pods/exec"),
        (PERSON, "create", "pods/portforward"),
        (PERSON, "get", "nodes/proxy"),
        (WORKLOAD, "list", "secrets"),
        (WORKLOAD, "patch", "configmaps"),
        (CONTROLLER, "create", "pods"),
        (DRIVER, "update", "secrets"),
        (KUBELET, "create", "serviceaccounts/token"),
    ],
)
def test_changes_shells_and_the_reading_of_secrets_are_logged(who: dict[str, Any], verb: str, resource: str) -> None:
    assert level(who, verb, resource) == "Metadata"


@pytest.mark.parametrize(
    ("who", "verb", "resource", "group", "url"),
    [
        (PERSON, "list", "pods", "", ""),
        (PERSON, "get", "", "", "/readyz"),
        (PERSON, "get", "", "", "/openapi/v3"),
        (KUBELET, "get", "secrets", "", ""),
        (KUBELET, "patch", "nodes/status", "", ""),
        (KUBELET, "update", "leases", "coordination.k8s.io", ""),
        (KUBELET, "create", "events", "", ""),
        (CONTROLLER, "watch", "secrets", "", ""),
        (DRIVER, "list", "nodes", "", ""),
    ],
)
def test_reads_and_signs_of_life_are_not(who: dict[str, Any], verb: str, resource: str, group: str, url: str) -> None:
    assert level(who, verb, resource, group, url) == "None"


def test_contents_are_never_logged() -> None:
    assert {rule["level"] for rule in audit.policy(Cluster())["rules"]} == {"None", "Metadata"}


def test_policy_of_the_users_own_takes_its_place() -> None:
    own = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
    given = cluster(policy=own)
    assert json.loads(audit.files(given)[audit.POLICY_FILE]) == own
    [master] = [each for each in roles(given) if each.role == "master"]
    assert json.loads(master.files["files" + audit.POLICY_FILE]) == own


def test_rotation_is_the_users() -> None:
    given = cluster(maxAge=7, maxBackups=3, maxSize=50)
    assert audit.api_server_flags(given)["audit-log-maxage"] == "7"
    assert audit.api_server_flags(given)["audit-log-maxbackup"] == "3"
    assert audit.api_server_flags(given)["audit-log-maxsize"] == "50"


def test_log_may_be_switched_off() -> None:
    given = cluster(enabled=False)
    assert not audit.files(given)
    _, document = kubeadm.init_documents(given)
    server = document["apiServer"]
    assert [each["name"] for each in server["extraArgs"]] == ["encryption-provider-config"]
    assert [each["name"] for each in server["extraVolumes"]] == ["encryption"]


def test_every_file_that_the_api_server_is_told_of_is_mounted() -> None:
    _, document = kubeadm.init_documents(Cluster())
    mounted = [each["mountPath"] for each in document["apiServer"]["extraVolumes"]]
    for argument in document["apiServer"]["extraArgs"]:
        if argument["value"].startswith("/"):
            assert any(argument["value"] == each or argument["value"].startswith(each + "/") for each in mounted)


def test_api_server_reads_the_file_that_the_boot_program_writes() -> None:
    assert kubeadm.ENCRYPTION_FILE == encryption.CONFIGURATION_FILE


def test_an_own_policy_needs_no_header() -> None:
    own = {"rules": [{"level": "Metadata"}]}
    assert audit.policy(cluster(policy=own)) == {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **own}
