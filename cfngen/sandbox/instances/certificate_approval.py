"""Decides as masters do (`boot.master.csr_approval`) whether a new node gets the certificate with which it joins."""

from __future__ import annotations

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends

from cfngen.sandbox.instances.instance import role_of_instance
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.untyped import MotoModel

CLUSTER_TAG, MASTER_TAG = "KubernetesCluster", "k8s.io/role/master"


def why_no_certificate(cluster: KubernetesCluster, name: str) -> str:
    """Return why the cluster's masters approve no certificate for a node; empty if they do.

    On AWS, only the masters' journals have the reason: the node's kubelet waits in vain.

    Args:
        name: the name that the node claims, which is to be the id of its instance.
    """
    reason = _reason_to_refuse(cluster, name)
    return f"no master approves the certificate request: {reason}" if reason else ""


def _reason_to_refuse(cluster: KubernetesCluster, name: str) -> str:
    try:
        instance: MotoModel = ec2_backends[DEFAULT_ACCOUNT_ID][cluster.region].get_instance(name)
    except EC2ClientError:
        return "there is no such instance"
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    if instance.state != "running" or tags.get(CLUSTER_TAG) != cluster.name:
        return "EC2 has no running instance of this cluster with that id"
    if MASTER_TAG in tags or not role_of_instance(cluster.region, name):
        return "that instance is a master or the bastion"
    node = cluster.state.get("nodes", name) or {"status": {"conditions": []}}
    conditions = {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
    if conditions.get("Ready", "Unknown") != "Unknown":
        return "a kubelet already reports for the Node of that name"
    return ""
