"""Runs kubectl, as cluster administrator or as the kubelet, against any API server that answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import Machine
from . import hosts

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

ADMIN_KUBECONFIG = "/etc/kubernetes/admin.conf"
# Long enough to try another address if a master stops answering: a program in Go divides the 30 seconds among the
# addresses, ten for each of three, six for each of five (see `hosts`).
REQUEST_TIMEOUT = "--request-timeout=30s"


def kubectl(
    machine: Machine,
    *arguments: str,
    stdin: str = "",
    expect: tuple[int, ...] = (0,),
    kubeconfig: str = ADMIN_KUBECONFIG,
    timeout: int = 900,
) -> tuple[int, str]:
    """Run kubectl against any API server of the cluster; return its exit code and output."""
    hosts.reorder_addresses(machine, kubeconfig)
    return machine.run(*command_prefix(kubeconfig), *arguments, stdin=stdin, expect=expect, timeout=timeout)


def command_prefix(kubeconfig: str) -> tuple[str, ...]:
    """Return the program and the options with which every kubectl command line starts."""
    return "kubectl", "--kubeconfig", kubeconfig, REQUEST_TIMEOUT


def local_server_option(boot: MasterBoot) -> str:
    """Return the kubectl option that selects this master's own API server."""
    return f"--server=https://{boot.facts['privateAddress']}:{boot.config['endpoint'].rpartition(':')[2]}"


def yaml_documents(*items: JsonObject) -> str:
    """Return Kubernetes objects as one multi-document YAML text (each document is JSON, a subset of YAML)."""
    return "\n---\n".join(json.dumps(item, indent=1) for item in items) + "\n"
