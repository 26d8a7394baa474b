"""A living cluster begins to issue tokens that AWS accepts, and its components get roles of their own."""

from __future__ import annotations

import json
from typing import Any

import yaml
from lab import Lab
from lab_instance import Instance

MASTER = "Master"
DOCUMENTS = {"openid/v1/jwks", ".well-known/openid-configuration"}
MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"


def updated(lab: Lab, **more: object) -> Instance:
    """Update the cluster; return its new master."""
    before = lab.newest(MASTER)
    stack = lab.update(**more)
    assert lab.settled(stack) == "UPDATE_COMPLETE", lab.story()
    master = lab.newest(MASTER)
    assert master is not before
    return master


def issuers(master: Instance) -> list[str]:
    [container] = yaml.safe_load(master.read(MANIFEST))["spec"]["containers"]
    flags = [argument.partition("=")[::2] for argument in container["command"]]
    return [value for name, value in flags if name == "--service-account-issuer"]


def documents(lab: Lab, master: Instance) -> dict[str, Any]:
    bucket = lab.references(master)["issuerBucket"]
    found = lab.account.call("s3", "list_objects_v2", Bucket=bucket).get("Contents", [])
    keys = [content["Key"] for content in found]
    return {
        key: json.loads(lab.account.call("s3", "get_object", Bucket=bucket, Key=key)["Body"].read()) for key in keys
    }


def environment(lab: Lab, master: Instance) -> dict[str, str]:
    """The cloud controller manager's variables."""
    found = lab.kubectl(master, "-n", "kube-system", "get", "daemonset", "cloud-controller-manager")
    [container] = found["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_pod_roles_in_a_living_cluster(empty: Lab) -> None:
    lab = empty
    lab.bring_up()
    assert issuers(lab.newest(MASTER)) == []

    master = updated(lab, serviceAccountIssuer={"discovery": "bucket"}, iam={"addonRoles": False})
    url = f"https://{lab.references(master)['issuer']}"
    assert issuers(master) == [url, "https://kubernetes.default.svc.cluster.local"]
    published = documents(lab, master)
    assert set(published) == DOCUMENTS
    assert published[".well-known/openid-configuration"]["issuer"] == url
    assert [line for line in master.lines if "issuer documents: wrote openid/v1/jwks and " in line]
    assert "AWS_ROLE_ARN" not in environment(lab, master)

    # A document that somebody deletes comes back when the timer runs.
    bucket = lab.references(master)["issuerBucket"]
    lab.account.call("s3", "delete_object", Bucket=bucket, Key="openid/v1/jwks")
    master.run("systemctl", "start", "cfngen-issuer.service")
    assert documents(lab, master) == published

    master = updated(lab, iam={"addonRoles": True})
    assert documents(lab, master) == published
    assert [line for line in master.lines if f"the documents of {url} are published already" in line]
    account = lab.references(master)["accountId"]
    role = "kubernetes.us-west-2.kube-system.cloud-controller-manager"
    assert environment(lab, master)["AWS_ROLE_ARN"] == f"arn:aws:iam::{account}:role/{role}"
