"""Resolves the name of the Kubernetes API by /etc/hosts, to the fixed addresses of all masters.

A program that connects to a name with several addresses tries one after another, so instances need no load balancer.
But an address that does not answer costs time: programs in Go divide 30 seconds among the addresses, ten for each of
three (`net.Dialer`), which may be a request's whole time-out. So the addresses that do not answer are listed last.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..machine import Machine

if TYPE_CHECKING:
    from ..contract import MasterBoot
    from ..state import Boot

HOSTS_FILE = "/etc/hosts"
BLOCK_BEGIN = "# cfngen: the masters of this cluster"
BLOCK_END = "# cfngen: end"


def of_master(machine: Machine, boot: MasterBoot) -> str:
    """Resolve the API's name to this master first, then to the others."""
    this_address = boot.facts["privateAddress"]
    other_addresses = [address for _, address in sorted(boot.config["masters"].items()) if address != this_address]
    return write_addresses(machine, boot.config["apiHost"], [this_address, *other_addresses])


def of_node(machine: Machine, boot: Boot, endpoint: str, addresses: Sequence[str]) -> str:
    """Resolve the API's name to the masters, beginning with one that depends on the node, to spread the load.

    Args:
        machine: the node.
        boot: this run of the program.
        endpoint: the API's name and port.
        addresses: the masters' addresses, from the join information.
    """
    digest = hashlib.sha256(boot.facts["instanceId"].encode()).digest()
    first = int.from_bytes(digest, "big") % len(addresses)
    host, _, port = endpoint.rpartition(":")
    return write_addresses(machine, host, answering_first(machine, [*addresses[first:], *addresses[:first]], int(port)))


def reorder_addresses(machine: Machine, kubeconfig: str) -> None:
    """Reorder the API's addresses in /etc/hosts: those that do not answer now are moved to the end.

    Args:
        machine: the instance.
        kubeconfig: path of the kubeconfig file with the API's name and port; without it, or if /etc/hosts has no such
            name, nothing is changed.
    """
    match = re.search(r"(?m)^ *server: https://([^:/\s]+):(\d+)$", machine.read(kubeconfig))
    if not match:
        return
    addresses = re.findall(rf"(?m)^(\S+) {re.escape(match[1])}$", machine.read(HOSTS_FILE).partition(BLOCK_BEGIN)[2])
    ordered = answering_first(machine, addresses, int(match[2]))
    if ordered != addresses:
        write_addresses(machine, match[1], ordered)


def answering_first(machine: Machine, addresses: Sequence[str], port: int) -> list[str]:
    """Return the addresses, with those that do not answer last.

    The addresses are tried in order until one accepts a connection. An address that refuses the connection at once
    costs no time, so it is not moved, e.g. the address of a master on which the API server does not run yet.
    """
    silent_addresses = []
    for address in addresses:
        try:
            machine.connect(address, port)
            break
        except ConnectionRefusedError:
            continue
        except OSError:
            silent_addresses.append(address)
    return [*(address for address in addresses if address not in silent_addresses), *silent_addresses]


def write_addresses(machine: Machine, host: str, addresses: Sequence[str]) -> str:
    """Write `host` and its `addresses`, in this order, to cfngen's block in /etc/hosts; other lines are not changed."""
    other_lines = []
    is_in_block = False
    for line in machine.read(HOSTS_FILE).splitlines():
        is_in_block = is_in_block or line == BLOCK_BEGIN
        if not is_in_block:
            other_lines.append(line)
        is_in_block = is_in_block and line != BLOCK_END
    block_lines = [BLOCK_BEGIN, *(f"{address} {host}" for address in addresses), BLOCK_END]
    machine.write(HOSTS_FILE, "\n".join([*other_lines, *block_lines, ""]))
    return f"{host} is {', '.join(addresses)}"
