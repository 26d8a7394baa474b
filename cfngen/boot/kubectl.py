"""kubectl, as the cluster's administrator or as the kubelet, against whichever API server answers."""

from __future__ import annotations

import json
from typing import Any

from . import hosts
from .machine import Machine

ADMIN = "/etc/kubernetes/admin.conf"
# A master that falls silent this moment must not use up a whole request: of five addresses a program in Go gives each
# six seconds, of three ten (see `hosts`).
REQUEST_TIMEOUT = "--request-timeout=30s"


def kubectl(
    machine: Machine,
    *arguments: str,
    stdin: str = "",
    expect: tuple[int, ...] = (0,),
    kubeconfig: str = ADMIN,
    timeout: int = 900,
) -> tuple[int, str]:
    """Run kubectl against any API server of the cluster; return its exit code and what it said.

    Raises:
        BootError: another exit code than one of `expect`, or time is up.
    """
    hosts.refresh(machine, kubeconfig)
    return machine.run(*command(kubeconfig), *arguments, stdin=stdin, expect=expect, timeout=timeout)


def command(kubeconfig: str) -> tuple[str, ...]:
    """Return the beginning of kubectl's command line; every call of it in this program has this one."""
    return "kubectl", "--kubeconfig", kubeconfig, REQUEST_TIMEOUT


def own_server(config: dict[str, Any]) -> str:
    """Return the option that makes kubectl ask this master's API server and no other's."""
    return f"--server=https://{config['facts']['privateAddress']}:{config['endpoint'].rpartition(':')[2]}"


def documents(*items: dict[str, Any]) -> str:
    """Return several Kubernetes objects as one text; JSON documents are YAML documents."""
    return "\n---\n".join(json.dumps(item, indent=1) for item in items) + "\n"
