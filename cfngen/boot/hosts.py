"""The name of the Kubernetes API in /etc/hosts: it stands for the masters' fixed addresses, whoever of them is up.

A program that connects to a name with several addresses tries one after another, so no load balancer is needed inside.
But one whose packets are lost costs time: programs in Go share 30 seconds out among the addresses, ten for each of
three (`net.Dialer`), which is all that many a request may take. So the addresses that do not answer stand last.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from .machine import Machine

HOSTS = "/etc/hosts"
BEGIN = "# cfngen: the masters of this cluster"
END = "# cfngen: end"


def of_master(machine: Machine, config: dict[str, Any]) -> str:
    """Let the API's name stand for this master first, then for the others (`config["masters"]`: address by slot)."""
    own = config["facts"]["privateAddress"]
    other_addresses = [address for _, address in sorted(config["masters"].items()) if address != own]
    return put(machine, config["apiHost"], [own, *other_addresses])


def of_node(machine: Machine, config: dict[str, Any], endpoint: str, addresses: Sequence[str]) -> str:
    """Let the API's name stand for the masters, in an order of this node's own so that nodes spread over them.

    Args:
        machine: the node.
        config: its configuration.
        endpoint: the API's name and port.
        addresses: the masters' addresses, from the join information.
    """
    digest = hashlib.sha256(config["facts"]["instanceId"].encode()).digest()
    first = int.from_bytes(digest, "big") % len(addresses)
    host, _, port = endpoint.rpartition(":")
    return put(machine, host, answering_first(machine, [*addresses[first:], *addresses[:first]], int(port)))


def refresh(machine: Machine, kubeconfig: str) -> None:
    """Put those addresses of the API's name last that do not answer now.

    Args:
        machine: the instance.
        kubeconfig: path of a file that says under which name and port the API is reached; without it, or without
            addresses of that name, nothing is changed.
    """
    match = re.search(r"(?m)^ *server: https://([^:/\s]+):(\d+)$", machine.read(kubeconfig))
    if not match:
        return
    addresses = re.findall(rf"(?m)^(\S+) {re.escape(match[1])}$", machine.read(HOSTS).partition(BEGIN)[2])
    ordered = answering_first(machine, addresses, int(match[2]))
    if ordered != addresses:
        put(machine, match[1], ordered)


def answering_first(machine: Machine, addresses: Sequence[str], port: int) -> list[str]:
    """Return addresses with those behind the others that do not answer; who comes after one that accepts is not asked.

    One that refuses a connection costs no time and keeps its place: a master's own, whose API server is about to start.
    """
    silent = []
    for address in addresses:
        try:
            machine.connect(address, port)
            break
        except ConnectionRefusedError:
            continue
        except OSError:
            silent.append(address)
    return [*(address for address in addresses if address not in silent), *silent]


def put(machine: Machine, host: str, addresses: Sequence[str]) -> str:
    """Make `host` stand for `addresses` in /etc/hosts, in this order; other lines stay as they are."""
    other_lines, in_own_block = [], False
    for line in machine.read(HOSTS).splitlines():
        in_own_block = in_own_block or line == BEGIN
        if not in_own_block:
            other_lines.append(line)
        in_own_block = in_own_block and line != END
    lines = [f"{address} {host}" for address in addresses]
    machine.write(HOSTS, "\n".join([*other_lines, BEGIN, *lines, END, ""]))
    return f"{host} is {', '.join(addresses)}"
