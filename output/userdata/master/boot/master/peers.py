"""The masters as the cluster knows them: their Node objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host.kubectl import ADMIN, kubectl
from ..machine import Machine
from . import instances

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

LABEL = "node-role.kubernetes.io/control-plane"


def masters(machine: Machine, boot: MasterBoot, kubeconfig: str = ADMIN) -> dict[str, str]:
    """Return the Kubernetes version of each master by its Node's name, without former instances of the slots.

    A master's kubelet has the version of its API server. Of several Nodes with one address only the youngest counts:
    the others are of former instances, which EC2 has not terminated yet.

    Raises:
        BootError: no API server answers.
    """
    youngest = {}
    for node in sorted(_master_nodes(machine, kubeconfig), key=lambda item: str(item["metadata"]["creationTimestamp"])):
        addresses = node["status"].get("addresses", [])
        internal = tuple(address["address"] for address in addresses if address["type"] == "InternalIP")
        youngest[internal or node["metadata"]["name"]] = node
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
        for node in youngest.values()
        if not _is_former_instance(boot, node)
    }


def delete_former_nodes(machine: Machine, boot: MasterBoot) -> list[str]:
    """Delete the Node objects of this slot's former instances that are terminated; return their names.

    They have this slot's address and would look like another master that is down for ever.
    """
    names = [node["metadata"]["name"] for node in _master_nodes(machine, ADMIN) if _is_former_instance(boot, node)]
    terminated = [name for name in names if instances.state(machine, name) in instances.TERMINATED_STATES]
    for name in terminated:
        kubectl(machine, "delete", "node", name, "--ignore-not-found", "--wait=false")
    return terminated


def _master_nodes(machine: Machine, kubeconfig: str) -> list[JsonObject]:
    _, text = kubectl(machine, "get", "nodes", "-l", LABEL, "-o", "json", kubeconfig=kubeconfig)
    return list(json.loads(text)["items"])


def _is_former_instance(boot: MasterBoot, node: JsonObject) -> bool:
    """Return whether a Node belongs to a former instance of this slot, i.e. has its address."""
    addresses = [address["address"] for address in node["status"].get("addresses", [])]
    own = node["metadata"]["name"] == boot.facts["instanceId"]
    return not own and boot.facts["privateAddress"] in addresses
