"""The masters as the cluster knows them: their Node objects."""

from __future__ import annotations

import json
from typing import Any

from . import instances
from .kubectl import ADMIN, kubectl
from .machine import Machine

LABEL = "node-role.kubernetes.io/control-plane"


def masters(machine: Machine, config: dict[str, Any], kubeconfig: str = ADMIN) -> dict[str, str]:
    """Return the Kubernetes version of each master by its Node's name, without former instances of the slots.

    A master's kubelet has the version of its API server. Of Nodes with one address the youngest counts: the others stay
    until EC2 has done away with their instances.

    Raises:
        BootError: no API server answers.
    """
    youngest = {}
    for each in sorted(_nodes(machine, kubeconfig), key=lambda node: str(node["metadata"]["creationTimestamp"])):
        address = [one["address"] for one in each["status"].get("addresses", []) if one["type"] == "InternalIP"]
        youngest[tuple(address) or each["metadata"]["name"]] = each
    return {
        each["metadata"]["name"]: each["status"]["nodeInfo"]["kubeletVersion"]
        for each in youngest.values()
        if not _former(config, each)
    }


def forget(machine: Machine, config: dict[str, Any]) -> list[str]:
    """Delete the Node objects of this slot's former instances, if EC2 has terminated them; return their names.

    They bear this slot's address and would look like another master that never comes back.
    """
    names = [node["metadata"]["name"] for node in _nodes(machine, ADMIN) if _former(config, node)]
    gone = [name for name in names if instances.state(machine, name) in instances.GONE]
    for name in gone:
        kubectl(machine, "delete", "node", name, "--ignore-not-found", "--wait=false")
    return gone


def _nodes(machine: Machine, kubeconfig: str) -> list[dict[str, Any]]:
    _, text = kubectl(machine, "get", "nodes", "-l", LABEL, "-o", "json", kubeconfig=kubeconfig)
    return list(json.loads(text)["items"])


def _former(config: dict[str, Any], node: dict[str, Any]) -> bool:
    """Return whether a Node is that of an instance that had this slot's address before."""
    addresses = [address["address"] for address in node["status"].get("addresses", [])]
    own = node["metadata"]["name"] == config["facts"]["instanceId"]
    return not own and config["facts"]["privateAddress"] in addresses
