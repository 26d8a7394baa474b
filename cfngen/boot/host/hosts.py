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
    """Write the API's name to a master's /etc/hosts, with this master's address first, then the other masters'."""
    this_address = boot.facts["privateAddress"]
    other_addresses = [address for _, address in sorted(boot.config["masters"].items()) if address != this_address]
    return write_addresses(machine, boot.config["apiHost"], [this_address, *other_addresses])


def of_node(machine: Machine, boot: Boot, endpoint: str, addresses: Sequence[str]) -> str:
    """Write the API's name with the masters' addresses to a node's /etc/hosts.

    Which address is the first depends on the node's id, to spread the load. Addresses that do not answer are last.

    Args:
        endpoint: the API's name and port.
        addresses: the masters' addresses, from the join information.
    """
    digest = hashlib.sha256(boot.facts["instanceId"].encode()).digest()
    first_index = int.from_bytes(digest, "big") % len(addresses)
    rotated_addresses = [*addresses[first_index:], *addresses[:first_index]]
    host, _, port = endpoint.rpartition(":")
    return write_addresses(machine, host, answering_first(machine, rotated_addresses, int(port)))


def reorder_addresses(machine: Machine, kubeconfig: str) -> None:
    """Reorder the API's addresses in /etc/hosts: those that do not answer now are moved to the end.

    Args:
        kubeconfig: path of the kubeconfig file with the API's name and port; without it, or if /etc/hosts has no such
            name, nothing is changed.
    """
    match = re.search(r"(?m)^ *server: https://([^:/\s]+):(\d+)$", machine.read(kubeconfig))
    if not match:
        return
    host, port = match[1], int(match[2])
    _, _, block = machine.read(HOSTS_FILE).partition(BLOCK_BEGIN)
    addresses = re.findall(rf"(?m)^(\S+) {re.escape(host)}$", block)
    ordered_addresses = answering_first(machine, addresses, port)
    if ordered_addresses != addresses:
        write_addresses(machine, host, ordered_addresses)


def answering_first(machine: Machine, addresses: Sequence[str], port: int) -> list[str]:
    """Return the addresses with those at the end that do not answer.

    The addresses are tried in order until one accepts a connection; the rest keep their places. An address that refuses
    the connection at once costs no time, so it also keeps its place, e.g. that of a master on which the API server does
    not run yet.
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
