"""Reads the Node objects of the masters, and deletes those of former instances."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host.kubectl import ADMIN_KUBECONFIG, kubectl
from ..machine import Machine
from . import instances

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

MASTER_LABEL = "node-role.kubernetes.io/control-plane"


def master_versions(machine: Machine, boot: MasterBoot, kubeconfig: str = ADMIN_KUBECONFIG) -> dict[str, str]:
    """Return the Kubernetes version of each master, by the Node's name, which is the instance id.

    The version is that of the master's kubelet, which is also that of its API server. Former instances of the slots are
    ignored: if several Nodes have the same address, only the youngest counts.
    """
    oldest_first = sorted(
        _master_nodes(machine, kubeconfig), key=lambda node: str(node["metadata"]["creationTimestamp"])
    )
    youngest_by_address = {}
    for node in oldest_first:
        addresses = node["status"].get("addresses", [])
        internal_addresses = tuple(address["address"] for address in addresses if address["type"] == "InternalIP")
        youngest_by_address[internal_addresses or node["metadata"]["name"]] = node
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
        for node in youngest_by_address.values()
        if not _is_former_instance(boot, node)
    }


def delete_former_nodes(machine: Machine, boot: MasterBoot) -> list[str]:
    """Delete the Node objects of those former instances of this slot that are terminated; return the Nodes' names.

    A former instance's Node has this slot's address, and would look like another master that stays down.
    """
    former_names = [
        node["metadata"]["name"] for node in _master_nodes(machine, ADMIN_KUBECONFIG) if _is_former_instance(boot, node)
    ]
    deleted_names = [name for name in former_names if instances.state(machine, name) in instances.TERMINATED_STATES]
    for name in deleted_names:
        kubectl(machine, "delete", "node", name, "--ignore-not-found", "--wait=false")
    return deleted_names


def _master_nodes(machine: Machine, kubeconfig: str) -> list[JsonObject]:
    _, text = kubectl(machine, "get", "nodes", "-l", MASTER_LABEL, "-o", "json", kubeconfig=kubeconfig)
    return list(json.loads(text)["items"])


def _is_former_instance(boot: MasterBoot, node: JsonObject) -> bool:
    """Return whether a Node belongs to a former instance of this slot: another instance with the slot's address."""
    addresses = [address["address"] for address in node["status"].get("addresses", [])]
    is_this_instance = node["metadata"]["name"] == boot.facts["instanceId"]
    return not is_this_instance and boot.facts["privateAddress"] in addresses
