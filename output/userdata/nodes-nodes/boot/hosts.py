"""The name of the Kubernetes API in /etc/hosts: it stands for the masters' fixed addresses, whoever of them is up.

A program that connects to a name with several addresses tries one after another, so no load balancer is needed inside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from .machine import Machine

HOSTS = "/etc/hosts"
BEGIN = "# cfngen: the masters of this cluster"
END = "# cfngen: end"


def of_master(machine: Machine, config: dict[str, Any]) -> str:
    """Let the API's name stand for this master first, then for the others (`config["masters"]`: address by slot)."""
    own = config["facts"]["privateAddress"]
    others = [address for _, address in sorted(config["masters"].items()) if address != own]
    return put(machine, config["apiHost"], [own, *others])


def of_node(machine: Machine, config: dict[str, Any], host: str, addresses: Sequence[str]) -> str:
    """Let the API's name stand for the masters, in an order of this node's own so that nodes spread over them.

    Args:
        machine: the node.
        config: its configuration.
        host: the API's name.
        addresses: the masters' addresses, from the join information.
    """
    digest = hashlib.sha256(config["facts"]["instanceId"].encode()).digest()
    first = int.from_bytes(digest, "big") % len(addresses)
    return put(machine, host, [*addresses[first:], *addresses[:first]])


def put(machine: Machine, host: str, addresses: Sequence[str]) -> str:
    """Make `host` stand for `addresses` in /etc/hosts, in this order; other lines stay as they are."""
    kept, ours = [], False
    for line in machine.read(HOSTS).splitlines():
        ours = ours or line == BEGIN
        if not ours:
            kept.append(line)
        ours = ours and line != END
    machine.write(HOSTS, "\n".join([*kept, BEGIN, *(f"{each} {host}" for each in addresses), END, ""]))
    return f"{host} is {', '.join(addresses)}"
